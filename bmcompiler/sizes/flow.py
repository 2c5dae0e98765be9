"""What each op does with a varying size: keeps positions apart, leaves filled ones out, or mixes them.

A function for an op gets it, the marks of its operands and the size, and gives the marks of its results; it raises
MixesError where filled positions would have an influence on given ones. Ops without one mix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bmcompiler.ir import Value
from bmcompiler.ops.base import Axes, Axis, TensorOp
from bmcompiler.ops.elements.activation import Softmax
from bmcompiler.ops.layers.contraction import Einsum
from bmcompiler.ops.layers.nn import Conv, Deconv, Matmul
from bmcompiler.ops.layers.norm import BatchNorm, LastAxesNorm, Lrn
from bmcompiler.ops.layers.pool import AvgPool, MaxPool
from bmcompiler.ops.layers.recurrent import Gru, Lstm, Rnn
from bmcompiler.ops.layers.reduce import Reduce
from bmcompiler.ops.places.index import Gather
from bmcompiler.ops.places.resample import Resize
from bmcompiler.ops.places.shape import Concat, Interleave, Pad, Permute, Reshape, Slice, Tile, Upsample
from bmcompiler.sizes.fills import filled
from bmcompiler.sizes.marks import (
    Filled,
    Filling,
    Marks,
    MixesError,
    Place,
    hides,
    is_finite,
    moved,
    reshaped,
    worked_on,
)

Constants = Callable[[Value], float | None]
"""The number that all elements of a value are, whatever the inputs; None where they differ."""


def flow(op: TensorOp, marks: Sequence[Marks], size: int, constant: Constants) -> list[dict[Place, Filled]]:
    """The marks of the results. Raises MixesError."""
    if not any(marks):
        return [{} for _ in op.results]
    for kinds, way in _WAYS:
        if isinstance(op, kinds):
            found = way(op, marks, size)
            return found if isinstance(found, list) else [found] * len(op.results)
    if op.pointwise or op.broadcasts:
        return [_broadcast(op, marks, constant)]
    if op.follows_axes:
        return [_along_other_axes(op, marks)] * len(op.results)
    raise mixes(op, "mixes positions")


def mixes(op: TensorOp, why: str) -> MixesError:
    """The error for an op that cannot tell filled positions from given ones."""
    return MixesError(why, f"'{op.label}' ({op.title})")


# -- element by element ------------------------------------------------------------------------------------------------
def _broadcast(op: TensorOp, marks: Sequence[Marks], constant: Constants) -> dict[Place, Filled]:
    rank = op.type.rank
    shifted = [moved(each, {a: a + rank - v.type.rank for a, _ in each}) for each, v in zip(marks, op.operands)]
    found: dict[Place, Filled] = {}
    for place in dict.fromkeys(place for each in shifted for place in each):
        fills: list[Filled] = []
        for value, own in zip(op.operands, shifted):
            axis = place[0] - (rank - value.type.rank)
            if place not in own and axis >= 0 and value.shape[axis] != 1:
                raise mixes(op, "meets numbers that do not vary with the size")
            number = constant(value)
            fills.append(own.get(place, Filling.ANY if number is None else number))
        found[place] = filled(op, fills)
    return found


# -- along other axes --------------------------------------------------------------------------------------------------
def _along_other_axes(op: TensorOp, marks: Sequence[Marks]) -> dict[Place, Filled]:
    """Ops whose attributes name the axes that they work along."""
    named: set[int] = set()
    for name, spec in op.attrs.items():
        value: Any = op.attributes.get(name, spec.default)
        if spec.kind in (Axis, Axes):
            named.update(axis % op.operands[0].type.rank for axis in (value if isinstance(value, tuple) else (value,)))
    if any(axis in named for axis, _ in marks[0]):
        raise mixes(op, "works along the axis that varies")
    if any(marks[1:]):
        raise mixes(op, "has factors that vary with the size")
    epsilon: float = op.attributes.get("epsilon", 1.0)
    return {place: worked_on(fill) if epsilon > 0 else Filling.WILD for place, fill in marks[0].items()}


def _softmax(op: Softmax, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    axis = op.axis % op.type.rank
    if any(place[0] == axis and not hides(fill) for place, fill in marks[0].items()):
        raise mixes(op, "mixes positions, and no mask keeps filled ones out")
    return {place: 0.0 if place[0] == axis else worked_on(fill) for place, fill in marks[0].items()}


def _reduce(op: Reduce, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    axes = {axis % op.x.type.rank for axis in op.axes}
    for place, fill in marks[0].items():
        neutral = (op.method == "sum" and fill == 0.0) or (op.method == "max" and fill is Filling.HIDDEN)
        if place[0] in axes and not neutral:
            raise mixes(op, f"is the {op.method} over the axis that varies")
    keeps = op.method in ("sum", "mean", "max", "min")
    left = {p: _kept_sign(f) if keeps else Filling.WILD for p, f in marks[0].items() if p[0] not in axes}
    kept = [axis for axis in range(op.x.type.rank) if op.keepdims or axis not in axes]
    return moved(left, {axis: kept.index(axis) for axis, _ in left})


def _kept_sign(fill: Filled) -> Filled:
    return fill if fill in (Filling.NOT_NEGATIVE, Filling.POSITIVE) else worked_on(fill)


def _last_axes(op: LastAxesNorm, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    if any(axis >= op.axis % op.type.rank for axis, _ in marks[0]) or any(marks[1:]):
        raise mixes(op, "works along the axis that varies")
    return {place: worked_on(fill) if op.epsilon > 0 else Filling.WILD for place, fill in marks[0].items()}


# -- sums of products --------------------------------------------------------------------------------------------------
def _matmul(op: Matmul, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    rank, left, right = op.type.rank, op.left.type.rank, op.right.type.rank
    outer = "abcdefghijklmn"[: rank - 2]
    rows, columns = ("kr" if op.transpose_left else "rk"), ("ck" if op.transpose_right else "kc")
    terms = (outer[rank - left :] + rows, outer[rank - right :] + columns)
    return _products(op, marks, terms, outer + "rc")


def _einsum(op: Einsum, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    terms, _, result = op.equation.partition("->")
    return _products(op, marks, terms.split(","), result)


def _products(op: TensorOp, marks: Sequence[Marks], terms: Sequence[str], result: str) -> dict[Place, Filled]:
    """Sums of products over letters: a letter that is summed over needs zeros in one operand, and all to vary."""
    if any(marks[len(terms) :]):
        raise mixes(op, "has factors that vary with the size")
    found: dict[Place, Filled] = {}
    places = {(term[axis], inner) for term, own in zip(terms, marks) for axis, inner in own}
    for letter, inner in sorted(places):
        fills = []
        for value, term, own in zip(op.operands, terms, marks):
            axis = term.find(letter)
            if axis >= 0 and (axis, inner) in own:
                fills.append(own[axis, inner])
            elif axis >= 0 and value.shape[axis] != 1:
                raise mixes(op, "meets numbers that do not vary with the size")
        if letter in result:
            found[result.index(letter), inner] = worked_on(*fills)
        elif 0.0 not in fills or not all(map(is_finite, fills)):
            raise mixes(op, "sums over the axis that varies")
    return found


# -- images ------------------------------------------------------------------------------------------------------------
def _conv(op: Conv, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    points = {0}
    for axis in (2, 3):
        k = axis - 2
        if (op.weight.shape[axis], op.strides[k], op.pads[2 * k : 2 * k + 2]) == (1, 1, (0, 0)):
            points.add(axis)
    return _kept(op, marks, points)


def _per_image(op: TensorOp, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    return _kept(op, marks, {0})


def _per_channel(op: TensorOp, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    return _kept(op, marks, {0, 1})


def _per_element(op: BatchNorm, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    return _kept(op, marks, {0, *range(2, op.type.rank)})


def _kept(op: TensorOp, marks: Sequence[Marks], axes: set[int]) -> dict[Place, Filled]:
    if any(axis not in axes for axis, _ in marks[0]) or any(marks[1:]):
        raise mixes(op, "mixes positions")
    return {place: worked_on(fill) for place, fill in marks[0].items()}


def _recurrent(op: TensorOp, marks: Sequence[Marks], size: int) -> list[dict[Place, Filled]]:
    """Samples are on axis 1 of the input (T, N, I) and of states (D, N, H)."""
    if any(place != (1, 1) for own in marks for place in own) or any(marks[1:4]) or not marks[0]:
        raise mixes(op, "hands a state from step to step")
    state: dict[Place, Filled] = {(1, 1): Filling.ANY}
    return [{(2, 1): Filling.ANY}, *[state] * (len(op.results) - 1)]


# -- places ------------------------------------------------------------------------------------------------------------
def _reshape(op: Reshape, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    found = reshaped(marks[0], op.x, op.type.shape, size)
    if found is None:
        raise mixes(op, "puts positions of the axis that varies into rows of others")
    return found


def _permute(op: Permute, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    return moved(marks[0], {axis: new for new, axis in enumerate(op.order)})


def _concat(op: Concat, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    axis = op.axis % op.type.rank
    for value, own in zip(op.operands, marks):
        if set(own) != set(marks[0]) or any(place[0] == axis for place in own):
            raise mixes(op, f"puts '{value.op.label if value.op else 'an input'}' behind positions that vary")
    return {
        place: fill if all(own[place] == fill for own in marks) else Filling.ANY for place, fill in marks[0].items()
    }


def _slice(op: Slice, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    found = {}
    for (axis, inner), fill in marks[0].items():
        taken = (op.starts[axis], op.ends[axis], op.steps[axis])
        if taken == (0, op.x.shape[axis], 1):
            found[axis, inner] = fill
        elif taken != (0, 1, 1) or op.x.shape[axis] != size:
            raise mixes(op, f"takes {taken[0]}:{taken[1]}:{taken[2]} of the axis that varies")
    return found


def _tile(op: Tile, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    if any(op.reps[axis] != 1 for axis, _ in marks[0]):
        raise mixes(op, "repeats the axis that varies")
    return dict(marks[0])


def _pad(op: Pad, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    if any(op.pads[2 * axis : 2 * axis + 2] != (0, 0) for axis, _ in marks[0]):
        raise mixes(op, "adds elements along the axis that varies")
    return {place: worked_on(fill) for place, fill in marks[0].items()}


def _gather(op: Gather, marks: Sequence[Marks], size: int) -> dict[Place, Filled]:
    axis, rank = op.axis % op.x.type.rank, op.indices.type.rank
    if any(place[0] == axis for place in marks[0]):
        raise mixes(op, "picks positions of the axis that varies")
    data = moved(marks[0], {a: a if a < axis else a + rank - 1 for a, _ in marks[0]})
    chosen = moved(marks[1], {a: a + axis for a, _ in marks[1]})
    return {**{place: worked_on(fill) for place, fill in data.items()}, **dict.fromkeys(chosen, Filling.ANY)}


_WAYS: tuple[tuple[Any, Callable[[Any, Sequence[Marks], int], Any]], ...] = (
    (Softmax, _softmax),
    (Reduce, _reduce),
    (LastAxesNorm, _last_axes),
    (Matmul, _matmul),
    (Einsum, _einsum),
    (Conv, _conv),
    ((MaxPool, AvgPool, Resize, Upsample), _per_channel),
    ((Deconv, Lrn, Interleave), _per_image),
    (BatchNorm, _per_element),
    ((Rnn, Gru, Lstm), _recurrent),
    (Reshape, _reshape),
    (Permute, _permute),
    (Concat, _concat),
    (Slice, _slice),
    (Tile, _tile),
    (Pad, _pad),
    (Gather, _gather),
)
"""In the order they are asked; other ops by what their classes say of themselves."""
