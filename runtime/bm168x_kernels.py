"""What devices for kernels of the BM168x chips share: launches, whole or by steps, and what is found out about one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from bmcompiler.bmodel.bm168x import Bm168xStage, CommandGroup, TpuSubnet
from bmcompiler.chip import LaneChip
from bmcompiler.runtime.bm168x_debugger import Called, Stepper, need_sound
from bmcompiler.runtime.kernel_memory import KernelMemory
from bmcompiler.runtime.simulator.bm168x.analysis import ChipAnalyzer, StageAnalysis
from bmcompiler.runtime.simulator.plan import Plan


class KernelProgram(Called, Protocol):
    """What one call of a kernel issued."""

    @property
    def name(self) -> str: ...

    @property
    def groups(self) -> Sequence[CommandGroup]:
        """The streams of each run of ids."""

    def layers(self) -> bytes:
        """The calls that issued the commands, as a model's list of layers has them."""


ProgramT = TypeVar("ProgramT", bound=KernelProgram)


class Bm168xKernels(KernelMemory, Generic[ProgramT]):
    """A simulated chip that runs kernels.

    Args:
        base: first address of global memory. global_bytes: how much of it there is.
        planned: what executes streams on the memories of this device. analyzer: what the chip knows of stages.
    """

    def __init__(
        self,
        chip: LaneChip,
        base: int,
        global_bytes: int,
        planned: Callable[[Sequence[CommandGroup]], Plan],
        analyzer: ChipAnalyzer,
    ) -> None:
        super().__init__(base, global_bytes)
        self._chip, self._planned, self._analyzer = chip, planned, analyzer

    def launch(self, program: ProgramT, *, check: bool = False) -> None:
        """Run what a kernel issued.

        Args:
            check: first look for races and for reads of local memory that no call of the kernel wrote.

        Raises:
            SimulatorError: what the chip refuses; names the call and the command. RuntimeUseError: what `check` found.
        """
        if check:
            need_sound(self.analyze(program), self._chip)
        with program.naming_calls():
            self._planned(program.groups).run()

    def debug(self, program: ProgramT) -> Stepper:
        """A launch that goes on by `step` and `run`. Raises SimulatorError for what the chip refuses."""
        with program.naming_calls():
            return Stepper(program, self._planned(program.groups))

    def analyze(self, program: ProgramT) -> StageAnalysis:
        """Its `timing()` by a model of the chip, `races()` between commands that no wait orders, and `trace()`.

        Raises SimulatorError for commands that would wait for ever.
        """
        subnet, base = TpuSubnet(list(program.groups), [], []), self._base
        stage = Bm168xStage([], [], base, self._global.size, [subnet], coeff_address=base, layers=program.layers())
        return self._analyzer.of_stage(program.name, stage)
