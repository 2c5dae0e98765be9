"""Move permutes until they meet their inverse, an end of the net, or weights that can take them in.

NHWC exports wrap every convolution in a pair of permutes. Moving them towards the outputs makes the pairs meet; one
that reads an input of the net is moved towards that input instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.ops.places.shape import Permute, Reshape, Slice, Split
from bmcompiler.passes.rewriting import (
    PatternPass,
    PatternTable,
    forward,
    hand_name,
    make,
    merge_into,
    on,
    producer,
    rebuild,
    same_elements,
)
from bmcompiler.passes.simplify.axes import AxisMap, inverse, moved_attributes, passes_permutes, removes_axes


@dataclass(frozen=True)
class MovePermutes(PatternPass):
    """Cancel permutes.

    1. permute(permute(x))                                      : one permute of x
    2. f(permute(x), permute(y), constants), f element-wise or naming its axes (`TensorOp.commutes_with_permutes`):
       permute(f(x, y, permuted constants)); only where no reader keeps the old permute alive, and not where all of x, y
       hang on inputs of the net (rule 3), nor where pieces would be permuted instead of the whole
    3. permute(f(x, constants)), where x is an input of the net (or a permute of one) and f is read by the permute
       alone: f(permute(x), permuted constants)
    4. matmul(reshape(permute(x)), weight), the batch axis in place, all others flattened: the rows of the weight
       take the permute
    """

    name = "move-permutes"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def table(self) -> PatternTable:
        return {
            **on(Permute, self.merge, self.towards_input),
            **on(Matmul, self.into_rows),
            **on(TensorOp, self.towards_output),
        }

    def merge(self, op: Permute, rewriter: Rewriter) -> bool:
        """Rule 1."""
        before = producer(op.operands[0], Permute)
        if before is None:
            return False
        order = tuple(before.order[axis] for axis in op.order)
        if order == tuple(range(len(order))) and op.type == before.operands[0].type:
            return forward(op, before.operands[0], rewriter)
        return merge_into(op, before, rewriter, order=order)

    # -- rule 2 ------------------------------------------------------------------------------------------------------
    def towards_output(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 2."""
        if not passes_permutes(op):
            return False
        permutes = [p for value in op.operands if (p := producer(value, Permute)) is not None]
        if not permutes or all(self.hangs_on_input(p.operands[0]) for p in permutes):
            return False
        order = tuple(permutes[0].order)
        if not all(p.order == order and _may_vanish(p) for p in permutes) or _adds_axes(op) or _multiplies(op):
            return False
        axes = AxisMap(op, order)
        operands = self.unpermuted(op, axes, rewriter)
        if operands is None:
            return False
        fresh = rebuild(op, operands, **moved_attributes(axes))
        rewriter.insert_before(op, fresh, op)
        for permute in permutes:
            hand_name(permute, permute.operands[0])
        order = axes.result_order()
        rewriter.replace(op, [_permuted(op, v, order, permutes[0], rewriter) for v in fresh.results])
        return True

    def unpermuted(self, op: TensorOp, axes: AxisMap, rewriter: Rewriter) -> list[Value] | None:
        """Operands before the permute; constants permuted back. None when an operand is neither."""
        operands: list[Value] = []
        for value in op.operands:
            permute = producer(value, Permute)
            if permute is not None:
                operands.append(permute.operands[0])
            elif self.constant(value) is None:
                return None
            else:
                operands.append(value)
        return [
            self.permuted_constant(v, axes.back, op, rewriter) if v is old and axes.follows(i) else v
            for i, (v, old) in enumerate(zip(operands, op.operands))
        ]

    def permuted_constant(self, value: Value, order: Sequence[int], op: TensorOp, rewriter: Rewriter) -> Value:
        """A constant that broadcasts after the permute as `value` did before it."""
        array = self.constant(value)
        assert array is not None, "callers know that it is a constant"
        if array.size == 1:
            return value
        full = array.reshape((1,) * (len(order) - array.ndim) + array.shape).transpose(order)
        fresh = self.weight(full, value, op, rewriter, f"{op.label}.constant")
        fresh.type = type(value.type)(full.shape, value.dtype, value.type.quant)
        return fresh

    # -- rule 3 ------------------------------------------------------------------------------------------------------
    def towards_input(self, op: Permute, rewriter: Rewriter) -> bool:
        """Rule 3. One step; the permute is looked at again further up."""
        work = cast(TensorOp, op.operands[0].op)
        if not _read_once(op.operands[0]) or len(work.results) != 1 or removes_axes(work) or _adds_axes(work):
            return False
        if not self.hangs_on_input(work.result):
            return False
        axes = AxisMap(work, inverse(op.order))
        operands = []
        for index, value in enumerate(work.operands):
            if self.constant(value) is None:
                permute = make("permute", [value], {"order": op.order}, None, op.location)
                operands.append(rewriter.insert_before(work, permute).results[0])
            elif axes.follows(index):
                operands.append(self.permuted_constant(value, op.order, work, rewriter))
            else:
                operands.append(value)
        fresh = rebuild(work, operands, **moved_attributes(axes))
        rewriter.insert_before(op, fresh, op)
        fresh.location = work.location
        hand_name(work, fresh.result)
        rewriter.replace(op, fresh.results)
        return True

    def hangs_on_input(self, value: Value) -> bool:
        """Whether `value` comes from one input of the net through ops that only constants join, each read once."""
        while True:
            op = value.op
            if op is None or (isinstance(op, Permute) and op.operands[0].op is None):
                return True
            if not _read_once(value) or len(op.results) != 1:
                return False
            varying = [v for v in op.operands if self.constant(v) is None]
            if len(varying) != 1:
                return False
            value = varying[0]

    # -- rule 4 ------------------------------------------------------------------------------------------------------
    def into_rows(self, op: Matmul, rewriter: Rewriter) -> bool:
        """Rule 4."""
        flat = producer(op.left, Reshape)
        permute = producer(flat.operands[0], Permute) if flat is not None else None
        weight = self.constant(op.right)
        if flat is None or permute is None or weight is None or weight.ndim != 2 or op.transpose_left:
            return False
        source = permute.operands[0]
        shape = permute.type.shape
        if permute.order[0] != 0 or op.left.shape != (shape[0], permute.type.size // max(shape[0], 1)):
            return False
        rows = weight.T if op.transpose_right else weight
        back = inverse([axis - 1 for axis in permute.order[1:]])
        rows = rows.reshape(*shape[1:], rows.shape[1]).transpose(*back, len(back)).reshape(rows.shape)
        right = self.weight(rows.T if op.transpose_right else rows, op.right, op, rewriter, f"{op.label}.weight")
        right.type = op.right.type
        reshape = rebuild(flat, [source])
        rewriter.insert_before(op, reshape, permute, flat)
        rewriter.replace_with(op, rebuild(op, [reshape.result, right, *op.operands[2:]]))
        return True


def _adds_axes(op: TensorOp) -> bool:
    """Whether broadcasting gives the result of an op more axes than its varying operand has."""
    return op.broadcasts and min(v.type.rank for v in op.operands if not isinstance(v.op, Weight)) < op.type.rank


def _may_vanish(permute: TensorOp) -> bool:
    """Whether all readers of a permute can pass it on, so that moving it leaves no copy behind."""
    return same_elements(permute.operands[0], permute.result) and not _stops(permute.result)


def _multiplies(op: TensorOp) -> bool:
    """Whether passing `op` would leave more permutes, with nothing in sight that takes them in."""
    if not isinstance(op, (Slice, Split)) or len(op.operands[0].users) * len(op.results) == 1:
        return False
    return any(map(_stops, op.results))


def _stops(value: Value) -> bool:
    """Whether a reader of a value can neither pass a permute on nor merge with it."""
    return not all(passes_permutes(user) or isinstance(user, Permute) for user in value.users)


def _read_once(value: Value) -> bool:
    """Whether a value has one use and comes from an op that a permute can pass."""
    return len(value.uses) == 1 and passes_permutes(value.op)


def _permuted(op: TensorOp, value: Value, order: tuple[int, ...], like: TensorOp, rewriter: Rewriter) -> Value:
    if order == tuple(range(len(order))):
        return value
    attributes: dict[str, Any] = {"order": order}
    permute = make("permute", [value], attributes, None, like.location)
    rewriter.insert_before(op, permute)
    return permute.result
