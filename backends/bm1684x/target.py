"""The BM1684X as a target plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bmcompiler.backends.bm168x.target import Bm168xTarget
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.pipeline import PIPELINE
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.target import Kernel

if TYPE_CHECKING:
    from bmcompiler.backends.bm1684x.build import Build
    from bmcompiler.backends.bm1684x.cycles import CycleTable


class Bm1684xTarget(Bm168xTarget["Build"]):
    """fp32, fp16, bf16 and int8; what has no kernel runs on the host CPU inside the same model."""

    name = "bm1684x"
    precisions: Sequence[str] = ("f32", "f16", "bf16", "int8")
    schemes: Sequence[str] = ("channel",)
    passes = PIPELINE
    facts = CHIP

    def machine(self) -> LaneMachine:
        from bmcompiler.backends.bm1684x.machine import MACHINE

        return MACHINE

    def kernels(self) -> Sequence[Kernel[Any]]:
        from bmcompiler.backends.bm1684x.kernels.table import KERNELS

        return KERNELS

    def cycle_table(self, profile: Any) -> CycleTable:
        from bmcompiler.backends.bm1684x import cycles

        return cycles.CycleTable(profile)

    def builder(self) -> type[Build]:
        from bmcompiler.backends.bm1684x.build import Build

        return Build

    def disassemble(self, model: Any, net: int | None = None) -> str:
        """All programs (or one) of a model as text, layer names as comments."""
        from bmcompiler.backends.bm1684x.listing import listing

        return listing(model, net)


TARGET = Bm1684xTarget()
