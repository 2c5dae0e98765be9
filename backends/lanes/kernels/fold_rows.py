"""Rows of windows become input channels inside local memory, where the input is there as it is."""

from __future__ import annotations

from dataclasses import replace

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import frame_parts
from bmcompiler.backends.lanes.kernels.base import dims4, item_bytes
from bmcompiler.backends.lanes.kernels.conv_geometry import ConvGeometry
from bmcompiler.backends.lanes.kernels.local_copies import copy_cycles
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.tiling import TileWork
from bmcompiler.ops.nn import Convolution


def fold_inside(kernel: ConvGeometry, op: Convolution, work: TileWork) -> TileWork:
    """`work`, the whole of a convolution that folds rows, on an input that it folds itself.

    Its first buffer becomes an area, filled by a transfer for each row of the window.
    """
    chip, source, item = kernel.chip, dims4(op.input), item_bytes(op.input)
    whole = tuple((0, size) for size in source)
    slide = kernel.slide(op, tuple((0, size) for size in op.type.shape), (0, kernel.depth(op)))
    before, after = chip.words_of(source, item), chip.words_of(slide.shape, item)
    word = chip.word_item(item)
    by, to = chip.aligned_strides(before, item=word), chip.aligned_strides(after, item=word)
    columns, rows = slide.source[3], kernel.all_rows_seen(op, slide.source[2])

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        *inner, folded = scratch
        if kernel.is_partial(op, slide):
            build.fill_frame(folded, slide.shape, item, kernel.border(op), kernel.unloaded(op, slide))
        for tap, (y0, y1, first) in enumerate(rows):
            if y0 == y1:
                continue
            row, lane = divmod(tap * source[1], chip.lanes)
            place = folded + word * (row * to[1] + y0 * to[2] + slide.frame[2])
            shape = (before[0], source[1], y1 - y0, columns[1] - columns[0])
            start = ins[0] + word * (first * by[2] + columns[0])
            seen = (by[0], by[1], op.strides[0] * by[2], 1)
            build.transfer(
                Words(start, shape, seen, within=chip.plane(ins[0], source, item), item=word),
                Words(place, shape, to, lane, chip.plane(folded, slide.shape, item), word),
            )
        work.compute(build, [folded, *ins[1:]], outs, inner)

    moved = [(before[0], source[1], y1 - y0, columns[1] - columns[0]) for y0, y1, _ in rows if y0 < y1]
    if kernel.is_partial(op, slide):
        moved += [part for _, _, part in frame_parts(after, kernel.unloaded(op, slide))]
    return replace(
        work,
        inputs=(kernel.machine.activation_in(op.input, source, whole), *work.inputs[1:]),
        scratch=(*work.scratch, work.inputs[0].lane_bytes),
        compute=compute,
        apart=(),
        cycles=work.cycles + sum(copy_cycles(kernel.machine, shape, item) for shape in moved),
    )
