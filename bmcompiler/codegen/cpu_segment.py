"""CPU subnets inside a model file: a small TensorOp function as text, with the memory offsets of its tensors.

The device program calls it as CPU function "tensorop"; the runtime evaluates it with the same `evaluate` the compiler
uses, on the bytes in device memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.partition import Segment
from bmcompiler.errors import FileFormatError
from bmcompiler.interpreter import run_function
from bmcompiler.ir import Function, Module, Operation, TensorType, Value, verify_module
from bmcompiler.ir.keys import DIALECT, OFFSET, WEIGHT, is_weight
from bmcompiler.ops import find_op, parse_module
from bmcompiler.ops.custom import Customized

if TYPE_CHECKING:
    import numpy as np

CPU_FUNCTION = "tensorop"


def encode_segment(
    segment: Segment,
    name: str,
    offset_of: Callable[[Value], int],
    weight_offset: Callable[[Value], int],
) -> bytes:
    """The parameter block of the CPU record for a segment.

    Args:
        offset_of: neuron offset of a value that crosses the border of the subnet.
        weight_offset: offset from the weight base of a constant.

    Raises:
        UnsupportedError: a custom layer has no CPU function.
    """
    ops, outputs = segment.ops, segment.outputs()
    inside = {result for op in ops for result in op.results}
    read = dict.fromkeys(v for op in ops for v in op.operands)
    inputs = [v for v in read if root_of(v) not in inside and not is_weight(root_of(v))]
    function = Function(name, [v.type for v in inputs], [f"i{n}" for n in range(len(inputs))])
    values: dict[Value, Value] = dict(zip(inputs, function.arguments))

    def value_of(operand: Value) -> Value:
        if operand not in values and is_weight(operand):
            values[operand] = _weight(function, operand, weight_offset(operand))
        elif operand not in values:  # a view of a value of this subnet, or of a constant
            assert operand.op is not None, "weights are made by an op"
            view = _copy(operand.op, [value_of(operand.op.operands[0])])
            values[operand] = function.body.append(view).result
        return values[operand]

    for op in ops:
        if isinstance(op, Customized):
            op.need_cpu_function()
        copy = function.body.append(_copy(op, [value_of(v) for v in op.operands]))
        values.update(zip(op.results, copy.results))
    function.set_outputs([values[v] for v in outputs], [f"o{n}" for n in range(len(outputs))])
    function.attributes = {
        "input_offsets": tuple(offset_of(v) for v in inputs),
        "output_offsets": tuple(offset_of(v) for v in outputs),
    }
    return str(Module([function])).encode()


def encode_copy(value: Value, source: int, target: int) -> bytes:
    """The parameter block of a subnet that copies a value, or a constant, to offset `target` of the activations.

    Args:
        source: offset of the value among the activations, of a constant from the weight base.
    """
    root = root_of(value)
    function = Function("copy", [] if is_weight(root) else [value.type], [] if is_weight(root) else ["i0"])
    if is_weight(root):
        copied = _weight(function, root, source)
        copied.type = value.type
    else:
        copied = function.arguments[0]
    function.set_outputs([copied], ["o0"])
    inputs = () if is_weight(root) else (source,)
    function.attributes = {"input_offsets": inputs, "output_offsets": (target,)}
    return str(Module([function])).encode()


def _weight(function: Function, value: Value, offset: int) -> Value:
    assert value.op is not None, "weights are made by an op"
    attributes = {"key": value.op.attributes["key"], OFFSET: offset}
    op = find_op("weight")([], attributes, [value.type], value.op.location)
    return function.body.append(op).result


def _copy(op: Operation, operands: list[Value]) -> Operation:
    cls = find_op(op.name.removeprefix(DIALECT))
    attributes = {k: v for k, v in op.attributes.items() if "." not in k}
    return cls(operands, attributes, [r.type for r in op.results], op.location)


def decode_segment(parameters: bytes) -> Module:
    """The subnet behind a parameter block. Raises FileFormatError for anything else."""
    try:
        text = parameters.decode()
    except UnicodeDecodeError as error:
        raise FileFormatError("the parameters of a CPU subnet are not text") from error
    module = parse_module(text.rstrip("\0"), "CPU subnet")
    if len(module.functions) != 1:
        raise FileFormatError("a CPU subnet must be one function")
    function = module.main
    for field, values in (("input_offsets", function.arguments), ("output_offsets", function.returned)):
        offsets = function.attributes.get(field)
        if not isinstance(offsets, tuple) or len(offsets) != len(values) or any(type(o) is not int for o in offsets):
            raise FileFormatError(f"a CPU subnet needs one offset per value in {field}")
    return module


def bind_segment(parameters: bytes, neuron: np.ndarray, weight: np.ndarray) -> Callable[[], None]:
    """Prepare a subnet for device memory: the returned function evaluates it, as often as it is called.

    Args:
        neuron, weight: uint8 arrays of the activation and weight memory; results are written to `neuron`.

    Raises:
        FileFormatError: a tensor lies outside its memory, or the text is malformed.
        VerifyError: the text is not a valid function.
    """
    module = decode_segment(parameters)
    function = module.main
    for op in function.ops:
        if op.name == WEIGHT:
            array = _view(weight, op.attributes.get(OFFSET, -1), op.result.type, "weight")
            module.weights[op.attributes["key"]] = array
    verify_module(module)

    def views(field: str, values: Sequence[Value]) -> list[np.ndarray]:
        offsets = function.attributes[field]
        return [_view(neuron, offset, value.type, "activation") for offset, value in zip(offsets, values)]

    inputs = dict(zip(function.input_names, views("input_offsets", function.arguments)))
    targets = views("output_offsets", function.returned)

    def run() -> None:
        for target, result in zip(targets, run_function(module, function, inputs).values()):
            target[...] = result

    return run


def _view(memory: np.ndarray, offset: object, type: TensorType, what: str) -> np.ndarray:
    if not isinstance(offset, int) or offset < 0 or offset + type.nbytes > memory.size:
        raise FileFormatError(f"a CPU subnet reads or writes {what} bytes {offset} + {type.nbytes} of {memory.size}")
    return memory[offset : offset + type.nbytes].view(type.numpy).reshape(type.shape)
