"""Reductions of more elements than a tile holds, in pieces; others as pooling, products with ones, elementary steps."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt, prod
from typing import NamedTuple

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ir.keys import WIDE
from bmcompiler.ops.layers.norm import L2Normalize, LastAxesNorm, LayerNorm, MeanVarianceNorm, RmsNorm
from bmcompiler.ops.layers.reduce import Reduce
from bmcompiler.passes.support.decompositions.base import Draft, legalizes

_LEAST = 1 << 12
"""Elements that tiles hold: an op of fewer is refused for another reason."""
_OF_PIECES = {
    "sum": ("sum", "sum"),
    "mean": ("mean", "mean"),
    "max": ("max", "max"),
    "min": ("min", "min"),
    "l1": ("l1", "sum"),
    "sum_square": ("sum_square", "sum"),
}
"""Method -> that of each piece, and that of the results of all."""
_POOLS = {"mean": "avg_pool", "max": "max_pool"}


@legalizes(Reduce)
def reduced_in_pieces(op: Reduce, draft: Draft) -> Value | None:
    """Many neighbouring elements are reduced in equal pieces, and then what these gave."""
    pieces = _pieces(draft, op.x, op.axes)
    if pieces is None or op.method not in _OF_PIECES:
        return None
    return draft.reshape(pieces.reduced(pieces.cut(op.x), *_OF_PIECES[op.method]), op.type.shape)


@legalizes(MeanVarianceNorm)
def normed_by_pieces(op: MeanVarianceNorm, draft: Draft) -> Value | None:
    """Statistics of many neighbouring elements are those of equal pieces, and then of what these gave."""
    pieces = _pieces(draft, op.input, op.axes)
    if pieces is None:
        return None
    x = pieces.centred(op.input)
    if op.normalize_variance:
        x = pieces.divided(x, pieces.plus(pieces.root(pieces.mean_square(x)), op.epsilon))
    return draft.reshape(x, op.type.shape)


@legalizes(L2Normalize)
def scaled_by_pieces(op: L2Normalize, draft: Draft) -> Value | None:
    """The sum of the squares of many neighbouring elements is that of equal pieces, and then of what these gave."""
    pieces = _pieces(draft, op.input, op.axes)
    if pieces is None:
        return None
    x = pieces.cut(op.input)
    squares = pieces.reduced(x, "sum_square", "sum")
    return draft.reshape(pieces.divided(x, pieces.root(pieces.plus(squares, op.epsilon))), op.type.shape)


@legalizes(LayerNorm, RmsNorm)
def last_axes_normed_by_pieces(op: LastAxesNorm, draft: Draft) -> Value | None:
    """The same over the last axes, with factors and offsets of their own."""
    pieces = _pieces(draft, op.input, op.axes())
    if pieces is None:
        return None
    x = pieces.centred(op.input) if isinstance(op, LayerNorm) else pieces.cut(op.input)
    x = pieces.divided(x, pieces.root(pieces.plus(pieces.mean_square(x), op.epsilon)))
    for name, vector in zip(("mul", "add"), op.operands[1:]):
        x = pieces.emit(name, [x, draft.reshape(vector, (1, pieces.many, pieces.size, 1))])
    return draft.reshape(x, op.type.shape)


class _Pieces(NamedTuple):
    """A tensor as (before, many, size, after): `many` pieces of `size` elements each are one run of reduced ones."""

    draft: Draft
    before: int
    many: int
    size: int
    after: int

    def cut(self, x: Value) -> Value:
        """A tensor so."""
        return self.draft.reshape(x, (self.before, self.many, self.size, self.after))

    def emit(self, name: str, operands: Sequence[Value], **attributes: str | tuple[int, ...]) -> Value:
        """An op that is for differences that 16-bit floats have not."""
        value = self.draft.emit(name, operands, **attributes)
        self.draft.ops[-1].attributes[WIDE] = True
        return value

    def reduced(self, x: Value, each: str, all: str) -> Value:
        """(before, 1, 1, after): `x` reduced by one method in each piece, and by another over the pieces."""
        return self.emit("reduce", [self.emit("reduce", [x], method=each, axes=(2,))], method=all, axes=(1,))

    def centred(self, x: Value) -> Value:
        """A tensor cut, minus the mean of all pieces."""
        x = self.cut(x)
        return self.emit("sub", [x, self.reduced(x, "mean", "mean")])

    def mean_square(self, x: Value) -> Value:
        """The mean of the squares of all pieces."""
        return self.emit("mul", [self.reduced(x, "sum_square", "mean"), self.number(1 / self.size, x)])

    def number(self, value: float, like: Value) -> Value:
        """A constant of one element for each dimension."""
        return self.draft.weight(np.full((1, 1, 1, 1), value, like.type.numpy), "number")

    def plus(self, x: Value, epsilon: float) -> Value:
        return self.emit("add", [x, self.number(epsilon, x)]) if epsilon else x

    def root(self, x: Value) -> Value:
        return self.emit("sqrt", [x])

    def divided(self, x: Value, by: Value) -> Value:
        """By one number for each run, whose inverse is soon known."""
        return self.emit("mul", [x, self.emit("div", [self.number(1, x), by])])


def _pieces(draft: Draft, x: Value, axes: Sequence[int]) -> _Pieces | None:
    """About as many pieces as each has elements; None where the axes are no neighbours, or have few elements."""
    before, run, after = run_of(x.shape, axes)
    count = next((d for d in range(isqrt(run), 0, -1) if run % d == 0), 1)
    return _Pieces(draft, before, count, run // count, after) if run > _LEAST and count > 1 else None


def run_of(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, int, int]:
    """Sizes before, of, and after reduced axes when these are neighbours (axes of length 1 aside), else zeros."""
    axes = [axis for axis in sorted(axes) if shape[axis] > 1] or [min(axes)]
    between = [shape[axis] for axis in range(axes[0], axes[-1]) if axis not in axes]
    if prod(between) != 1:
        return 0, 0, 0
    return prod(shape[: axes[0]]), prod(shape[axes[0] : axes[-1] + 1]), prod(shape[axes[-1] + 1 :])


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
