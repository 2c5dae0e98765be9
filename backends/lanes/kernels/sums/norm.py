"""Normalisations by statistics of the tensor itself."""

from __future__ import annotations

from typing import Any

from bmcompiler.backends.lanes.kernels.sums.reduction import ReductionKernel
from bmcompiler.backends.lanes.kernels.sums.transposed import transposed_inside
from bmcompiler.backends.lanes.recipes import reductions
from bmcompiler.codegen.tiling import TileWork
from bmcompiler.ops.layers.norm import L2Normalize, LayerNorm, Lrn, MeanVarianceNorm, RmsNorm
from bmcompiler.target import rule


class LastAxesNormKernel(ReductionKernel[LayerNorm | RmsNorm]):
    """layer_norm and rms_norm, with factors and offsets along the reduced axes."""

    ops = (LayerNorm, RmsNorm)

    def axes(self, op: LayerNorm | RmsNorm) -> tuple[int, ...]:
        return op.axes()

    def recipe(self, op: LayerNorm | RmsNorm) -> tuple[Any, ...]:
        return (reductions.layer_norm if isinstance(op, LayerNorm) else reductions.rms_norm,)

    def named(self, op: LayerNorm | RmsNorm) -> dict[str, Any]:
        return {"count": self.view(op).count, "epsilon": op.epsilon}


class OverAxesNormKernel(ReductionKernel[L2Normalize | MeanVarianceNorm]):
    """l2_normalize and mean_variance_norm."""

    ops = (L2Normalize, MeanVarianceNorm)

    def axes(self, op: L2Normalize | MeanVarianceNorm) -> tuple[int, ...]:
        return op.axes

    def recipe(self, op: L2Normalize | MeanVarianceNorm) -> tuple[Any, ...]:
        if isinstance(op, L2Normalize):
            return reductions.l2_normalize, op.epsilon
        return reductions.mean_variance_norm, self.view(op).count, op.normalize_variance, op.epsilon


class LrnKernel(ReductionKernel[Lrn]):
    """lrn: squares summed over windows of channels, which lie along h; transfers turn what is in local memory."""

    ops = (Lrn,)

    @rule("The window must have at most {kernel.chip.most_pad} channels on each side", got="size")
    def small_window(self, op: Lrn) -> bool:
        return bool(op.size // 2 <= self.chip.most_pad)

    @rule("k must be positive and alpha not negative")
    def positive_base(self, op: Lrn) -> bool:
        return bool(op.k > 0 and op.alpha >= 0)

    def axes(self, op: Lrn) -> tuple[int, ...]:
        return (1,)

    def recipe(self, op: Lrn) -> tuple[Any, ...]:
        return reductions.local_response, op.size, op.alpha, op.beta, op.k

    def whole(self, op: Lrn) -> TileWork | None:
        """Where the op fits, between other ops in local memory: channels leave their lanes there and come back."""
        transposed = transposed_inside(self, op)
        return transposed if transposed is not None and self.fits(transposed) else super().whole(op)
