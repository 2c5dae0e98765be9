"""Convolutions with steps, dilations and padding beyond the ranges of an instruction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bmcompiler.ir import TensorType, Value
from bmcompiler.ops.layers.nn import Conv, Deconv
from bmcompiler.passes.support.decompositions.base import Draft, legalizes

_FIRST = (0, 0, 0, 0)
_USUAL, _MOST_SPREAD = 15, 3
"""Dilations that instructions usually have, and how many times further apart zeros may put the taps."""


@legalizes(Conv, integers=True)
def space_to_channels(op: Conv, draft: Draft) -> Value | None:
    """Windows that do not overlap: each becomes the channels of one position, and the kernel 1x1."""
    weight = draft.constant(op.weight)
    if op.mode == "asymmetric":  # sums with the weights' zero point are rounded on their own
        return None
    (sh, sw), (kh, kw) = op.strides, op.weight.shape[2:]
    if weight is None or op.group != 1 or op.dilations != (1, 1) or kh > sh or kw > sw or (sh, sw) == (1, 1):
        return None
    (n, c), (oh, ow) = op.input.shape[:2], op.type.shape[2:]
    x = _grid(op, (oh * sh, ow * sw), draft)
    x = draft.reshape(x, (n, c, oh, sh, ow, sw))
    x = draft.emit("permute", [x], order=(0, 1, 3, 5, 2, 4))
    x = draft.reshape(x, (n, c * sh * sw, oh, ow))
    full = np.zeros((*weight.shape[:2], sh, sw), weight.dtype)
    full[:, :, :kh, :kw] = weight
    kernels = draft.weight(full.reshape(len(full), -1, 1, 1), "weight")
    return draft.like([x, kernels, op.bias], strides=(1, 1), pads=_FIRST)


@legalizes(Conv, integers=True)
def taps_that_see_the_input(op: Conv, draft: Draft) -> Value | None:
    """Outer rows and columns of a kernel that meet padding alone, as those of large dilations on small maps, go."""
    weight = draft.constant(op.weight)
    if op.mode == "asymmetric" or weight is None:
        return None
    kept = [_seeing(op, axis) for axis in (0, 1)]
    pads = [
        pad
        for axis, (first, end) in enumerate(kept)
        for pad in (
            op.pads[2 * axis] - first * op.dilations[axis],
            op.pads[2 * axis + 1] - (weight.shape[2 + axis] - end) * op.dilations[axis],
        )
    ]
    if [end - first for first, end in kept] == list(weight.shape[2:]) or min(pads) < 0:
        return None
    (top, bottom), (left, right) = kept
    fewer = draft.weight(np.ascontiguousarray(weight[:, :, top:bottom, left:right]), "weight", _shaped(op, kept))
    steps = tuple(step if end - first > 1 else 1 for step, (first, end) in zip(op.dilations, kept))
    return draft.like([op.input, fewer, *op.operands[2:]], pads=tuple(pads), dilations=steps)


def _seeing(op: Conv, axis: int) -> tuple[int, int]:
    """[first, end) of the taps of an axis that see an element of the input from some place."""
    size, results, step = op.input.shape[2 + axis], op.type.shape[2 + axis], op.strides[axis]
    places = np.arange(results) * step - op.pads[2 * axis]
    taps = [tap for tap in range(op.weight.shape[2 + axis]) if _inside(places + tap * op.dilations[axis], size)]
    return (taps[0], taps[-1] + 1) if taps else (0, op.weight.shape[2 + axis])


def _inside(places: np.ndarray, size: int) -> bool:
    return bool(((places >= 0) & (places < size)).any())


@legalizes(Conv, integers=True)
def zeros_between_taps(op: Conv, draft: Draft) -> Value | None:
    """A dilation d * r is a dilation r of a kernel with d - 1 zeros between its taps, where that is few of them."""
    weight = draft.constant(op.weight)
    factors = [next((k for k in range(1, d + 1) if d % k == 0 and d // k <= _USUAL), d) for d in op.dilations]
    if op.mode == "asymmetric" or weight is None or factors == [1, 1] or max(factors) > _MOST_SPREAD:
        return None
    rows, columns = ((size - 1) * k + 1 for size, k in zip(weight.shape[2:], factors))
    full = np.zeros((*weight.shape[:2], rows, columns), weight.dtype)
    full[:, :, :: factors[0], :: factors[1]] = weight
    spread = draft.weight(full, "weight", _shaped(op, [(0, rows), (0, columns)]))
    steps = tuple(step // k for step, k in zip(op.dilations, factors))
    return draft.like([op.input, spread, *op.operands[2:]], dilations=steps)


def _shaped(op: Conv, taps: Sequence[tuple[int, int]]) -> TensorType:
    """The type of the weight of a conv with other rows and columns of taps."""
    type = op.weight.type
    return TensorType((*type.shape[:2], *(end - first for first, end in taps)), type.dtype, type.quant)


@legalizes(Conv, integers=True)
def dilation_to_batch(op: Conv, draft: Draft) -> Value | None:
    """A dilation d * r with stride 1 is a dilation r on each of the d x d interleaved images."""
    down, across = (_least_divisor(d) for d in op.dilations)
    if op.strides != (1, 1) or (down, across) == (1, 1) or draft.constant(op.weight) is None:
        return None
    n, c = op.input.shape[:2]
    _, o, oh, ow = op.type.shape
    high, wide = (-(-size // d) * d for size, d in zip((oh, ow), (down, across)))
    (kh, kw), (dh, dw) = op.weight.shape[2:], op.dilations
    size = (-(-(high + (kh - 1) * dh) // down), -(-(wide + (kw - 1) * dw) // across))
    x = _grid(op, (size[0] * down, size[1] * across), draft)
    x = draft.reshape(x, (n, c, size[0], down, size[1], across))
    x = draft.emit("permute", [x], order=(0, 3, 5, 1, 2, 4))
    x = draft.reshape(x, (n * down * across, c, *size))
    x = draft.like([x, op.weight, op.bias], dilations=(dh // down, dw // across), pads=_FIRST)
    rows, columns = x.shape[2:]
    x = draft.reshape(x, (n, down, across, o, rows, columns))
    x = draft.emit("permute", [x], order=(0, 3, 4, 1, 5, 2))
    x = draft.reshape(x, (n, o, rows * down, columns * across))
    return (
        x
        if x.shape == op.type.shape
        else draft.emit("slice", [x], starts=_FIRST, ends=op.type.shape, steps=(1, 1, 1, 1))
    )


@legalizes(Conv, integers=True)
def padded_before(op: Conv, draft: Draft) -> Value | None:
    """Padding beyond the range of the instruction becomes an op of its own."""
    if not any(op.pads) or draft.constant(op.weight) is None:
        return None
    x = _padded(op, op.input, op.pads, draft)
    return draft.like([x, op.weight, op.bias], pads=_FIRST)


@legalizes(Deconv, integers=True)
def kernel_as_large_as_its_step(op: Deconv, draft: Draft) -> Value | None:
    """Steps larger than the kernel: the kernel gets zeros, and the result is cut where they end it later."""
    weight = draft.constant(op.weight)
    more = [max(step - size, 0) for step, size in zip(op.strides, op.weight.shape[2:])]
    if weight is None or op.dilations != (1, 1) or not any(more):
        return None
    full = np.pad(weight, [(0, 0), (0, 0), (0, more[0]), (0, more[1])])
    top, bottom, left, right = op.pads
    pads = (top, bottom + more[0], left, right + more[1])
    return draft.like([op.input, draft.weight(full, "weight"), op.bias], pads=pads)


@legalizes(Deconv, integers=True)
def results_beyond_the_input(op: Deconv, draft: Draft) -> Value | None:
    """Rows and columns behind the last window, which only get the bias, are those of zeros behind the input."""
    more = [-(-extra // step) for extra, step in zip(op.output_pads, op.strides)]
    if not any(more):
        return None
    x = _padded(op, op.input, (0, more[0], 0, more[1]), draft)
    top, bottom, left, right = op.pads
    down, across = (count * step - extra for count, step, extra in zip(more, op.strides, op.output_pads))
    pads = (top, bottom + down, left, right + across)
    return draft.like([x, *op.operands[1:]], output_pads=(0, 0), pads=pads)


def _padded(op: Conv | Deconv, x: Value, pads: Sequence[int], draft: Draft) -> Value:
    """`x` with rows and columns of what the convolution takes to be outside: zero, or the zero point that means it."""
    outside = float(op.zero_points[0]) if op.zero_points else 0.0
    return draft.emit("pad", [x], pads=(0, 0, 0, 0, *pads), value=outside)


def _grid(op: Conv, size: tuple[int, int], draft: Draft) -> Value:
    """The input with its pads, then padded further or cut to height and width `size`."""
    x, pads = op.input, op.pads
    have = [x.shape[2 + i] + pads[2 * i] for i in (0, 1)]
    after = [max(0, size[i] - have[i]) for i in (0, 1)]
    grown = (pads[0], after[0], pads[2], after[1])
    if any(grown):
        x = _padded(op, x, grown, draft)
    ends = (*x.shape[:2], *size)
    return x if x.shape == ends else draft.emit("slice", [x], starts=_FIRST, ends=ends, steps=(1, 1, 1, 1))


def _least_divisor(number: int) -> int:
    """The smallest divisor above 1 and up to 1024; 1 when there is none. More images than that are never worth it."""
    return next((d for d in range(2, min(number, 1024) + 1) if number % d == 0), 1)
