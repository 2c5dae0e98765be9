"""Building an int8 function with power-of-two shifts: a format is a threshold (bm1880.md 11.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from bmcompiler.ir import Block, Operation, Quant, TensorType, Value
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.numeric import arith
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.formulas import constant_threshold, rescaling

__all__ = ["PLACE_CPU", "Lowering", "detached", "i8", "same", "threshold_of"]
_SAME = 1e-9


class Lowering(Building[float]):
    """Formats are thresholds, the magnitude that maps to 128; what stays in float runs on the host CPU."""

    def wanted(self, value: Value) -> float:
        return self.plan.thresholds[value]

    def format_of(self, value: Value) -> float:
        return threshold_of(value)

    def type_of(self, shape: Sequence[int], wanted: float) -> TensorType:
        return i8(shape, wanted)

    def same(self, a: float, b: float) -> bool:
        return same(a, b)

    def of_constant(self, array: NDArray[Any]) -> float:
        return constant_threshold(array)

    def integers(self, array: NDArray[Any], wanted: float) -> NDArray[Any]:
        return arith.quantize_real(array, wanted)

    def rescale(self, value: Value, wanted: float) -> Value:
        multiplier, shift = rescaling(threshold_of(value) / wanted)
        return self.emit("muls_shift", [value], {"multiplier": multiplier, "rshift": shift}, wanted)

    def note_float(self, op: Operation, reason: str) -> None:
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


def same(a: float, b: float) -> bool:
    """Equal but for rounding in the last digits."""
    return abs(a - b) <= _SAME * max(a, b)


def detached(shape: Sequence[int]) -> Value:
    """A float value outside any function, to evaluate an op on."""
    return Value(TensorType(tuple(shape)), Block(), 0)
