"""All nodes at once that nothing here can import, and where the net can be cut so that none is left."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import onnx

from bmcompiler.errors import UnsupportedError
from bmcompiler.frontends.onnx.constants import find_folder
from bmcompiler.frontends.onnx.control_flow import UNROLLERS
from bmcompiler.frontends.onnx.expansion import Functions, domain_of, reads
from bmcompiler.frontends.onnx.graph import node_name
from bmcompiler.frontends.onnx.registry import find_converter
from bmcompiler.plugins.registry import failure_note
from bmcompiler.spelling import spelled
from bmcompiler.text import some_names

CUSTOM_GROUP = "bmcompiler.onnx_ops"


def refuse_unknown(
    graph: onnx.GraphProto,
    order: Sequence[int],
    outputs: Sequence[str],
    constants: Collection[str],
    opsets: Mapping[str, int],
    functions: Functions,
) -> None:
    """Raise UnsupportedError that names every unknown op, when several nodes of the net have one.

    A single node is left to the importer, which knows its inputs.

    Args:
        graph: the graph.
        order: indices of the nodes that are needed, inputs first.
        outputs: names of the net's outputs.
        constants: names of the initializers.
        opsets: version by domain. functions: those of the model.
    """
    nodes = [graph.node[index] for index in order]
    unknown = [node for node in nodes if _is_unknown(node, opsets, functions)]
    if len(unknown) < 2:
        return
    layers: dict[str, list[str]] = {}
    for node in unknown:
        domain = domain_of(node)
        kind = f"{domain}.{node.op_type}" if domain else node.op_type
        layers.setdefault(f"{kind} (opset {opsets.get(domain, 1)})", []).append(node_name(node))
    listed = "; ".join(f"{kind} in {some_names(names)}" for kind, names in layers.items())
    cut = _cut(nodes, unknown, outputs, constants)
    way = f"cut the net before all of them with {spelled('outputs', cut)}, or " if cut else ""
    what = "this op type has" if len(layers) == 1 else f"{len(layers)} op types have"
    raise UnsupportedError(
        f"{what} no converter: {listed}",
        remedy=f"{way}install a plugin that registers converters in the entry point group {CUSTOM_GROUP}"
        + failure_note(CUSTOM_GROUP),
    )


def _is_unknown(node: onnx.NodeProto, opsets: Mapping[str, int], functions: Functions) -> bool:
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
