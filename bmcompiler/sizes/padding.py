"""Which sizes of a network may be padded: proven on the IR of its programs, before the passes.

A size that varies is followed from the inputs through every op (`flow`). Inputs are filled with zeros. Positions beyond
those that were given may hold anything, as long as given ones do not see them: a softmax needs a mask that hides them,
a sum needs zeros there. Where an op mixes positions, or a constant depends on the size in another way than a table that
grows, the size cannot be padded, and the op is named.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.ops.places.shape import Reshape, Slice, Tile
from bmcompiler.sizes.flow import flow, mixes
from bmcompiler.sizes.marks import Filled, Filling, Marks, MixesError, Place
from bmcompiler.sizes.note import Axis, Size

_SIZED: dict[type[Operation], tuple[str, ...]] = {Reshape: ("shape",), Slice: ("starts", "ends"), Tile: ("reps",)}
"""Attributes in which the programs of a net may differ; `flow` looks at what they do."""


def sizes_of(modules: Sequence[Module]) -> list[Size]:
    """The sizes in which the inputs of several programs of a net differ, each with what padding it does.

    Args:
        modules: the network of each program as it was read.
    """
    return [_size(modules, axes) for axes in varying([module.main for module in modules])]


def varying(functions: Sequence[Function]) -> list[tuple[Axis, ...]]:
    """(input, axis) of what varies; those that always have equal sizes are one."""
    first, *others = ([value.shape for value in function.arguments] for function in functions)
    groups: dict[tuple[int, ...], list[Axis]] = {}
    for index, shape in enumerate(first):
        if any(len(each) != len(first) or len(each[index]) != len(shape) for each in others):
            return []
        for axis, size in enumerate(shape):
            sizes = (size, *(each[index][axis] for each in others))
            if len(set(sizes)) > 1:
                groups.setdefault(sizes, []).append((index, axis))
    return [tuple(axes) for axes in groups.values()]


def _size(modules: Sequence[Module], axes: tuple[Axis, ...]) -> Size:
    alone = next((found for module in modules if len(found := _differ_in(modules, module, axes)) > 1), [])
    try:
        cuts = {_Walk(alone[0], other, axes).cuts() for other in alone[1:]}
    except MixesError as error:
        return Size(axes, (), f"layer {error.layer} {error}")
    if len(cuts) != 1:
        return Size(axes, (), "no two programs differ in it alone" if not cuts else "the outputs vary differently")
    return Size(axes, cuts.pop())


def _differ_in(modules: Sequence[Module], module: Module, axes: tuple[Axis, ...]) -> list[Module]:
    """A program, and those that differ from it in one size alone."""

    def others(one: Module) -> list[tuple[int, ...]]:
        shapes = [value.shape for value in one.main.arguments]
        return [tuple(0 if (i, k) in axes else size for k, size in enumerate(shape)) for i, shape in enumerate(shapes)]

    return [module, *(each for each in modules if each is not module and others(each) == others(module))]


def _size_at(module: Module, axes: tuple[Axis, ...]) -> int:
    index, axis = axes[0]
    return module.main.arguments[index].shape[axis]


class _Walk:
    """Two programs of a net in step: what one size does in the larger, where both differ in it alone or not at all."""

    def __init__(self, module: Module, other: Module, axes: tuple[Axis, ...]) -> None:
        self.module, self.other, self.axes = module, other, axes
        self.size, self.smaller = _size_at(module, axes), _size_at(other, axes)
        self.marks: dict[Value, Marks] = {
            value: {(axis, 1): 0.0 for index, axis in axes if index == number}
            for number, value in enumerate(module.main.arguments)
        }
        self.numbers: dict[Value, float | None] = {}

    def cuts(self) -> tuple[Axis, ...]:
        """(output, axis) of what is cut off. Raises MixesError."""
        ops, others = self.module.main.ops, self.other.main.ops
        for op, other in zip(ops, others):
            self._step(op, other)
        if len(ops) != len(others):
            raise MixesError("is not the last in programs of other sizes", f"'{ops[-1].label}'")
        found = []
        for index, value in enumerate(self.module.main.returned):
            for axis, inner in self.marks.get(value, {}):
                if inner != 1 or value.shape[axis] != self.size:
                    raise MixesError("mixes the axis that varies with another", f"of output {index}")
                found.append((index, axis))
        return tuple(found)

    def _step(self, op: Operation, other: Operation) -> None:
        if not isinstance(op, TensorOp):
            return
        if type(op) is not type(other) or len(op.operands) != len(other.operands):
            raise mixes(op, "is another in programs of other sizes")
        if isinstance(op, Weight):
            self.marks[op.result] = self._constant(op, other)
            return
        free = _SIZED.get(type(op), ())
        for name in op.attrs.keys() - set(free):
            if op.attributes.get(name) != other.attributes.get(name):
                raise mixes(op, f"has another {name} in programs of other sizes")
        marks = [self.marks.get(value, {}) for value in op.operands]
        found = self._repeated(op, other) if isinstance(op, Tile) else None
        results = [found] if found else flow(op, marks, self.size, self.numbers.get)
        self.marks.update(zip(op.results, results))
        for value, like, places in zip(op.results, other.results, results):
            differ = {axis for axis, (a, b) in enumerate(zip(value.shape, like.shape)) if a != b}
            if value.type.rank != like.type.rank or differ != {axis for axis, _ in places}:
                raise mixes(op, "makes a tensor whose size follows from the axis that varies")

    def _repeated(self, op: Tile, other: Operation) -> dict[Place, Filled] | None:
        """One row repeated as often as the size says has equal numbers everywhere."""
        found = {}
        for axis, (own, theirs) in enumerate(zip(op.reps, other.attributes["reps"])):
            if own != theirs:
                if (own, theirs, op.x.shape[axis]) != (self.size, self.smaller, 1):
                    raise mixes(op, "repeats as often as the size that varies says")
                number = self.numbers.get(op.x)
                found[axis, 1] = Filling.ANY if number is None else number
        return {**self.marks.get(op.x, {}), **found} if found else None

    def _constant(self, op: Weight, other: Operation) -> dict[Place, Filled]:
        """A constant that is the same in both, or a table of which the smaller program has the beginning."""
        key = other.attributes["key"]
        array, begins = self.module.weights[op.key], self.other.weights[key]
        same = array is begins or (array.shape == begins.shape and array.dtype == begins.dtype)
        if same:
            if array is not begins and array.tobytes() != begins.tobytes():
                raise mixes(op, "is a constant that depends on the size")
            self.numbers[op.result] = _number(array)
            return {}
        if array.ndim != begins.ndim or not _begins(array, begins):
            raise mixes(op, "is a constant that depends on the size")
        axes = [axis for axis, (a, b) in enumerate(zip(array.shape, begins.shape)) if a != b]
        if any((array.shape[axis], begins.shape[axis]) != (self.size, self.smaller) for axis in axes):
            raise mixes(op, "is a constant that depends on the size")
        number = _number(array)
        fills = {(axis, 1): Filling.ANY if number is None else number for axis in axes}
        if len(axes) == 2 and number is None:
            fills[axes[1], 1] = _above_diagonal(array, axes)
        return fills


def _begins(array: np.ndarray, begins: np.ndarray) -> bool:
    part = array[tuple(slice(size) for size in begins.shape)]
    return part.shape == begins.shape and part.tobytes() == begins.tobytes()


def _number(array: np.ndarray) -> float | None:
    """The number that all elements are."""
    if not array.size or array.dtype.kind not in "fiub" or (array != array.flat[0]).any():
        return None
    return float(array.flat[0])


def _above_diagonal(array: np.ndarray, axes: Sequence[int]) -> Filled:
    """What a row of given positions has in all later columns: a causal mask says one number there."""
    matrices = np.moveaxis(array, axes, (-2, -1))
    above = matrices[..., ~np.tri(matrices.shape[-1], dtype=bool)]
    number = _number(above)
    return Filling.ANY if number is None else number
