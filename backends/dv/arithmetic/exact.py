"""Exact sums of fp16 products with float64 arithmetic, in any order of addition."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bmcompiler.numeric.arrays import Doubles, Halves

Product = Callable[[Doubles, Doubles], Doubles]
"""Bilinear: sums of products of elements of the two arrays, added in any order."""

_MANTISSA = 53
_INFINITY = 0x7C00  # patterns from here on are infinities and NaN


def exponents(values: Halves) -> tuple[int, int] | None:
    """(unit, top): all values are multiples of 2**unit and below 2**top in magnitude; None with infinities or NaN."""
    bits = values.view(np.uint16) & 0x7FFF
    high = int(bits.max(initial=0))
    if high >= _INFINITY:
        return None
    if not high:
        return 0, 0
    low = int((bits - np.uint16(1)).min()) + 1  # zeros wrap around to the largest number
    return max(low >> 10, 1) - 25, max(high >> 10, 1) - 14


def exact_sums(x: Halves, weights: Halves, terms: int, product: Product) -> Doubles:
    """product(x, weights) as if summed exactly and rounded once to float64; zeros are +0.

    Both operands are cut into parts so narrow that every partial sum of float64 products is exact, in whatever order
    `product` adds. Real data needs one or two products of parts; infinities and NaN spread as in IEEE sums.

    Args:
        terms: products per sum.
        product: called with float64 arrays of the shapes of x and weights; it may add in any order.
    """
    range_x, range_w = exponents(x), exponents(weights)
    if range_x is None or range_w is None:
        with np.errstate(all="ignore"):
            plain = product(x.astype(np.float64), weights.astype(np.float64))
        return np.where(np.isfinite(plain), exact_sums(_finite(x), _finite(weights), terms, product), plain)
    (unit_x, top_x), (unit_w, top_w) = range_x, range_w
    room = _MANTISSA - math.ceil(math.log2(max(terms, 1)))
    bits_x, bits_w = top_x - unit_x, top_w - unit_w
    parts_x, parts_w = min(
        ((p, q) for p in range(1, 5) for q in range(1, 5) if -(-bits_x // p) + -(-bits_w // q) <= room),
        key=lambda cut: (cut[0] * cut[1], cut[1]),
    )
    xs = _cut(x.astype(np.float64), unit_x, bits_x, parts_x)
    ws = _cut(weights.astype(np.float64), unit_w, bits_w, parts_w)
    return _rounded([product(a, b) for a in xs for b in ws])


def _rounded(sums: list[Doubles]) -> Doubles:
    """The exact total of exact sums, rounded once; zeros are +0."""
    if len(sums) <= 2:
        total = sums[0] + (sums[1] if len(sums) == 2 else 0.0)
        return total + 0.0
    add = np.frompyfunc(lambda *values: math.fsum(values), len(sums), 1)
    return np.asarray(add(*sums), np.float64) + 0.0


def _finite(values: Halves) -> Halves:
    return np.where(np.isfinite(values), values, np.float16(0))


def _cut(values: Doubles, unit: int, bits: int, parts: int) -> list[Doubles]:
    """Arrays that add up to `values`, each with ceil(bits / parts) bits at most."""
    found: list[Doubles] = []
    width = -(-bits // parts)
    for part in range(parts - 1, 0, -1):
        step = math.ldexp(1.0, unit + part * width)
        high = np.trunc(values / step) * step
        found.append(high)
        values = values - high
    return [*found, values]
