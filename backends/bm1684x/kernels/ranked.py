"""The largest elements of rows, one after the other: top_k.

The elements of a row are spread over all lanes. In each round the lanes find their maxima, which are compared in one
lane and told to all of them; of the elements that equal the largest one the first is taken, which has the highest of
the numbers counted from the end, and goes for the next round. Elements are compared as the chip's sum with 0 makes
them (denormals are 0, and so is -0); what is not above the lowest finite number, and NaN, is that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Precision, Trans
from bmcompiler.backends.bm1684x.instructions import special
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_activation
from bmcompiler.backends.lanes.operands import Immediate, Words
from bmcompiler.backends.lanes.recipes.recorder import ONE, SIGN
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Runs, TileWork
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.fp32 import flush
from bmcompiler.ops.places.order import TopK
from bmcompiler.target import rule

_COLUMNS = 16
"""Words of a vector: what is compared at once."""
_EXACT = 1 << 24
_MOST_ROUNDS = 2048
"""Rounds of one op: some twenty commands each, which the host takes longer than the chip to hand over beyond that."""
_LOWEST = Immediate(0xFF7F_FFFF)
"""What maxima over windows begin with."""
_HALF = Immediate(0x3F00_0000)
_ZERO = Immediate(0)
_POINT: Shape = (1, 1, 1, 1)


class TopKKernel(LocalKernel[TopK]):
    """top_k: a tile for each row, in rounds."""

    ops = (TopK,)

    @rule("The operand must be an activation of f32")
    def known_operand(self, op: TopK) -> bool:
        return is_activation(op.x) and op.x.dtype == "f32"

    @rule("Elements must be ranked along the last axis")
    def last_axis(self, op: TopK) -> bool:
        return prod(op.x.shape[op.axis % op.x.type.rank + 1 :]) == 1

    @rule(f"There must be at most {_MOST_ROUNDS} results")
    def few_rounds(self, op: TopK) -> bool:
        return op.results[0].type.size <= _MOST_ROUNDS

    @rule(f"Rows must have at most {_EXACT} elements")
    def countable(self, op: TopK) -> bool:
        return op.x.shape[op.axis] <= _EXACT

    def evaluate(self, op: TopK, *arrays: Array) -> tuple[Array, Array]:
        """As the op says, of elements as they are compared."""
        (x,) = arrays
        clean, lowest = flush(x) + np.float32(0), np.finfo(np.float32).min
        if op.largest:
            return op.evaluate(np.where(clean > lowest, clean, lowest))
        return op.evaluate(np.where(clean < -lowest, clean, -lowest))

    def grid(self, op: TopK) -> tuple[Axis, ...]:
        rows = op.x.type.size // op.x.shape[op.axis]
        return Axis(rows, 1, 1), Axis(1), Axis(1), Axis(1)

    def work(self, op: TopK, box: Box) -> TileWork:
        count, rounds, row = op.x.shape[op.axis], op.k, box[0][0]
        spread = _spread(count, self.chip.lanes)
        line: Shape = (1, 1, 1, rounds)
        plane = self.chip.aligned_bytes(spread)

        def load(build: Build, address: int) -> None:
            _load_row(build, build.source(op.x) + 4 * row * count, count, spread, address)

        def load_numbers(build: Build, address: int) -> None:
            numbers = np.zeros(prod(spread), np.float32)
            numbers[:count] = np.arange(count, 0, -1)
            source = build.coefficient(build.coefficients.constant(numbers.tobytes()))
            build.load_words(source, "f32", spread, (0, spread[2] * _COLUMNS, _COLUMNS, 1), address)

        def store(index: int, build: Build, address: int) -> None:
            target = build.neuron(op.results[index]) + 4 * row * rounds
            build.store_words(target, 4, line, (0, 0, 0, 1), address)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            _Rounds(build, spread, ins, scratch, count).emit(op.largest, [Words(out, line) for out in outs])

        inputs = (
            Buffer(plane, "nchw", 4 * count, load, runs=Runs(1, spread[1]), loads=2),
            Buffer(plane, "", 4 * prod(spread), load_numbers, True, runs=Runs(1, spread[1])),
        )
        outputs = tuple(Buffer(self.chip.aligned_bytes(line), "nchw", 4 * rounds, partial(store, i)) for i in range(2))
        small = [(1, spread[1], 1, _COLUMNS), (1, spread[1], 1, 1), (1, 1, 1, spread[1]), _POINT]
        areas = (plane, plane, plane, *map(self.chip.aligned_bytes, small), self.chip.aligned_bytes(line))
        return TileWork(inputs, outputs, areas, compute, self._cycles(spread, line, op.largest))

    def whole(self, op: TopK) -> TileWork | None:
        return None

    def _cycles(self, spread: Shape, line: Shape, largest: bool) -> int:
        timing = self.machine.cycles
        lanes = spread[1]
        once, inside = timing.pass_cycles(spread), timing.pass_cycles(spread, in_place=True)
        side, across = (1, lanes, 1, 1), (1, 1, 1, lanes)
        highest = timing.window((1, lanes, 1, _COLUMNS), (spread[2], 1), 1, False)
        highest += timing.window(side, (1, _COLUMNS), 1, False) + timing.pass_cycles(across)
        highest += timing.window(_POINT, (1, lanes), 1, False) + timing.pass_cycles(side)
        point = timing.pass_cycles(_POINT)
        a_round = 2 * highest + 3 * once + 2 * inside + 2 * point
        ends = timing.pass_cycles(line) + (3 - 2 * largest) * timing.pass_cycles(line, in_place=True)
        begin = 3 * once + (2 - largest) * inside
        return begin + line[3] * a_round + ends


def _spread(count: int, lanes: int) -> Shape:
    """Whole vectors in as many lanes as take them."""
    rows = -(-count // (lanes * _COLUMNS))
    return 1, -(-count // (rows * _COLUMNS)), rows, _COLUMNS


def _load_row(build: Build, source: int, count: int, spread: Shape, address: int) -> None:
    """The elements of a row: those of whole lanes, and what is left for the last one."""
    in_lane = spread[2] * _COLUMNS
    lanes, left = divmod(count, in_lane)
    if lanes:
        build.load(source, (1, lanes, 1, in_lane), (0, in_lane, 0, 1), 4, address)
    if left:
        build.load(source + 4 * lanes * in_lane, (1, 1, 1, left), (0, 0, 0, 1), 4, address, channels=(lanes, 0))


class _Rounds:
    """The commands of a row.

    Args: inputs: elements and their numbers from the end. scratch: three tensors like them, then maxima of columns, of
        lanes, of lanes side by side, of all, and a line of results.
    """

    def __init__(self, build: Build, spread: Shape, inputs: Sequence[int], scratch: Sequence[int], count: int) -> None:
        self.build, self.count, lanes = build, count, spread[1]
        self.given, self.numbers = (Words(address, spread) for address in inputs)
        self.left, self.numbered, self.found = (Words(address, spread) for address in scratch[:3])
        shapes: list[Shape] = [(1, lanes, 1, _COLUMNS), (1, lanes, 1, 1), (1, 1, 1, lanes), _POINT]
        self.columns, self.lanes, self.across, self.best = map(Words, scratch[3:7], shapes)
        self.line = scratch[7]

    def emit(self, largest: bool, results: Sequence[Words]) -> None:
        """Values and, in words of i32, indices into the two lines of `results`."""
        build, (values, indices) = self.build, results
        self.begin(largest)
        numbers = Words(self.line, values.shape)
        for number in range(values.shape[3]):
            self.highest(self.left)
            self.keep(values, number)
            build.select(Unit.SAME_BITS, self.found, self.left, self.lanes, ONE)
            build.combine(Unit.MUL, self.found, self.found, self.numbered)
            self.highest(self.found)
            self.keep(numbers, number)
            build.select(Unit.SAME_BITS, self.found, self.found, self.lanes, ONE)
            build.choose(self.left, (self.found, _HALF, _LOWEST, self.left))
            build.choose(self.numbered, (self.found, _HALF, _ZERO, self.numbered))
        build.combine(Unit.SUB, numbers, Immediate(_bits(self.count)), numbers)
        build.convert(Unit.TO_INT, indices, numbers)
        if not largest:
            build.combine(Unit.XOR, values, values, Immediate(SIGN))
            build.combine(Unit.ADD, values, values, _ZERO)

    def begin(self, largest: bool) -> None:
        """The elements as they are compared, the lowest one in places without any, and their numbers."""
        build, source = self.build, self.given
        if not largest:
            build.combine(Unit.XOR, self.left, source, Immediate(SIGN))
            source = self.left
        build.combine(Unit.ADD, self.left, source, _ZERO)
        build.combine(Unit.MAX, self.left, self.left, _LOWEST)
        build.choose(self.left, (self.numbers, _HALF, self.left, _LOWEST))
        build.copy(self.numbers, self.numbered)

    def highest(self, source: Words) -> None:
        """The maximum, to `best` and to all lanes."""
        build, (_, lanes, rows, _) = self.build, source.shape
        build.reduce(Unit.WINDOW_MAX, self.columns, source, Geometry((rows, _COLUMNS), (rows, 1)))
        build.reduce(Unit.WINDOW_MAX, self.lanes, self.columns, Geometry((1, _COLUMNS), (1, _COLUMNS)))
        build.transpose(self.across, self.lanes)
        build.reduce(Unit.WINDOW_MAX, self.best, self.across, Geometry((1, lanes), (1, lanes)))
        told = special.move(
            Trans.LANE_BROADCAST, self.lanes.shape, self.lanes.address, self.best.address, Precision.FP32, (1, 1)
        )
        build.issue(told, *build.ranges(self.lanes, self.best))

    def keep(self, line: Words, number: int) -> None:
        """The maximum into a place of a line."""
        place = Words(
            line.address + 4 * number, _POINT, (1, 1, 1, 1), within=self.build.chip.plane(line.address, line.shape)
        )
        self.build.copy(self.best, place)


def _bits(number: int) -> int:
    return int(np.float32(number).view(np.uint32))
