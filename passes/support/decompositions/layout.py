"""Moving elements: mirrored padding."""

from __future__ import annotations

from collections.abc import Sequence

from bmcompiler.ir import Value
from bmcompiler.ops.places.shape import Pad
from bmcompiler.passes.support.decompositions.base import Draft, legalizes

_MOST = 64
"""Pieces of one axis; beyond that a copy per element costs more than the CPU."""


@legalizes(Pad, integers=True)
def border_pieces(op: Pad, draft: Draft) -> Value | None:
    """reflect, symmetric and edge padding: slices of the border joined to the tensor, axis by axis."""
    if op.mode == "constant":
        return None
    x = op.x
    for axis in range(x.type.rank):
        before, after = op.pads[2 * axis : 2 * axis + 2]
        if before or after:
            whole = range(x.shape[axis])
            left = [_source(op.mode, -i, len(whole)) for i in range(before, 0, -1)]
            right = [_source(op.mode, len(whole) - 1 + i, len(whole)) for i in range(1, after + 1)]
            if len(left) + len(right) > _MOST:
                return None
            parts = [_piece(x, axis, i, draft) for i in left]
            parts += [x, *(_piece(x, axis, i, draft) for i in right)]
            x = draft.emit("concat", parts, axis=axis)
    return x


def _source(mode: str, index: int, size: int) -> int:
    """Where an element outside 0 .. size - 1 comes from."""
    if mode == "edge":
        return min(max(index, 0), size - 1)
    mirrored = -index if index < 0 else 2 * (size - 1) - index
    return mirrored if mode == "reflect" else mirrored + (-1 if index < 0 else 1)


def _piece(x: Value, axis: int, index: int, draft: Draft) -> Value:
    """The elements at one index of an axis."""
    starts: Sequence[int] = [index if i == axis else 0 for i in range(x.type.rank)]
    ends = [index + 1 if i == axis else d for i, d in enumerate(x.shape)]
    return draft.emit("slice", [x], starts=starts, ends=ends, steps=(1,) * x.type.rank)
