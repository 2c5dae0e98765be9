"""Weights in two terms of bytes: what a chip with bytes only computes layers with whose error matters (bm1880.md 8.2).

A layer has integer weights W1, real weight = W1 * step, and what these leave is the second term. Two forms:

* dense: w ~ (W1 + W0 / 2**3) * step, W0 = floor((w / step - W1) * 2**3 + 0.5), at most 4 in magnitude; with
  h = saturate8(round_shift(x, 3)), y = saturate8(round_shift(sum(x * W1) + sum(h * W0) + bias, r)). This is one
  product of twice the depth: its sums are exact in 32 bits, and rounded once. h is x / 2**3 but for its rounding, which
  counts as little as that of W0 does where x is some 20 steps large on average.
* summed: y = saturate8(round_shift(64 * y1 + m * y0, 6)), y1 the layer with W1 and y0 one with the integers of what
  is left at a threshold 2**-k as large, m = 2**(6 - k): for layers of groups, where a product of twice the depth would
  take a command for each group. The sum has 16 bits; y1 is rounded already.
"""

from __future__ import annotations

import numpy as np

from bmcompiler.numeric.arrays import Array, Doubles, Int8s

INT8, DOUBLE = "int8", "double"
"""Modes of layers with power-of-two shifts: weights in one term, and in two."""
SHIFT_MODES = (INT8, DOUBLE)
BITS = 3
"""Right shift of the input that the second term of a dense layer is multiplied with."""
MOST_FINER = 6
"""How many bits finer than the first the second result of a summed layer is at the most: the shift of the sum."""


def left_over(weight: Array, first: Int8s, step: float) -> Doubles:
    """What the first term leaves of real weights."""
    return np.asarray(weight, np.float64) - first * step


def second_term(rest: Doubles, step: float) -> Int8s:
    """W0 of a dense layer; rest: what its first term leaves, at most half a step of it."""
    return np.floor(rest / step * 2.0**BITS + 0.5).astype(np.int8)


def finer_bits(most: float, threshold: float) -> int:
    """k of a summed layer, 0 to `MOST_FINER`: y0 has the threshold `threshold` / 2**k, which is at least `most`."""
    return next((k for k in range(MOST_FINER, 0, -1) if most <= threshold / 2.0**k), 0)
