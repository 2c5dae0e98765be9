"""Copies of modules, for callers whose module passes must not change, and of some of their ops."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from bmcompiler.ir.core import Block, Function, Module, Operation, Value
from bmcompiler.ir.keys import is_weight


def copy_module(module: Module) -> Module:
    """A module of its own with the same text; the arrays of the weights are shared, which nobody writes to."""
    made = Module([_copy_function(function) for function in module.functions], module.attributes)
    made.weights.update(module.weights)
    return made


def _copy_function(function: Function) -> Function:
    types = [value.type for value in function.arguments]
    made = Function(function.name, types, function.input_names, function.attributes)
    _copy_ops(function.body, made.body, {})
    made.output_names = list(function.output_names)
    return made


def _copy_ops(block: Block, into: Block, outside: Mapping[Value, Value]) -> None:
    """`outside`: old value -> new value of the blocks around."""
    values = {**outside, **dict(zip(block.arguments, into.arguments))}
    for op in block.ops:
        made = copy_op(op, values)
        into.append(made)
        values.update(zip(op.results, made.results))


def copy_op(op: Operation, values: Mapping[Value, Value]) -> Operation:
    """A copy outside of any block; `values`: old value -> new value of all that it reads from outside itself."""
    made = copy.copy(op)  # of the same class; all that links it to others is made anew
    made.attributes, made.operands, made.regions, made.parent = dict(op.attributes), [], [], None
    made.results = [Value(result.type, made, result.index) for result in op.results]
    for value in op.operands:
        made.add_operand(values[value])
    for region in op.regions:
        made.add_region(Block([argument.type for argument in region.arguments]))
        _copy_ops(region, made.regions[-1], values)
    return made


def extract(module: Module, ops: Sequence[Operation]) -> tuple[Module, dict[str, Value]]:
    """A net of some ops of the main function, given in its order, with the constants that they read.

    Returns: the module, whose inputs are what the ops read of others (in0, in1, ...) and whose outputs are what others,
    or nobody, read of theirs (out0, out1, ...); and the values of `module` that its inputs stand for.
    """
    inside = set(ops)
    read = dict.fromkeys(value for op in ops for value in op.operands if value.op not in inside)
    constants = [value.op for value in read if value.op is not None and is_weight(value)]
    given = [value for value in read if not is_weight(value)]
    names = [f"in{number}" for number in range(len(given))]
    function = Function(module.main.name, [value.type for value in given], names)
    values = dict(zip(given, function.arguments))
    for op in (*constants, *ops):
        made = copy_op(op, values)
        function.body.append(made)
        values.update(zip(op.results, made.results))
    left = [result for op in ops for result in op.results if not result.uses or not inside.issuperset(result.users)]
    function.set_outputs([values[value] for value in left], [f"out{number}" for number in range(len(left))])
    part = Module([function], module.attributes)
    for op in constants:
        part.weights[op.attributes["key"]] = module.weights[op.attributes["key"]]
    return part, dict(zip(names, given))
