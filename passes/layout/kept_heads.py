"""Keys and values that lie in global memory are multiplied where they lie: no permute moves them."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ir.keys import PLACE_CPU, is_return
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.ops.places.shape import Concat, Permute, Reshape
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, activates, make, on, sole
from bmcompiler.target import unsupported_reason

_HEADS_FIRST = (0, 2, 1, 3)


@dataclass(frozen=True)
class KeptHeads(TargetPatternPass):
    """Products with a cache read it as it lies.

    1. matmul(a, permute(x)) of four axes that makes (1, heads, tokens, columns) of (1, tokens, heads, columns), views
       between them aside, where x is an input or an output of the net, or a concat of such : head_matmul(a, x)
    It is done where the target takes the product. Its sums are the same.
    """

    name = "kept-heads"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return {**on(Matmul, self.product)}

    def product(self, op: Matmul, rewriter: Rewriter) -> bool:
        """Rule 1."""
        value = op.right
        shaped = sole(value, Reshape)
        permute = sole(value if shaped is None else shaped.operands[0], Permute)
        if permute is None or permute.order != _HEADS_FIRST or permute.type.shape[0] != 1:
            return False
        heads, rows, columns = permute.type.shape[1:]
        if op.transpose_left or len(op.operands) > 2 or activates(op) or PLACE_CPU in op.attributes:
            return False
        sizes = op.right.shape
        if op.left.type.rank != 4 or sizes not in ((1, heads, rows, columns), (heads, 1, rows, columns)):
            return False
        if op.left.shape[:2] != op.type.shape[:2] or not _in_global_memory(permute.operands[0]):
            return False
        attributes = {"transpose_right": op.transpose_right}
        made = make("head_matmul", [op.left, permute.operands[0]], attributes, None, op.location)
        if unsupported_reason(self.target, made) is not None:
            made.drop_operands()
            return False
        rewriter.replace_with(op, made, absorbed=[permute])
        return True


def _in_global_memory(value: Value) -> bool:
    """Whether the net is given a value, gives it, or both in parts."""
    made = value.op
    if made is None or any(is_return(user) for user in value.users):
        return True
    if isinstance(made, Reshape):
        return _in_global_memory(made.operands[0])
    return isinstance(made, Concat) and all(map(_in_global_memory, made.operands))
