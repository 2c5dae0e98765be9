"""A lane chip that exists only here: 8 lanes of 24 KiB, numpy for arithmetic, commands that run at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.lanes.facts import LaneFacts, Shape, Strides
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Immediate, Source, Words
from bmcompiler.backends.lanes.recipes.words import to_words
from bmcompiler.backends.lanes.tables import Table
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.backends.lanes.windows import Geometry, Window
from bmcompiler.codegen.build import dense_strides, extents, start_of
from bmcompiler.codegen.bus import Bus
from bmcompiler.codegen.strided_copy import CopyLimits
from bmcompiler.codegen.tiling import Box
from bmcompiler.ir import Value

Floats = NDArray[np.float32]
Array = NDArray[Any]
CHIP = LaneFacts(
    name="paper",
    lanes=8,
    lmem_size=24 << 10,
    alignment=64,
    execution_units=4,
    lmem_banks=1,
    lmem_bank_size=24 << 10,
    word=1,
    most_images=64,
    most_channels=64,
    most_size=500,
    most_depth=64,
    most_pad=3,
    most_step=4,
    copy_limits=CopyLimits(64, (0, 64), (1, 64), 64),
)


def _byte_table(values: Callable[[Array], Array]) -> Floats:
    signed = np.arange(256).astype(np.int8).astype(np.float64)
    inside = (signed >= -103) & (signed <= 88)
    return np.where(inside, values(np.where(inside, signed, 0)), 0).astype(np.float32)


@cache
def _table(name: Table) -> Floats:
    k = np.arange(1, 65, dtype=np.float64)
    factorials = np.array([math.factorial(int(n)) for n in k], np.float64)
    made = {
        Table.INTEGERS: lambda: _byte_table(lambda x: x),
        Table.POWERS_OF_E: lambda: _byte_table(np.exp),
        Table.LOGARITHMS: lambda: (np.arange(256) - 127) * math.log(2),
        Table.EXP_SERIES: lambda: 1 / factorials,
        Table.LOG_SERIES: lambda: (-1) ** (k + 1) / k,
        Table.SINE_SERIES: lambda: np.where(k % 2, (-1.0) ** ((k - 1) // 2), 0) / factorials,
    }
    return np.asarray(made[name](), np.float32)


class PaperArithmetic:
    """Plain numpy: denormals stay, sums are pairwise."""

    add = staticmethod(np.add)
    subtract = staticmethod(np.subtract)
    multiply = staticmethod(np.multiply)
    divide = staticmethod(np.divide)
    maximum = staticmethod(np.maximum)
    minimum = staticmethod(np.minimum)
    greater = staticmethod(np.greater)

    def rsqrt(self, x: Floats) -> Floats:
        return np.float32(1) / np.sqrt(x)

    def to_int(self, x: Floats) -> NDArray[np.int32]:
        return np.clip(np.nan_to_num(np.trunc(x.astype(np.float64))), -(2.0**31), 2.0**31 - 1).astype(np.int32)

    def nearest_exponent(self, bits: NDArray[np.int32]) -> NDArray[np.int32]:
        return ((bits.view(np.uint32) + np.uint32(0x555554)) >> np.uint32(23)).astype(np.int32)

    def series(self, x: Floats, table: Table, terms: int) -> Floats:
        total = np.zeros_like(x)
        for c in _table(table)[:terms][::-1]:
            total = (total + c) * x
        return total

    def lookup(self, indices: NDArray[np.int32], table: Table, entries: int) -> Floats:
        return _table(table)[indices & (entries - 1)]

    def window_sums(self, window: Window, x: Floats, weight: Floats) -> Floats:
        taps = np.stack(list(window.taps(window.prepare(x))), 2)
        return (taps * weight[:, :, None, None]).sum(2, dtype=np.float32)

    def window_largest(self, window: Window, x: Array, border: float) -> Array:
        return np.stack(list(window.taps(window.prepare(x, border)))).max(0)


class PaperCycles:
    """A pixel of all lanes in a cycle."""

    bytes_per_cycle = 8.0
    tile_cycles = 20
    bus = Bus()

    def pass_cycles(
        self, shape: Shape, item: int = 4, steps: int = 1, pair: bool = False, in_place: bool = False
    ) -> int:
        n, c, h, w = shape
        return steps * n * CHIP.channel_rows(0, c) * h * w

    def unit_steps(self, unit: Unit, terms: int = 0) -> int:
        return max(terms, 1)

    def lookup(self, shape: Shape) -> int:
        return self.pass_cycles(shape)

    def window(self, shape: Shape, taps: tuple[int, int], stride: int, sums: bool, item: int = 4) -> int:
        return self.pass_cycles(shape) * taps[0] * taps[1]

    def convolution(self, shape: Shape, taps: int, depth: int, item: int = 4, stride: int = 1) -> int:
        return self.pass_cycles(shape) * taps * depth

    def shared_bank(self, shape: Shape, taps: int, depth: int, item: int = 4) -> int:
        return 0

    def local_copy(self, shape: Shape, item: int = 4) -> int:
        return self.tile_cycles + self.pass_cycles(shape)

    def load(self, runs: int, run: int) -> int:
        return self.tile_cycles + runs * -(-run // 32) * 4

    store = load


MACHINE = LaneMachine(CHIP, PaperCycles(), PaperArithmetic())


class PaperBuild:
    """Runs commands at once on local memory that begins as NaN, and on global arrays by value."""

    chip = CHIP

    def __init__(self, arrays: dict[Value, Array]) -> None:
        self.local = np.full((CHIP.lanes, CHIP.lmem_size // 4), 0x7FC0_0000, np.uint32)
        self.arrays = list(arrays.values())
        self._numbers = {value: number for number, value in enumerate(arrays)}
        self.coefficients = self

    # -- global memory: an array begins at every multiple of 2**32 -----------------------------------------------------
    def source(self, value: Value) -> int:
        return self._numbers[value] << 32

    neuron = source

    def constant(self, data: bytes) -> int:
        self.arrays.append(np.frombuffer(data, np.float32))
        return len(self.arrays) - 1

    def coefficient(self, offset: int) -> int:
        return offset << 32

    def _global(self, address: int, shape: Shape, strides: Strides) -> tuple[Array, Array]:
        array = self.arrays[address >> 32].reshape(-1)
        axes = [np.arange(size) * step for size, step in zip(shape, strides)]
        index: Array = sum(np.ix_(*axes), start=np.int64((address & 0xFFFF_FFFF) // array.itemsize))
        return array, index

    def load_words(self, source: int, dtype: str, shape: Shape, strides: Strides, address: int) -> None:
        self.load_part(source, strides, Words(address, shape))

    def load_part(self, source: int, strides: Strides, target: Words, item: int = 4) -> None:
        array, index = self._global(source, target.shape, strides)
        self._write(target, to_words(array[index]))

    def load_box(self, value: Value, view: Shape, box: Box, address: int) -> None:
        strides = dense_strides(view)
        self.load_part(self.source(value) + 4 * start_of(box, view), strides, Words(address, extents(box)))

    def store_box(self, value: Value, view: Shape, box: Box, address: int) -> None:
        strides = dense_strides(view)
        self.store_part(self.neuron(value) + 4 * start_of(box, view), strides, Words(address, extents(box)))

    def store_words(self, target: int, item: int, shape: Shape, strides: Strides, address: int) -> None:
        self._store(target, item, strides, Words(address, shape))

    def store_part(self, target: int, strides: Strides, source: Words) -> None:
        self._store(target, source.item, strides, source)

    def _store(self, target: int, item: int, strides: Strides, source: Words) -> None:
        array, index = self._global(target, source.shape, strides)
        words = self._read(source, source.shape)
        array[index] = words.view(array.dtype) if item == 4 else words.view(np.int32).astype(array.dtype)

    # -- local memory --------------------------------------------------------------------------------------------------
    def _places(self, words: Words, shape: Shape) -> tuple[Array, Array]:
        """(lane, index in it) of every element; axes of one element repeat."""
        n, c, h, w = (a if a == b else 0 * b for a, b in zip(words.shape, shape))
        steps = words.strides or CHIP.aligned_strides(words.shape)
        axes = [np.arange(b) if a else np.zeros(b, np.int64) for a, b in zip((n, c, h, w), shape)]
        image, channel, row, column = np.meshgrid(*axes, indexing="ij")
        rows, lane = np.divmod(channel + words.lane, CHIP.lanes)
        place = words.address // 4 + image * steps[0] + rows * steps[1] + row * steps[2] + column * steps[3]
        return lane, place

    def _read(self, source: Source, shape: Shape) -> Array:
        if isinstance(source, Immediate):
            return np.full(shape, source.bits, np.uint32)
        return self.local[self._places(source, shape)]

    def _write(self, target: Words, values: Array) -> None:
        assert target.address + 4 * target.shape[0] <= CHIP.lmem_size
        self.local[self._places(target, target.shape)] = np.ascontiguousarray(values).view(np.uint32)

    def _evaluated(self, recipe: Callable[..., Any], target: Words, *sources: Source) -> None:
        """What a command computes is what a recipe of a single step evaluates to."""
        inputs = [self._read(source, target.shape).view(np.float32) for source in sources]
        self._write(target, MACHINE.recorded(recipe, len(inputs)).evaluate(*inputs))

    def assign(self, target: Words, source: Source) -> None:
        self._write(target, self._read(source, target.shape))

    def copy(self, source: Words, target: Words) -> None:
        self.assign(target, source)

    def fill(self, target: Words, bits: int) -> None:
        self.assign(target, Immediate(bits))

    def transfer(self, source: Words, target: Words) -> None:
        self._write(target, self._read(source, source.shape).reshape(target.shape))

    def combine(self, unit: Unit, target: Words, a: Source, b: Source) -> None:
        if unit in (Unit.SHIFT, Unit.SHIFT_SIGNED):
            assert isinstance(b, Immediate)
            places = b.bits - (b.bits >> 31 << 32)
            self._evaluated(_shift(places, unit is Unit.SHIFT_SIGNED), target, a)
        else:
            self._evaluated(_combine(unit), target, a, b)

    def select(self, unit: Unit, target: Words, a: Source, b: Source, chosen: int) -> None:
        self._evaluated(_select(unit, chosen), target, a, b)

    def choose(self, target: Words, sources: Sequence[Source]) -> None:
        self._evaluated(_choose, target, *sources)

    def convert(self, unit: Unit, target: Words, source: Words) -> None:
        self._evaluated(_convert(unit), target, source)

    def series(self, target: Words, source: Words, table: Table, terms: int) -> None:
        self._write(target, MACHINE.arithmetic.series(self._read(source, source.shape).view(np.float32), table, terms))

    def lookup(self, target: Words, source: Words, table: Table, entries: int) -> None:
        self._write(target, MACHINE.arithmetic.lookup(self._read(source, source.shape).view(np.int32), table, entries))

    def reduce(self, unit: Unit, target: Words, source: Words, geometry: Geometry) -> None:
        x, (top, bottom, *_) = self._read(source, source.shape).view(np.float32), geometry.pads
        one, out = (1, 1), (target.shape[2], target.shape[3])
        window = Window(geometry.taps, one, one, one, (top, 0), (bottom, 0), out)
        ones = np.ones((x.shape[1], math.prod(geometry.taps)), np.float32)
        arithmetic = MACHINE.arithmetic
        if unit is Unit.WINDOW_SUM:
            self._write(target, arithmetic.window_sums(window, x, ones))
        else:
            self._write(target, arithmetic.window_largest(window, x, 0.0))


@cache
def _combine(unit: Unit) -> Callable[..., Any]:
    names = {Unit.AND: "and_", Unit.OR: "or_", Unit.DIVIDE: "div"}
    return lambda m, a, b: getattr(m, names.get(unit, unit.name.lower()))(a, b)


@cache
def _shift(places: int, signed: bool) -> Callable[..., Any]:
    return lambda m, a: m.shift(a, places, signed)


@cache
def _select(unit: Unit, chosen: int) -> Callable[..., Any]:
    return lambda m, a, b: getattr(m, unit.name.lower())(a, b, chosen)


def _choose(m: Any, *operands: Any) -> Any:
    return m.choose(*operands)


@cache
def _convert(unit: Unit) -> Callable[..., Any]:
    return lambda m, a: getattr(m, unit.name.lower())(a)
