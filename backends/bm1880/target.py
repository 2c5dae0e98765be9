"""The BM1880 as a target plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.pipeline import PIPELINE
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.target import LaneTarget
from bmcompiler.codegen.groups.regions import LocalCopier

if TYPE_CHECKING:
    from bmcompiler.backends.bm1880.codegen import Bm1880Program
    from bmcompiler.backends.lanes.kernels.base import DeviceKernel
    from bmcompiler.bmnet.inst import TensorInst
    from bmcompiler.bmodel.bm1880 import Command


class Bm1880Target(LaneTarget["Bm1880Program"]):
    """int8 with power-of-two scales; everything else runs on the host CPU inside the same model."""

    name = "bm1880"
    precisions: Sequence[str] = ("int8",)
    passes = PIPELINE
    facts = CHIP

    def new_machine(self) -> LaneMachine:
        from bmcompiler.backends.bm1880.machine import machine_for

        return machine_for(self.profile)

    def kinds(self) -> Sequence[type[DeviceKernel[Any]]]:
        from bmcompiler.backends.bm1880.kernels import KINDS

        return KINDS

    def copier(self) -> LocalCopier:
        from bmcompiler.backends.bm1880.kernels.local_copies import ByteCopier

        return ByteCopier(self.machine)

    @property
    def custom_inst(self) -> type[TensorInst]:
        """Base class of instruction classes of custom layers."""
        from bmcompiler.backends.bm1880.custom import CustomizedTensorFixedInst

        return CustomizedTensorFixedInst

    def program(self) -> type[Bm1880Program]:
        from bmcompiler.backends.bm1880.codegen import Bm1880Program

        return Bm1880Program

    def model(self, name: str, programs: Sequence[Bm1880Program]) -> Any:
        """One command per program; all share one weight set."""
        from bmcompiler.bmodel.bm1880 import Bm1880Model

        commands = [program.command() for program in programs]
        return Bm1880Model(name, commands, [programs[0].coefficients.blob()], producer="bmcompiler")

    def command_totals(self, program: Bm1880Program, model: Any) -> dict[str, int]:
        return {"command bytes": len(model.commands[0].cmdbuf)}

    def disassemble(self, model: Any, net: int | None = None) -> str:
        chosen = list(enumerate(model.commands)) if net is None else [(net, model.commands[net])]
        return "\n".join(f"// program {index}\n{_listing(command)}" for index, command in chosen)


def _listing(command: Command) -> str:
    from bmcompiler.backends.bm1880.asm import disassemble
    from bmcompiler.bmodel.layers import decode_layers, titled

    lines = disassemble(command.cmdbuf).splitlines(keepends=True)
    return "".join(titled(lines, decode_layers(command.layers, len(lines))))


TARGET = Bm1880Target()
