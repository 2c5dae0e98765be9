"""A module as prototxt: one `layer` per op, in the words of Caffe files, for reading and for graph viewers.

    layer {
      name: "conv1"
      type: "conv"
      bottom: "data"
      top: "conv1"
      blobs { shape { dim: 8 dim: 3 dim: 3 dim: 3 } }
      conv_param { strides: 2 strides: 2 rshift: 7 }
      quantization { dtype: "i8" threshold: 2.5 }
    }

`quantization` stands once per top that is not plain float32. Weights are shown by shape only; the form that is read
back exactly is `.mlir` (`bmcompiler.files.mlir`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from bmcompiler.ir import Function, Operation, TensorType, Value
from bmcompiler.ir.keys import TENSOR_NAME, WEIGHT


def to_prototxt(function: Function) -> str:
    """The text; names of layers and tensors are unique, those of the source net where it had any."""
    names = tensor_names(function)
    lines = [f"name: {_string(function.name)}"]
    for argument in function.arguments:
        lines.append(f"input: {_string(names[argument])}")
        lines.append(f"input_shape {{ {_dims(argument.shape)} }}")
    taken: set[str] = set()
    for op in function.ops[:-1]:
        if op.name != WEIGHT:
            lines += ["layer {", *(f"  {line}" for line in _layer(op, _unique(op.label, taken), names)), "}"]
    lines += [f"# output {_string(name)}: {_string(names[v])}" for name, v in _outputs(function)]
    return "\n".join(lines) + "\n"


def tensor_names(function: Function) -> dict[Value, str]:
    """A unique name for every input and result (not for constants): the source net's, else made of the layer's name."""
    taken: set[str] = set()
    names = {v: _unique(name, taken) for name, v in zip(function.input_names, function.arguments)}
    for op in function.ops[:-1]:
        if op.name == WEIGHT:
            continue
        found = op.attributes.get(TENSOR_NAME, ())
        given = (found,) if isinstance(found, str) else tuple(found)
        for result in op.results:
            own = given[result.index] if result.index < len(given) else ""
            names[result] = _unique(own or op.label, taken)
    return names


def _layer(op: Operation, name: str, names: dict[Value, str]) -> Iterator[str]:
    yield f"name: {_string(name)}"
    yield f"type: {_string(op.short_name)}"
    weights = [v for v in op.operands if v.op is not None and v.op.name == WEIGHT]
    for value in op.operands:
        if value not in weights:
            yield f"bottom: {_string(names[value])}"
    for result in op.results:
        yield f"top: {_string(names[result])}"
    for value in weights:
        yield f"blobs {{ shape {{ {_dims(value.shape)} }} }}"
    fields = [text for key, value in op.attributes.items() if "." not in key for text in _fields(key, value)]
    if fields:
        yield f"{op.short_name}_param {{ {' '.join(fields)} }}"
    for result in op.results:
        if result.dtype != "f32":
            yield f"quantization {{ {_quantization(result.type)} }}"


def _fields(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, tuple):
        for item in value:
            nested = isinstance(item, tuple)
            yield f"{key} {{ {_dims(item)} }}" if nested else f"{key}: {_scalar(item)}"
        return
    yield f"{key}: {_scalar(value)}"


def _scalar(value: Any) -> str:
    return _string(value) if isinstance(value, str) else str(value).lower()


def _quantization(type: TensorType) -> str:
    text = f"dtype: {_string(type.dtype)}"
    return text if type.quant is None else f"{text} threshold: {type.quant.threshold!r}"


def _dims(shape: Iterable[int]) -> str:
    return " ".join(f"dim: {dim}" for dim in shape)


def _outputs(function: Function) -> Iterator[tuple[str, Value]]:
    return zip(function.output_names, function.returned)


def _unique(name: str, taken: set[str]) -> str:
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}/{count}"
    taken.add(candidate)
    return candidate


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
