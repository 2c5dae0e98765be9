"""Functions that numpy lacks, on whole arrays."""

from __future__ import annotations

import math

import numpy as np

from bmcompiler.numeric.arrays import Array

_STEPS = 128
_LIMIT = 6
"""erf(6) is 1 within 2e-17, below the spacing of float64 numbers near 1."""
_NODES = np.array([math.erf(i / _STEPS) for i in range(_LIMIT * _STEPS + 1)])
_SLOPES = 2 / math.sqrt(math.pi) * np.exp(-np.square(np.arange(_NODES.size) / _STEPS))
_TERMS = {8: 7, 4: 4, 2: 3}
"""Terms of the series by the width of the result: offsets are at most 1 / 256."""
_BLOCK = 1 << 14
"""Elements worked on at a time, so that all temporaries stay in the cache."""


def erf(x: Array) -> Array:
    """Error function, 2 / sqrt(pi) * integral of exp(-t**2) from 0 to x; floats of any shape, the result likewise.

    Taylor series around the nearest of the points k / 128. With d the n-th derivative divided by n!, erf'' = -2x erf'
    gives d[n+1] = -2 * (x * n * d[n] + (n - 1) * d[n-1]) / (n * (n + 1)). The error is below 1e-15, for f32 below its
    rounding.
    """
    flat = np.ascontiguousarray(x).reshape(-1)
    out = np.empty_like(flat)
    for first in range(0, flat.size, _BLOCK):
        part = flat[first : first + _BLOCK]
        out[first : first + _BLOCK] = _erf(part.astype(np.float64), _TERMS[x.dtype.itemsize])
    return out.reshape(np.shape(x))


def _erf(x: Array, terms: int) -> Array:
    """erf of float64 values with so many terms beyond the first."""
    size = np.minimum(np.abs(x), float(_LIMIT))
    index = np.rint(np.nan_to_num(size) * _STEPS).astype(np.intp)
    centre = index / _STEPS
    offset = size - centre
    slope, before = _SLOPES[index], np.zeros_like(x)
    total, power = _NODES[index] + slope * offset, offset
    for n in range(1, terms):
        slope, before = (centre * slope * n + (n - 1) * before) * (-2 / (n * (n + 1))), slope
        power = power * offset
        total += slope * power
    return np.copysign(np.minimum(total, 1.0), x)


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x)) in the type of `x`, floats of any shape; nothing overflows."""
    small = np.asarray(np.abs(x))
    np.exp(np.negative(small, out=small), out=small)  # in 0 .. 1
    above = np.asarray(np.maximum(small, x >= 0))  # as `where(x >= 0, 1, small)`, four times quicker
    small += x.dtype.type(1)
    above /= small
    return above
