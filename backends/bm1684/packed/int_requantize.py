"""What becomes of the exact integer sums of a convolution or matrix product: shifts and the three modes of BMLang.

Sequences of bm1684.md 7.3. The command that sums rounds, saturates and writes 8 or 16 bits; modes then scale: "low" by
one or three integer products, "high" and "asymmetric" in fp32, one word per value. Those words are stored as the bytes
or halfwords they hold, which spares packing them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.build import Build, lane_bytes
from bmcompiler.backends.bm1684.chip import aligned_strides, pixel_strides
from bmcompiler.backends.bm1684.instructions.packed import Number, Packed, emit_packed, pixel_bytes, pixel_halves
from bmcompiler.backends.bm1684.instructions.products import Integers
from bmcompiler.backends.bm1684.instructions.transfers import Side, in_lane, transfer
from bmcompiler.backends.bm1684.isa import Direction, Eu, Precision
from bmcompiler.backends.bm1684.packed.channel_end import emit_end, end_cycles
from bmcompiler.backends.bm1684.packed.int_steps import multiply_cycles, pixel_cycles
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.kernels.base import dims4
from bmcompiler.backends.lanes.kernels.functions.elementwise import tile_contents
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.recipes import Plane, Recorder, Register, Steps
from bmcompiler.backends.lanes.recipes.rounding import quantize
from bmcompiler.codegen.tiling import Box, Buffer
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.numeric.quant_modes import ASYMMETRIC, HIGH, LOW, rescale
from bmcompiler.ops.modes import Products, corrected_bias

Sums = Callable[[int, bool], None]
"""Emits the command of the sums: called with the address of the result, and whether every weight counts as the zero
point of the weights."""
_MIDDLE_BITS, _MIDDLE = 0x4B40_0000, 12582912.0  # 2**23 + 2**22
_LARGEST_MULTIPLIER = 0xFFFF  # in 1/128: with it and with everything above, all values but 0 saturate
_SUM_LIMIT = 1 << 31


class Requantize:
    """The end of a convolution or matrix product of bytes, on a machine.

    Attributes:
        item: bytes of a result as it lies there. shift: right shift of the sums. clipped: whether they saturate to the
            unsigned range though an operand is signed.
        adds_bias: whether the bias belongs to the sums. crossed: whether a second sum, over the zero point of the
            weights, is subtracted.
        in_words: whether results lie one per word. by_channel: whether each output channel is shifted by itself
            (`channel_end`).
    """

    def __init__(self, machine: LaneMachine, op: Products) -> None:
        self.machine, self.op = machine, op
        data, weight, *bias = op.operands
        self.dtype = op.type.numpy
        self.signed = self.dtype.kind == "i"
        self.relu = op.activation == "relu" and self.signed
        self.wide_bias = bool(bias) and op.mode == HIGH and bias[0].type.numpy.itemsize > 2
        self.adds_bias = bool(bias) and op.mode != ASYMMETRIC and not self.wide_bias
        summed = [data, weight, *(bias if self.adds_bias else [])]
        self.all_unsigned = all(v.dtype.startswith("u") for v in summed)
        self.by_channel = op.mode == CHANNEL
        scaled = bool(op.mode) and not self.by_channel
        self.factor = rescale(op.scale, floor=op.mode == ASYMMETRIC and op.opname == "conv") if scaled else None
        exact = self.factor is not None and self.factor.residual == 1.0
        through_i16 = self.wide_bias or not exact or op.type.dtype == "u16"  # else one saturation does for two
        self.in_words = op.mode == ASYMMETRIC or (op.mode == HIGH and through_i16)
        self.multiplies = op.mode == LOW and not exact
        self.shift = op.rshift if self.factor is None else self.factor.shift
        self.item = 2 if self.in_words else self.dtype.itemsize
        self.clipped = not self.in_words and not self.signed
        self.zero_points = op.zero_points or (0, 0, 0)
        self.crossed = self.zero_points[1] != 0

    def largest_sum(self, depth: int) -> int:
        """Largest magnitude that the accumulator can meet; it wraps from 2**31 on (bm1684.md 6.0.1)."""
        data, weight, *bias = self.op.operands
        product = depth * _largest(data.type.numpy) * _largest(weight.type.numpy)
        return product + (_largest(bias[0].type.numpy) if self.adds_bias else 0) + (1 << self.shift >> 1)

    def fits_accumulator(self, depth: int) -> bool:
        """Whether sums over `depth` products stay within 32 bits."""
        return self.largest_sum(depth) < _SUM_LIMIT

    @property
    def has_vector(self) -> bool:
        """Whether a real number per channel is added at the end."""
        return self.wide_bias or (
            self.op.mode == ASYMMETRIC and (len(self.op.operands) > 2 or self.zero_points[0] != 0)
        )

    def vector(self, weight: Array, bias: Array | None, over_depth: Callable[[Array], Array]) -> Array:
        """Those numbers: fl(fl(bias) * scale), in the asymmetric mode of the corrected bias (bmlang.md 3.3).

        Args:
            over_depth: sums of the weights behind each output channel.
        """
        found = corrected_bias(self.op, weight, bias, over_depth) if self.op.mode == ASYMMETRIC else bias
        assert found is not None, "it is of a bias, or of zero points, which make one"
        scaled: Array = found.astype(np.float32) * np.float32(self.scale)
        return scaled

    @property
    def tiling_facts(self) -> tuple[bool, ...]:
        """What of shift and scale decides areas and cycles: which steps there are, not their numbers."""
        if self.factor is None:
            return ()
        return self.factor.residual == 1.0, self._multiplier > 255

    @cached_property
    def limits(self) -> tuple[int, int]:
        """Lowest and highest result."""
        limits = np.iinfo(self.dtype)
        return 0 if self.relu else int(limits.min), int(limits.max)

    @cached_property
    def _steps(self) -> Steps:
        """From the saturated 16-bit sum in the low half of a word (and the vector) to the result in a word."""
        assert self.factor is not None, "asked of modes with a factor"
        low, high = self.limits
        numbers = self.factor.residual, low, high, self.zero_points[2]
        return self.machine.recorded(_scaled, 1 + self.has_vector, *numbers)

    # -- a tile --------------------------------------------------------------------------------------------------------
    def scratch(self, dims: Shape) -> tuple[int, ...]:
        """Bytes per lane of the areas that `emit` needs for a tile of `dims` results."""
        if self.in_words:
            words = lane_bytes(dims)
            return (pixel_bytes(dims),) * (1 + self.crossed) + (words,) * (1 + self._steps.registers)
        if self.by_channel:
            return (pixel_bytes(dims),)
        if self.multiplies and self._multiplier > 255:
            return (lane_bytes(dims, 2),)
        return ()

    def sums_bytes(self, dims: Shape) -> int:
        """Bytes per lane of what the command of the sums writes."""
        return pixel_bytes(dims) if self.by_channel else self._packed_bytes(dims)

    def _packed_bytes(self, dims: Shape) -> int:
        return lane_bytes(dims, 1) if self.item == 1 else pixel_bytes(dims)

    @property
    def numbers(self) -> Integers:
        """Types, shift and saturation of the command of the sums."""
        data, weight, *bias = self.op.operands
        bias_signed = bias[0].dtype == "i16" if self.adds_bias else True
        signs = data.dtype == "i8", weight.dtype == "i8", bias_signed
        return Integers(2 if self.by_channel else self.item, *signs, self.shift, self.clipped, Precision.INT16)

    @property
    def scale(self) -> float:
        """The scale as float32."""
        assert self.factor is not None, "asked of modes with a factor"
        return self.factor.scale

    def cycles(self, dims: Shape) -> int:
        """Cycles of the commands after the sums."""
        cycles = self.machine.cycles
        if self.in_words:
            return self.part_cycles(dims) + unpack_cycles(self.machine, dims) + self.step_cycles(dims)
        if self.by_channel:
            return end_cycles(cycles, self.op, dims)
        limits = (self.all_unsigned and self.signed) + (self.relu and not self.all_unsigned)
        scaling = multiply_cycles(cycles, dims, self._multiplier) if self.multiplies else 0
        return limits * (cycles.pass_cycles(dims, 1) if self.item == 1 else pixel_cycles(cycles, dims)) + scaling

    def part_cycles(self, dims: Shape) -> int:
        """Cycles of the commands of `emit_parts` beside the sums."""
        cycles = self.machine.cycles
        limits = self.all_unsigned * (1 + self.crossed) * pixel_cycles(cycles, dims)
        return limits + self.crossed * pixel_cycles(cycles, dims, pair=True)

    def emit(self, build: Build, dims: Shape, sums: Sums, result: int, scratch: Sequence[int], vector: int = 0) -> None:
        """Emit the commands of a tile.

        Args:
            result, scratch: addresses of the areas of `result_buffer` and `scratch`.
            vector: address of the numbers of channels, compact, when there are any.
        """
        if self.in_words:
            self._emit_scaled(build, dims, sums, result, scratch, vector)
            return
        if self.by_channel:
            sums(scratch[0], False)
            emit_end(self.op, build, dims, scratch[0], result, vector)
            return
        sums(result, False)
        if self.all_unsigned and self.signed:
            self._emit_limit(build, dims, result)
        if self.multiplies:
            self._emit_multiply(build, dims, result, scratch)
        if self.relu and not self.all_unsigned:
            tile, plane = self._tile(dims, result, True)
            emit_packed(build, Eu.MAX, tile, plane, plane, Number(0, self.item, True))

    def _tile(self, dims: Shape, address: int, signed: bool) -> tuple[Shape, Packed]:
        """The results of a sums command as something to compute with."""
        if self.item == 1:
            return dims, Packed(address, 1, signed)
        return pixel_halves(address, dims, signed)

    def _emit_limit(self, build: Build, dims: Shape, address: int) -> None:
        """Unsigned results of unsigned operands, down to the signed range."""
        tile, plane = self._tile(dims, address, False)
        emit_packed(build, Eu.MIN, tile, plane, plane, Number((1 << 8 * self.item - 1) - 1, self.item, False))

    @property
    def _multiplier(self) -> int:
        assert self.factor is not None, "asked of modes with a factor"
        return min(self.factor.multiplier, _LARGEST_MULTIPLIER)

    def _emit_multiply(self, build: Build, dims: Shape, address: int, scratch: Sequence[int]) -> None:
        """y = saturate((y * m + 64) >> 7)."""
        emit_multiply(build, dims, Packed(address, 1, self.signed), self._multiplier, 7, address, *scratch)

    def _emit_scaled(
        self, build: Build, dims: Shape, sums: Sums, result: int, scratch: Sequence[int], vector: int
    ) -> None:
        parts = scratch[: 1 + self.crossed]
        self.emit_parts(build, dims, sums, parts)
        halves, *free = scratch[len(parts) :]
        unpack_pixels(self.machine, build, dims, parts[0], halves)
        self.emit_steps(build, dims, halves, result, free, vector)

    def emit_parts(self, build: Build, dims: Shape, sums: Sums, parts: Sequence[int]) -> None:
        """The saturated sums t of 16 bits into the first of the areas, of which there is one for each sum."""
        for crossed, part in enumerate(parts):
            sums(part, bool(crossed))
            if self.all_unsigned:
                self._emit_limit(build, dims, part)
        if self.crossed:
            (tile, a), (_, b) = (pixel_halves(part, dims, True) for part in parts)
            emit_packed(build, Eu.SUB, tile, a, a, b)

    def emit_steps(self, build: Build, dims: Shape, halves: int, result: int, free: Sequence[int], vector: int) -> None:
        """From t in the low halves of words to results in words; `free`: areas of `registers` tiles of words."""
        inputs: list[Plane | int] = [halves]
        if self.has_vector:
            inputs.append(Plane(vector, (0, 1, 0, 0)))
        self._steps.emit(build, dims, inputs, result, free)

    def step_cycles(self, dims: Shape) -> int:
        """Cycles of the commands of `emit_steps`."""
        return self._steps.cycles(dims)

    @property
    def registers(self) -> int:
        """Tiles of words that `emit_steps` needs beside operand and result."""
        return self._steps.registers

    def result_buffer(self, dims: Shape, by: Strides, starts: Sequence[int], box: Box | None = None) -> Buffer:
        """How a tile of results is stored.

        Args:
            by: strides of the result. starts: where the tile begins, or each of its images; all in elements.
            box: the part of the 4-D result that a tile in one run of images is.
        """
        item = self.dtype.itemsize

        def store(build: Build, address: int) -> None:
            targets = [build.neuron(self.op.result) + item * start for start in starts]
            if len(targets) > 1:
                for number, target in enumerate(targets):
                    self.store_image(build, target, dims, by, address, number)
            elif self.in_words:
                build.store_words(targets[0], item, dims, by, address)
            elif item == 1:
                build.store(targets[0], dims, by, 1, address)
            else:
                store_pixels(build, targets[0], dims, by, address)

        contents = None
        if len(starts) == 1 and self.op.type.rank == 4 and (item == 1 or self.in_words):
            whole = tuple((0, size) for size in dims) if box is None else box
            contents = tile_contents(self.op.result, dims4(self.op.result), whole, 4 if self.in_words else item)
        return Buffer(self.place_bytes(dims), "nchw", prod(dims) * item, store, contents=contents)

    def store_image(self, build: Build, target: int, dims: Shape, by: Strides, address: int, number: int) -> None:
        """Store one image of a tile of results."""
        _, c, h, w = dims
        item = self.dtype.itemsize
        offset, local = self.image(dims, number)
        shape, touched = (1, c, h, w), (address, address + self.place_bytes(dims))
        inner = in_lane(address, shape, local, touched, byte=offset)
        transfer(build, Direction.LOCAL_TO_SYSTEM, inner, Side(target, shape, by), item)

    def image(self, dims: Shape, number: int) -> tuple[int, Strides]:
        """Byte offset of an image in a tile of results, and local strides (n, c, h, w) in elements of the result."""
        n, c, h, w = dims
        if not self.in_words and self.item == 2:
            group, channel, _, _ = pixel_strides((-(-n // 4), c, h, w))
            return number // 4 * group + 2 * (number % 4), (0, channel // 2, 4 * w, 4)
        slots = 1 if self.in_words else 4
        image, channel, _, _ = aligned_strides((-(-n // slots), c, h, w))
        parts = 4 // self.dtype.itemsize
        return number // slots * 4 * image + number % slots, (0, channel * parts, w * parts, parts)

    def place_bytes(self, dims: Shape) -> int:
        """Bytes per lane of a tile of results."""
        return lane_bytes(dims) if self.in_words else self._packed_bytes(dims)


def _largest(dtype: np.dtype[Any]) -> int:
    limits = np.iinfo(dtype)
    return max(-int(limits.min), int(limits.max))


def _scaled(m: Recorder, words: Register, *rest: Any) -> Register:
    """The end of the high and asymmetric modes, from the 16 bits of t in the low half of each word."""
    *vector, residual, low, high, zero_point = rest
    z = m.sub(m.xor(words, 0x4B00_8000), 8421376.0)
    if residual != 1.0:
        z = m.mul(z, residual)
    for numbers in vector:
        z = m.add(z, numbers)
    whole = quantize(m, z, float(low - zero_point), float(high - zero_point))
    if not zero_point:
        return whole
    biased = m.xor(m.and_(whole, 0x7F_FFFF), _MIDDLE_BITS)  # as float 2**23 + 2**22 + whole
    return m.to_int(m.sub(biased, _MIDDLE - zero_point))


def emit_multiply(
    build: Build, dims: Shape, x: Packed, multiplier: int, shift: int, result: int, wide: int = 0, item: int = 1
) -> None:
    """result = saturate(round_shift(x * multiplier, shift)) of bytes x and a multiplier of 0 to 65535.

    Args:
        result: address of elements of `item` bytes of the sign of x. wide: area of halfwords for multipliers above 255.
    """
    target = Packed(result, item, x.signed)
    if multiplier <= 255:
        emit_packed(build, Eu.MUL, dims, target, x, Number(multiplier, 1, False), right=shift)
        return
    product = Packed(wide, 2, x.signed) if item == 1 else target
    emit_packed(build, Eu.MUL, dims, product, x, Number(multiplier >> 8, 1, False))
    emit_packed(build, Eu.MAC, dims, product, x, Number(multiplier & 255, 1, False), right=shift, left=8)
    if item == 1:
        emit_packed(build, Eu.ADD, dims, target, product, Number(0, 2, False))


def unpack_cycles(machine: LaneMachine, dims: Shape) -> int:
    """Cycles of the commands of `unpack_pixels`."""
    n, c, h, w = dims
    return sum(half_of(machine, slot).cycles((-(-(n - slot) // 4), c, h, w)) for slot in range(min(n, 4)))


def unpack_pixels(machine: LaneMachine, build: Build, dims: Shape, pixels: int, words: int) -> None:
    """The halfwords of an int16 result into the low halves of words, one per value; the high halves become 0."""
    n, c, h, w = dims
    groups = -(-n // 4)
    by = tuple(step // 4 for step in pixel_strides((groups, c, h, w)))
    to = aligned_strides(dims)
    for slot in range(min(n, 4)):
        steps = half_of(machine, slot)
        shape = (-(-(n - slot) // 4), c, h, w)
        source = Plane(pixels + 4 * (slot // 2), (by[0], by[1], 2 * w, 2))
        target = Plane(words + 4 * slot * to[0], (4 * to[0], *to[1:]))
        steps.emit(build, shape, [source], target)


def half_of(machine: LaneMachine, slot: int) -> Steps:
    """The step from a word with two halfwords to that of an image."""
    return machine.recorded(_odd_half if slot % 2 else _even_half, 1)


def _even_half(m: Recorder, x: Register) -> Register:
    return m.and_(x, 0xFFFF)


def _odd_half(m: Recorder, x: Register) -> Register:
    return m.shift(x, -16)


def store_pixels(build: Build, target: int, dims: Shape, strides: Strides, address: int) -> None:
    """Store an int16 result of a convolution, one command for each of the four images of a pixel."""
    n, c, h, w = dims
    groups = -(-n // 4)
    image, channel, _, _ = (step // 2 for step in pixel_strides((groups, c, h, w)))
    for slot in range(min(n, 4)):
        shape = (-(-(n - slot) // 4), c, h, w)
        inner = in_lane(
            address, shape, (image, channel, 4 * w, 4), (address, address + pixel_bytes(dims)), byte=2 * slot
        )
        outer = Side(target + 2 * slot * strides[0], shape, (4 * strides[0], *strides[1:]))
        transfer(build, Direction.LOCAL_TO_SYSTEM, inner, outer, 2)
