"""What an integer tensor of the scheme "scale" is: element type, scale and zero point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bmcompiler.ir import Quant, TensorType, Value
from bmcompiler.numeric.arrays import Array

LEVELS = {"i8": 127, "u8": 255, "i16": 32767}
"""The integer that stands for the threshold."""
_SAME = 1e-6


@dataclass(frozen=True)
class Format:
    """real = (q - zero_point) * scale; `scale` is a float32 number, as the chip multiplies with it."""

    dtype: str
    scale: float
    zero_point: int = 0

    @staticmethod
    def symmetric(threshold: float, *, unsigned: bool = False) -> Format:
        """i8 with threshold / 127, or u8 with threshold / 255 for what is never negative (bm1684.md 7.2)."""
        dtype = "u8" if unsigned else "i8"
        return Format(dtype, single(threshold / LEVELS[dtype]))

    @staticmethod
    def wide(threshold: float) -> Format:
        """i16 with room for four times the threshold, which calibration may have put below the largest value."""
        return Format("i16", single(threshold * 4 / LEVELS["i16"]))

    @staticmethod
    def spanning(low: float, high: float) -> Format:
        """u8 over the reals low .. high (with 0 between them), with the zero point that makes 0 exact."""
        scale = single((high - low) / 255)
        return Format("u8", scale, round(-low / scale))

    def codes(self) -> Array:
        """The integers of a byte in the order of a look-up table: entry k answers for the byte k."""
        return np.arange(256).astype(np.uint8).view(np.int8 if self.dtype == "i8" else np.uint8)

    @property
    def top(self) -> float:
        """The largest real number."""
        return (LEVELS[self.dtype] - self.zero_point) * self.scale

    @property
    def unsigned(self) -> bool:
        """Whether the element type has no sign."""
        return self.dtype.startswith("u")

    def same(self, other: Format) -> bool:
        """Equal but for rounding in the last digits of the scale."""
        near = abs(self.scale - other.scale) <= _SAME * max(self.scale, other.scale)
        return near and (self.dtype, self.zero_point) == (other.dtype, other.zero_point)

    def type_of(self, shape: Sequence[int]) -> TensorType:
        """The type of a tensor of this format."""
        return TensorType(tuple(shape), self.dtype, Quant(self.scale, self.zero_point))


def format_of(value: Value) -> Format:
    """The format of an integer value. Raises ValueError for one without quantization."""
    quant = value.type.quant
    if quant is None:
        raise ValueError(f"{value.type} has no quantization")
    return Format(value.dtype, quant.scale, quant.zero_point)


def single(scale: float) -> float:
    """The nearest normal float32 number, at least 2**-100: reciprocals and products of a few stay in range."""
    return float(max(np.float32(scale), np.float32(2.0**-100)))
