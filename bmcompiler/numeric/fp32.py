"""Float arithmetic of the execution units, bit for bit (bm1684.md 6.0.1, 7.1, bm1684x-vector.md 4.1).

Every multiplication and addition is one IEEE operation rounded to nearest even; there is no fused multiply-add.
Denormal operands count as zero and denormal results become zero, both with their sign; a result is denormal when it is
below 2**-126 after rounding with an exponent without end, as x86 has it. Arrays are float32 throughout.
Callers run under `np.errstate(all="ignore")`: overflow and NaN are ordinary results.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bmcompiler.numeric.arrays import Floats, Int32s

Binary = Callable[[Floats, Floats], Floats]

TINY = np.float32(2.0**-126)  # smallest normal number
_RSQRT_START = np.int32(0x5F3759DF)
_HALF, _THREE_HALVES = np.float32(0.5), np.float32(1.5)
_RSQRT_ROUNDS = 3
_ROUND_MANTISSA = np.uint32(0x555554)  # takes mantissas from 4/3 on to the next power of two
_EXPONENT = np.int32(-0x800000)  # sign and exponent
_MAGNITUDE = np.int32(0x7FFFFFFF)
_INFINITE = np.int32(0x7F800000)
_ALL_BITS = np.uint32(0xFFFFFFFF)
_ONE = np.uint32(1)
_TINY_BITS = np.uint32(0x00800000)
_LEAST_PRODUCT = 2.0**-126 * (1 - 2.0**-25)  # from here on a product would round to 2**-126 if exponents had no end
_QUIET, _INVALID = np.uint32(0x00400000), np.uint32(0xFFC00000)
_SAFE_COEFFICIENT = 2.0**-100
_BLOCK = 1 << 13  # elements worked on at a time, so that they stay in the first-level cache
# Sums of products are multiples of the last bit of the smallest product. From here up that bit is a normal number, so
# that no partial sum can be denormal, whatever cancels.
_SAFE_PRODUCT = 2.0**-102


def flush(x: Floats) -> Floats:
    """`x` with denormals replaced by zeros of their sign; `x` itself when there are none."""
    x = np.asarray(x)
    if not _reaches_below(x, _TINY_BITS):
        return x
    return np.where(np.abs(x) < TINY, np.copysign(np.float32(0), x), x)


def _reaches_below(x: Floats, limit: np.uint32) -> bool:
    """Whether a number other than 0 has a magnitude below the one with these bits."""
    bits = x.view(np.uint32) << _ONE
    bits -= _ONE  # zeros become the largest bits of all
    return bool(bits.min(initial=_ALL_BITS) < (limit << _ONE) - _ONE)


def add(a: Floats, b: Floats) -> Floats:
    """a + b."""
    return _exact_nan(flush(np.add(flush(a), flush(b))), a, b)


def subtract(a: Floats, b: Floats) -> Floats:
    """a - b."""
    return _exact_nan(flush(np.subtract(flush(a), flush(b))), a, b)


def multiply(a: Floats, b: Floats) -> Floats:
    """a * b."""
    return _exact_nan(_product(flush(a), flush(b)), a, b)


def _product(a: Floats, b: Floats) -> Floats:
    """a * b of normal numbers. What only the spacing of denormals rounds up to 2**-126 becomes zero, too."""
    product = np.asarray(np.multiply(a, b))
    if not _reaches_below(product, _TINY_BITS + _ONE):
        return product
    exact = np.abs(np.multiply(a, b, dtype=np.float64))
    return np.where(exact < _LEAST_PRODUCT, np.copysign(np.float32(0), product), product)


def _exact_nan(result: Floats, a: Floats, b: Floats) -> Floats:
    """`result` of a and b with NaN as x86 has it: that of a, else that of b, made quiet, else FFC00000."""
    if not np.isnan(result.max(initial=-np.inf)):
        return result
    kept = np.where(np.isnan(a), a, b).view(np.uint32) | _QUIET
    kept = np.where(np.isnan(a) | np.isnan(b), kept, _INVALID)
    return np.where(np.isnan(result), kept.view(np.float32), result)


def maximum(a: Floats, b: Floats) -> Floats:
    """a > b ? a : b, so that a NaN in either and equal zeros give b; denormals become zero."""
    return larger(flush(a), flush(b))


def larger(a: Floats, b: Floats) -> Floats:
    """a > b ? a : b as compare-and-select has it: denormals compare as zero but stay what they are."""
    return np.where(flush(a) > flush(b), a, b)


def minimum(a: Floats, b: Floats) -> Floats:
    """a <= b ? a : b, so that a NaN in either gives b. Denormals compare as zero but stay what they are."""
    return np.where(flush(a) <= flush(b), a, b)


def rsqrt(x: Floats, rounds: int = _RSQRT_ROUNDS) -> Floats:
    """The chip's reciprocal square root: a bit trick and Newton steps (bm1684.md 7.1)."""
    return _in_blocks(x, lambda part: _rsqrt(part, rounds))


def _rsqrt(x: Floats, rounds: int) -> Floats:
    y: Floats = flush((_RSQRT_START - (x.view(np.int32) >> 1)).view(np.float32))  # the bits of denormals count
    half = flush(_HALF * flush(x))
    for _ in range(rounds):
        correction = flush(_THREE_HALVES - flush(flush(half * y) * y))
        y = flush(y * correction)
    return y


def _in_blocks(x: Floats, function: Callable[[Floats], Floats]) -> Floats:
    """A function of each element alone, on as many at a time as stay in the cache."""
    flat = np.ascontiguousarray(x, np.float32).reshape(-1)
    if flat.size <= _BLOCK:
        return function(flat).reshape(np.shape(x))
    out = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):
        out[start : start + _BLOCK] = function(flat[start : start + _BLOCK])
    return out.reshape(np.shape(x))


def divide(a: Floats, b: Floats, rounds: int = _RSQRT_ROUNDS) -> Floats:
    """The chip's a / b: rsqrt(|b|)^2 * a, with -a for a negative b; up to 5 units in the last place off."""
    root = rsqrt(np.abs(b), rounds)
    return multiply(multiply(root, root), np.where(np.signbit(b), np.negative(a), a))


def to_int(x: Floats) -> Int32s:
    """Truncation towards zero with saturation; NaN counts as infinity of its sign (bm1684.md 6.8)."""
    wide = np.trunc(x.astype(np.float64))
    infinite = np.copysign(np.inf, x.astype(np.float64))
    return np.clip(np.where(np.isnan(x), infinite, wide), -(2.0**31), 2.0**31 - 1).astype(np.int32)


def taylor(x: Floats, coefficients: Floats) -> Floats:
    """c0*x + c1*x^2 + ... by Horner's rule from the last coefficient (bm1684.md 6.8)."""
    x = flush(x)
    return multiply(horner(x, coefficients), x)


def horner(x: Floats, coefficients: Floats) -> Floats:
    """c0 + c1*x + c2*x^2 + ..., every product and every sum rounded, from the last coefficient (bm1684x-vector.md 6.1).

    `coefficients`: one or more along the first axis, each a number or an array that broadcasts against `x`.
    """
    steps = flush(coefficients)
    if steps.ndim > 1:
        return _horner(flush(x), steps)
    return _in_blocks(x, lambda part: _horner(flush(part), steps))


def _horner(x: Floats, coefficients: Floats) -> Floats:
    """With coefficients of a certain size a denormal product does not count, and the sum cannot be denormal."""
    if np.isnan(coefficients).any():
        return _horner_of_nan(x, coefficients)
    if np.isfinite(x).all():  # zeros beyond the last coefficient add nothing
        last = np.flatnonzero(coefficients.view(np.uint32).reshape(len(coefficients), -1).any(1))
        coefficients = coefficients[: last[-1] + 1] if last.size else coefficients[:1]
    total = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        safe = bool((np.abs(c) >= _SAFE_COEFFICIENT).all())
        total = np.multiply(total, x, out=total) if safe else _product(total, x)
        total += c
        total = total if safe else flush(total)
    return total


def _horner_of_nan(x: Floats, coefficients: Floats) -> Floats:
    total = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = add(multiply(total, x), np.full_like(x, c))
    return total


def nearest_exponent(bits: Int32s) -> Int32s:
    """Biased exponent of the nearest power of two of the floats in these bits (bm1684.md 6.8 int_normalize)."""
    return np.where(bits >= 0, _rounded(bits).view(np.uint32) >> 23, (bits & _MAGNITUDE) >> 23).astype(np.int32)


def nearest_power(bits: Int32s) -> Int32s:
    """Bits of the nearest power of two; NaN gives 0 (bm1684.md 6.8 fp32_normalize)."""
    kept = np.where(bits >= 0, _rounded(bits), bits) & _EXPONENT
    return np.where((bits & _MAGNITUDE) > _INFINITE, 0, kept).astype(np.int32)


def _rounded(bits: Int32s) -> Int32s:
    return (np.ascontiguousarray(bits).view(np.uint32) + _ROUND_MANTISSA).view(np.int32)


def products_stay_normal(*factors: Floats) -> bool:
    """Whether sums of products of one value from each array never meet a denormal, so that flushing can be skipped."""
    smallest = 1.0
    for values in factors:
        bits = np.abs(values).view(np.uint32)
        bits -= np.uint32(1)  # zeros become the largest bits, all others keep their order; NaN is last of them
        least = bits.min(initial=_ALL_BITS)
        smallest *= 1.0 if least == _ALL_BITS else float((least + np.uint32(1)).view(np.float32))
    return smallest >= _SAFE_PRODUCT
