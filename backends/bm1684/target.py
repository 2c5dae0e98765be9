"""The BM1684 as a target plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bmcompiler.backends.bm168x.target import Bm168xTarget
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.target import Kernel, first_passes, group_layers

if TYPE_CHECKING:
    from bmcompiler.backends.bm1684.build import Build
    from bmcompiler.backends.bm1684.cycles import CycleTable


class Bm1684Target(Bm168xTarget["Build"]):
    """fp32 and int8 in one net; what has no kernel runs on the host CPU inside the same model."""

    name = "bm1684"
    precisions: Sequence[str] = ("f32", "int8")
    facts = CHIP

    def machine(self) -> LaneMachine:
        from bmcompiler.backends.bm1684.machine import MACHINE

        return MACHINE

    def kernels(self) -> Sequence[Kernel[Any]]:
        from bmcompiler.backends.bm1684.kernels import KERNELS

        return KERNELS

    def pipeline(self, precision: str, level: int) -> str:
        """Default passes. Raises UsageError for a precision the chip does not have.

        Calibration is by mean squared error: measured best on the small regression outputs of MTCNN O-Net, and as good
        as kl elsewhere (tests/bm1684/test_bm1684_networks_int8.py).
        """
        self.need_precision(precision)
        before = f"{first_passes('same')},fuse-activation,compose-convs"
        joined, split = (",join-groups,join-upsamples", ",split-deconv,keep-phases") if level > 1 else ("", "")
        floats, groups = "split-means,merge-shortcuts,join-siblings,fill-lanes{kind=floats}", group_layers(level)
        if precision == "f32":
            images = ",permute-parts,split-images" if level > 1 else ""
            return f"{before},{floats}{joined},dead-code{split}{images}{groups}"
        slots, bytes_ = (",fill-image-slots,move-bands", ",fill-lanes{kind=integers}") if level > 1 else ("", "")
        windows = ",window-products,merge-reshapes,cut-inputs" if level > 1 else ""
        quantized = f"{before},sigmoid-pairs,equalize,calibrate{{method=auto}},quantize{{scheme=scale}}"
        return f"{quantized},merge-tables,{floats},dead-code{joined}{slots}{split}{bytes_}{windows}{groups}"

    def cycle_table(self, profile: Any) -> CycleTable:
        from bmcompiler.backends.bm1684 import cycles

        return cycles.CycleTable(profile)

    def builder(self) -> type[Build]:
        from bmcompiler.backends.bm1684.build import Build

        return Build

    def disassemble(self, model: Any, net: int | None = None) -> str:
        """All programs (or one) of a model as text, layer names as comments."""
        from bmcompiler.backends.bm1684.asm import listing

        return listing(model, net)


TARGET = Bm1684Target()
