"""Which nodes are needed for the wanted outputs, in an order where every node follows what it reads."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

import onnx

from bmcompiler.errors import FileFormatError, UsageError
from bmcompiler.frontends.onnx.expansion import reads


def node_name(node: onnx.NodeProto) -> str:
    """The node's name, or its first output where it has none."""
    return node.name or next((o for o in node.output if o), node.op_type)


def producers(graph: onnx.GraphProto) -> dict[str, int]:
    """Tensor name -> index of the node that makes it.

    Raises FileFormatError when two nodes make the same tensor, or a node does not say what it computes.
    """
    made: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        if not node.op_type:
            raise FileFormatError(f"node {index} has no op type", layer=node_name(node))
        for name in node.output:
            if name in made:
                raise FileFormatError(
                    f"tensor '{name}' is made twice, also by node '{node_name(graph.node[made[name]])}'",
                    layer=node_name(node),
                    kind=node.op_type,
                )
            if name:
                made[name] = index
    return made


def output_tensors(graph: onnx.GraphProto, wanted: Sequence[str] | None, tensors: set[str]) -> list[str]:
    """Names of the output tensors. `wanted` may name tensors or nodes (all their outputs).

    Raises UsageError for a name that the graph does not have.
    """
    if wanted is None:
        return list(dict.fromkeys(output.name for output in graph.output))
    if not wanted:
        raise UsageError("the list of outputs is empty")
    nodes = {node.name: [o for o in node.output if o] for node in graph.node if node.name}
    names: list[str] = []
    for name in wanted:
        if name not in tensors and name not in nodes:
            near = difflib.get_close_matches(name, [*tensors, *nodes], 3)
            raise UsageError(
                f"no tensor or node is called '{name}'" + (f"; similar: {', '.join(near)}" if near else ""),
                remedy="name outputs as they are in the model",
            )
        names += [name] if name in tensors else nodes[name]
    return list(dict.fromkeys(names))


def ordered_nodes(graph: onnx.GraphProto, made: dict[str, int], outputs: Sequence[str]) -> list[int]:
    """Indices of the nodes that the outputs need, inputs first, else as in the file. FileFormatError on cycles."""
    needed: set[int] = set()
    pending = [made[name] for name in outputs if name in made]
    while pending:
        index = pending.pop()
        if index not in needed:
            needed.add(index)
            pending += [made[name] for name in reads(graph.node[index]) if name in made]
    sorter = TopologicalSorter({i: {made[n] for n in reads(graph.node[i]) if n in made} for i in needed})
    try:
        sorter.prepare()
    except CycleError as error:
        stuck = graph.node[min(error.args[1])]
        raise FileFormatError(
            "is part of a cycle: it needs, directly or not, its own output", layer=node_name(stuck), kind=stuck.op_type
        ) from error
    ready = [*sorter.get_ready()]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        order.append(heapq.heappop(ready))
        sorter.done(order[-1])
        for index in sorter.get_ready():
            heapq.heappush(ready, index)
    return order
