"""The one verifier: structure here, the rules of each op through its own `verify_op`."""

from __future__ import annotations

from bmcompiler.errors import VerifyError
from bmcompiler.ir.core import Block, Function, Module, Operation, Value
from bmcompiler.ir.keys import is_return
from bmcompiler.ir.printer import format_attribute, format_location


def verify_module(module: Module) -> None:
    """Raise VerifyError naming the op at the first broken rule.

    1. every operand is defined before its use, in the same block or an enclosing one
    2. use lists hold exactly the operands that exist
    3. attributes and names have a text form
    4. a function ends in its only func.return and has one name per argument and per returned value
    5. each registered op accepts its operands, attributes and result types; weights exist with the type stated
    """
    names = [function.name for function in module.functions]
    if len(set(names)) != len(names):
        raise VerifyError("two functions have the same name")
    try:
        format_attribute(module.attributes)
    except TypeError as error:
        raise VerifyError(f"module attributes: {error}") from error
    for function in module.functions:
        _verify_function(function, module)


def _verify_function(function: Function, module: Module) -> None:
    if not function.ops or not is_return(function.ops[-1]):
        raise VerifyError(f"function {function.name} does not end in func.return")
    if len(function.input_names) != len(function.arguments) or len(function.output_names) != len(function.returned):
        raise VerifyError(f"function {function.name} needs one name per argument and per returned value")
    for names, what in ((function.input_names, "inputs"), (function.output_names, "outputs")):
        if len(set(names)) != len(names):
            raise VerifyError(f"function {function.name}: two {what} have the same name")
    try:
        format_attribute(
            (function.name, function.attributes, tuple(function.input_names), tuple(function.output_names))
        )
    except TypeError as error:
        raise VerifyError(f"function {function.name!a}: names and attributes: {error}") from error
    _verify_block(function.body, set(), module)


def _verify_block(block: Block, visible: set[Value], module: Module) -> None:
    visible = visible | set(block.arguments)
    for argument in block.arguments:
        _verify_uses(argument, f"block argument {argument.index}")
    for op in block.ops:
        _verify_operation(op, block, visible, module)
        visible.update(op.results)


def _verify_operation(op: Operation, block: Block, visible: set[Value], module: Module) -> None:
    def fail(reason: str) -> VerifyError:
        return VerifyError(reason, layer=op.label, kind=op.name)

    if op.parent is not block:
        raise fail("is listed in a block that it does not belong to")
    if is_return(op) and (op is not block.ops[-1] or not isinstance(block.owner, Function)):
        raise fail("stands elsewhere than at the end of a function")
    try:
        format_location(op.location)
    except TypeError as error:
        raise fail(f"location: {error}") from error
    for index, value in enumerate(op.operands):
        if value not in visible:
            raise fail(f"operand {index} is not defined before its use")
        if (op, index) not in value.uses:
            raise fail(f"operand {index} does not list this use")
    for index, result in enumerate(op.results):
        if result.owner is not op or result.index != index:
            raise fail(f"result {index} belongs to another operation")
        _verify_uses(result, op.label)
    for name, attribute in op.attributes.items():
        try:
            format_attribute({name: attribute})
        except TypeError as error:
            raise fail(f"attribute {name}: {error}") from error
    for region in op.regions:
        _verify_block(region, visible, module)
    op.verify_op(module)


def _verify_uses(value: Value, what: str) -> None:
    for op, index in value.uses:
        if index >= len(op.operands) or op.operands[index] is not value:
            raise VerifyError(f"{what}: lists a use in {op.label} (operand {index}) that does not exist")
