"""Copies of modules, for callers whose module passes must not change."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from bmcompiler.ir.core import Block, Function, Module, Operation, Value


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
