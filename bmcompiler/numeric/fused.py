"""Sums of products of 16-bit floats in groups: aligned to the largest exponent, truncated, added exactly, rounded once.

The arithmetic of the matrix unit for fp16 and bf16 (bm1684x-cube.md 4, FUSED32). Of a group of products, exact in fp32,
E is the largest exponent. Every product is cut towards zero to a multiple of 2**(E - 24); these integers are added
exactly and the sum is rounded once to fp32. The sums of the groups are then added in fp32, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from bmcompiler.numeric.arrays import Floats, Indices, Int32s
from bmcompiler.numeric.blas import in_parallel
from bmcompiler.numeric.fp32 import TINY, add, flush, products_stay_normal
from bmcompiler.numeric.ordered import outer

GROUP = 32

_EXPONENT = np.uint32(0x7F80_0000)
_MANTISSA_BITS = 23
_KEPT_BITS = 24  # of products, below the largest exponent
_ONE = np.uint32(127 << _MANTISSA_BITS)
_BELOW = np.uint32(_KEPT_BITS << _MANTISSA_BITS)
_SCALE = np.uint32((254 + _KEPT_BITS) << _MANTISSA_BITS)  # 2**(24 - E) has this exponent less that of 2**E
_LEAST_SCALED = np.float32(2.0**-100)  # of smaller groups 2**(24 - E) is no float32
_NAN = np.array(0xFFC0_0000, np.uint32).view(np.float32)
_ROWS, _COLUMNS = 16, 512  # of a block: its products of a group stay in the second-level cache
_PAIRS = 1 << 10  # single results at a time
_STRIP = 8  # blocks that one thread makes in the same scratch memory


def fused_product(a: Floats, b: Floats, groups: Sequence[int], start: Floats) -> Floats:
    """start + a.T @ b for a (K, M) and b (K, N), group by group of products.

    Args:
        a, b: values of one 16-bit type, widened.
        groups: sizes of the groups in order, 32 at most; their sum is K.
        start: float32, broadcasting to (M, N).
    """
    shape = (a.shape[1], b.shape[1])
    if shape[0] > shape[1]:
        transposed = np.broadcast_to(start, shape).T
        return np.ascontiguousarray(fused_product(b, a, groups, transposed).T)
    safe = products_stay_normal(a, b)
    out = np.array(np.broadcast_to(flush(start), shape))

    def some(x: int, top: int) -> None:
        right = np.ascontiguousarray(b[:, x : x + _COLUMNS])
        size = (max(groups, default=0), _ROWS, right.shape[1])
        scratch = _Scratch(np.empty(size, np.float32), np.empty(size, np.int32))
        with np.errstate(all="ignore"):  # holds for one thread
            for y in range(top, min(top + _STRIP * _ROWS, shape[0]), _ROWS):
                left, block = np.ascontiguousarray(a[:, y : y + _ROWS]), out[y : y + _ROWS, x : x + _COLUMNS]
                block[...] = _block(left, right, groups, np.array(block), scratch, safe)

    corners = [(x, y) for x in range(0, shape[1], _COLUMNS) for y in range(0, shape[0], _STRIP * _ROWS)]
    in_parallel([partial(some, x, y) for x, y in corners])
    return out


def fused_pairs(
    a: Floats,
    b: Floats,
    groups: Sequence[int],
    start: Floats,
    rows: Indices,
    columns: Indices,
) -> Floats:
    """Single results of `fused_product`, those at (rows[i], columns[i]); start is (M, N)."""
    safe = products_stay_normal(a, b)
    total, at = flush(start[rows, columns]), 0
    blocks = [slice(first, first + _PAIRS) for first in range(0, len(rows), _PAIRS)]
    integers = np.empty((max(groups, default=0), min(_PAIRS, len(rows))), np.int32)
    with np.errstate(all="ignore"):
        for size in groups:
            left, right = (np.ascontiguousarray(values[at : at + size].T) for values in (a, b))
            for some in blocks:
                products = left.take(rows[some], axis=0)
                products *= right.take(columns[some], axis=0)
                products = np.ascontiguousarray(products.T)
                sums = _fused(products if safe else flush(products), integers[:size, : products.shape[1]])
                total[some] = add(total[some], sums)
            at += size
    return total


class _Scratch(NamedTuple):
    """Memory for the products of a group of a block."""

    products: Floats
    integers: Int32s


def _block(a: Floats, b: Floats, groups: Sequence[int], total: Floats, scratch: _Scratch, safe: bool) -> Floats:
    """`fused_product` of a block onto `total`; `safe` = no product is denormal."""
    products, integers = scratch.products[:, : len(total)], scratch.integers[:, : len(total)]
    at = 0
    for size in groups:
        some = products[:size]
        outer(a[at : at + size], b[at : at + size], some)
        total = add(total, _fused(some if safe else flush(some), integers[:size]))
        at += size
    return total


def _fused(products: Floats, integers: Int32s) -> Floats:
    """The sum of products (first axis), as the unit rounds it; overwrites both arrays."""
    largest = np.maximum(np.maximum.reduce(products), -np.minimum.reduce(products))
    plain = (largest >= _LEAST_SCALED) & (largest < np.inf)
    if not plain.all() and ((largest != 0) & ~plain).any():
        return _rare(products)
    exponent = largest.view(np.uint32) & _EXPONENT
    exponent[exponent == 0] = _ONE
    np.multiply(products, (_SCALE - exponent).view(np.float32), out=products)
    np.copyto(integers, products, casting="unsafe")  # cuts towards zero
    sums = np.add.reduce(integers, dtype=np.int32).astype(np.float32)  # below 2**31
    return sums * (exponent - _BELOW).view(np.float32)


def _rare(products: Floats) -> Floats:
    """`_fused` of any products: tiny ones, infinities and NaN."""
    finite = np.where(np.isfinite(products), products, np.float32(0)).astype(np.float64)
    largest = np.abs(finite).max(axis=0)
    _, exponent = np.frexp(np.where(largest == 0, 1.0, largest))
    shift = _KEPT_BITS + 1 - exponent  # frexp gives a mantissa below 1
    sums = np.trunc(np.ldexp(finite, shift)).sum(axis=0)  # integers below 2**30
    # One rounding: ldexp is exact in float64, the conversion rounds.
    result = np.ldexp(sums, -shift).astype(np.float32)
    result = np.where(np.abs(result) < TINY, np.float32(0), result)
    up, down = ((products == value).any(axis=0) for value in (np.inf, -np.inf))
    missing = np.isnan(products).any(axis=0) | (up & down)
    result = np.where(up, np.float32(np.inf), np.where(down, -np.float32(np.inf), result))
    return np.where(missing, _NAN, result).astype(np.float32)
