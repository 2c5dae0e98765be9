"""What becomes of one float op when it is quantized alone: the question legalization asks."""

from __future__ import annotations

from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.passes.quantization.base import NoInt8Form
from bmcompiler.passes.quantization.plan import Plan
from bmcompiler.passes.quantization.shift.conversions import CONVERSIONS
from bmcompiler.passes.quantization.shift.lowering import ShiftLowering
from bmcompiler.passes.rewriting import make
from bmcompiler.target import Target, unsupported_reason

_SOME = 1.0
"""Thresholds do not decide whether an op has an int8 form; any will do."""


def int8_refusal(op: Operation, module: Module, target: Target) -> str | None:
    """None when the target runs the int8 form of this op, or the op itself where it has no floats; else why not.

    `op` may be in no block. Constants are looked up in `module`, which is left as it is.
    """
    conversion = CONVERSIONS.of(type(op))
    types = {value.dtype for value in (*op.operands, *op.results)}
    if conversion is None or not conversion.knows(op) or not isinstance(op, TensorOp):
        if not any(value.type.is_float for value in (*op.operands, *op.results)):
            return unsupported_reason(target, op)
        other = types - {"f32"}
        return f"'{op.short_name}' has no int8 form" + (f" for {', '.join(sorted(other))}" if other else "")
    copy, scratch = _alone(op, module)
    function = scratch.main
    values = [*function.arguments, *copy.results]
    plan = Plan(dict.fromkeys(values, _SOME), {copy: _SOME})
    try:
        conversion.build(copy, ShiftLowering(scratch, function, plan, target))
    except NoInt8Form as reason:
        return str(reason)
    return None


def _alone(op: TensorOp, module: Module) -> tuple[TensorOp, Module]:
    """The op in a function of its own; computed operands become arguments."""
    function = Function("probe")
    scratch = Module([function])
    values: dict[Value, Value] = {}
    for operand in dict.fromkeys(op.operands):
        source = operand.op
        if not isinstance(source, Weight):
            values[operand] = function.body.add_argument(operand.type)
            function.input_names.append(f"in{len(function.input_names)}")
            continue
        scratch.weights[source.key] = module.weights[source.key]
        values[operand] = function.body.append(make("weight", (), {"key": source.key}, [operand.type])).result
    types = [result.type for result in op.results]
    copy = make(op.opname, [values[operand] for operand in op.operands], op.attributes, types, op.location)
    function.body.append(copy)
    return copy, scratch
