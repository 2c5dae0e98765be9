"""Inputs and outputs in element types that a model file can name."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS, SOURCE_TYPES
from bmcompiler.ir import Function, Module, Operation, Value, type_of_array
from bmcompiler.ir.keys import is_return
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.places.index import INDEX
from bmcompiler.passes.rewriting import hand_name, make, producer
from bmcompiler.passmanager import Pass, PassContext, PassResult

NARROW = {"i64": "i32", "u64": "i32", "u32": "i32", "bool": "u8", "f64": "f32"}
"""What stands for an element type at the border. Integers saturate; bool is 0 or 1."""


@dataclass(frozen=True)
class NarrowBorders(Pass):
    """Cast 64-bit and bool inputs and outputs of the net to narrower types.

    1. An output of a type in `NARROW` is cast, a constant before anything runs; the index behind an ONNX ArgMax,
       widened on its way, is taken as it was.
    2. An input of such a type takes the narrow type and is cast back for its readers.
    3. A cast of what rule 2 has widened to an integer, and an op that picks by it, read the input itself.
    """

    name = "narrow-borders"
    requires = (SOURCE_TYPES, NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        notes: list[str] = []
        for function in module.functions:
            notes += _outputs(module, function) + _inputs(function)
        for note in notes:
            ctx.log(note)
        return PassResult(bool(notes))


def _outputs(module: Module, function: Function) -> list[str]:
    end, notes = function.ops[-1], []
    for index, (name, value) in enumerate(zip(function.output_names, function.returned)):
        narrow = NARROW.get(value.dtype)
        if narrow is None or value in function.arguments:  # an input that is an output changes with the input
            continue
        end.set_operand(index, _narrowed(module, function, value, narrow))
        notes.append(f"output '{name}': {value.dtype} leaves the net as {narrow}")
    return notes


def _narrowed(module: Module, function: Function, value: Value, narrow: str) -> Value:
    widening = producer(value, Cast)
    if widening is not None and widening.operands[0].dtype == narrow and value.dtype != "bool":
        hand_name(widening, widening.operands[0])
        return widening.operands[0]
    op = make("cast", [value], {"dtype": narrow}, location=function.origin(value))
    if isinstance(value.op, Weight):
        key = module.weights.add(f"{value.op.key}.{narrow}", op.evaluate(module.weights[value.op.key]))
        op.drop_operands()
        op = make("weight", (), {"key": key}, [type_of_array(module.weights[key])], value.op.location)
    function.body.insert_before(function.ops[-1], op)
    return op.result


def _inputs(function: Function) -> list[str]:
    notes = []
    for name, argument in zip(function.input_names, function.arguments):
        wide, narrow = argument.dtype, NARROW.get(argument.dtype)
        if narrow is None:
            continue
        readers = [
            (op, index)
            for op, index in argument.uses
            if not (is_return(op) or (wide in INDEX and (isinstance(op, Cast) or _picks_by(op, index))))
        ]
        argument.type = argument.type.with_dtype(narrow)
        notes.append(f"input '{name}': the net takes {narrow} for {wide}")
        if not readers:
            continue
        op = make("cast", [argument], {"dtype": wide}, location=function.origin(argument))
        function.body.insert_before(function.ops[0], op)
        for reader, index in readers:
            reader.set_operand(index, op.result)
    return notes


def _picks_by(op: Operation, index: int) -> bool:
    """Whether an operand of an op are indices, of any type that those may have."""
    return isinstance(op, TensorOp) and index in op.index_operands
