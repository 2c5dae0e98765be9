"""What `winograd` computes, in the arithmetic and order of its commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bmcompiler.backends.lanes.arithmetic import Arithmetic
from bmcompiler.backends.lanes.kernels.functions.fused_activation import activate
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.numeric.arrays import Floats
from bmcompiler.ops.layers.nn import Convolution

if TYPE_CHECKING:
    from bmcompiler.backends.lanes.kernels.windows.float_conv import FloatConvKernel

BIASED = 5
"""The place that is added once to each of the four results: what its product begins with is their bias."""
DIFFERENCES = ((0, 2, Unit.SUB), (1, 2, Unit.ADD), (2, 1, Unit.SUB), (1, 3, Unit.SUB))
"""Rows of B^T: first and second pixel, and how they go together."""


def evaluate(kernel: FloatConvKernel, op: Convolution, x: Floats, weight: Floats, bias: Floats | None) -> Floats:
    """The op in the chip's arithmetic and order."""
    arithmetic = kernel.machine.arithmetic_of(op.result.dtype)
    n, channels, height, width = op.type.shape
    down, across = -(-height // 2), -(-width // 2)
    padded = np.zeros((*x.shape[:2], 2 * down + 2, 2 * across + 2), np.float32)
    top, left = op.pads[0], op.pads[2]
    padded[:, :, top : top + x.shape[2], left : left + x.shape[3]] = x
    out = np.empty((n, channels, 2 * down, 2 * across), np.float32)
    window = Window((1, 1), (1, 1), (1, 1), (1, 1), (0, 0), (0, 0), (down, across))
    with np.errstate(all="ignore"):
        kernels = _weights(arithmetic, weight)
        products: list[Floats] = []
        for row in _pixels(arithmetic, padded, 2, down):
            planes: list[Floats] = []
            for plane in _pixels(arithmetic, row, 3, across):
                place = 4 * len(products) + len(planes)
                own = kernels[place][:, :, None, None]
                planes.append(kernel.sums(op, window, plane, own, bias if place == BIASED else None))
            products.append(np.stack(planes))
        rows = _results(arithmetic, products)
        for y, row in enumerate(rows):
            for x0, made in enumerate(_results(arithmetic, list(row))):
                out[:, :, y::2, x0::2] = made
        return activate(arithmetic, op.activation, np.ascontiguousarray(out[:, :, :height, :width]))


def _pixels(arithmetic: Arithmetic, x: Floats, axis: int, count: int) -> list[Floats]:
    """The four differences of every other pixel along an axis."""

    def every(first: int) -> Floats:
        return np.ascontiguousarray(x[(slice(None),) * axis + (slice(first, first + 2 * count, 2),)])

    steps = {Unit.ADD: arithmetic.add, Unit.SUB: arithmetic.subtract}
    return [steps[unit](every(one), every(other)) for one, other, unit in DIFFERENCES]


def _weights(arithmetic: Arithmetic, weight: Floats) -> list[Floats]:
    """The 16 places of (O, I, 3, 3), each (O, I)."""

    def four(taps: Sequence[Floats]) -> list[Floats]:
        first, middle, last = taps
        ends, half = arithmetic.add(first, last), np.float32(0.5)
        sums = arithmetic.add(ends, middle), arithmetic.subtract(ends, middle)
        return [first, *(arithmetic.multiply(total, half) for total in sums), last]

    rows = four([np.ascontiguousarray(weight[:, :, tap]) for tap in range(3)])
    return [np.ascontiguousarray(one) for row in rows for one in four([row[:, :, tap] for tap in range(3)])]


def _results(arithmetic: Arithmetic, four: Sequence[Floats]) -> list[Floats]:
    """Both results of four products."""
    one = arithmetic.add(arithmetic.add(four[0], four[1]), four[2])
    return [one, arithmetic.subtract(arithmetic.subtract(four[1], four[2]), four[3])]
