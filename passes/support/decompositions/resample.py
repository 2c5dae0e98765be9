"""Interpolation and constant gathering as products and slices."""

from __future__ import annotations

from math import prod
from typing import cast

import numpy as np

from bmcompiler.ir import Block, TensorType, Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.places.index import Gather
from bmcompiler.ops.places.resample import Resize
from bmcompiler.passes.rewriting import make
from bmcompiler.passes.support.decompositions.base import Draft, legalizes

_MOST = 64
"""Slices of one gather; beyond that a copy each costs more than the CPU."""


@legalizes(Resize)
def product_per_axis(op: Resize, draft: Draft) -> Value | None:
    """Interpolation is linear: each axis is multiplied by a constant matrix, as 1x1 convolution or inner product.

    What a region has outside of the input is multiplied by zeros, and the given value is added there.
    """
    if not op.type.is_float:
        return None
    x, outside = op.input, np.zeros((1,) * op.input.type.rank, bool)
    for axis in op.moving():
        matrix = _weights(op, axis)
        if op.coordinates == "tf_crop_and_resize":
            place = op.place(axis)
            beyond = (place < 0) | (place > op.input.shape[axis] - 1)
            matrix = np.where(beyond, np.float32(0), matrix)
            outside = outside | beyond.reshape([-1 if i == axis else 1 for i in range(x.type.rank)])
        before, (have, want), after = prod(x.shape[:axis]), matrix.shape, prod(x.shape[axis + 1 :])
        shape = (*x.shape[:axis], want, *x.shape[axis + 1 :])
        if after == 1:
            right = draft.weight(matrix, f"axis{axis}")
            out = draft.emit("matmul", [draft.reshape(x, (before, have)), right])
        else:
            kernels = draft.weight(np.ascontiguousarray(matrix.T)[:, :, None, None], f"axis{axis}")
            out = draft.emit("conv", [draft.reshape(x, (before, have, 1, after)), kernels])
        x = draft.reshape(out, shape)
    if op.extrapolation and outside.any():
        x = draft.emit("add", [x, draft.weight(outside * x.type.numpy.type(op.extrapolation), "outside")])
    return x


def _weights(op: Resize, axis: int) -> np.ndarray:
    """(source positions, result positions) of one axis: what the op itself makes of unit vectors."""
    have, want = op.input.shape[axis], op.sizes[axis]
    attributes = {name: value for name, value in op.attributes.items() if "." not in name and name != "roi"}
    attributes |= {"sizes": (have, want), "scales": (1.0, op.scales[axis])}
    if op.coordinates == "tf_crop_and_resize":
        (start, end) = op.region(axis)
        attributes |= {"roi": (0.0, start, 1.0, end), "extrapolation": 0.0}
    unit = Value(TensorType((have, have), op.input.dtype), Block(), 0)
    probe = make("resize", [unit], attributes)
    return cast("np.ndarray", probe.evaluate(np.eye(have, dtype=op.input.type.numpy)))


@legalizes(Resize, integers=True)
def nearest_by_slices(op: Resize, draft: Draft) -> Value | None:
    """The nearest elements of each axis: a slice for each evenly spaced run of them, joined."""
    if op.mode != "nearest" or op.coordinates == "tf_crop_and_resize" or op.type.is_float:
        return None
    x = op.input
    for axis in op.moving():
        shape = [-1 if i == axis else 1 for i in range(x.type.rank)]
        joined = _joined(x, axis, op.along(np.arange(x.shape[axis]).reshape(shape), axis).ravel(), draft)
        if joined is None:
            return None
        x = joined
    return x


@legalizes(Gather)
def slices_joined(op: Gather, draft: Draft) -> Value | None:
    """Constant indices: a slice for each evenly spaced run of them, joined."""
    given = draft.constant(op.indices)
    if given is None or not given.size or not op.type.is_float:
        return None
    axis, size = op.axis % op.x.type.rank, op.x.shape[op.axis]
    joined = _joined(op.x, axis, given.ravel() % size, draft)
    return None if joined is None else draft.reshape(joined, op.type.shape)


def _joined(x: Value, axis: int, indices: Array, draft: Draft) -> Value | None:
    """The elements of an axis with these indices, none of which is below 0; None where that takes too many slices."""
    runs, rank = _runs(indices.tolist()), x.type.rank
    if len(runs) > _MOST:
        return None
    parts = []
    for start, step, count in runs:
        starts = tuple(start if i == axis else 0 for i in range(rank))
        end = start + (count - 1) * step + (1 if step > 0 else -1)
        ends = tuple(end if i == axis else d for i, d in enumerate(x.shape))
        steps = tuple(step if i == axis else 1 for i in range(rank))
        parts.append(draft.emit("slice", [x], starts=starts, ends=ends, steps=steps))
    return parts[0] if len(parts) == 1 else draft.emit("concat", parts, axis=axis)


def _runs(indices: list[int]) -> list[tuple[int, int, int]]:
    """(first, step, count) of evenly spaced runs, greedily; steps are not 0."""
    runs: list[tuple[int, int, int]] = []
    at = 0
    while at < len(indices):
        step = indices[at + 1] - indices[at] if at + 1 < len(indices) else 1
        count = 1
        while step and at + count < len(indices) and indices[at + count] - indices[at + count - 1] == step:
            count += 1
        runs.append((indices[at], step or 1, count))
        at += count
    return runs
