"""What follows integer sums of products in the mode channel: bias, factor and zero point of each output channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Ar, Precision, Rounding
from bmcompiler.backends.bm1684x.instructions import arithmetic
from bmcompiler.backends.bm1684x.instructions.operands import Operand, constant
from bmcompiler.backends.bm1684x.instructions.requantize import WORDS, requantize
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.facts import LaneFacts, Shape
from bmcompiler.backends.lanes.kernels.channel_constants import channel_buffer
from bmcompiler.codegen.tiling import Buffer
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
_BIAS = 3
_LIMIT = 1 << 31


def fits_sums(op: Convolution | Matmul, depth: int) -> bool:
    """Whether no sum of `depth` products leaves 32 bits, whatever the values."""
    peaks = [largest(np.empty(0, value.type.numpy)) for value in op.operands[:2]]
    return peaks[0] * peaks[1] * depth < _LIMIT


def constants_buffer(
    chip: LaneFacts,
    op: Convolution | Matmul,
    over_depth: Callable[[np.ndarray], np.ndarray],
    channels: tuple[int, int],
) -> Buffer:
    """Multiplier, shift, zero point and bias of each output channel, in `WORDS` words; `over_depth` sums weights."""
    assert op.factors is not None and op.bias is not None  # the mode has both
    _, weight, bias, _ = op.operands
    zero = op.zero_points[2] if op.zero_points else 0

    def pack(build: Build) -> Callable[[np.ndarray], np.ndarray]:
        array = build.coefficients.array

        def packed(factors: np.ndarray) -> np.ndarray:
            corrected = corrected_bias(op, array(weight), array(bias), lambda w: over_depth(w).reshape(-1))
            rows = np.zeros((len(corrected), WORDS), np.int32)
            rows[:, 0], rows[:, 1], rows[:, 2] = factors[:, 0], -factors[:, 1], zero
            rows[:, _BIAS] = arith.saturate(corrected, "i32")
            return rows

        return packed

    keys = [value.op.attributes["key"] for value in (weight, bias) if value.op is not None]
    layout = f"{op.opname} ends {op.zero_points} {keys}"
    made: Any = pack  # of the chip's own build
    return channel_buffer(chip, op.factors, layout, made, (1, WORDS), 4, channels)


def emit_end(op: Convolution | Matmul, build: Build, shape: Shape, sums: int, place: int, result: int) -> None:
    """From int32 `sums` to the result; place: of the constants."""
    chip = build.chip
    words, constants = chip.plane(sums, shape), (place, place + 4 * WORDS * chip.rows(0, shape[1]))
    total = Operand(sums, Precision.INT32)
    bias = Operand(place + 4 * _BIAS, Precision.INT32, True, (0, WORDS, 0, 0))
    build.issue(arithmetic.integer(Ar.ADD, shape, total, total, bias, saturation=True), [words, constants], [words])
    kind, signed = KINDS[op.type.dtype]
    out, made = Operand(result, kind, signed), chip.plane(result, shape, op.type.numpy.itemsize)
    build.issue(requantize(shape, out, sums, place, Rounding.HALF_EVEN), [words, constants], [made])
    if op.activation and signed:
        build.issue(arithmetic.binary(Ar.MAX, shape, out, out, constant(0, kind, signed)), [made], [made])


def end_cycles(op: Convolution | Matmul, cycles: LaneCycles, shape: Shape) -> int:
    """Cycles of `emit_end`; the bias is added in place."""
    limited = bool(op.activation) and op.type.dtype != "u8"
    return 3 * cycles.pass_cycles(shape) + 2 * limited * cycles.pass_cycles(shape, op.type.numpy.itemsize)
