"""What an integer tensor of the scheme "shift" is: bytes with a threshold (bm1880.md 11.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bmcompiler.ir import Operation, Quant, TensorType, Value
from bmcompiler.ir.keys import PLACE_CPU, TOWARDS_ZERO
from bmcompiler.numeric import arith
from bmcompiler.numeric.arrays import Array, Floats
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantization.forms import Forms
from bmcompiler.passes.quantization.formulas import constant_threshold, rescaling
from bmcompiler.target import unsupported_reason

OF_BYTES = 128.0
"""The threshold of bytes without a sign that mean themselves, pixels: a step is 1."""
_SAME = 1e-9
_CODES = np.arange(256).astype(np.uint8).view(np.int8)


class Thresholds(Forms[float]):
    """Formats are thresholds, the magnitude that maps to 128; what stays in float runs on the host CPU."""

    def wanted(self, value: Value) -> float:
        return self.plan.thresholds[value]

    def format_of(self, value: Value) -> float:
        return threshold_of(value)

    def type_of(self, shape: Sequence[int], wanted: float) -> TensorType:
        return i8(shape, wanted)

    def same(self, a: float, b: float) -> bool:
        return abs(a - b) <= _SAME * max(a, b)

    def of_constant(self, array: Array) -> float:
        return constant_threshold(array)

    def integers(self, array: Array, wanted: float) -> Array:
        return arith.quantize_real(array, wanted)

    def meanings(self, format: float) -> Floats:
        return arith.dequantize(_CODES, format)

    def table_integers(self, op: TensorOp, reals: Array, wanted: float) -> Array:
        return arith.quantize_cut(reals, wanted) if TOWARDS_ZERO in op.attributes else self.integers(reals, wanted)

    def top(self, format: float) -> float:
        return format

    def rescale(self, value: Value, wanted: float) -> Value:
        multiplier, shift = rescaling(threshold_of(value) / wanted)
        return self.emit("muls_shift", [value], {"multiplier": multiplier, "rshift": shift}, wanted)

    def note_float(self, op: Operation, reason: str) -> None:
        """Moves of bytes that no scheme has an integer form for, as they are integers: where the chip takes them."""
        moves = isinstance(op, TensorOp) and all(value.dtype == "u8" for value in (*op.operands, *op.results))
        if self.target is None or not moves or unsupported_reason(self.target, op) is not None:
            op.attributes[PLACE_CPU] = reason


def i8(shape: Sequence[int], threshold: float) -> TensorType:
    """The type of bytes with a threshold: 128 steps of threshold / 128."""
    return TensorType(tuple(shape), "i8", Quant.from_threshold(threshold))


def threshold_of(value: Value) -> float:
    """Threshold of an i8 value."""
    quant = value.type.quant
    if quant is None:
        raise ValueError(f"{value.type} has no quantization")
    return quant.threshold
