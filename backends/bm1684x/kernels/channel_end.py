"""What follows integer sums of products in the mode channel: bias, factor and zero point of each output channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Ar, Precision, Rounding
from bmcompiler.backends.bm1684x.instructions import arithmetic
from bmcompiler.backends.bm1684x.instructions.operands import Operand, constant
from bmcompiler.backends.bm1684x.instructions.requantize import WORDS, requantize, requantize_real
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.facts import LaneFacts, Shape
from bmcompiler.backends.lanes.kernels.channel_constants import by_lanes
from bmcompiler.chip import align_up
from bmcompiler.codegen.tiling import Buffer, Runs
from bmcompiler.numeric import arith
from bmcompiler.ops.modes import corrected_bias
from bmcompiler.ops.nn import Convolution, Matmul
from bmcompiler.ops.rules import largest

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
    op: Convolution | Matmul, weight: Any, bias: Any, factors: Any, over_depth: Callable[[np.ndarray], np.ndarray]
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
    rows[:, _BIAS] = arith.saturate(corrected, "i32")
    return rows


@dataclass(frozen=True)
class Block:
    """Coefficients of a convolution or product as they lie in a lane, its channels in one run (bm1684x.md 6.2).

    The words of each channel: multiplier, shift, zero point and, unless `biased`, bias, or factor and offset; then
    biases of four bytes, and weights. Weights that must be aligned are whole vectors and come first, so that no gap is
    moved, but where lanes that have a channel less end before its weights. Commands want the words of a channel 64
    bytes from those of the next: `spread` copies them.

    Attributes:
        row: bytes of the weights of a channel. aligned: whether the weights begin so.
    """

    chip: LaneFacts
    op: Convolution | Matmul
    channels: tuple[int, int]
    row: int
    biased: bool
    aligned: bool

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

    @property
    def first(self) -> int:
        """Byte where the words begin."""
        return self.row * self.rounds if self.aligned and not self.shorter else 0

    @property
    def bias(self) -> int:
        """Byte where the biases begin, which is where the words end."""
        return self.first + 4 * self.words * self.rounds

    @property
    def weights(self) -> int:
        """Byte where the weights begin."""
        if self.first:
            return 0
        end = self.bias + 4 * self.rounds * self.biased
        return align_up(end, self.chip.alignment) if self.aligned else end

    @property
    def lane_bytes(self) -> int:
        """All of it."""
        return max(self.weights + self.row * self.rounds, self.bias + 4 * self.rounds * self.biased)

    def buffer(
        self,
        pack: Callable[[np.ndarray], np.ndarray],
        over_depth: Callable[[np.ndarray], np.ndarray],
        layout: str,
    ) -> Buffer:
        """`pack` gives the weights as (channels, ...) in their order in a lane."""
        op, (c0, c1), chip = self.op, self.channels, self.chip
        bias, rows = op.bias, op.factors
        assert rows is not None and bias is not None  # the mode has both
        count, rest = min(c1 - c0, chip.lanes), self.shorter
        parts = [(0, rest, self.lane_bytes)] * bool(rest)
        parts += [(rest, count - rest, self.lane_bytes - self.row * bool(rest))]

        def packed(weight: np.ndarray, bias: np.ndarray, factors: np.ndarray) -> np.ndarray:
            words = _constants(op, weight, bias, factors, over_depth)
            lanes = self._lanes(words, np.ascontiguousarray(pack(weight)).view(np.uint8))[:count]
            return np.concatenate([lanes[first : first + some, :size].reshape(-1) for first, some, size in parts])

        def load(build: Build, address: int) -> None:
            name = f"{layout} {op.opname} {op.zero_points} block {c0} {c1}"
            place = build.coefficients.place(op.operands[1], name, packed, bias, rows)
            source = build.coefficient(place)
            for first, some, size in parts:
                build.load_compact(source, (1, some, 1, size), 1, address, lane=first)
                source += some * size

        nbytes = sum(some * size for _, some, size in parts)
        transfer: Any = load  # of the chip's own build
        return Buffer(self.lane_bytes, "c", nbytes, transfer, True, runs=Runs(1, count), loads=len(parts))

    @property
    def spread_bytes(self) -> int:
        """Of a lane, that the words take where they are spread; a single channel's stay where they are."""
        return _STEP * self.rounds if self.rounds > 1 else 0

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
        c0, c1 = self.channels
        return 1, min(c1 - c0, self.chip.lanes), self.rounds, self.words

    def _lanes(self, words: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(lanes, `lane_bytes`) bytes."""
        chip, (c0, c1) = self.chip, self.channels
        out = np.zeros((chip.lanes, self.lane_bytes), np.uint8)
        used = np.ascontiguousarray(words[:, : self.words])
        out[:, self.first : self.bias] = by_lanes(chip, used, 4 * self.words, c0, c1).reshape(chip.lanes, -1)
        if self.biased:
            biases = by_lanes(chip, np.ascontiguousarray(words[:, _BIAS]), 4, c0, c1).reshape(chip.lanes, -1)
            out[:, self.bias : self.bias + biases.shape[1]] = biases
        rows = by_lanes(chip, weights, self.row, c0, c1).reshape(chip.lanes, -1)
        out[:, self.weights : self.weights + rows.shape[1]] = rows
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
