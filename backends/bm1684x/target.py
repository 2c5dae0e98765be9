"""The BM1684X as a target plugin."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bmcompiler.backends.bm168x.target import Bm168xTarget
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.pipeline import PIPELINE
from bmcompiler.backends.lanes.machine import LaneMachine

if TYPE_CHECKING:
    from bmcompiler.backends.bm168x.codegen import NewBuild
    from bmcompiler.backends.bm1684x.build import Build
    from bmcompiler.backends.lanes.kernels.base import DeviceKernel


class Bm1684xTarget(Bm168xTarget["Build"]):
    """fp32, fp16, bf16 and int8; what has no kernel runs on the host CPU inside the same model."""

    name = "bm1684x"
    precisions: Sequence[str] = ("f32", "f16", "bf16", "int8")
    schemes: Sequence[str] = ("channel",)
    passes = PIPELINE
    facts = CHIP

    def new_machine(self) -> LaneMachine:
        from bmcompiler.backends.bm1684x.machine import machine_for

        return machine_for(self.profile)

    def kinds(self) -> Sequence[type[DeviceKernel[Any]]]:
        from bmcompiler.backends.bm1684x.kernels.table import KINDS

        return KINDS

    def builder(self) -> NewBuild[Build]:
        from bmcompiler.backends.bm1684x.build import Build
        from bmcompiler.backends.bm1684x.machine import cycles_of

        return partial(Build, cycles_of(self.machine).table)

    def disassemble(self, model: Any, net: int | None = None) -> str:
        from bmcompiler.backends.bm1684x.asm import listing

        return listing(model, net)


TARGET = Bm1684xTarget()
