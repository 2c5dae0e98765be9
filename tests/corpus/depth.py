"""Deeper networks: a part whose result looks like what goes into it is repeated, as depths of one family differ."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from .graph import valid
from .sizes import known_tensors

_SCALED = ("Resize", "Upsample")
"""Nodes whose floats beside the data say how large the result is."""


def block_of(model: onnx.ModelProto) -> tuple[str, str, list[int]] | None:
    """What goes in, what comes out, and the nodes of the largest part that can be repeated; None without one."""
    graph = model.graph
    tensors, fixed = known_tensors(model), {each.name for each in graph.initializer}
    made = {name: i for i, node in enumerate(graph.node) for name in node.output}
    inputs = {each.name for each in graph.input}
    best: tuple[str, str, list[int]] | None = None
    for after, place in made.items():
        for before in (*inputs, *made):
            if before == after or tensors.get(before) is None or tensors[before] != tensors.get(after):
                continue
            if before in made and made[before] >= place:
                continue
            nodes = _between(graph, made, inputs, fixed, before, after)
            if nodes and any(graph.node[i].op_type in ("Conv", "MatMul", "Gemm") for i in nodes):
                best = (before, after, nodes) if best is None or len(nodes) > len(best[2]) else best
    return best


def _between(
    graph: onnx.GraphProto, made: dict[str, int], inputs: set[str], fixed: set[str], before: str, after: str
) -> list[int]:
    """The nodes that `after` is computed by from `before` and constants alone; none where it needs something else."""
    found: set[int] = set()
    open_, reached = [after], False
    while open_:
        name = open_.pop()
        if name == before:
            reached = True
        elif name in inputs:
            return []
        elif name in made and made[name] not in found:
            found.add(made[name])
            open_ += [each for each in graph.node[made[name]].input if each and each not in fixed]
    return sorted(found) if reached else []


def repeated(model: onnx.ModelProto, block: tuple[str, str, list[int]], times: int) -> onnx.ModelProto:
    """The network with its block `times` times as deep; each copy has weights of its own. Raises what `valid` does."""
    before, after, nodes = block
    deeper = onnx.ModelProto()
    deeper.CopyFrom(model)
    graph = deeper.graph
    fixed = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    sizes = {name for node in graph.node if node.op_type in _SCALED for name in node.input[1:]}
    place, last = max(nodes) + 1, f"{after}_deep0"
    originals, copies = [graph.node[i] for i in nodes], []
    for copy in range(1, times):
        names = {before: last}
        for node in originals:
            twin = onnx.NodeProto()
            twin.CopyFrom(node)
            twin.name = f"{node.name}_deep{copy}"
            for name in node.input:
                if name in fixed and name not in names and name not in sizes:
                    names[name] = f"{name}_deep{copy}"
                    graph.initializer.append(numpy_helper.from_array(_turned(fixed[name], copy), names[name]))
            names |= {name: f"{name}_deep{copy}" for name in node.output if name}
            names |= {after: after} if copy == times - 1 else {}
            twin.input[:] = [names.get(name, name) for name in node.input]
            twin.output[:] = [names.get(name, name) for name in node.output]
            copies.append(twin)
        last = names[after]
    if copies:  # the last one's result has the name that the rest reads, or that the network gives
        for node in originals:
            node.output[:] = [f"{after}_deep0" if name == after else name for name in node.output]
    whole = [*graph.node[:place], *copies, *graph.node[place:]]
    del graph.node[:]
    graph.node.extend(whole)
    del graph.value_info[:]
    return valid(deeper)


def _turned(value: np.ndarray, copy: int) -> np.ndarray:
    """Weights as plausible as these and not the same: output channels in another order."""
    return np.roll(value, copy, 0) if value.dtype == np.float32 and value.ndim else value
