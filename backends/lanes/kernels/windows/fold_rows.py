"""Rows of windows become input channels inside local memory, where the input is there as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Range, Shape, frame_parts
from bmcompiler.backends.lanes.kernels.base import dims4, item_bytes
from bmcompiler.backends.lanes.kernels.moves.lane_rows import LaneRows, lane_rows
from bmcompiler.backends.lanes.kernels.moves.local_copies import copy_cycles
from bmcompiler.backends.lanes.kernels.windows.conv_geometry import ConvGeometry
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.groups.regions import whole_box
from bmcompiler.codegen.stream import Stream
from bmcompiler.codegen.tiling import Box, Buffer, TileWork
from bmcompiler.ops.layers.nn import Convolution

Rows = tuple[int, int]
_PARTS = (2, 4)
"""Into how many parts results may be cut."""


def fold_inside(
    kernel: ConvGeometry, op: Convolution, box: Box, work: TileWork, make: Callable[[Box], TileWork] | None = None
) -> TileWork:
    """`work`, where it is the whole of a convolution that folds rows, on an input that it folds itself, if that fits.

    Its first buffer becomes an area, filled by a transfer for each row of the window. With `make`, which says the work
    for a box of packed results, some rows may be computed while those below are folded.
    """
    if not kernel.folds_rows(op) or box != whole_box(op.type.shape):
        return work
    layout = lane_rows(op.input)
    folding = _Folding(kernel, op, box) if layout is None else _LaneFolding(kernel, op, box, layout)
    parts = [(box[2], work)] if make is None else folding.parts(box, work, make)
    steps = folding.line, kernel.chip.word_item(item_bytes(op.result)) * op.type.shape[3]

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        *inner, folded = scratch
        folding.fill(build, folded)
        for rows, part in parts:
            folding.fold(build, ins[0], folded, rows)
            read, written = (step * (rows[0] - box[2][0]) for step in steps)
            part.compute(build, [folded + read, *ins[1:]], [outs[0] + written], inner)

    stream = folding.stream(parts)
    transfers = sum(stream.loads)
    folded = replace(
        work,
        inputs=(folding.buffer(), *work.inputs[1:]),
        scratch=(*work.scratch, folding.folded_bytes),
        compute=compute,
        apart=(),
        cycles=round(stream.times(0, 0)[0]),
        stream=stream if len(parts) > 1 else None,
        transfers=transfers if len(parts) == 1 else 0,
    )
    return folded if kernel.fits(folded) else work


class _Folding:
    """The transfers that fold the input of a convolution.

    One does for all rows of the window that see input for the same results where words hold one image: it reads the map
    again and again, from another row each time.
    """

    def __init__(self, kernel: ConvGeometry, op: Convolution, box: Box) -> None:
        self.kernel, self.op, self.chip = kernel, op, kernel.chip
        self.item, self.source = item_bytes(op.input), dims4(op.input)
        self.slide = kernel.slide(op, box, (0, kernel.depth(op)))
        self.before, self.after = (self.chip.words_of(s, self.item) for s in (self.source, self.slide.shape))
        self.word = self.chip.word_item(self.item)
        self.line = self.word * self.after[3]
        """Bytes from row to row of what is folded."""

    @property
    def folded_bytes(self) -> int:
        """Of a lane, for what is folded."""
        return self.chip.aligned_bytes(self.slide.shape, self.item)

    @property
    def _is_partial(self) -> bool:
        return self.kernel.is_partial(self.op, self.slide)

    @property
    def _filling(self) -> int:
        parts = frame_parts(self.after, self.kernel.unloaded(self.op, self.slide)) if self._is_partial else ()
        return sum(copy_cycles(self.kernel.machine, shape, self.item) for _, _, shape in parts)

    def buffer(self) -> Buffer:
        """What is folded, as other ops leave it."""
        return self.kernel.machine.activation_in(self.op.input, self.source, whole_box(self.source))

    def fill(self, build: LaneBuild, folded: int) -> None:
        """Where no input is seen."""
        if self._is_partial:
            frame = self.kernel.unloaded(self.op, self.slide)
            build.fill_frame(folded, self.slide.shape, self.item, self.kernel.border(self.op), frame)

    def cycles(self, rows: Rows) -> int:
        """Cycles of `fold`."""
        columns, machine = self.slide.source[3], self.kernel.machine
        shapes = [
            (self.before[0], each.taps * self.source[1], each.y1 - each.y0, columns[1] - columns[0])
            for each in self.kernel.seen_alike(self.op, rows, joined=self.before[0] == 1)
        ]
        return sum(copy_cycles(machine, shape, self.item) for shape in shapes)

    def fold(self, build: LaneBuild, source: int, folded: int, rows: Rows) -> None:
        """What the results of some rows see."""
        chip, op, word, before = self.chip, self.op, self.word, self.before
        by, to = chip.aligned_strides(before, item=word), chip.aligned_strides(self.after, item=word)
        columns, touched = self.slide.source[3], self._touched(folded, rows)
        for tap, taps, y0, y1, first in self.kernel.seen_alike(op, rows, joined=before[0] == 1):
            row, lane = divmod(tap * self.source[1], chip.lanes)
            place = folded + word * (row * to[1] + y0 * to[2] + self.slide.frame[2])
            maps = taps if before[0] == 1 else before[0]
            shape = (maps, self.source[1], y1 - y0, columns[1] - columns[0])
            start = source + word * (first * by[2] + columns[0])
            seen = (by[0] if taps == 1 else op.dilations[0] * by[2], by[1], op.strides[0] * by[2], 1)
            build.transfer(
                Words(start, shape, seen, within=chip.plane(source, self.source, self.item), item=word),
                Words(place, (before[0], taps * shape[1], *shape[2:]), to, lane, touched, word),
            )

    def _touched(self, folded: int, rows: Rows) -> Range:
        """The bytes of a lane in which rows lie; all if these are not one run."""
        if rows == self.slide.source[2]:
            return self.chip.plane(folded, self.slide.shape, self.item)
        return folded + self.line * rows[0], folded + self.line * rows[1]

    def parts(self, box: Box, work: TileWork, make: Callable[[Box], TileWork]) -> Sequence[tuple[Rows, TileWork]]:
        """Rows of results with their work, of all choices those that end first."""
        choices = [[(box[2], work)]]
        one_run = self.after[0] == 1 and max(self.slide.shape[1], self.op.type.shape[1]) <= self.chip.lanes
        depth = (0, self.kernel.depth(self.op))
        alike = self.kernel.slide(self.op, (*box[:2], (0, 1), box[3]), depth).shape[3] == self.slide.shape[3]
        for count in _PARTS if one_run and alike else ():  # parts may leave out columns that no window reaches
            height, line = box[2][1], self.chip.word_item(item_bytes(self.op.result)) * self.op.type.shape[3]
            step = -(-height // count)
            while step * self.line % self.chip.alignment or step * line % self.chip.alignment:
                step += 1
            cuts = [(y, min(y + step, height)) for y in range(0, height, step)]
            choices.append([(rows, make((*box[:2], rows, box[3]))) for rows in cuts])
        return min(choices, key=lambda parts: self.stream(parts).times(0, 0)[0])

    def stream(self, parts: Sequence[tuple[Rows, TileWork]]) -> Stream:
        """The works one after the other, each on what is folded while others are computed; two places wait for none."""
        first, *others = (self.cycles(rows) for rows, _ in parts)
        return Stream((0, 0, *(work.cycles for _, work in parts)), (self._filling + first, *others), 0, False)


class _LaneFolding(_Folding):
    """The same from rows in lanes: a transfer for as many rows of the window as lie together."""

    def __init__(self, kernel: ConvGeometry, op: Convolution, box: Box, layout: LaneRows) -> None:
        super().__init__(kernel, op, box)
        self.layout, self.taps = layout, op.weight.shape[2]

    def buffer(self) -> Buffer:
        return self.layout.buffer(self.chip, self.op.input)

    def _shapes(self, rows: Rows) -> Iterator[tuple[int, Shape]]:
        """(first row of the window, maps, lanes, 1, columns) of the transfers of `fold`."""
        columns, channels, step = self.slide.source[3], self.source[1], self.layout.step
        for tap in range(0, self.taps, step):
            maps = min(step, self.taps - tap) * channels
            yield tap, (maps, rows[1] - rows[0], 1, columns[1] - columns[0])

    def cycles(self, rows: Rows) -> int:
        return sum(copy_cycles(self.kernel.machine, shape, self.item) for _, shape in self._shapes(rows))

    def fold(self, build: LaneBuild, source: int, folded: int, rows: Rows) -> None:
        chip, word, before = self.chip, self.word, self.layout.words
        by, to = chip.aligned_strides(before, item=word), chip.aligned_strides(self.after, item=word)
        read, touched = chip.plane(source, before), self._touched(folded, rows)
        for tap, (maps, count, _, width) in self._shapes(rows):
            above, first = divmod(rows[0] + tap // self.layout.step, chip.lanes)
            row, lane = divmod(tap * self.source[1], chip.lanes)
            start = source + word * (above * by[1] + self.slide.source[3][0])
            place = folded + word * (row * to[1] + rows[0] * to[2] + self.slide.frame[2])
            build.transfer(
                Words(start, (maps, count, 1, width), (by[2], by[1], 0, 1), first, read, word),
                Words(place, (1, maps, count, width), to, lane, touched, word),
            )
