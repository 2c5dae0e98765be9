"""Pooling windows: padding that does not count, dilation, sizes beyond what a chip takes at once."""

from __future__ import annotations

from math import isqrt

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.pool import AvgPool, MaxPool, Pool
from bmcompiler.passes.support.decompositions.base import Draft, legalizes


@legalizes(MaxPool, AvgPool, integers=True)
def strided_window_of_one(op: Pool, draft: Draft) -> Value | None:
    """Pooling with a 1x1 window selects elements: slice."""
    if op.kernel != (1, 1) or any(op.pads) or _rounds(op):
        return None
    reach = ((count - 1) * step + 1 for count, step in zip(op.type.shape[2:], op.strides))
    ends, steps = (*op.input.shape[:2], *reach), (1, 1, *op.strides)
    return draft.emit("slice", [op.input], starts=(0, 0, 0, 0), ends=ends, steps=steps)


@legalizes(AvgPool)
def border_means(op: AvgPool, draft: Draft) -> Value | None:
    """Windows that average different numbers of positions: equal division, then a factor per position.

    All divide by the window size, then each position of the result is multiplied by window size / count.
    """
    counts = np.multiply.outer(op.counts(0), op.counts(1))
    pads = _reached(op)
    attributes = {"kernel": op.kernel, "strides": op.strides, "pads": pads}
    if counts.min() == counts.max() and (pads, False) == (op.pads, op.ceil_mode):
        return None
    pooled = draft.emit("avg_pool", [op.input], **attributes, count_include_pad=True)
    if pooled.shape != op.type.shape:
        return None
    factors = op.kernel[0] * op.kernel[1] / counts
    if (factors == 1).all():
        return pooled
    n, c, h, w = op.type.shape
    flat = draft.reshape(pooled, (n * c, h * w))
    vector = draft.weight(factors.reshape(-1).astype(op.type.numpy), "window_over_count")
    return draft.reshape(draft.emit("scale", [flat, vector]), op.type.shape)


@legalizes(MaxPool, AvgPool, integers=True)
def rows_then_columns(op: Pool, draft: Draft) -> Value | None:
    """A window of rows and columns is a window of columns on the result of a window of rows."""
    if min(op.kernel) == 1 or (isinstance(op, AvgPool) and not _uniform(op)) or _rounds(op):
        return None
    kept = {"ceil_mode": op.ceil_mode, **({"count_include_pad": True} if isinstance(op, AvgPool) else {})}
    x = op.input
    for axis in (1, 0):
        pair = {name: _only(getattr(op, name), axis) for name in ("kernel", "strides", *_dilations(op))}
        pads = tuple(pad if i // 2 == axis else 0 for i, pad in enumerate(op.pads))
        x = draft.emit(op.opname, [x], **pair, pads=pads, **kept)
    return x


@legalizes(MaxPool, AvgPool, integers=True)
def windows_of_windows(op: Pool, draft: Draft) -> Value | None:
    """A long window without overlap is a window over windows, where its length has a divisor."""
    axis = 0 if op.kernel[0] > 1 else 1
    size, alone = op.kernel[axis], op.type.shape[2 + axis] == 1
    inner = next((d for d in range(isqrt(size), 1, -1) if size % d == 0), 1)
    plain = not any(op.pads) and not op.ceil_mode and op.kernel[1 - axis] == op.strides[1 - axis] == 1
    if inner == 1 or not plain or _rounds(op) or op.taps() != (1, 1) or not (alone or op.strides[axis] == size):
        return None
    steps = [_only((length, length), axis) for length in (size // inner, inner)]
    x = op.input
    if alone and x.shape[2 + axis] != size:
        ends = tuple(size if i == 2 + axis else d for i, d in enumerate(x.shape))
        x = draft.emit("slice", [x], starts=(0, 0, 0, 0), ends=ends, steps=(1, 1, 1, 1))
    for step in steps:
        x = draft.emit(op.opname, [x], kernel=step, strides=step)
    return x if x.shape == op.type.shape else None


@legalizes(MaxPool, integers=True)
def maximum_of_taps(op: MaxPool, draft: Draft) -> Value | None:
    """A dilated window along one axis: the maximum of one slice per tap."""
    axis = 0 if op.kernel[0] > 1 else 1
    dilation, taps = op.dilations[axis], op.kernel[axis]
    if dilation == 1 or op.kernel[1 - axis] > 1 or op.strides[1 - axis] > 1 or op.ceil_mode or any(_across(op, axis)):
        return None
    x = draft.emit("pad", [op.input], pads=(0, 0, 0, 0, *op.pads), value=_outside(op)) if any(op.pads) else op.input
    count, stride = op.type.shape[2 + axis], op.strides[axis]
    best: Value | None = None
    for tap in range(taps):
        starts, ends, steps = [0] * 4, list(x.shape), [1] * 4
        starts[2 + axis], steps[2 + axis] = tap * dilation, stride
        ends[2 + axis] = tap * dilation + (count - 1) * stride + 1
        part = draft.emit("slice", [x], starts=starts, ends=ends, steps=steps)
        best = part if best is None else draft.emit("max", [best, part])
    return best


@legalizes(MaxPool, AvgPool, integers=True)
def padded_before(op: Pool, draft: Draft) -> Value | None:
    """Padding beyond the range of the instruction becomes an op of its own."""
    if not any(op.pads) or op.ceil_mode or (isinstance(op, AvgPool) and not op.count_include_pad) or _rounds(op):
        return None
    x = draft.emit("pad", [op.input], pads=(0, 0, 0, 0, *op.pads), value=_outside(op))
    dilations = {name: getattr(op, name) for name in _dilations(op)}
    return draft.emit(op.opname, [x], kernel=op.kernel, strides=op.strides, **dilations)


def _rounds(op: Pool) -> bool:
    """Whether it is a mean of integers, which is scaled and rounded once."""
    return isinstance(op, AvgPool) and op.type.is_integer


def _outside(op: Pool) -> float:
    """What padding counts as: 0 for a mean; for a maximum what never wins."""
    if isinstance(op, AvgPool):
        return 0.0
    return float(np.iinfo(op.type.numpy).min) if op.type.is_integer else -np.inf


def _reached(op: AvgPool) -> tuple[int, ...]:
    """Pads of the same windows without ceil_mode: the trailing ones as far as the last window reaches."""
    top, _, left, _ = op.pads
    (_, _, h, w), (down, across) = op.input.shape, op.reach()
    return top, max(0, down - top - h), left, max(0, across - left - w)


def _uniform(op: AvgPool) -> bool:
    """Whether every window of an avg_pool divides by the full window size."""
    area = op.kernel[0] * op.kernel[1]
    return bool((np.multiply.outer(op.counts(0), op.counts(1)) == area).all())


def _only(pair: tuple[int, int], axis: int) -> tuple[int, int]:
    return (pair[0], 1) if axis == 0 else (1, pair[1])


def _across(op: Pool, axis: int) -> tuple[int, ...]:
    """The pads of the other axis."""
    return tuple(op.pads[2 * (1 - axis) : 2 * (1 - axis) + 2])


def _dilations(op: TensorOp) -> tuple[str, ...]:
    return ("dilations",) if isinstance(op, MaxPool) else ()
