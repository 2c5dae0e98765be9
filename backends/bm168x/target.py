"""What the targets of BM168x chips share: their model file, and planning with a profile of the timing model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeVar

from bmcompiler.backends.bm168x.codegen import Bm168xProgram
from bmcompiler.backends.lanes.target import LaneTarget

P = TypeVar("P", bound=Bm168xProgram[Any])


class Bm168xTarget(LaneTarget[P]):
    """Base: a chip says its facts, kernels, pipeline, code generator and cycles."""

    @abstractmethod
    def cycle_table(self, profile: Any) -> Any:
        """The table of cycles under a profile; that of `machine().cycles` is replaced by it."""

    def planning_modules(self) -> Sequence[ModuleType]:
        """Modules whose functions remember what they decided by cycles."""
        from bmcompiler.backends.lanes.kernels import broadcast, interpolate, reduced_view

        return broadcast, interpolate, reduced_view

    @contextmanager
    def planned_with(self, profile: Any) -> Iterator[None]:
        """Plan with the cycles of a profile of the timing model, None = the default one."""
        machine = self.machine()
        cycles: Any = machine.cycles
        before = cycles.table

        def take(table: Any) -> None:
            cycles.table = table
            machine.plan_anew()
            for module in self.planning_modules():
                for found in vars(module).values():
                    if hasattr(found, "cache_clear"):
                        found.cache_clear()

        if profile is None or profile == before.profile:
            yield
            return
        take(self.cycle_table(profile))
        try:
            yield
        finally:
            take(before)

    def model(self, name: str, programs: Sequence[P]) -> Any:
        """One net with a stage per program."""
        from bmcompiler.backends.bm168x.codegen import one_net

        return one_net(name, programs)

    def command_totals(self, program: P, model: Any) -> dict[str, int]:
        return {f"{engine.name} commands": count for engine, count in program.build.counts.items()}
