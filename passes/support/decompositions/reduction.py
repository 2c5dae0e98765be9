"""Reductions as pooling, convolution with ones, and elementary functions."""

from __future__ import annotations

from math import isqrt

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.layers.reduce import Reduce
from bmcompiler.passes.support.decompositions.base import Draft, legalizes
from bmcompiler.passes.support.decompositions.large_reduction import run_of

_POOLS = {"mean": "avg_pool", "max": "max_pool"}


@legalizes(Reduce)
def pool_over_last_axes(op: Reduce, draft: Draft) -> Value | None:
    """Mean or maximum over the last axes: pooling of (1, C, H, W) with one window."""
    before, count, after = run_of(op.x.shape, op.axes)
    if op.method not in _POOLS or after != 1:
        return None
    high = next(d for d in range(isqrt(count), 0, -1) if count % d == 0)
    maps = draft.reshape(op.x, (1, before, high, count // high))
    pooled = draft.emit(_POOLS[op.method], [maps], kernel=(high, count // high))
    return draft.reshape(pooled, op.type.shape)


@legalizes(Reduce)
def convolve_with_ones(op: Reduce, draft: Draft) -> Value | None:
    """Sum or mean over neighbouring axes: a 1x1 convolution that has them as its channels."""
    before, count, after = run_of(op.x.shape, op.axes)
    if op.method not in ("sum", "mean") or not count:
        return None
    factor = 1.0 / count if op.method == "mean" else 1.0
    maps = draft.reshape(op.x, (before, count, 1, after))
    ones = draft.weight(np.full((1, count, 1, 1), factor, op.type.numpy), "ones")
    return draft.reshape(draft.emit("conv", [maps, ones]), op.type.shape)


@legalizes(Reduce)
def reduced_axes_last(op: Reduce, draft: Draft) -> Value | None:
    """The reduced axes move behind the others."""
    rank = op.x.type.rank
    order = (*(a for a in range(rank) if a not in op.axes), *sorted(op.axes))
    if op.method not in ("sum", "prod", *_POOLS) or order == tuple(range(rank)):
        return None
    moved = draft.emit("permute", [op.x], order=order)
    last = tuple(range(rank - len(op.axes), rank))
    return draft.reshape(draft.emit("reduce", [moved], method=op.method, axes=last), op.type.shape)


@legalizes(Reduce)
def elementary_steps(op: Reduce, draft: Draft) -> Value | None:
    """min: -max(-x). l1: sum of |x|. Squares are left to the CPU: eight bits hold too few of their digits."""
    steps = {"min": ("neg", "max"), "l1": ("abs", "sum")}
    if op.method not in steps:
        return None
    before, method = steps[op.method]
    x = draft.emit(before, [op.x])
    x = draft.emit("reduce", [x], method=method, axes=op.axes, keepdims=op.keepdims)
    return draft.emit("neg", [x]) if op.method == "min" else x
