"""Reductions over channels of what lies in local memory with a channel per lane: transfers make rows of channels."""

from __future__ import annotations

from typing import Any

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import dims4
from bmcompiler.backends.lanes.kernels.sums.reduction import ReductionKernel
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.recipes import Plane
from bmcompiler.codegen.tiling import TileWork
from bmcompiler.ops.base import TensorOp

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
