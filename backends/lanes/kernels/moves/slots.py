"""Floats of the images that share words, and the way back, in local memory (bm1684.md 4.3).

Each image of floats has words of its own. A small integer is taken out of its slot by a shift and a mask, and is a
float once its bits are those of a float of 2**23 and what is above that is taken away. Bytes are
looked up, where the chip has a table of them and there is room for a word of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Immediate, Words
from bmcompiler.backends.lanes.recipes import Recorder, Register, Steps
from bmcompiler.backends.lanes.recipes.rounding import EXACT_BITS, MIDDLE_BITS
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Box, Buffer, TileWork
from bmcompiler.ir import Value

_BYTES = 256
"""Entries of a table of what bytes are."""


class _Slot(NamedTuple):
    """Where the integers of an image lie: `bits` wide from bit `first` of the words of image `words` on.

    last: whether no image of the tile lies above it.
    """

    image: int
    words: int
    first: int
    bits: int
    last: bool

    @property
    def masked(self) -> bool:
        """Whether others lie above it."""
        return self.first + self.bits < 32

    @property
    def cut(self) -> bool:
        """Whether what stands above it has to go before it is written: where others come there, or it is copied."""
        return not self.first or not self.last

    @property
    def commands(self) -> int:
        """That take it out: a shift, a mask, or what is left of both."""
        return int(self.masked) + bool(self.first)


def floats_of_slots(machine: LaneMachine, source: Value, result: Value, box: Box, scale: float) -> TileWork | None:
    """(x - zero point) * scale of the small integers x of a box; None where the chip has no slots for them."""
    chip, dims, item = machine.chip, extents(box), source.type.numpy.itemsize
    if not _apply(machine, box, source, dims, item):
        return None
    zero_point = source.type.quant.zero_point if source.type.quant is not None else 0
    signed = source.dtype[0] == "i"
    if item == 1 and dims[0] == 1 and chip.byte_floats is not None:
        steps = machine.recorded(_looked_up, 1, chip.byte_floats[signed], zero_point, scale)
        return _of_steps(machine, source, result, box, steps)
    if item == 1 and chip.byte_floats is not None:
        apart = _floats_apart(machine, source, result, box, chip.byte_floats[signed], scale)
        if apart is not None:
            return apart
    offset = float(np.uint32(MIDDLE_BITS[8 * item] if signed else EXACT_BITS).view(np.float32)) + zero_point
    last = (
        (Unit.XOR, MIDDLE_BITS[8 * item] if signed else EXACT_BITS),
        (Unit.SUB, _bits(offset)),
        (Unit.MUL, _bits(scale)),
    )
    slots, one = [*_slots(machine, dims, item)], (1, *dims[1:])

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        read, written = chip.plane(ins[0], dims, item), chip.plane(outs[0], dims)
        for slot in slots:
            part = Words(_image(machine, ins[0], slot.words, one), one, within=read)
            target = Words(_image(machine, outs[0], slot.image, one), one, within=written)
            if slot.first:
                build.combine(Unit.SHIFT, target, part, Immediate(-slot.first & 0xFFFF_FFFF))
                part = target
            if slot.masked:
                build.combine(Unit.AND, target, part, Immediate((1 << slot.bits) - 1))
        whole = Words(outs[0], dims, within=written)
        for unit, number in last:
            build.combine(unit, whole, whole, Immediate(number))

    cycles = sum(slot.commands for slot in slots) * machine.cycles.pass_cycles(one)
    cycles += len(last) * machine.cycles.pass_cycles(dims)
    return _checked(machine, source, result, box, (), compute, cycles)


def _looked_up(m: Recorder, x: Register, table: int, zero_point: int, scale: float) -> Register:
    """Floats of the first bytes of words."""
    value = m.lookup(x, table)
    return m.mul(m.sub(value, zero_point) if zero_point else value, scale)


def _floats_apart(
    machine: LaneMachine, source: Value, result: Value, box: Box, table: int, scale: float
) -> TileWork | None:
    """By a lookup of the bytes of words in turn: the floats of an image lie as many words apart as images share one."""
    chip, dims = machine.chip, extents(box)
    slots, words, to = chip.image_slots(1), chip.words_of(dims, 1), chip.aligned_strides(dims)
    n, c, h, w = words
    apart = (n, c, h, slots * w) if slots * w <= chip.most_size else (n, c, slots * h, w)
    plane, channel, _, _ = chip.aligned_strides(apart)
    zero_point = source.type.quant.zero_point if source.type.quant is not None else 0
    steps = [(Unit.SUB, _bits(zero_point))] * bool(zero_point) + [(Unit.MUL, _bits(scale))]
    images = [(slot, (-(-(dims[0] - slot) // slots), c, h, w)) for slot in range(min(slots, dims[0]))]

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        build.lookup_bytes(Words(scratch[0], apart), Words(ins[0], words), table, _BYTES)
        read, written = chip.plane(scratch[0], apart), chip.plane(outs[0], dims)
        for slot, shape in images:
            part = Words(scratch[0] + chip.word * slot, shape, (plane, channel, slots * w, slots), within=read)
            strides = (slots * to[0], *to[1:])
            target = Words(outs[0] + chip.word * slot * to[0], shape, strides, within=written)
            for unit, number in steps:
                build.combine(unit, target, part, Immediate(number))
                part = target

    cycles = machine.cycles.lookup(apart) + len(steps) * sum(machine.cycles.pass_cycles(shape) for _, shape in images)
    return _checked(machine, source, result, box, (chip.aligned_bytes(apart),), compute, cycles)


def slots_of_floats(
    machine: LaneMachine, source: Value, result: Value, box: Box, steps: Steps, low: Steps | None
) -> TileWork | None:
    """Small integers made by `steps` of the floats of a box; None where the chip has no slots for them.

    low: steps that make bytes, signed ones 128 larger, in the low bits of floats above 2**23; None: `steps` make whole
        words.
    """
    chip, dims, item = machine.chip, extents(box), result.type.numpy.itemsize
    if not _apply(machine, box, result, dims, item):
        return None
    if item == 1 and dims[0] > 1:
        return _packed(machine, source, result, box, low or steps, whole=low is None)
    slots, one = [*_slots(machine, dims, item)], (1, *dims[1:])
    plane = chip.aligned_bytes(dims)

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        integers, *registers = scratch
        steps.emit(build, dims, [ins[0]], integers, registers)
        read, written = (integers, integers + plane), chip.plane(outs[0], dims, item)
        for slot in slots:
            part = Words(_image(machine, integers, slot.image, one), one, within=read)
            target = Words(_image(machine, outs[0], slot.words, one), one, within=written)
            if slot.cut:
                build.combine(Unit.AND, part if slot.first else target, part, Immediate((1 << slot.bits) - 1))
            if slot.first:
                build.combine(Unit.SHIFT, part, part, Immediate(slot.first))
                build.combine(Unit.OR, target, target, part)

    if len(slots) == 1:
        return _of_steps(machine, source, result, box, steps)
    commands = sum(bool(slot.first) + slot.cut for slot in slots)
    cycles = steps.cycles(dims) + commands * machine.cycles.pass_cycles(one)
    cycles += sum(slot.first > 0 for slot in slots) * machine.cycles.pass_cycles(one, pair=True)
    return _checked(machine, source, result, box, (plane,) * (1 + steps.registers), compute, cycles)


def _packed(
    machine: LaneMachine, source: Value, result: Value, box: Box, steps: Steps, *, whole: bool
) -> TileWork | None:
    """By two commands on the halves of words, or a third on the bytes."""
    dims, signed = extents(box), result.dtype[0] == "i"
    (n, c, h, w), passes = dims, machine.cycles.pass_cycles

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        integers, *registers = scratch
        steps.emit(build, dims, [ins[0]], integers, registers)
        build.pack_bytes(outs[0], integers, registers[0], dims, signed=signed, whole=whole)

    scratch = (machine.chip.aligned_bytes(dims),) * (1 + max(1, steps.registers))  # halves take half of one
    cycles = steps.cycles(dims) + passes((2 * n, c, h, w), 2) + passes(dims, 2)
    cycles += (not whole and not signed) * passes(dims, 1)
    return _checked(machine, source, result, box, scratch, compute, cycles)


def _of_steps(machine: LaneMachine, source: Value, result: Value, box: Box, steps: Steps) -> TileWork | None:
    """Steps on the words of one image."""
    dims = extents(box)

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        steps.emit(build, dims, [ins[0]], outs[0], scratch)

    scratch = (machine.chip.aligned_bytes(dims),) * steps.registers
    return _checked(machine, source, result, box, scratch, compute, steps.cycles(dims))


def through_global(machine: LaneMachine, narrow: Value) -> int:
    """Cycles to store and to load again a value of small integers, which other conversions read from global memory."""
    n, c, h, w = narrow.shape
    run = h * w * narrow.type.numpy.itemsize
    return machine.cycles.store(n * c, run) + machine.cycles.load(n * c, run)


def _apply(machine: LaneMachine, box: Box, narrow: Value, dims: Shape, item: int) -> bool:
    """Whether images of elements of `item` bytes share words, and the box has all images of its words."""
    slots = machine.chip.image_slots(item)
    whole = all(place % slots == 0 or place == narrow.shape[0] for place in box[0])
    return slots > 1 and item in (1, 2) and narrow.type.rank == 4 and whole and machine.chip.fits_fields(dims)


def _slots(machine: LaneMachine, dims: Shape, item: int) -> Iterator[_Slot]:
    shared = machine.chip.image_slots(item)
    for image in range(dims[0]):
        words, number = divmod(image, shared)
        last = number == shared - 1 or image == dims[0] - 1
        yield _Slot(image, words, 8 * item * number, 8 * item, last)


def _image(machine: LaneMachine, address: int, number: int, one: Shape) -> int:
    """Where the words of an image lie."""
    return address + machine.chip.word * number * machine.chip.aligned_strides(one)[0]


def _bits(number: float) -> int:
    return int(np.float32(number).view(np.uint32))


def _checked(
    machine: LaneMachine, source: Value, result: Value, box: Box, scratch: tuple[int, ...], compute: object, cycles: int
) -> TileWork | None:
    buffers: tuple[Buffer, Buffer] = (
        machine.activation_in(source, source.shape, box),  # type: ignore[arg-type]
        machine.activation_out(result, result.shape, box),  # type: ignore[arg-type]
    )
    work = TileWork(buffers[:1], buffers[1:], scratch, compute, cycles)  # type: ignore[arg-type]
    return work if machine.fits(work) else None
