"""Ops of a part of their rows: what of a value, of a constant, of an op belongs to consecutive rows of all.

A value lies in memory as rows do, whatever its axes: a part of it are consecutive elements, a part of its first axis of
more than one element. An op that computes such parts of its results from the same parts of its operands can be cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bmcompiler.ir import Operation, TensorType, Value
from bmcompiler.ir.keys import MACS, PLACE_CPU, TENSOR_NAME
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Softmax
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.elements.linear_quant import Dequantize, Quantize
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.ops.layers.norm import LastAxesNorm
from bmcompiler.ops.places.shape import Permute, Reshape


class RowCut(NamedTuple):
    """Rows `begin` to `end` of `total`."""

    begin: int
    end: int
    total: int

    def of(self, shape: Sequence[int]) -> tuple[int, int, int] | None:
        """(axis, begin, end) of the part of a value of this shape; None where it is no part of one axis."""
        axis = first_axis(shape)
        if axis == len(shape) or shape[axis] * self.begin % self.total or shape[axis] * self.end % self.total:
            return None
        return axis, shape[axis] * self.begin // self.total, shape[axis] * self.end // self.total

    def shape(self, shape: Sequence[int]) -> tuple[int, ...] | None:
        """The shape of the part."""
        found = self.of(shape)
        if found is None:
            return None
        axis, begin, end = found
        return (*shape[:axis], end - begin, *shape[axis + 1 :])

    def type(self, type: TensorType) -> TensorType | None:
        """The type of the part; None for types with a scale for each element of an axis, too."""
        shape = self.shape(type.shape)
        return None if shape is None or (type.quant is not None and type.quant.scales) else type.with_shape(shape)


def first_axis(shape: Sequence[int]) -> int:
    """The first axis of more than one element; their number where there is none."""
    return next((axis for axis, size in enumerate(shape) if size > 1), len(shape))


def is_cut(op: Operation, cut: RowCut, constants: Mapping[Value, object]) -> bool:
    """Whether a part of the op's result is what the op makes of the same parts of operands.

    Args: constants: operands that are no values of rows.
    """
    if not isinstance(op, TensorOp) or PLACE_CPU in op.attributes or len(op.results) != 1:
        return False
    moving = [value for value in op.operands if value not in constants]
    if not moving or any(cut.type(value.type) is None for value in (*moving, op.results[0])):
        return False
    axis = first_axis(op.type.shape)
    if isinstance(op, Reshape):
        return True
    if isinstance(op, Permute):
        return op.order[axis] == first_axis(op.x.shape)
    if isinstance(op, Matmul):
        return _product_is_cut(op, moving, axis)
    if isinstance(op, Softmax | LastAxesNorm):
        return moving == [op.operands[0]] and op.axis % op.type.rank > axis
    if isinstance(op, Cast | Quantize | Dequantize) or (op.pointwise and len(op.operands) == 1):
        return True
    return op.broadcasts and all(_ends_alike(value.shape, op.type.shape, axis) for value in moving)


def _product_is_cut(op: Matmul, moving: Sequence[Value], axis: int) -> bool:
    left, right = op.operands[:2]
    if left not in moving or first_axis(left.shape) != axis or left.type.rank != op.type.rank:
        return False
    if right not in moving:  # rows by a matrix
        inner = axis < left.type.rank - 1 - op.transpose_left
        return right.type.rank == 2 and moving == [left] and inner
    same = right.type.rank == left.type.rank and first_axis(right.shape) == axis and moving == [left, right]
    return same and axis < left.type.rank - 2


def _ends_alike(shape: Sequence[int], whole: Sequence[int], axis: int) -> bool:
    """Whether an operand has the axis that a result is cut along, and no broadcasting before it."""
    place = axis - (len(whole) - len(shape))
    return 0 <= place == first_axis(shape) and shape[place] == whole[axis]


def part_of_constant(op: Operation, value: Value, cut: RowCut) -> tuple[int, int, int] | None:
    """(axis, begin, end) of what a part of an op reads of a constant; None: all of it."""
    if not isinstance(op, TensorOp) or not op.broadcasts:
        return None
    shape = op.results[0].shape
    axis = first_axis(shape)
    place = axis - (len(shape) - value.type.rank)
    if place < 0 or value.shape[place] == 1:
        return None
    found = cut.of(shape)
    assert found is not None, "`is_cut` asked"
    return place, found[1], found[2]


def cut_op(op: Operation, operands: Sequence[Value], cut: RowCut) -> TensorOp:
    """The op of parts of its operands."""
    assert isinstance(op, TensorOp), "`is_cut` asked"
    types = [cut.type(result.type) for result in op.results]
    attributes = {name: value for name, value in op.attributes.items() if name != TENSOR_NAME}
    if isinstance(op, Reshape):
        attributes["shape"] = cut.shape(op.shape)
    if MACS in attributes:
        needed = attributes[MACS]
        attributes[MACS] = needed * cut.end // cut.total - needed * cut.begin // cut.total
    return type(op)(operands, attributes, [type for type in types if type is not None], op.location)
