"""Normalisations by statistics of the tensor itself.

Reductions over channels of what lies in local memory with a channel per lane: transfers make rows of channels.
"""

from __future__ import annotations

from typing import Any

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import dims4
from bmcompiler.backends.lanes.kernels.sums.reduction import ReductionKernel
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.recipes import Plane, reductions
from bmcompiler.codegen.tiling import TileWork
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.norm import L2Normalize, LayerNorm, Lrn, MeanVarianceNorm, RmsNorm
from bmcompiler.target import rule

_MOST_IMAGES = 8
"""Images, each of which takes two transfers."""


def transposed_inside(kernel: ReductionKernel[Any], op: TensorOp) -> TileWork | None:
    """The whole of an op that keeps the shape of its 4-D operand and works along channels; None for other views.

    The kernel sees (N, lanes, C, w) of a map (N, C, H, W) with lanes * w = H * W pixels.
    """
    if op.type.rank != 4:
        return None
    chip, machine = kernel.chip, kernel.machine
    view, steps, dims = kernel.view(op), kernel.steps(op), dims4(op.result)
    n, c, h, w = dims
    images, lanes, rows, columns = view.shape
    if (images, lanes * columns, rows) != (n, h * w, c) or view.axes != (2,) or n > _MOST_IMAGES:
        return None
    narrow: Shape = (1, c, lanes, columns)  # a channel as the runs of pixels that go to one lane each
    transposed: Shape = (c, lanes, 1, columns)
    if not all(map(chip.fits_fields, (narrow, transposed, dims, view.shape))):
        return None
    by, to = chip.aligned_strides(dims), chip.aligned_strides(view.shape)

    def plain_image(address: int, image: int) -> Words:
        within = chip.plane(address, dims)
        return Words(address + 4 * image * by[0], narrow, (0, by[1], columns, 1), within=within)

    def transposed_image(address: int, image: int) -> Words:
        within = chip.plane(address, view.shape)
        return Words(address + 4 * image * to[0], transposed, (columns, to[1], 0, 1), within=within)

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        *registers, source, target = scratch
        for image in range(n):
            build.transfer(plain_image(ins[0], image), transposed_image(source, image))
        large, small = registers[: steps.registers], registers[steps.registers :]
        steps.emit(build, view.shape, [Plane(source)], target, large, small)
        for image in range(n):
            build.transfer(transposed_image(target, image), plain_image(outs[0], image))

    box = tuple((0, size) for size in dims)
    whole = chip.aligned_bytes(view.shape)
    scratch = (whole,) * steps.registers + (chip.aligned_bytes(view.reduced),) * steps.small_registers + (whole, whole)
    moved = 2 * n * machine.cycles.local_copy(narrow)
    inputs, outputs = (
        (machine.activation_in(op.operands[0], dims, box),),
        (machine.activation_out(op.result, dims, box),),
    )
    return TileWork(inputs, outputs, scratch, compute, steps.cycles(view.shape) + moved, transfers=moved)


class LastAxesNormKernel(ReductionKernel[LayerNorm | RmsNorm]):
    """layer_norm and rms_norm, with factors and offsets along the reduced axes."""

    ops = (LayerNorm, RmsNorm)

    def axes(self, op: LayerNorm | RmsNorm) -> tuple[int, ...]:
        return op.axes()

    def recipe(self, op: LayerNorm | RmsNorm) -> tuple[Any, ...]:
        return (reductions.layer_norm if isinstance(op, LayerNorm) else reductions.rms_norm,)

    def named(self, op: LayerNorm | RmsNorm) -> dict[str, Any]:
        return {"count": self.count(op), "epsilon": op.epsilon}


class OverAxesNormKernel(ReductionKernel[L2Normalize | MeanVarianceNorm]):
    """l2_normalize and mean_variance_norm."""

    ops = (L2Normalize, MeanVarianceNorm)

    def axes(self, op: L2Normalize | MeanVarianceNorm) -> tuple[int, ...]:
        return op.axes

    def recipe(self, op: L2Normalize | MeanVarianceNorm) -> tuple[Any, ...]:
        if isinstance(op, L2Normalize):
            return reductions.l2_normalize, op.epsilon
        return reductions.mean_variance_norm, self.count(op), op.normalize_variance, op.epsilon


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

    def folds(self, op: Lrn) -> bool:
        return False

    def recipe(self, op: Lrn) -> tuple[Any, ...]:
        return reductions.local_response, op.size, op.alpha, op.beta, op.k

    def whole(self, op: Lrn) -> TileWork | None:
        """Where the op fits, between other ops in local memory: channels leave their lanes there and come back."""
        transposed = transposed_inside(self, op)
        return transposed if transposed is not None and self.fits(transposed) else super().whole(op)
