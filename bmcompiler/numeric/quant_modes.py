"""The three quantization modes of BMLang: what becomes of an exact integer sum of products (bmlang.md 3).

With s = float32(scale), all scale arithmetic in float32, rrs(x, k) = floor((x + 2**(k-1)) / 2**k) (x for k = 0):

* low:        y = sat8(rrs(sum + bias, k));  r != 1: y = sat8((y * m + 64) >> 7), m = trunc(r * 128)
* high:       t = sat16(rrs(sum + bias, k)); z = fl(t * r). A bias of i32 or f32 is left out of the sum and counts as
              z = fl(fl(t * r) + fl(fl(bias) * s)). Result: z rounded half away from zero and saturated.
* asymmetric: t = sat16(sat16(rrs(sum(x * w), k)) - sat16(rrs(sum(x * zp_w), k))), bias2 = bias - zp_x * sum(w - zp_w);
              z = fl(fl(t * r) + fl(fl(bias2) * s)). Result: saturate(round half away(z) + zp_out).

The shift k is ceil(log2(1/s)), in convolutions of the asymmetric mode floor(log2(1/s)), and 0 for s > 1; the residual
is r = s * 2**k (bmlang.md 3.1). Sums are exact integers here; the chip's accumulators have 32 bits and wrap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmcompiler.numeric import arith
from bmcompiler.numeric.arrays import Array, Doubles, Floats
from bmcompiler.numeric.exact_sums import ended, is_held, requantized

LOW, HIGH, ASYMMETRIC = "low", "high", "asymmetric"
MODES = (LOW, HIGH, ASYMMETRIC)
SMALLEST_SCALE, LARGEST_SCALE = 2.0**-31, 2.0**23
"""Range of `scale`: shifts have 5 bits, and the multiplier of the low mode stays an exact integer product."""

_BELOW_HALF = np.float32(np.nextafter(np.float32(0.5), np.float32(0)))
"""Added before truncation it rounds every float32 half away from zero; 0.5 itself misrounds 0.49999997."""


@dataclass(frozen=True)
class Rescale:
    """A real factor as the modes take it apart: scale = residual / 2**shift, all exact in float32.

    scale: the float32 number. shift: k. residual: r, in [1, 2), or (0.5, 1] with `floor`; scale itself above 1.
    """

    scale: float
    shift: int
    residual: float

    @property
    def multiplier(self) -> int:
        """m of the low mode, in 1/128: 128 to 255 for a scale up to 1."""
        return math.trunc(self.residual * 128)


def rescale(scale: float, *, floor: bool = False) -> Rescale:
    """Shift and residual of a scale.

    Args:
        scale: in `SMALLEST_SCALE` .. `LARGEST_SCALE`, rounded to float32 first.
        floor: k = floor(log2(1/s)) instead of ceil: asymmetric convolutions.
    Raises ValueError for a scale outside its range.
    """
    single = float(np.float32(scale))
    if not SMALLEST_SCALE <= single <= LARGEST_SCALE:
        raise ValueError(f"a scale must be 2**-31 to 2**23, got {scale}")
    fraction, exponent = math.frexp(single)  # single = fraction * 2**exponent, fraction in [0.5, 1)
    shift = -exponent if floor and fraction != 0.5 else 1 - exponent
    shift = max(shift, 0) if single <= 1 else 0
    return Rescale(single, shift, math.ldexp(single, shift))


def low(total: Array, factor: Rescale, dtype: str, bias: Array | None = None) -> Array:
    """LowPrecisionSymmetric.

    Args:
        total: integers, or held by float32 (`exact_sums`), which may change. bias: integers that broadcast against it.
        dtype: i8 or u8.
    Returns: an array of `dtype`, or the same numbers as float32.
    """
    out = requantized(total, bias, factor.shift, dtype)
    if factor.residual == 1.0:
        return out
    if is_held(out):
        return ended(out * np.float32(factor.multiplier), None, 7, dtype)  # what is rounded there saturates
    wide = out.astype(np.int32 if factor.shift else np.int64)  # what shifts is below 1: times 255 at most
    return arith.requantize(wide * factor.multiplier, 7, dtype)


def high(total: Array, factor: Rescale, dtype: str, bias: Array | None = None) -> Array:
    """HighPrecisionSymmetric.

    Args:
        total: as `low` takes it. bias: in units of the sum, broadcasting against it; of 16 bits, i32 or f32.
        dtype: i8, u8, i16 or u16.
    """
    narrow = bias if bias is not None and bias.dtype.itemsize <= 2 else None
    wide = bias if narrow is None else None
    return _requantize(requantized(total, narrow, factor.shift, "i16"), factor, dtype, wide, 0)


def asymmetric(total: Array, crossed: Array | None, factor: Rescale, dtype: str, bias: Array, zero_point: int) -> Array:
    """HighPrecisionAsymmetric.

    Args:
        total: sum(x * w) as `low` takes it, without bias, padding counted as the zero point of x.
        crossed: sum(x * zp_w) likewise, broadcasting against `total`; None when zp_w is 0.
        factor: from `rescale`, with `floor` for convolutions. bias: bias2, integers or float32, broadcasting.
        dtype: i8, u8, i16 or u16. zero_point: of the result.
    """
    part = requantized(total, None, factor.shift, "i16")
    if crossed is not None:
        second = requantized(crossed.copy(), None, factor.shift, "i16")
        part = requantized(np.subtract(part, second, dtype=np.float32), None, 0, "i16")
    return _requantize(part, factor, dtype, bias, zero_point)


def _requantize(part: Array, factor: Rescale, dtype: str, bias: Array | None, zero_point: int) -> Array:
    """saturate(round half away(part * r + bias * s) + zero_point), each product and sum rounded to float32."""
    real = part.astype(np.float32, copy=False)
    real *= np.float32(factor.residual)
    if bias is not None:
        real = real + bias.astype(np.float32) * np.float32(factor.scale)
    return from_real(real, dtype, zero_point)


def from_real(real: Array, dtype: str, zero_point: int = 0) -> Array:
    """float32 to integers: saturate(round half away from zero(real) + zero_point); NaN becomes the lowest value.

    The bounds are integers, so clamping before rounding is the same (bm1684.md 7.3, step 5). May change `real`.
    """
    limits = np.iinfo(arith.NUMPY_DTYPES[dtype])
    real = np.asarray(real)  # numpy computes a number out of arrays of no axes
    np.fmax(real, np.float32(int(limits.min) - zero_point), out=real)
    np.minimum(real, np.float32(int(limits.max) - zero_point), out=real)
    real += np.copysign(_BELOW_HALF, real)
    whole = real.astype(np.int32)
    if zero_point:
        whole += zero_point
    return whole.astype(limits.dtype)


def quantize_even(x: Array, scale: float | Doubles, dtype: str, zero_point: int = 0) -> Array:
    """Reals to integers as `quantize_away`, but that halves go to the even integer, before the zero point is added."""
    inverse, limits = np.float32(1) / np.float32(scale), np.iinfo(arith.NUMPY_DTYPES[dtype])
    with np.errstate(over="ignore", invalid="ignore"):
        real: Array = np.asarray(x, np.float32) * inverse
    real = np.fmax(real, np.float32(int(limits.min) - zero_point))
    whole = np.rint(np.minimum(real, np.float32(int(limits.max) - zero_point))).astype(np.int32)
    return (whole + zero_point).astype(limits.dtype)


def quantize_away(x: Array, scale: float | Doubles, dtype: str, zero_point: int = 0) -> Array:
    """Reals to integers: saturate(round half away from zero(fl(x * fl(1 / s))) + zero_point), s = float32(scale).

    Args:
        x: floats of any shape, taken as float32; NaN becomes the lowest value of `dtype`. dtype: i8, u8, i16 or u16.
        scale: a number, or an array that broadcasts against `x`.
    """
    inverse = np.float32(1) / np.float32(scale)
    with np.errstate(over="ignore", invalid="ignore"):
        return from_real(np.asarray(x, np.float32) * inverse, dtype, zero_point)


def dequantize(q: Array, scale: float | Doubles, zero_point: int = 0) -> Floats:
    """Integers to reals: (q - zero_point) * scale rounded to float32 once.

    For a scale that is a float32 number this is fl(float(q - zero_point) * scale), as the chip multiplies.
    """
    return ((np.asarray(q, np.float64) - zero_point) * np.float64(scale)).astype(np.float32)


def is_single(scale: float) -> bool:
    """Whether a scale is a normal float32 number, whose reciprocal is one too."""
    return float(np.float32(scale)) == scale and 2.0**-126 <= scale <= 2.0**126
