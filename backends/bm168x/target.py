"""What the targets of BM168x chips share: their model file, and planning with a profile of the timing model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any, Generic, TypeVar

from bmcompiler.backends.bm168x.build import FamilyBuild
from bmcompiler.backends.bm168x.codegen import Bm168xProgram, NewBuild, one_net
from bmcompiler.backends.lanes.target import LaneTarget
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.groups.regions import LocalCopier
from bmcompiler.ir import Module
from bmcompiler.target import Target

B = TypeVar("B", bound=FamilyBuild[Any])


class Bm168xTarget(LaneTarget[Bm168xProgram[B]], Generic[B]):
    """Base: a chip says its facts, kernels, pipeline, instruction builder and cycles."""

    @abstractmethod
    def builder(self) -> NewBuild[B]:
        """What kernels emit through."""

    def program(self) -> Callable[[Module, Target, Coefficients, int], Bm168xProgram[B]]:
        return partial(Bm168xProgram, self.builder())

    def copier(self) -> LocalCopier:
        from bmcompiler.backends.lanes.kernels.local_copies import LaneCopier

        return LaneCopier(self.machine())

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

    def model(self, name: str, programs: Sequence[Bm168xProgram[B]]) -> Any:
        """One net with a stage per program."""
        return one_net(name, programs, self.name.upper())

    def command_totals(self, program: Bm168xProgram[B], model: Any) -> dict[str, int]:
        return {f"{engine.name} commands": count for engine, count in program.build.counts.items()}
