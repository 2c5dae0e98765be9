"""Nodes that stand for other nodes: ops defined by a function body, functions of the model, and inlined graphs.

An expansion renames what its body makes ("LABEL/NAME", numbered where taken), so that bodies never collide, and keeps
the names of what it reads from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx

from bmcompiler.errors import FileFormatError
from bmcompiler.frontends.onnx.registry import Tensor
from bmcompiler.frontends.onnx.tensors import NARROW, onnx_type
from bmcompiler.ir import TensorType, Value, type_of_array

Functions = Mapping[tuple[str, str, str], onnx.FunctionProto]
"""Functions of a model by domain, name and overload."""


@dataclass(frozen=True)
class Body:
    """Nodes in order, with the opsets they are written in."""

    nodes: Sequence[onnx.NodeProto]
    opsets: Mapping[str, int]


def domain_of(proto: onnx.NodeProto | onnx.FunctionProto) -> str:
    """The domain of a node or function, "" for the standard one under either of its names."""
    return "" if proto.domain == "ai.onnx" else proto.domain


def model_functions(model: onnx.ModelProto) -> Functions:
    """The functions that a model brings with it."""
    return {(domain_of(f), f.name, f.overload): f for f in model.functions}


def find_body(
    node: onnx.NodeProto, opset: int, tensors: Sequence[Tensor | None], functions: Functions, scope: str
) -> Body | None:
    """What a node stands for, if it calls a function of the model or its op is defined by a body.

    Args:
        node, opset: the call.
        tensors: its inputs; bodies may depend on their types.
        functions: those of the model.
        scope: prefix of the names that the body makes.

    Raises:
        FileFormatError: the call does not fit the function.
    """
    domain = domain_of(node)
    function = functions.get((domain, node.op_type, node.overload))
    defaults: Sequence[onnx.AttributeProto] = ()
    if function is None:
        if not onnx.defs.has(node.op_type, opset, domain):
            return None
        schema = onnx.defs.get_schema(node.op_type, opset, domain)
        function = _body_of_schema(schema, node, opset, tensors)
        defaults = [a.default_value for a in schema.attributes.values() if a.default_value.name]
    if function is None:
        return None
    if len(node.input) > len(function.input) or len(node.output) > len(function.output):
        raise FileFormatError(
            f"function {node.op_type} has {len(function.input)} inputs and {len(function.output)} outputs, "
            f"but the call names {len(node.input)} and {len(node.output)}"
        )
    names = dict.fromkeys(function.input, "") | dict(zip(function.input, node.input))
    names |= {inner: outer for inner, outer in zip(function.output, node.output) if outer}
    given = {a.name: a for a in (*defaults, *function.attribute_proto, *node.attribute)}
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in function.opset_import}
    return Body(renamed(function.node, names, scope, given), opsets)


def _body_of_schema(
    schema: Any, node: onnx.NodeProto, opset: int, tensors: Sequence[Tensor | None]
) -> onnx.FunctionProto | None:
    if schema.has_function:
        version = _nearest(schema.function_opset_versions, opset)
        data = schema.get_function_with_opset_version(version)
    elif schema.has_context_dependent_function:
        types = [onnx_type(tensor_type(tensor)).SerializeToString() for tensor in tensors]
        version = _nearest(schema.context_dependent_function_opset_versions, opset)
        data = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), types)
    else:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(data)
    return function if function.node else None


def _nearest(versions: Sequence[int], opset: int) -> int:
    return max((v for v in versions if v <= opset), default=min(versions))


def tensor_type(tensor: Tensor | None) -> TensorType | None:
    """The type of a value or constant; None of an absent one."""
    if isinstance(tensor, Value):
        return tensor.type
    return None if tensor is None or tensor.dtype.name in NARROW else type_of_array(tensor)


def graph_nodes(graph: onnx.GraphProto, inputs: Mapping[str, str], outputs: Mapping[str, str], scope: str) -> Body:
    """The nodes of an inner graph with its inputs and outputs renamed; its initializers become Constant nodes.

    An output that is an input or an outer tensor becomes an Identity.
    """
    constants = [
        onnx.helper.make_node("Constant", [], [tensor.name], name=tensor.name, value=tensor)
        for tensor in graph.initializer
    ]
    nodes = [*constants, *graph.node]
    made = {name for node in nodes for name in node.output}
    names = {inner: outer for inner, outer in outputs.items() if inner in made and inner not in inputs}
    body = renamed(nodes, {**names, **inputs}, scope, {})
    for inner, outer in outputs.items():
        if inner not in names:
            body.append(onnx.helper.make_node("Identity", [inputs.get(inner, inner)], [outer], name=scope))
    return Body(body, {})


def renamed(
    nodes: Iterable[onnx.NodeProto],
    names: Mapping[str, str],
    scope: str,
    given: Mapping[str, onnx.AttributeProto] | None = None,
) -> list[onnx.NodeProto]:
    """Copies of nodes: `names` gives new tensor names, others that the nodes make are put below `scope`.

    `given` are the values of attributes that refer to attributes of the call (ref_attr_name).
    """
    nodes = list(nodes)
    made = {name for node in nodes for name in node.output if name}
    table = {name: f"{scope}/{name}" for name in made} | dict(names)
    return [_renamed(node, table, given or {}) for node in nodes]


def _renamed(
    node: onnx.NodeProto, table: Mapping[str, str], given: Mapping[str, onnx.AttributeProto]
) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.input[:], copy.output[:], copy.attribute[:]
    copy.input.extend(table.get(name, name) for name in node.input)
    copy.output.extend(table.get(name, name) for name in node.output)
    for attribute in node.attribute:
        source = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if source is None:
            continue
        target = copy.attribute.add()
        target.CopyFrom(source)
        target.name = attribute.name
        for graph in _graphs(target):
            _rename_graph(graph, table, given)
    return copy


def _graphs(attribute: onnx.AttributeProto) -> list[onnx.GraphProto]:
    return [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]


def _declared(graph: onnx.GraphProto) -> set[str]:
    """Names that a graph gives to tensors of its own."""
    made = {name for node in graph.node for name in node.output}
    return made | {item.name for item in graph.input} | {item.name for item in graph.initializer}


def _rename_graph(graph: onnx.GraphProto, table: Mapping[str, str], given: Mapping[str, onnx.AttributeProto]) -> None:
    """Rename what a nested graph reads from outside; its own names stay."""
    own = _declared(graph)
    outer = {old: new for old, new in table.items() if old not in own}
    nodes = [_renamed(node, outer, given) for node in graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    for output in graph.output:
        output.name = outer.get(output.name, output.name)


def reads(node: onnx.NodeProto) -> list[str]:
    """Names a node needs: its inputs, and what its inner graphs take from outside."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in _graphs(attribute):
            own = _declared(graph)
            found = [name for inner in graph.node for name in reads(inner)] + [output.name for output in graph.output]
            names += [name for name in found if name and name not in own]
    return names
