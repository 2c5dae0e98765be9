"""Which tensors of the scheme "scale" are unsigned."""

from __future__ import annotations

from bmcompiler.ir import Function, Operation, Value
from bmcompiler.passes.quantization.base import is_constant
from bmcompiler.passes.quantization.plan import Plan

_NEVER_NEGATIVE = frozenset(("relu", "sigmoid", "hard_sigmoid", "softmax", "exp", "abs", "sqrt", "softplus"))
_AS_OPERANDS = frozenset(
    (
        *("max_pool", "avg_pool", "reshape", "permute", "slice", "split", "upsample", "tile", "concat"),
        *("max", "min", "add", "mul"),
    )
)
"""Never negative where all operands are."""
_SATURATING = frozenset(("conv", "deconv", "matmul", "scale", "batch_norm", "add", "sub", "mul", "avg_pool"))
"""Their integer forms can end in u8, which cuts at 0 as a relu does."""


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
        if _is_unsigned(op, found):
            found.update(op.results)
        source = op.operands[0]
        if op.short_name == "relu" or op in plan.saturating:
            maker = source.op
            if maker is not None and maker.short_name in _SATURATING and len(source.uses) == 1:
                found.add(source)
    return found


def _is_unsigned(op: Operation, found: set[Value]) -> bool:
    name = op.short_name
    if name in _NEVER_NEGATIVE or op.attributes.get("activation"):
        return True
    if name == "clip":
        return bool(op.attributes.get("min", -1.0) >= 0)
    if name == "pad":
        return op.operands[0] in found and not op.attributes.get("value", 0.0) < 0
    return name in _AS_OPERANDS and all(v in found for v in op.operands if not is_constant(v)) and _data(op)


def _data(op: Operation) -> bool:
    """Add and mul with constants, whose signs are not looked at, count as signed."""
    return op.short_name not in ("add", "mul", "max", "min") or not any(map(is_constant, op.operands))
