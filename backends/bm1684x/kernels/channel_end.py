"""What follows integer sums of products in the mode channel: bias, factor and zero point of each output channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Ar, Precision, Rounding
from bmcompiler.backends.bm1684x.cycles import CycleTable
from bmcompiler.backends.bm1684x.instructions import arithmetic
from bmcompiler.backends.bm1684x.instructions.operands import Operand, constant
from bmcompiler.backends.bm1684x.instructions.requantize import WORDS, requantize, requantize_real
from bmcompiler.backends.bm1684x.machine import cycles_of
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.facts import LaneFacts, Shape
from bmcompiler.backends.lanes.kernels.channel_constants import by_lanes
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.chip import align_up
from bmcompiler.codegen.tiling import Buffer, Runs
from bmcompiler.errors import UnsupportedError
from bmcompiler.numeric import arith
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.factors import OFFSETS
from bmcompiler.ops.layers.nn import Convolution, Matmul
from bmcompiler.ops.modes import corrected_bias
from bmcompiler.ops.shared import largest

KINDS = {
    "i8": (Precision.INT8, True),
    "u8": (Precision.INT8, False),
    "i16": (Precision.INT16, True),
    "u16": (Precision.INT16, False),
    "i32": (Precision.INT32, True),
}
"""(precision, sign) of integers."""
_OFFSET, _BIAS = 2, 3
_STEP = 4 * WORDS
_LIMIT = 1 << 31


def fits_sums(op: Convolution | Matmul, depth: int) -> bool:
    """Whether no sum of `depth` products and a bias of 16 bits leaves 32 bits, whatever the values."""
    peaks = [largest(np.empty(0, value.type.numpy)) for value in op.operands[:2]]
    terms = depth * (2 if op.zero_points else 1)  # the bias takes back what a zero point adds
    return peaks[0] * peaks[1] * terms + (1 << 15) < _LIMIT


def _constants(
    op: Convolution | Matmul, weight: Array, bias: Array, factors: Any, over_depth: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """(channels, `WORDS`) int32."""
    rows = np.zeros((len(bias), WORDS), np.int32)
    if bias.dtype.kind == "f":
        rows[:, 0], rows[:, 1] = factors[:, 0].view(np.int32), bias.view(np.int32)
        return rows
    corrected = corrected_bias(op, weight, bias, lambda w: over_depth(w).reshape(-1))
    rows[:, 0], rows[:, 1], rows[:, 2] = factors[:, 0], -factors[:, 1], op.zero_points[2] if op.zero_points else 0
    if factors.shape[1] > _OFFSET:
        rows[:, 2] += factors[:, _OFFSET]
    lowest, highest = OFFSETS[op.type.dtype]
    if rows[:, 2].min(initial=0) < lowest or rows[:, 2].max(initial=0) > highest:
        raise UnsupportedError(
            f"what is added behind the factors must be {lowest} to {highest} for {op.type.dtype} results, got "
            f"{rows[:, 2].min()} to {rows[:, 2].max()}",
            layer=op.label,
            remedy="put it into the bias",
        )
    rows[:, _BIAS] = arith.saturate(corrected, "i32")
    return rows


class Layout(NamedTuple):
    """Where a block has what in a lane, and how it is loaded.

    Attributes:
        words, biases, weights: bytes where they begin. lane_bytes: all of it.
        width, step: bytes of the rows that are loaded, and from one to the next.
        parts: (first lane, lanes, rows) of each load.
    """

    words: int
    biases: int
    weights: int
    lane_bytes: int
    width: int
    step: int
    parts: tuple[tuple[int, int, int], ...]

    @property
    def spaced(self) -> bool:
        """Whether rows have gaps between them."""
        return self.width < self.step

    @property
    def nbytes(self) -> int:
        """Bytes that are loaded."""
        return sum(lanes * rows * self.width for _, lanes, rows in self.parts)

    def cycles(self, table: CycleTable) -> int:
        """Of the loads; rows without gaps may be sections of a matrix."""
        found = 0
        for _, lanes, rows in self.parts:
            size = rows * self.width
            plain, wide = table.tensor(lanes * size, size, True, False), table.wide(lanes, size, True)
            found += int(plain if self.spaced else min(plain, wide))
        return found


@dataclass(frozen=True)
class Block:
    """Coefficients of a convolution or product as they lie in a lane, its channels in one run (bm1684x.md 6.2).

    The words of each channel: multiplier, shift, zero point and, unless `biased`, bias, or factor and offset; then
    biases of four bytes, and weights. Weights that must be aligned are whole vectors and come first, so that no gap is
    moved, but where lanes that have a channel less end before its weights. Commands want the words of a channel 64
    bytes from those of the next: `spread` copies them.

    Weights that do not fill their groups of input channels are runs with gaps, which nothing reads (bm1684x-cube.md 4).
    Where that takes no longer these are not moved: the block is loaded as rows that lie as far apart as the runs, of
    the words first: a row for each channel where these are then where commands want them, else one for all.

    Attributes:
        row: bytes of the weights of a channel. aligned: whether the weights begin so.
        run, pitch: bytes of each run of weights, and from one to the next; 0 where there are no gaps.
    """

    machine: LaneMachine
    op: Convolution | Matmul
    channels: tuple[int, int]
    row: int
    biased: bool
    aligned: bool
    run: int = 0
    pitch: int = 0

    @property
    def chip(self) -> LaneFacts:
        """Of the machine."""
        return self.machine.chip

    @property
    def rounds(self) -> int:
        """Channels of a lane."""
        c0, c1 = self.channels
        return -(-(c1 - c0) // self.chip.lanes)

    @property
    def words(self) -> int:
        """Of four bytes, that a channel has."""
        return 2 if self.op.bias is not None and self.op.bias.type.is_float else 4

    @property
    def shorter(self) -> int:
        """From which lane on they have a channel less, and end before its weights; 0: zeros stand for these."""
        c0, c1 = self.channels
        rest = (c1 - c0) % self.chip.lanes if self.rounds > 1 else 0
        return rest if (self.chip.lanes - rest) * self.row > self.chip.command_bytes else 0

    @cached_property
    def layout(self) -> Layout:
        """The one that moves less, if it takes no longer."""
        dense, spaced, table = self._dense, self._spaced, cycles_of(self.machine).table
        if spaced is None or spaced.nbytes >= dense.nbytes or spaced.cycles(table) > dense.cycles(table):
            return dense
        return spaced

    @property
    def _dense(self) -> Layout:
        weights, words = self.row * self.rounds, 4 * self.words * self.rounds
        biases = 4 * self.rounds * self.biased
        if self.aligned and not self.shorter:
            size = weights + words + biases
            return Layout(weights, weights + words, 0, size, 1, 1, self._parts(size, self.row))
        place = words + biases
        place = align_up(place, self.chip.alignment) if self.aligned else place
        return Layout(0, words, place, place + weights, 1, 1, self._parts(place + weights, self.row))

    @property
    def _spaced(self) -> Layout | None:
        """None where words and biases find no place in rows."""
        heads = self.rounds if self.pitch == _STEP else 1
        width = max(self.run, 4 * self.words * self.rounds // heads)
        if self.biased or width >= self.pitch:
            return None
        own, place = self.row // self.pitch, heads * self.pitch
        size = place + self.row * self.rounds
        return Layout(0, place, place, size, width, self.pitch, self._parts(size // self.pitch, own))

    def _parts(self, rows: int, own: int) -> tuple[tuple[int, int, int], ...]:
        """All lanes at once, or those that have a channel less, whose weights are `own` rows, after the others."""
        (c0, c1), rest = self.channels, self.shorter
        count = min(c1 - c0, self.chip.lanes)
        return ((0, rest, rows), (rest, count - rest, rows - own)) if rest else ((0, count, rows),)

    @property
    def first(self) -> int:
        """Byte where the words begin."""
        return self.layout.words

    @property
    def bias(self) -> int:
        """Byte where the biases begin."""
        return self.layout.biases

    @property
    def weights(self) -> int:
        """Byte where the weights begin."""
        return self.layout.weights

    def buffer(
        self,
        pack: Callable[[np.ndarray], np.ndarray],
        over_depth: Callable[[np.ndarray], np.ndarray],
        layout: str,
    ) -> Buffer:
        """`pack` gives the weights as (channels, ...) in their order in a lane."""
        op, (c0, c1), chip, own = self.op, self.channels, self.chip, self.layout
        bias, given = op.bias, op.factors
        assert given is not None and bias is not None, "the mode channel has factors and a bias"
        count = sum(lanes for _, lanes, _ in own.parts)

        def packed(weight: np.ndarray, bias: np.ndarray, factors: np.ndarray) -> np.ndarray:
            words = _constants(op, weight, bias, factors, over_depth)
            lanes = self._lanes(words, np.ascontiguousarray(pack(weight)).view(np.uint8))
            lanes = lanes.reshape(chip.lanes, -1, own.step)[:, :, : own.width]
            return np.concatenate([lanes[lane : lane + some, :rows].reshape(-1) for lane, some, rows in own.parts])

        def load(build: Build, address: int) -> None:
            name = f"{layout} {op.opname} {op.zero_points} block {c0} {c1}"
            place = build.coefficients.place(op.operands[1], name, packed, bias, given)
            source = build.coefficient(place)
            for lane, some, rows in own.parts:
                if own.spaced:
                    build.load_spaced(source, (some, rows, own.width), own.step, address, lane)
                else:
                    build.load_compact(source, (1, some, 1, rows), 1, address, lane=lane)
                source += some * rows * own.width

        transfer: Any = load  # of the chip's own build
        runs = Runs(count + own.spaced, count)  # rows with gaps are no sections of a matrix
        return Buffer(own.lane_bytes, "c", own.nbytes, transfer, True, runs=runs, loads=len(own.parts))

    @property
    def spread_bytes(self) -> int:
        """Of a lane, that the words take where they are spread; they stay where commands can read them."""
        there = self.layout.spaced and self.pitch == _STEP
        return _STEP * self.rounds if self.rounds > 1 and not there else 0

    def spread(self, build: Build, place: int, to: int) -> None:
        """Copy the words of a block at `place` to where commands read them."""
        shape = self._spread
        source, target = (
            Operand(address, Precision.INT32, True, (0, 0, step, 1))
            for address, step in ((place + self.first, self.words), (to, WORDS))
        )
        command = arithmetic.unary(Ar.COPY, shape, target, source)
        build.issue(command, [(place + self.first, place + self.bias)], [(to, to + self.spread_bytes)])

    def spread_cycles(self, cycles: LaneCycles) -> int:
        """Cycles of `spread`."""
        return cycles.pass_cycles(self._spread)

    @property
    def _spread(self) -> Shape:
        return 1, self.chip.lanes, self.rounds, self.words  # of several rounds, which fill all lanes

    def _lanes(self, words: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(lanes, bytes of a lane)."""
        chip, (c0, c1), own = self.chip, self.channels, self.layout
        out = np.zeros((chip.lanes, own.lane_bytes), np.uint8)
        used = by_lanes(chip, np.ascontiguousarray(words[:, : self.words]), 4 * self.words, c0, c1)
        ends = used.reshape(chip.lanes, own.weights // own.step if own.spaced else 1, -1)
        for row in range(ends.shape[1]):
            place = own.words + row * own.step
            out[:, place : place + ends.shape[2]] = ends[:, row]
        if self.biased:
            biases = by_lanes(chip, np.ascontiguousarray(words[:, _BIAS]), 4, c0, c1).reshape(chip.lanes, -1)
            out[:, own.biases : own.biases + biases.shape[1]] = biases
        rows = by_lanes(chip, weights, self.row, c0, c1).reshape(chip.lanes, -1)
        out[:, own.weights : own.weights + rows.shape[1]] = rows
        return out


def emit_end(op: Convolution | Matmul, build: Build, shape: Shape, sums: int, place: int, result: int) -> None:
    """From int32 `sums` to the result; place: of the constants."""
    chip = build.chip
    words, constants = chip.plane(sums, shape), (place, place + 4 * WORDS * chip.channel_rows(0, shape[1]))
    total = Operand(sums, Precision.INT32)
    bias = Operand(place + 4 * _BIAS, Precision.INT32, True, (0, WORDS, 0, 0))
    build.issue(arithmetic.integer(Ar.ADD, shape, total, total, bias, saturation=True), [words, constants], [words])
    kind, signed = KINDS[op.type.dtype]
    out, made = Operand(result, kind, signed), chip.plane(result, shape, op.type.numpy.itemsize)
    build.issue(requantize(shape, out, sums, place, Rounding.HALF_EVEN), [words, constants], [made])
    if op.activation and signed:
        build.issue(arithmetic.binary(Ar.MAX, shape, out, out, constant(0, kind, signed)), [made], [made])


def emit_factors(op: Convolution, build: Build, shape: Shape, sums: int, place: int, result: int) -> None:
    """From `sums` that need no other bias, of int16 where the op is narrow, to the result."""
    chip, item = build.chip, 2 if op.narrow else 4
    constants = place, place + _STEP * chip.channel_rows(0, shape[1])
    kind, signed = KINDS[op.type.dtype]
    out, made = Operand(result, kind, signed), chip.plane(result, shape, op.type.numpy.itemsize)
    precision = Precision.INT16 if op.narrow else Precision.INT32
    if op.bias is not None and op.bias.type.is_float:
        command = requantize_real(shape, out, sums, place, precision)
    else:
        command = requantize(shape, out, sums, place, Rounding.HALF_EVEN, precision)
    build.issue(command, [chip.plane(sums, shape, item), constants], [made])
    if op.activation and signed:
        build.issue(arithmetic.binary(Ar.MAX, shape, out, out, constant(0, kind, signed)), [made], [made])


def end_cycles(op: Convolution | Matmul, cycles: LaneCycles, shape: Shape, at_once: bool = False) -> int:
    """Cycles of `emit_end`, where the bias is added in place; `at_once`: of `emit_factors`."""
    limited = bool(op.activation) and op.type.dtype != "u8"
    ends = cycles.pass_cycles(shape, 2 if op.narrow else 4)
    added = 0 if at_once else cycles.pass_cycles(shape, in_place=True)
    return added + ends + limited * cycles.pass_cycles(shape, op.type.numpy.itemsize, in_place=True)
