"""Integers are computed in the shape that their neighbours have: what is seen in two shapes has two layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bmcompiler.conditions import NO_GROUPS
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ir.keys import PLACE_CPU, TENSOR_NAME
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.places.shape import Reshape
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on
from bmcompiler.target import unsupported_reason

_MOST = 4
"""Axes of values in local memory; others are seen with as many."""


@dataclass(frozen=True)
class FewAxes(TargetPatternPass):
    """Ops on each element by itself have as few axes as what makes or reads it.

    1. op on each element of integers, or to another type, of reshapes of values of one shape with fewer axes : that op
       of these values, then the reshape
    2. such an op of one value of more than four axes, all of whose readers are reshapes to one shape of at most four :
       that op of a reshape of what it reads
    An operand of rule 1 may be an input that another op has reshaped so. Types with a scale for each channel stay.
    """

    name = "few-axes"
    requires = (NO_GROUPS,)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(TensorOp, self.behind, self.before)

    def behind(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 1."""
        if not _is_elementwise(op):
            return False
        shapes = dict.fromkeys(value.shape for value in _forms(op.operands[0], op))
        for shape in sorted((shape for shape in shapes if len(shape) < op.type.rank), key=len):
            found = [next((x for x in _forms(value, op) if x.shape == shape), None) for value in op.operands]
            if self._replaced(op, [x for x in found if x is not None], rewriter):
                return True
        return False

    def before(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 2."""
        if not _is_elementwise(op):
            return False
        shapes = {user.type.shape if isinstance(user, Reshape) else op.type.shape for user in op.results[0].users}
        if len(op.operands) > 1 or len(shapes) != 1 or not (len(shape := shapes.pop()) <= _MOST < op.type.rank):
            return False
        shaped = make("reshape", [op.operands[0]], {"shape": shape}, None, op.location)
        if not self._replaced(op, [shaped.result], rewriter):
            shaped.drop_operands()
            return False
        rewriter.insert_before(shaped.result.users[0], shaped)
        return True

    def _replaced(self, op: TensorOp, operands: Sequence[Value], rewriter: Rewriter) -> bool:
        """Compute an op of operands in another shape, where the target takes that; one for each it has."""
        types = [value.type for value in (*op.operands, op.results[0])]
        if len(operands) < len(op.operands) or PLACE_CPU in op.attributes:
            return False
        if any(type.quant is not None and type.quant.scales for type in types):
            return False
        attributes = {name: value for name, value in op.attributes.items() if name != TENSOR_NAME}
        made = type(op)(operands, attributes, [types[-1].with_shape(operands[0].shape)], op.location)
        if unsupported_reason(self.target, made) is not None:
            made.drop_operands()
            return False
        rewriter.insert_before(op, made)
        rewriter.replace_with(op, make("reshape", [made.results[0]], {"shape": op.type.shape}, None, op.location))
        return True


def _is_elementwise(op: TensorOp) -> bool:
    """Whether an op makes each element of one of each operand, some of which are integers or of another type."""
    if not (op.pointwise or op.broadcasts) or len(op.results) != 1 or not op.operands:
        return False
    retypes = any(x.dtype != op.type.dtype or not x.type.is_float for x in op.operands)
    return retypes and all(x.shape == op.type.shape for x in op.operands)


def _forms(value: Value, reader: TensorOp) -> Iterator[Value]:
    """What has the elements of a value before its reader: what it is a reshape of; of an input its reshapes."""
    while isinstance(value.op, Reshape):
        value = value.op.x
        yield value
    block = reader.parent
    assert block is not None, "what is rewritten is in a block"
    for user in value.users if value.op is None else ():
        if isinstance(user, Reshape) and user.parent is block and block.ops.index(user) < block.ops.index(reader):
            yield user.result
