"""The BM1684 as a target plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bmcompiler.backends.bm168x.target import Bm168xTarget
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.pipeline import PIPELINE
from bmcompiler.backends.lanes.machine import LaneMachine

if TYPE_CHECKING:
    from bmcompiler.backends.bm1684.build import Build
    from bmcompiler.backends.lanes.kernels.base import DeviceKernel


class Bm1684Target(Bm168xTarget["Build"]):
    """fp32 and int8 in one net; what has no kernel runs on the host CPU inside the same model."""

    name = "bm1684"
    precisions: Sequence[str] = ("f32", "int8")
    schemes: Sequence[str] = ("scale",)
    passes = PIPELINE
    facts = CHIP

    def new_machine(self) -> LaneMachine:
        from bmcompiler.backends.bm1684.machine import machine_for

        return machine_for(self.profile)

    def kinds(self) -> Sequence[type[DeviceKernel[Any]]]:
        from bmcompiler.backends.bm1684.kernels import KINDS

        return KINDS

    def builder(self) -> type[Build]:
        from bmcompiler.backends.bm1684.build import Build

        return Build

    def disassemble(self, model: Any, net: int | None = None) -> str:
        from bmcompiler.backends.bm1684.asm import listing

        return listing(model, net)


TARGET = Bm1684Target()
