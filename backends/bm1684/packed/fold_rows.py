"""Rows of windows become input channels inside local memory, where the input is there as it is."""

from __future__ import annotations

from dataclasses import replace

from bmcompiler.backends.bm1684.build import Build, side_fields
from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.kernels.base import activation_in, dims4, item_bytes, plane, words_of
from bmcompiler.backends.bm1684.kernels.local_copies import transfer_words
from bmcompiler.backends.bm1684.layout import aligned_strides
from bmcompiler.backends.lanes.kernels.conv_geometry import ConvGeometry
from bmcompiler.codegen.tiling import TileWork
from bmcompiler.ops.base import TensorOp


def fold_inside(kernel: ConvGeometry, op: TensorOp, work: TileWork) -> TileWork:
    """`work`, the whole of a convolution that folds rows, on an input that it folds itself.

    Its first buffer becomes an area, filled by a transfer for each row of the window.
    """
    source, item = dims4(op.input), item_bytes(op.input)
    whole = tuple((0, size) for size in source)
    slide = kernel.slide(op, tuple((0, size) for size in op.type.shape), (0, kernel.depth(op)))
    before, after = words_of(source, item), words_of(slide.shape, item)
    by, to = aligned_strides(before), aligned_strides(after)
    columns = slide.source[3]

    def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        *inner, folded = scratch
        if kernel.is_partial(op, slide):
            build.fill_frame(folded, slide.shape, item, kernel.border(op), kernel.unloaded(op, slide))
        for tap, (y0, y1, first) in enumerate(kernel.all_rows_seen(op, slide.source[2])):
            if y0 == y1:
                continue
            row, lane = divmod(tap * source[1], CHIP.lanes)
            place = folded + 4 * (row * to[1] + y0 * to[2] + slide.frame[2])
            shape = (before[0], source[1], y1 - y0, columns[1] - columns[0])
            start = local_address(ins[0] + 4 * (first * by[2] + columns[0]))
            seen = side_fields("src", shape, (by[0], by[1], op.strides[0] * by[2], 1))
            touched = [plane(ins[0], source, item)], [plane(folded, slide.shape, item)]
            transfer_words(build, start, local_address(place, lane), seen | side_fields("dst", shape, to), touched)
        work.compute(build, [folded, *ins[1:]], outs, inner)

    inputs = (activation_in(op.input, source, whole), *work.inputs[1:])
    return replace(work, inputs=inputs, scratch=(*work.scratch, work.inputs[0].lane_bytes), compute=compute)
