"""Fused sums of 16-bit floats as they are stored, rounded to 16 bits: quicker than `fused`, and the same bits.

The unit's sum differs from the real one by little: what it cuts off of products, and the rounding of a sum per group.
Of most results both ends of that interval round to the same 16 bits, which then are the result: a product in float64
and a bound are enough. The few results whose interval reaches over a border between two numbers are added as the unit
adds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby

import numpy as np

from bmcompiler.numeric.arrays import Bits16, Doubles, Floats, Mask
from bmcompiler.numeric.blas import in_parallel
from bmcompiler.numeric.fp32 import flush, products_stay_normal
from bmcompiler.numeric.fused import fused_pairs, fused_product
from bmcompiler.numeric.halves import Half
from bmcompiler.numeric.sampled import chosen, real_sums, sampled

_CHUNK = 8  # groups after which the sum so far is looked at
_VALUES = 1 << 16  # results of a strip of columns: float64 sums and bounds stay in the second-level cache
_ROUNDING = 2.0**-24  # of a float32 sum, relative; also what is cut off of a product, relative to the largest
_SLACK = 1.01  # for the roundings of the bound itself, and for those that act on other roundings
_BELOW = 2.0**-124  # what a product or the sum of a group loses at most by becoming 0
_ABOVE = 2.0**100  # sums of products beyond are left to `fused_product`, as are infinities and NaN
_SMALL = 1 << 15  # products; fewer are added at once
_MOST_UNCERTAIN = 0.25  # of a strip; with more it is quicker to add all of it


def half_product(a: Floats, b: Floats, groups: Sequence[int], start: Floats, half: Half) -> Bits16:
    """half.narrow(fused_product(a, b, groups, start)), bit for bit, but for what `sampled` says.

    Args:
        a, b, groups, start: see `fused_product`. half: the type of the result, and that of a and b before widening.
    """
    if not sampled():
        return _exact(a, b, groups, start, half)
    found = real_sums(a, b, start, half.narrow)
    rows = chosen(a)
    if rows.size:
        before = np.broadcast_to(start, found.shape)[rows]
        found[rows] = _exact(np.ascontiguousarray(a[:, rows]), b, groups, before, half)
    return found


def _exact(a: Floats, b: Floats, groups: Sequence[int], start: Floats, half: Half) -> Bits16:
    shape, size = (a.shape[1], b.shape[1]), a.size * b.shape[1]
    start = np.broadcast_to(flush(start), shape)
    if size < _SMALL or not _largest(a) * _largest(b) * len(a) + _largest(start) < _ABOVE:
        return half.narrow(fused_product(a, b, groups, start))
    lost = 0.0 if products_stay_normal(a, b) else 2 * len(a) * _BELOW
    left, step = _Factor(a, groups), max(1, _VALUES // max(1, shape[0]))
    out = np.empty(shape, np.uint16)

    def some(x: int) -> None:
        columns = slice(x, x + step)
        part, before = np.ascontiguousarray(b[:, columns]), start[:, columns]
        with np.errstate(all="ignore"):  # holds for one thread
            sums, bound = _sums(left, _Factor(part, groups), before)
            bound += lost
            low, high = (half.narrow(end.astype(np.float32)) for end in (sums - bound, sums + bound))
            uncertain = low != high
            if uncertain.any():
                low = _settled(low, uncertain, a, part, groups, before, half)
        out[:, columns] = low

    in_parallel([partial(some, x) for x in range(0, shape[1], step)])
    return out


def _largest(values: Floats) -> float:
    """The largest magnitude; NaN where one is among them, 0 of nothing."""
    return max(float(values.max(initial=0)), -float(values.min(initial=0)))


class _Factor:
    """One side of a product, (K, N): in float64, and what bounds its groups, (G, N) each.

    Attributes:
        values: (K, N). tops: largest magnitude of each group. counts: how many are not 0. norms: Euclidean.
        sizes: values of each chunk of groups.
    """

    def __init__(self, values: Floats, groups: Sequence[int]) -> None:
        self.values: Doubles = values.astype(np.float64)
        self.tops, self.counts, self.norms = (np.empty((len(groups), values.shape[1])) for _ in range(3))
        self.sizes = [sum(groups[i : i + _CHUNK]) for i in range(0, len(groups), _CHUNK)]
        group = row = 0
        for size, alike in groupby(groups):
            count = len(list(alike))
            some, rows = slice(group, group + count), slice(row, row + count * size)
            terms = values[rows].reshape(count, size, -1)
            self.tops[some] = np.maximum(terms.max(axis=1), -terms.min(axis=1))
            self.counts[some] = np.add.reduce((terms != 0).view(np.uint8), axis=1, dtype=np.uint8)
            wide = self.values[rows].reshape(terms.shape)
            self.norms[some] = np.sqrt(np.einsum("gkn,gkn->gn", wide, wide))
            group, row = some.stop, rows.stop


def _sums(left: _Factor, right: _Factor, start: Floats) -> tuple[Doubles, Doubles]:
    """The real sums and how far the unit's can be from them, (M, N) each.

    1. Of a product less than 2**-24 of the group's largest is cut off, of a product of 0 nothing.
    2. The sum of a group is rounded, by 2**-24 of it.
    3. So is each sum of groups. Of these the last of every chunk is known; one before differs from it by the sums of
       the groups in between. The sum of a group is at most the product of the norms.
    4. The ends of the interval are rounded to float32 by the caller.
    """
    places = np.arange(len(left.tops)) % _CHUNK
    bound = left.tops.T @ (right.tops * right.counts)
    bound += (left.norms * (1.0 + places)[:, None]).T @ right.norms
    sums = start.astype(np.float64)
    row = 0
    for number, size in enumerate(left.sizes):
        rows = slice(row, row + size)
        sums += left.values[rows].T @ right.values[rows]
        bound += np.abs(sums) * min(_CHUNK, len(left.tops) - number * _CHUNK)
        row += size
    bound += np.abs(sums)
    bound *= _ROUNDING * _SLACK
    return sums, bound


def _settled(
    found: Bits16,
    uncertain: Mask,
    a: Floats,
    b: Floats,
    groups: Sequence[int],
    start: Floats,
    half: Half,
) -> Bits16:
    """`found` with the uncertain results added as the unit adds."""
    if uncertain.mean() > _MOST_UNCERTAIN:
        return half.narrow(fused_product(a, b, groups, start))
    rows, columns = np.nonzero(uncertain)
    found[rows, columns] = half.narrow(fused_pairs(a, b, groups, start, rows, columns))
    return found
