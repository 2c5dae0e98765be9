"""Norms, softmax and division as sums, products and functions of one tensor, for chips that have nothing but bytes.

Squares, roots and powers of e are tables of 256 bytes, which lose half a step each; sums are exact before they are
rounded once. A square is a table, not a product, whose scale the factors would decide.

That is coarse still: one threshold holds the sums of all rows, and a row whose sum is a hundredth of the largest has
one step left. With norms and softmax in bytes the classes of a small ViT were 46.8 % from float on such a chip (23.7 %
with the host's floats), the letters of PP-OCR v4 rec 38.4 % (19.5 %). So `legalize` has the host compute these ops
where samples do not show that eight bits do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.elements.activation import LogSoftmax, Softmax
from bmcompiler.ops.elements.elementwise import Add, Div
from bmcompiler.ops.elements.logic import Where
from bmcompiler.ops.layers.norm import L2Normalize, LastAxesNorm, LayerNorm, Lrn, MeanVarianceNorm, RmsNorm
from bmcompiler.ops.layers.reduce import Reduce
from bmcompiler.passes.support.decompositions.base import Draft, legalizes

_MOST_FACTORS = 4
"""Of a product along axes: each level of products is rounded to the range of its largest, 12 factors were 44 % off."""


_HIDDEN = -1e4
"""What puts so low a number in, or adds it, hides a score from a softmax."""


class _Steps:
    """Drafts the steps that norms and softmax have in common. Statistics keep their axes."""

    def __init__(self, draft: Draft) -> None:
        self.draft, self.emit = draft, draft.emit

    def number(self, value: float, like: Value) -> Value:
        """A constant of one element for each dimension."""
        return self.draft.weight(np.full((1,) * like.type.rank, value, like.type.numpy), "number")

    def statistic(self, method: str, x: Value, axes: Sequence[int]) -> Value:
        return self.emit("reduce", [x], method=method, axes=tuple(axes))

    def power(self, x: Value, exponent: float) -> Value:
        """x ** exponent, for what is below 0 not at all."""
        return self.emit("pow", [x, self.number(exponent, x)])

    def plus(self, x: Value, value: float) -> Value:
        return self.emit("add", [x, self.number(value, x)]) if value else x

    def centred(self, x: Value, axes: Sequence[int]) -> Value:
        return self.emit("sub", [x, self.statistic("mean", x, axes)])

    def below_largest(self, x: Value, axes: Sequence[int]) -> Value:
        """x minus its maximum along axes, so that no power of e is above 1."""
        return self.emit("sub", [x, self.statistic("max", x, axes)])

    def over_root(self, x: Value, squares: Value, epsilon: float) -> Value:
        """x / sqrt(squares + epsilon)."""
        return self.emit("mul", [x, self.power(self.plus(squares, epsilon), -0.5)])


@legalizes(Div, coarse=True)
def times_inverse(op: Div, draft: Draft) -> Value | None:
    """Division of floats by what is computed: multiplication by its inverse, a function of one tensor."""
    if not op.type.is_float or draft.constant(op.b) is not None or op.a.type.rank + op.b.type.rank == 0:
        return None
    if draft.constant(op.a) is not None and op.a.type.size == 1:
        return None
    steps = _Steps(draft)
    return draft.emit("mul", [op.a, draft.emit("div", [steps.number(1.0, op.b), op.b])])


@legalizes(Softmax, coarse=True)
def powers_over_their_sum(op: Softmax, draft: Draft) -> Value | None:
    """Powers of e, none above 1, times the inverse of their sum; those that a mask hides are 0."""
    steps, axes = _Steps(draft), (op.axis % op.type.rank,)
    scores, shown = _unmasked(draft, op.input)
    if shown is not None:  # what is hidden must not be the maximum
        scores = draft.emit("where", [shown, scores, steps.statistic("min", scores, axes)])
    powers = draft.emit("exp", [steps.below_largest(scores, axes)])
    if shown is not None:
        powers = draft.emit("where", [shown, powers, steps.number(0.0, powers)])
    total = steps.statistic("sum", powers, axes)
    if shown is not None:  # the largest adds 1, so that only a row without any has less
        total = draft.emit("max", [total, steps.number(1.0, total)])
    return draft.emit("mul", [powers, draft.emit("div", [steps.number(1.0, total), total])])


def _unmasked(draft: Draft, x: Value) -> tuple[Value, Value | None]:
    """The scores that a mask was put into, or added to, and where it shows them; None without a mask."""
    op = x.op
    if isinstance(op, Where):
        for hidden, scores in ((op.b, op.a), (op.a, op.b)):
            if _hides(draft, hidden) and scores.shape == x.shape:
                return scores, _holds(draft, op.condition, scores is op.a)
    if isinstance(op, Add):
        for scores, mask in ((op.a, op.b), (op.b, op.a)):
            array, made = draft.constant(mask), mask.op
            if scores.shape != x.shape:
                continue
            if array is not None and array.size and array.min() <= _HIDDEN:
                rest = np.where(array <= _HIDDEN, 0, array)
                shown = draft.weight(array > _HIDDEN, "shown")
                return (draft.emit("add", [scores, draft.weight(rest, "rest")]) if rest.any() else scores), shown
            if isinstance(made, Where):
                for hidden, other in ((made.b, made.a), (made.a, made.b)):
                    added = draft.constant(other)
                    if _hides(draft, hidden) and added is not None and not added.any():
                        return scores, _holds(draft, made.condition, other is made.a)
    return x, None


def _hides(draft: Draft, value: Value) -> bool:
    array = draft.constant(value)
    return array is not None and bool(array.size) and bool(array.max() <= _HIDDEN)


def _holds(draft: Draft, condition: Value, holds: bool) -> Value:
    """A condition, or its opposite."""
    return condition if holds else draft.emit("bit_not", [condition])


@legalizes(LogSoftmax, coarse=True)
def minus_the_logarithm_of_the_sum(op: LogSoftmax, draft: Draft) -> Value | None:
    """What is below the maximum, minus the logarithm of the sum of its powers of e."""
    steps, axes = _Steps(draft), (op.axis % op.type.rank,)
    below = steps.below_largest(op.input, axes)
    total = steps.statistic("sum", draft.emit("exp", [below]), axes)
    return draft.emit("sub", [below, draft.emit("log", [total])])


@legalizes(LayerNorm, RmsNorm, coarse=True)
def last_axes_over_their_spread(op: LastAxesNorm, draft: Draft) -> Value | None:
    """Differences from the mean times a power of -1/2 of the mean of their squares, times gamma, plus beta."""
    steps, axes = _Steps(draft), op.axes()
    x = steps.centred(op.input, axes) if isinstance(op, LayerNorm) else op.input
    x = steps.over_root(x, steps.statistic("mean", steps.power(x, 2.0), axes), op.epsilon)
    for name, vector in zip(("mul", "add"), op.operands[1:]):
        x = draft.emit(name, [x, vector])
    return x


@legalizes(MeanVarianceNorm, coarse=True)
def differences_over_their_spread(op: MeanVarianceNorm, draft: Draft) -> Value | None:
    """Differences from the mean times the inverse of the root of the mean of their squares."""
    steps = _Steps(draft)
    x = steps.centred(op.input, op.axes)
    if not op.normalize_variance:
        return x
    spread = steps.plus(draft.emit("sqrt", [steps.statistic("mean", steps.power(x, 2.0), op.axes)]), op.epsilon)
    return draft.emit("mul", [x, draft.emit("div", [steps.number(1.0, spread), spread])])


@legalizes(L2Normalize, coarse=True)
def over_root_of_squares(op: L2Normalize, draft: Draft) -> Value | None:
    """x times a power of -1/2 of the sum of its squares."""
    steps = _Steps(draft)
    return steps.over_root(op.input, steps.statistic("sum", steps.power(op.input, 2.0), op.axes), op.epsilon)


@legalizes(Lrn, coarse=True)
def over_power_of_neighbours(op: Lrn, draft: Draft) -> Value | None:
    """x times a power of sums of squares of neighbouring channels, which a 1x1 convolution makes."""
    steps, (images, channels) = _Steps(draft), op.input.shape[:2]
    before = (op.size - 1) // 2
    distance = np.arange(channels)[None] - np.arange(channels)[:, None]
    near = (distance >= -before) & (distance <= op.size - 1 - before)
    weight = draft.weight((near * (op.alpha / op.size)).astype(op.type.numpy)[:, :, None, None], "neighbours")
    bias = draft.weight(np.full(channels, op.k, op.type.numpy), "k")
    maps = draft.reshape(op.input, (images, channels, 1, op.type.size // (images * channels)))
    sums = draft.emit("conv", [steps.power(maps, 2.0), weight, bias])
    return draft.reshape(draft.emit("mul", [maps, steps.power(sums, -op.beta)]), op.type.shape)


@legalizes(Reduce, coarse=True)
def functions_around_sums(op: Reduce, draft: Draft) -> Value | None:
    """Sums of squares and of powers of e, and roots and logarithms of sums."""
    if not op.type.is_float or op.method not in ("l2", "sum_square", "log_sum", "log_sum_exp"):
        return None
    steps, x, axes = _Steps(draft), op.x, op.axes
    if op.method in ("l2", "sum_square"):
        x = steps.power(x, 2.0)
    if op.method == "log_sum_exp":
        top = steps.statistic("max", x, axes)
        x = draft.emit("exp", [draft.emit("sub", [x, top])])
    total = steps.statistic("sum", x, axes)
    if op.method != "sum_square":
        total = draft.emit("sqrt" if op.method == "l2" else "log", [total])
    if op.method == "log_sum_exp":
        total = draft.emit("add", [total, top])
    return draft.reshape(total, op.type.shape)


@legalizes(Reduce, coarse=True)
def products_of_halves(op: Reduce, draft: Draft) -> Value | None:
    """A product along one axis or the last ones: of both halves, until one factor is left."""
    rank, count = op.x.type.rank, int(np.prod([op.x.shape[axis] for axis in op.axes]))
    if not op.type.is_float or op.method != "prod" or not 1 < count <= _MOST_FACTORS:
        return None
    order = [*(a for a in range(rank) if a not in op.axes), *sorted(op.axes)]
    x = op.x if order == list(range(rank)) else draft.emit("permute", [op.x], order=tuple(order))
    x = draft.reshape(x, (x.type.size // count, count))
    rest: Value | None = None
    while x.shape[1] > 1:
        half = x.shape[1] // 2
        parts = [_columns(draft, x, start, start + half) for start in (0, half)]
        if x.shape[1] % 2:
            last = _columns(draft, x, 2 * half, 2 * half + 1)
            rest = last if rest is None else draft.emit("mul", [rest, last])
        x = draft.emit("mul", parts)
    return draft.reshape(x if rest is None else draft.emit("mul", [x, rest]), op.type.shape)


def _columns(draft: Draft, x: Value, first: int, end: int) -> Value:
    return draft.emit("slice", [x], starts=(0, first), ends=(x.shape[0], end), steps=(1, 1))
