"""What the targets of BM168x chips share: their code generator and their model file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
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
    """Base: a chip says its facts, machine, kernels, pipeline and instruction builder."""

    free_borders = True

    @abstractmethod
    def builder(self) -> NewBuild[B]:
        """What kernels emit through."""

    def program(self) -> Callable[[Module, Target, Coefficients, int], Bm168xProgram[B]]:
        return partial(Bm168xProgram, self.builder())

    def copier(self) -> LocalCopier:
        from bmcompiler.backends.lanes.kernels.moves.local_copies import LaneCopier

        return LaneCopier(self.machine)

    def model(self, name: str, programs: Sequence[Bm168xProgram[B]]) -> Any:
        return one_net(name, programs, self.name.upper())

    def command_totals(self, program: Bm168xProgram[B], model: Any) -> dict[str, int]:
        return {f"{engine.name} commands": count for engine, count in program.build.counts.items()}
