"""The BM1684X as a target plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bmcompiler.backends.bm168x.target import Bm168xTarget
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.target import Kernel, first_passes, group_layers

if TYPE_CHECKING:
    from bmcompiler.backends.bm1684x.build import Build
    from bmcompiler.backends.bm1684x.cycles import CycleTable

HALVES = ("f16", "bf16")


class Bm1684xTarget(Bm168xTarget["Build"]):
    """fp32, fp16, bf16 and int8; what has no kernel runs on the host CPU inside the same model."""

    name = "bm1684x"
    precisions: Sequence[str] = ("f32", "f16", "bf16", "int8")
    facts = CHIP

    def machine(self) -> LaneMachine:
        from bmcompiler.backends.bm1684x.machine import MACHINE

        return MACHINE

    def kernels(self) -> Sequence[Kernel[Any]]:
        from bmcompiler.backends.bm1684x.kernels.table import KERNELS

        return KERNELS

    def pipeline(self, precision: str, level: int) -> str:
        """Default passes. Raises UsageError for a precision the chip does not have."""
        self.need_precision(precision)
        bytes_ = ",fill-lanes{kind=integers,planned=true}" if level > 1 and precision == "int8" else ""
        split = ",dead-code,join-groups,split-deconv,keep-phases" if level > 1 else ",dead-code"
        if precision == "int8":
            middle = "fuse-activation,calibrate{method=auto},quantize{scheme=channel},half-precision"
        else:
            halves = f",half-precision{{dtype={precision}}}" if precision in HALVES else ""
            middle = f"fold-batch-norm{{scores=true}},fuse-activation{halves},window-products{{floats=true}}"
        last = f"transposed-products,fill-lanes{{kind=floats}}{bytes_}{split}{group_layers(level)}"
        return f"{first_passes('same')},{middle},{last}"

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
