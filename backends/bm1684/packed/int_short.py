"""The end of the high and asymmetric modes for bytes that stay packed in local memory: nine commands for four images.

`Requantize` takes sixteen for the same bits. Here both halves of all pixels are taken apart at once, `int_numbers`
spares most of the rounding, and the subtraction that packs also saturates and takes the exponent off the words:

    fl(fl(t * r) + v) + 1.5 * 2**23 is a word of the bits 0x4B400000 + n, whose halves minus (0, 0x4B40) are (n, sign).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from bmcompiler.backends.bm1684.build import Build, compact_bytes, lane_bytes
from bmcompiler.backends.bm1684.chip import CHIP, aligned_strides, channel_rows, pixel_strides
from bmcompiler.backends.bm1684.cycles import LINEAR_STEPS
from bmcompiler.backends.bm1684.instructions.packed import Number, Packed, emit_packed, pack_words, pixel_bytes
from bmcompiler.backends.bm1684.instructions.words import linear
from bmcompiler.backends.bm1684.isa import Eu
from bmcompiler.backends.bm1684.packed.int_requantize import Requantize, Sums, half_of
from bmcompiler.backends.bm1684.packed.int_steps import pack_words_cycles, packed_cycles
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Immediate, Words
from bmcompiler.backends.lanes.recipes import Plane, Recorder, Register, Steps
from bmcompiler.backends.lanes.recipes.int_numbers import MIDDLE, MIDDLE_BITS, Ending, Numbers, find_numbers
from bmcompiler.backends.lanes.recipes.recorder import float_bits
from bmcompiler.codegen.tiling import Buffer, Runs
from bmcompiler.numeric.arrays import Array, Floats
from bmcompiler.ops.core import Weight

Constants = Sequence[Array]
"""The weights, and the bias if there is one."""
_SIGN_BIT = 0x80


def over_depth(weight: Array) -> Array:
    """Sums of the weights behind each output channel of a convolution."""
    total: Array = weight.sum((1, 2, 3))
    return total


class ShortRequantize:
    """What follows the sums of a convolution with `Requantize.in_words` and results of one byte.

    Words lie in two areas that are used in turn: planes of even and of odd images, and of more than two images two next
    to each other. Where no numbers are found, `Requantize` computes image by image in the same areas.

    Args:
        oriented: from the weights of the op to those of an ordinary convolution (O, depth, rows, columns).
    """

    def __init__(self, requantize: Requantize, oriented: Callable[[Array], Array]) -> None:
        self.requantize, self.op, self._oriented = requantize, requantize.op, oriented
        self.machine = requantize.machine
        assert requantize.factor is not None, "asked of modes with a factor"
        low, high = requantize.limits
        point = requantize.zero_points[2]
        self.lowered = not requantize.signed
        """Whether results are made as signed bytes, 128 too low, and corrected by their sign bit."""
        self._end = Ending(requantize.factor.residual, None, low - point, high - point, point - 128 * self.lowered)

    # -- a tile --------------------------------------------------------------------------------------------------------
    def scratch(self, dims: Shape) -> tuple[int, ...]:
        """Bytes per lane of the areas: the second sum, if there is one, and two for words."""
        n, c, h, w = dims
        words, sums, alone = lane_bytes(_words(dims)), pixel_bytes(dims), lane_bytes((1, c, h, w))
        by_image = sums + (1 + self.requantize.registers) * alone
        second = max(words, by_image, lane_bytes((2 * n, c, h, w), 1))
        return (sums,) * self.requantize.crossed + (max(words, n * alone), second)

    def cycles(self, dims: Shape) -> int:
        """Cycles of the commands after the sums; of an op in no module, with numbers that need not be clipped."""
        constants = [value.op.array if isinstance(value.op, Weight) else None for value in self.op.operands[1:]]
        known = [array for array in constants if array is not None]
        usual = Numbers(1.0, np.zeros(1, np.float32) if self.requantize.has_vector else None, False)
        numbers = self.numbers(known) if len(known) == len(constants) else usual
        if numbers is None:
            return self.requantize.part_cycles(dims) + self._image_cycles(dims)
        words = _words(dims)
        cycles = self.machine.cycles
        floats = self.machine.recorded(_to_float, 1).cycles(words) + cycles.pass_cycles(words, steps=LINEAR_STEPS)
        added = numbers.vector is not None or numbers.clipped
        middle = added * self._to_middle(numbers).cycles(words)
        last = (self.lowered or self.requantize.relu) * cycles.pass_cycles(dims, 1)
        ends = _half_cycles(self.machine, dims) + _byte_cycles(cycles, dims)
        return self.requantize.part_cycles(dims) + floats + middle + ends + last

    def _image_cycles(self, dims: Shape) -> int:
        n, c, h, w = dims
        alone = (1, c, h, w)
        taken = sum(half_of(self.machine, image % 4).cycles(alone) for image in range(n))
        return taken + n * self.requantize.step_cycles(alone) + pack_words_cycles(self.machine.cycles, dims)

    def emit(self, build: Build, dims: Shape, sums: Sums, result: int, scratch: Sequence[int], vector: int) -> None:
        """Emit the commands of a tile.

        Args:
            result, scratch: addresses of the packed results and of the areas of `scratch`.
            vector: address of what `constants` loads.
        """
        *crossed, a, b = scratch
        self.requantize.emit_parts(build, dims, sums, [b, *crossed])
        numbers = self.numbers(self._constants(build))
        if numbers is None:
            self._emit_images(build, dims, b, a, result, vector)
            return
        _emit_halves(self.machine, build, dims, b, a)
        a, b = self._emit_floats(build, dims, a, b, vector, numbers)
        word = vector + 4 * self._vector_rows(dims[1])
        _emit_bytes(build, dims, a, b, word, result)
        if self.lowered:
            packed = Packed(result, 1, False)
            emit_packed(build, Eu.XOR, dims, packed, packed, Number(_SIGN_BIT, 1, False))
        elif self.requantize.relu:
            packed = Packed(result, 1, True)
            emit_packed(build, Eu.MAX, dims, packed, packed, Number(0, 1, True))

    def _emit_floats(self, build: Build, dims: Shape, a: int, b: int, vector: int, numbers: Numbers) -> tuple[int, int]:
        """From t in the low halves of the words in a to words of whole numbers; (their area, the other one)."""
        words = _words(dims)
        self.machine.recorded(_to_float, 1).emit(build, words, [a], b)
        middle, factor = float_bits(MIDDLE + self._end.point), Immediate(float_bits(numbers.factor))
        if numbers.vector is None and not numbers.clipped:
            linear(build, Words(a, words), Words(b, words), factor, Immediate(middle))
            return a, b
        added = Immediate(0) if numbers.vector is None else Words(vector, words, (0, 1, 0, 0))
        linear(build, Words(a, words), Words(b, words), factor, added)
        self._to_middle(numbers).emit(build, words, [a], b)
        return b, a

    def _to_middle(self, numbers: Numbers) -> Steps:
        limits = (float(self._end.low), float(self._end.high)) if numbers.clipped else ()
        return self.machine.recorded(_add_middle, 1, MIDDLE + self._end.point, *limits)

    def _emit_images(self, build: Build, dims: Shape, sums: int, words: int, result: int, vector: int) -> None:
        """The sequence of `Requantize`, image by image."""
        n, c, h, w = dims
        alone = (1, c, h, w)
        first = sums + pixel_bytes(dims)
        group, channel, _, _ = (step // 4 for step in pixel_strides((-(-n // 4), c, h, w)))
        free = [first + k * lane_bytes(alone) for k in range(1 + self.requantize.registers)]
        for image in range(n):
            slot = image % 4
            source = Plane(sums + 4 * (image // 4 * group + slot // 2), (group, channel, 2 * w, 2))
            half_of(self.machine, slot).emit(build, alone, [source], free[0])
            target = words + image * lane_bytes(alone)
            self.requantize.emit_steps(build, alone, free[0], target, free[1:], vector)
        pack_words(build, dims, words, sums, result, self.requantize.signed)

    # -- constants -----------------------------------------------------------------------------------------------------
    def constants(self, images: int, c0: int, c1: int) -> Buffer | None:
        """A word for each of the channels [c0, c1), if there are any to add, and one more per lane to pack with."""
        rows = self._vector_rows(c1 - c0) + (images > 1)
        if not rows:
            return None
        dims = (1, CHIP.lanes, 1, rows)  # each lane is one run

        def load(build: Build, address: int) -> None:
            data = np.full(CHIP.lanes * rows, MIDDLE_BITS, "<u4")
            constants = self._constants(build)
            numbers = self.numbers(constants)
            vector = self._vector(constants) if numbers is None else numbers.vector
            if vector is not None:
                data[: c1 - c0] = vector[c0:c1].astype("<f4").view("<u4")
            offset = build.coefficients.constant(data.reshape(rows, CHIP.lanes).T.tobytes())
            build.load_compact(build.coefficient(offset), dims, 4, address)

        return Buffer(compact_bytes(dims), "c", 4 * rows * CHIP.lanes, load, True, runs=Runs(1, CHIP.lanes))

    def _vector_rows(self, channels: int) -> int:
        return channel_rows(0, channels) if self.requantize.has_vector else 0

    def _constants(self, build: Build) -> Constants:
        return [build.coefficients.array(value) for value in self.op.operands[1:]]

    def numbers(self, constants: Constants) -> Numbers | None:
        """What is found for the constants of the op; of the last ones it is kept, for many plans and tiles need it."""
        requantize = self.requantize
        facts = (self._end, requantize.scale, requantize.shift, requantize.zero_points, requantize.adds_bias)
        notes = self.machine.notes_of(self.op)
        of, about, found = notes.get(ShortRequantize, ((), None, None))
        if about != facts or any(a is not b for a, b in zip(of, constants, strict=True)):
            found = find_numbers(replace(self._end, vector=self._vector(constants)), self._bounds(constants))
            notes[ShortRequantize] = constants, facts, found
        known: Numbers | None = found
        return known

    def _vector(self, constants: Constants) -> Floats | None:
        if not self.requantize.has_vector:
            return None
        weight, *bias = constants
        return self.requantize.vector(weight, bias[0] if bias else None, over_depth)

    def _bounds(self, constants: Constants) -> tuple[Array, Array]:
        """Lowest and highest t, for each channel where a vector is added."""
        weight = self._oriented(constants[0]).astype(np.int64)
        limits = np.iinfo(self.op.operands[0].type.numpy)
        up, down = over_depth(np.maximum(weight, 0)), over_depth(np.minimum(weight, 0))
        low, high = (int(a) * up + int(b) * down for a, b in ((limits.min, limits.max), (limits.max, limits.min)))
        if self.requantize.adds_bias:
            bias = constants[1].astype(np.int64)
            low, high = low + bias, high + bias
        if self.requantize.crossed:
            low, high = np.full_like(low, -(1 << 31)), np.full_like(high, (1 << 31) - 1)
        half = 1 << self.requantize.shift >> 1
        low, high = (np.clip((v + half) >> self.requantize.shift, -(1 << 15), (1 << 15) - 1) for v in (low, high))
        return (low, high) if self.requantize.has_vector else (low.min(keepdims=True), high.max(keepdims=True))


def _words(dims: Shape) -> Shape:
    """The words that hold a number each: planes of even and odd images; next to each other those of images 2 apart."""
    n, c, h, w = dims
    return (n, c, h, w) if n <= 2 else (2 * -(-n // 4), c, h, 2 * w)


def _to_float(m: Recorder, x: Register) -> Register:
    return m.sub(m.xor(x, 0x4B00_8000), 8421376.0)


def _add_middle(m: Recorder, x: Register, middle: float, *limits: float) -> Register:
    if limits:
        x = m.min(m.max(x, limits[0]), limits[1])
    return m.add(x, middle)


def _emit_halves(machine: LaneMachine, build: Build, dims: Shape, pixels: int, words: int) -> None:
    """The halfwords of an int16 result into the low halves of words; the high halves become 0 (bm1684.md 4.3, 4a)."""
    n, c, h, w = dims
    groups = -(-n // 4)
    planes, _, _, width = _words(dims)
    group, channel, _, _ = (step // 4 for step in pixel_strides((groups, c, h, w)))
    to = aligned_strides((planes, c, h, width))
    by: Strides = (group, channel, 2 * w, 2 * w // width)
    for odd in range(min(planes, 2)):
        target = Plane(words + 4 * odd * to[0], (2 * to[0], *to[1:]))
        half_of(machine, odd).emit(build, (groups, c, h, width), [Plane(pixels, by)], target)


def _half_cycles(machine: LaneMachine, dims: Shape) -> int:
    planes, c, h, width = _words(dims)
    return sum(half_of(machine, odd).cycles((-(-dims[0] // 4), c, h, width)) for odd in range(min(planes, 2)))


def _byte_cycles(cycles: LaneCycles, dims: Shape) -> int:
    n, c, h, w = dims
    planes, _, _, width = _words(dims)
    halves = 2 * planes, c, h, width if n <= 4 else w
    pairs = packed_cycles(cycles, halves, 1, 2, pair=True) * (1 if n <= 4 else 2)
    return (n > 1) * pairs + packed_cycles(cycles, dims, 1, 2)


def _emit_bytes(build: Build, dims: Shape, words: int, free: int, lowest: int, result: int) -> None:
    """Pack words of the bits 0x4B400000 + n: saturated n and sign as pairs of bytes, then those as halfwords.

    Args:
        free: area as large as the words. lowest: address of the word 0x4B400000 in every lane.
    """
    n, c, h, w = dims
    zero = Number(0, 2, True)
    if n == 1:
        emit_packed(build, Eu.ADD, dims, Packed(result, 1), Packed(words, 2, True), zero)
        return
    exponent = Packed(lowest, 2, True, (0, 0, 0, 0))
    shape = _words(dims)
    if n <= 4:
        pairs = (2 * shape[0], *shape[1:])
        emit_packed(build, Eu.SUB, pairs, Packed(free, 1), Packed(words, 2, True), exponent)
        image, channel = (1, aligned_strides(shape)[1]) if n > 2 else aligned_strides(shape)[:2]
        source = Packed(free, 2, True, (image, channel, shape[3], shape[3] // w))
    else:
        by, to = aligned_strides(shape), aligned_strides((shape[0], c, h, w))
        for k in range(2):
            target = Packed(free + 4 * k * to[0], 1, steps=(2 * to[0], *to[1:]))
            part = Packed(words + 4 * k, 2, True, (*by[:2], 2 * w, 2))
            emit_packed(build, Eu.SUB, (2 * shape[0], c, h, w), target, part, exponent)
        source = Packed(free, 2, True)
    emit_packed(build, Eu.ADD, dims, Packed(result, 1), source, zero)
