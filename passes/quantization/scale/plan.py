"""Which tensors of the scheme "scale" are unsigned."""

from __future__ import annotations

from bmcompiler.ir import Function, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantization.plan import Plan


def unsigned_values(function: Function, plan: Plan) -> set[Value]:
    """Values that become u8.

    1. Results of functions without negative values, of clips from 0 up, and of ops with an activation inside.
    2. Results of ops that move, select, average, add or multiply such values only.
    3. What a relu, or a clip that saturation enforces (`quantization.plan` rule 4), alone reads, where the op that
       makes it can saturate: the activation is then no work at all.
    """
    found: set[Value] = set()
    for op in function.ops[:-1]:
        if not op.operands or not all(result.type.is_float for result in op.results):
            continue
        if isinstance(op, TensorOp) and _is_unsigned(op, found):
            found.update(op.results)
        source = op.operands[0]
        if op.short_name == "relu" or op in plan.saturating:
            maker = source.op
            if isinstance(maker, TensorOp) and (maker.saturates or maker.affine) and len(source.uses) == 1:
                found.add(source)
    return found


def _is_unsigned(op: TensorOp, found: set[Value]) -> bool:
    """Rules 1 and 2. Signs of constants are not looked at: they count as signed."""
    return op.result_bounds()[0] >= 0 or (op.keeps_sign() and found.issuperset(op.operands))
