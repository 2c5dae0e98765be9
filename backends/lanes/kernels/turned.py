"""Reductions over channels of what lies in local memory with a channel per lane: transfers make rows of channels."""

from __future__ import annotations

from bmcompiler.backends.bm1684.build import Build, lane_bytes, side_fields
from bmcompiler.backends.bm1684.chip import local_address
from bmcompiler.backends.bm1684.kernels.base import (
    BYTES_PER_CYCLE,
    TILE_CYCLES,
    activation_in,
    activation_out,
    dims4,
    plane,
)
from bmcompiler.backends.bm1684.kernels.local_copies import fits_fields, transfer_words
from bmcompiler.backends.bm1684.layout import Shape, aligned_strides
from bmcompiler.backends.lanes.kernels.reduction import ReductionKernel
from bmcompiler.backends.lanes.recipes import Plane
from bmcompiler.codegen.tiling import TileWork
from bmcompiler.ops.base import TensorOp

_MOST_IMAGES = 8
"""Images, each of which takes two transfers."""


def turned_inside(kernel: ReductionKernel, op: TensorOp) -> TileWork | None:
    """The whole of an op that keeps the shape of its 4-D operand and works along channels; None for other views.

    The kernel sees (N, lanes, C, w) of a map (N, C, H, W) with lanes * w = H * W pixels.
    """
    if op.type.rank != 4:
        return None
    view, steps, dims = kernel.view(op), kernel.steps(op), dims4(op.result)
    n, c, h, w = dims
    images, lanes, rows, columns = view.shape
    if (images, lanes * columns, rows) != (n, h * w, c) or view.axes != (2,) or n > _MOST_IMAGES:
        return None
    narrow: Shape = (1, c, lanes, columns)  # a channel as the runs of pixels that go to one lane each
    turned: Shape = (c, lanes, 1, columns)
    if not all(map(fits_fields, (narrow, turned, dims, view.shape))):
        return None
    by, to = aligned_strides(dims), aligned_strides(view.shape)
    sides = {"plain": (narrow, (0, by[1], columns, 1)), "turned": (turned, (columns, to[1], 0, 1))}

    def move(build: Build, source: tuple[str, int, int], target: tuple[str, int, int]) -> None:
        """Copy one image; (layout, address of the map, words to the image)."""
        places = {"plain": dims, "turned": view.shape}
        touched = [plane(source[1], places[source[0]])], [plane(target[1], places[target[0]])]
        start, end = (local_address(address + 4 * words) for _, address, words in (source, target))
        fields = side_fields("src", *sides[source[0]]) | side_fields("dst", *sides[target[0]])
        transfer_words(build, start, end, fields, touched)

    def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        *registers, source, target = scratch
        for image in range(n):
            move(build, ("plain", ins[0], image * by[0]), ("turned", source, image * to[0]))
        steps.emit(
            build, view.shape, [Plane(source)], target, registers[: steps.registers], registers[steps.registers :]
        )
        for image in range(n):
            move(build, ("turned", target, image * to[0]), ("plain", outs[0], image * by[0]))

    box = tuple((0, size) for size in dims)
    whole = lane_bytes(view.shape)
    scratch = (whole,) * steps.registers + (lane_bytes(view.reduced),) * steps.small_registers + (whole, whole)
    cycles = steps.cycles(view.shape) + 2 * (n * TILE_CYCLES + op.type.nbytes // BYTES_PER_CYCLE)
    inputs = (activation_in(op.operands[0], dims, box),)
    return TileWork(inputs, (activation_out(op.result, dims, box),), scratch, compute, cycles)
