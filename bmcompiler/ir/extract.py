"""Some ops of a module as a module of their own."""

from __future__ import annotations

from collections.abc import Sequence

from bmcompiler.ir.copying import copy_op
from bmcompiler.ir.core import Function, Module, Operation, Value
from bmcompiler.ir.keys import is_weight


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
