"""All nodes at once that nothing here can import: what stands in for their results, and where to cut the net before."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import onnx
import onnx.checker
import onnx.shape_inference

from bmcompiler.errors import UnsupportedError
from bmcompiler.frontends.onnx.constants import find_folder
from bmcompiler.frontends.onnx.control_flow import UNROLLERS
from bmcompiler.frontends.onnx.expansion import Functions, domain_of, reads, tensor_type
from bmcompiler.frontends.onnx.registry import Tensor, find_converter
from bmcompiler.frontends.onnx.tensors import ELEMENT_TYPES, dtype_name, onnx_type
from bmcompiler.ir import TensorType
from bmcompiler.plugins.registry import failure_note
from bmcompiler.spelling import spelled

CUSTOM_GROUP = "bmcompiler.onnx_ops"
_LONG = 1024
"""Elements of constants beyond which they are no axes or shapes."""
_NO_TYPES = onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError, RuntimeError, IndexError
"""What ONNX's inference raises for nodes that are wrong."""


def no_converter(node: onnx.NodeProto, opset: int) -> UnsupportedError:
    """The error for an op that nothing here knows."""
    domain = domain_of(node)
    what = f"{domain}.{node.op_type}" if domain else node.op_type
    return UnsupportedError(f"op type {what} (opset {opset}) has no converter")


def ways_on(
    nodes: Sequence[onnx.NodeProto],
    refused: Sequence[onnx.NodeProto],
    outputs: Sequence[str],
    constants: Collection[str],
) -> str:
    """What can be done about several refused nodes at once.

    Args:
        nodes: those that are needed, inputs first.
        refused: some of them.
        outputs: names of the net's outputs.
        constants: names of the initializers.
    """
    cut = _cut(nodes, refused, outputs, constants)
    way = f"cut the net before all of them with {spelled('outputs', cut)}, or " if cut else ""
    plugin = f"install a plugin that registers converters in the entry point group {CUSTOM_GROUP}"
    return way + plugin + failure_note(CUSTOM_GROUP)


def result_types(
    node: onnx.NodeProto, opset: int, tensors: Mapping[str, Tensor], stated: Mapping[str, onnx.TypeProto]
) -> dict[str, TensorType]:
    """Types of a refused node's results, by name, as far as ONNX's own inference or the file (`stated`) says them."""
    types = {name: stated[name] for name in node.output if name in stated}
    names = [name for name in node.input if name]
    if onnx.defs.has(node.op_type, opset, domain_of(node)) and tensors.keys() >= set(names):
        read = {name: onnx_type(tensor_type(tensors[name])) for name in names}
        arrays = [(name, array) for name in names if isinstance(array := tensors[name], np.ndarray)]
        data = {name: onnx.numpy_helper.from_array(array) for name, array in arrays if array.size <= _LONG}
        schema: Any = onnx.defs.get_schema(node.op_type, opset, domain_of(node))
        with suppress(*_NO_TYPES):
            types |= onnx.shape_inference.infer_node_outputs(schema, node, read, data)
    return {name: found for name, type in types.items() if (found := _static(type.tensor_type)) is not None}


def _static(type: onnx.TypeProto.Tensor) -> TensorType | None:
    shape = tuple(dim.dim_value for dim in type.shape.dim)
    known = type.elem_type in ELEMENT_TYPES and type.HasField("shape") and all(size > 0 for size in shape)
    return TensorType(shape, dtype_name(type.elem_type)) if known else None


def is_unknown(node: onnx.NodeProto, opsets: Mapping[str, int], functions: Functions) -> bool:
    """Whether a node has no converter, whatever it reads."""
    domain = domain_of(node)
    opset = opsets.get(domain, 1)
    if (domain, node.op_type, node.overload) in functions or (not domain and node.op_type in UNROLLERS):
        return False
    if find_folder(domain, node.op_type, constant=True) is not None:
        return False
    if onnx.defs.has(node.op_type, opset, domain):
        schema: Any = onnx.defs.get_schema(node.op_type, opset, domain)
        if schema.has_function or schema.has_context_dependent_function:
            return False
    return find_converter(domain, node.op_type, opset) is None


def _cut(
    nodes: Sequence[onnx.NodeProto],
    unknown: Sequence[onnx.NodeProto],
    outputs: Sequence[str],
    constants: Collection[str],
) -> list[str]:
    """Results that need no unknown node, and that are outputs or read by what does need one."""
    behind: set[str] = set()
    frontier: dict[str, None] = {}
    constant, made = set(constants), set[str]()
    refused = {id(node) for node in unknown}
    for node in nodes:
        read = reads(node)
        if id(node) in refused or behind.intersection(read):
            behind.update(node.output)
            frontier.update((name, None) for name in read if name in made)
        elif constant.issuperset(read):
            constant.update(node.output)
        else:
            made.update(node.output)
    return list(frontier | dict.fromkeys(name for name in outputs if name in made))
