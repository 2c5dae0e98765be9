"""Rows of windows become input channels inside local memory, where the input is there as it is."""

from __future__ import annotations

from dataclasses import replace

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import frame_parts
from bmcompiler.backends.lanes.kernels.base import dims4, item_bytes
from bmcompiler.backends.lanes.kernels.conv_geometry import ConvGeometry
from bmcompiler.backends.lanes.kernels.local_copies import copy_cycles
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.groups.regions import whole_box
from bmcompiler.codegen.tiling import Box, TileWork
from bmcompiler.ops.nn import Convolution


def fold_inside(kernel: ConvGeometry, op: Convolution, box: Box, work: TileWork) -> TileWork:
    """`work`, where it is the whole of a convolution that folds rows, on an input that it folds itself, if that fits.

    Its first buffer becomes an area, filled by a transfer for each row of the window. One does for all rows that see
    input for the same results where words hold one image: it reads the map again and again, from another row each time.
    """
    chip, source, item = kernel.chip, dims4(op.input), item_bytes(op.input)
    if not kernel.folds_rows(op) or box != whole_box(op.type.shape):
        return work
    slide = kernel.slide(op, box, (0, kernel.depth(op)))
    before, after = chip.words_of(source, item), chip.words_of(slide.shape, item)
    word = chip.word_item(item)
    by, to = chip.aligned_strides(before, item=word), chip.aligned_strides(after, item=word)
    columns, rows = slide.source[3], kernel.seen_alike(op, slide.source[2], joined=before[0] == 1)

    def written(folded: int) -> tuple[int, int]:
        return chip.plane(folded, slide.shape, item)

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        *inner, folded = scratch
        if kernel.is_partial(op, slide):
            build.fill_frame(folded, slide.shape, item, kernel.border(op), kernel.unloaded(op, slide))
        for tap, taps, y0, y1, first in rows:
            row, lane = divmod(tap * source[1], chip.lanes)
            place = folded + word * (row * to[1] + y0 * to[2] + slide.frame[2])
            maps = taps if before[0] == 1 else before[0]
            shape = (maps, source[1], y1 - y0, columns[1] - columns[0])
            start = ins[0] + word * (first * by[2] + columns[0])
            seen = (by[0] if taps == 1 else op.dilations[0] * by[2], by[1], op.strides[0] * by[2], 1)
            build.transfer(
                Words(start, shape, seen, within=chip.plane(ins[0], source, item), item=word),
                Words(place, (before[0], taps * shape[1], *shape[2:]), to, lane, written(folded), word),
            )
        work.compute(build, [folded, *ins[1:]], outs, inner)

    moved = [(before[0], each.taps * source[1], each.y1 - each.y0, columns[1] - columns[0]) for each in rows]
    if kernel.is_partial(op, slide):
        moved += [part for _, _, part in frame_parts(after, kernel.unloaded(op, slide))]
    transfers = sum(copy_cycles(kernel.machine, shape, item) for shape in moved)
    folded = replace(
        work,
        inputs=(kernel.machine.activation_in(op.input, source, whole_box(source)), *work.inputs[1:]),
        scratch=(*work.scratch, work.inputs[0].lane_bytes),
        compute=compute,
        apart=(),
        cycles=work.cycles + transfers,
        transfers=work.transfers + transfers,
    )
    return folded if kernel.fits(folded) else work
