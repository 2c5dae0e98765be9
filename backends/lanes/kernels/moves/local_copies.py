"""Feature maps joined, repeated and copied in local memory, as words whatever their elements."""

from __future__ import annotations

from functools import partial
from itertools import accumulate

import numpy as np

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import LaneFacts, Shape, Strides
from bmcompiler.backends.lanes.kernels.base import dims4, item_bytes
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.groups.regions import RANK, LocalCopier, StridedCopy, as_shape
from bmcompiler.codegen.portion import Portion
from bmcompiler.codegen.tiling import Box, Contents, TileWork
from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.ops.places.shape import Pad, Slice, Upsample


class LaneCopier(LocalCopier):
    """Copies by the execution units; by transfers, which keep the order of elements, where the shape changes."""

    def __init__(self, machine: LaneMachine) -> None:
        self.machine, self.chip = machine, machine.chip

    @property
    def facts(self) -> LaneFacts:
        """Of the chip."""
        return self.machine.chip

    def stored(self, value: Value, dims: Shape) -> tuple[Shape, int]:
        item = item_bytes(value)
        return self.facts.words_of(dims, item), self.facts.word_item(item)

    def grain(self, value: Value) -> Shape:
        """Rows of products lie in lanes, and those of what groups see as one matrix."""
        rows = self.facts.rows_in_lanes and (isinstance(value.op, Matmul) or value.type.rank != RANK)
        return (1, 1, self.facts.lanes, self.facts.lanes) if rows else super().grain(value)

    def images_per_element(self, value: Value) -> int:
        return self.facts.image_slots(item_bytes(value))

    def reshapes(self, source: Contents, target: Contents) -> bool:
        """Images that share words must stay where they are."""
        if not all(isinstance(size, int) for contents in (source, target) for size in as_shape(contents.layout)):
            return False
        (n, *_), (m, *_) = as_shape(source.layout), as_shape(target.layout)
        return self.images_per_element(source.value) == 1 or n == m

    def cycles(self, strided: StridedCopy) -> int:
        item = strided.source[1][3]
        if strided.reshaped is not None:
            return copy_cycles(self.machine, strided.shape, item)
        return self.machine.cycles.pass_cycles(strided.shape, item)

    def transfers(self, strided: StridedCopy) -> int:
        return 0 if strided.reshaped is None else self.cycles(strided)

    def copy(self, source: Contents, target: Contents) -> StridedCopy | None:
        found = super().copy(source, target)
        if found is None or item_bytes(source.value) > max(self.facts.word, self.facts.most_item):
            return None
        if found.reshaped is None:
            return found if self.facts.fits_fields(found.shape) else None
        sides = [self._in_rows(shape) for shape in (found.shape, found.reshaped)]
        return found if all(map(self.facts.fits_fields, sides)) else None

    def emit(self, build: LaneBuild, strided: StridedCopy, source: int, target: int) -> None:
        (start, by), (end, to) = strided.source, strided.target
        item = by[3]
        read, written = (source, source + strided.source_bytes), (target, target + strided.target_bytes)
        if strided.reshaped is None:
            out = Words(target + end, strided.shape, _in_words(to), within=written, item=item)
            build.copy(Words(source + start, strided.shape, _in_words(by), within=read, item=item), out)
            return
        sides = (source, strided.shape, by, read), (target, strided.reshaped, to, written)
        rows = ((address, self._in_rows(shape), steps, touched) for address, shape, steps, touched in sides)
        build.transfer(*(Words(at, shape, _of_rows(shape, to), within=all, item=item) for at, shape, to, all in rows))

    def _in_rows(self, shape: Shape) -> Shape:
        """A shape of a single row, cut into rows that a field can say."""
        n, c, h, w = shape
        fitting = (count for count in range(1, w + 1) if w % count == 0 and w // count <= self.facts.most_size)
        rows = next(fitting, 1)
        return n, c, h * rows, w // rows


def _in_words(strides: Strides) -> Strides:
    """Strides in bytes, of which that along w is a word, in words."""
    n, c, h, w = (step // strides[3] for step in strides)
    return n, c, h, w


def _of_rows(rows: Shape, steps: Strides) -> Strides:
    n, c, _, _ = _in_words(steps)
    return n, c, rows[3], 1


def copy_cycles(machine: LaneMachine, shape: Shape, item: int) -> int:
    """Cycles of a transfer, inside local memory, of the words that hold elements of `item` bytes."""
    return machine.cycles.local_copy(shape, machine.chip.word_item(item))


def join_channels(machine: LaneMachine, op: TensorOp, box: Box) -> TileWork | None:
    """Concatenation along channels of a `box` with all of them; None where that is not possible.

    Parts that begin at lane 0 are copied by the execution units, the others by transfers.
    """
    chip, item, total = machine.chip, item_bytes(op.result), extents(box)
    if any(place % chip.image_slots(item) and place != op.type.shape[0] for place in box[0]):
        return None  # images that share words stay together
    counts = [dims4(value)[1] for value in op.operands]
    starts = [0, *accumulate(counts)][:-1]
    boxes: list[Box] = [(box[0], (0, count), *box[2:]) for count in counts]
    inputs = tuple(machine.activation_in(v, dims4(v), part) for v, part in zip(op.operands, boxes))
    whole = chip.words_of(total, item)
    word = chip.word_item(item)
    to = chip.aligned_strides(whole, item=word)

    def put(build: LaneBuild, place: int, target: int, part: Box, start: int) -> None:
        shape, (row, lane) = chip.words_of(extents(part), item), divmod(start, chip.lanes)
        source = Words(place, shape, within=chip.plane(place, extents(part), item), item=word)
        joined = Words(target + word * row * to[1], shape, to, lane, chip.plane(target, total, item), word)
        (build.transfer if lane else build.copy)(source, joined)

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        for place, portion in zip(ins, portions):
            portion.emit(build, place, outs[0])

    out = machine.activation_out(op.result, dims4(op.result), box)
    lanes, shapes = [start % chip.lanes for start in starts], (chip.words_of(extents(part), item) for part in boxes)
    cycles = [_part_cycles(machine, shape, item, lane) for shape, lane in zip(shapes, lanes)]
    portions = tuple(
        Portion(taken, taken if lane else 0, partial(put, part=part, start=start))
        for taken, lane, part, start in zip(cycles, lanes, boxes, starts)
    )
    transfers = sum(portion.transfers for portion in portions)
    work = TileWork(inputs, (out,), (), compute, sum(cycles), transfers=transfers, portions=portions)
    return work if machine.fits(work) else None


def take_channels(machine: LaneMachine, op: Slice, box: Box) -> TileWork | None:
    """A slice of channels, `box` of its result; like parts of a concatenation, by transfers beside lane 0."""
    chip, item, first = machine.chip, item_bytes(op.result), op.starts[1] + box[1][0]
    if any(place % chip.image_slots(item) and place != op.type.shape[0] for place in box[0]):
        return None  # images that share words stay together
    around: Box = (box[0], (0, op.x.shape[1]), *box[2:])
    word, shape, total = chip.word_item(item), chip.words_of(extents(box), item), chip.words_of(extents(around), item)
    by, (row, lane) = chip.aligned_strides(total, item=word), divmod(first, chip.lanes)

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        read = chip.plane(ins[0], extents(around), item)
        source = Words(ins[0] + word * row * by[1], shape, by, lane, read, word)
        target = Words(outs[0], shape, within=chip.plane(outs[0], extents(box), item), item=word)
        (build.transfer if lane else build.copy)(source, target)

    inputs = (machine.activation_in(op.x, dims4(op.x), around),)
    out = machine.activation_out(op.result, dims4(op.result), box)
    cycles = _part_cycles(machine, shape, item, lane)
    work = TileWork(inputs, (out,), (), compute, cycles, transfers=cycles if lane else 0)
    return work if machine.fits(work) else None


def pad_channels(machine: LaneMachine, op: Pad, box: Box) -> TileWork | None:
    """Constant channels around those of the operand: the execution units fill all, the operand is copied over."""
    chip, item, total, before = machine.chip, item_bytes(op.result), extents(box), op.pads[2]
    part: Box = (box[0], (0, op.x.shape[1]), *box[2:])
    word, shape, whole = chip.word_item(item), chip.words_of(extents(part), item), chip.words_of(total, item)
    to, (row, lane) = chip.aligned_strides(whole, item=word), divmod(before, chip.lanes)
    alone = not before and whole[0] == 1
    first = op.x.shape[1] // chip.lanes if alone else 0  # row of channels
    filled = (whole[0], whole[1] - first * chip.lanes, *whole[2:])

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        written = chip.plane(outs[0], total, item)
        build.fill(Words(outs[0] + word * first * to[1], filled, to, 0, written, word), _word_of(op, word))
        source = Words(ins[0], shape, within=chip.plane(ins[0], extents(part), item), item=word)
        target = Words(outs[0] + word * row * to[1], shape, to, lane, written, word)
        (build.transfer if lane else build.copy)(source, target)

    inputs = (machine.activation_in(op.x, dims4(op.x), part),)
    out = machine.activation_out(op.result, dims4(op.result), box)
    filling, moving = machine.cycles.pass_cycles(filled, word), _part_cycles(machine, shape, item, lane)
    work = TileWork(inputs, (out,), (), compute, filling + moving, transfers=moving if lane else 0)
    return work if machine.fits(work) else None


def _word_of(op: Pad, word: int) -> int:
    """The bits of a word whose elements are all the number of a padding."""
    number = np.array(op.value).astype(op.type.numpy)
    return int.from_bytes(number.tobytes() * (word // number.itemsize), "little")


def _part_cycles(machine: LaneMachine, words: Shape, item: int, lane: int) -> int:
    word = machine.chip.word_item(item)
    return copy_cycles(machine, words, item) if lane else machine.cycles.pass_cycles(words, word)


def repeat_pixels(machine: LaneMachine, op: Upsample, box: Box) -> TileWork:
    """Upsampling by whole factors: per image and column of a factor, one copy that reads its rows repeatedly.

    Args: box: of the result, of whole blocks of equal pixels.
    """
    chip, (down, across), item = machine.chip, op.scale, item_bytes(op.result)
    word, (rows, columns) = chip.word_item(item), box[2:]
    read = (*box[:2], (rows[0] // down, rows[1] // down), (columns[0] // across, columns[1] // across))
    small, large = extents(read), extents(box)
    source = machine.activation_in(op.x, dims4(op.x), read)

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        read, written = chip.plane(ins[0], small, item), chip.plane(outs[0], large, item)
        images, c, h, w = chip.words_of(small, item)
        by = chip.aligned_strides((images, c, h, w), item=word)
        to = chip.aligned_strides(chip.words_of(large, item), item=word)
        shape = (h, c, down, w)
        for image in range(images):
            for column in range(across):
                start, end = ins[0] + word * image * by[0], outs[0] + word * (image * to[0] + column)
                build.copy(
                    Words(start, shape, (w, by[1], 0, 1), within=read, item=word),
                    Words(end, shape, (down * to[2], to[1], to[2], across), within=written, item=word),
                )

    out = machine.activation_out(op.result, dims4(op.result), box)
    images, c, h, w = chip.words_of(small, item)
    cycles = images * across * machine.cycles.pass_cycles((h, c, down, w), word)
    return TileWork((source,), (out,), (), compute, cycles)
