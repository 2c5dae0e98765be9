"""If, Loop and Scan, unrolled at import: the most trips must be constants by then.

Of an If whose condition is none both branches are computed, and one is taken; of a Loop all trips that there may be,
and what is carried stays as it was before the first that does not happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

from bmcompiler.errors import FileFormatError, UnsupportedError
from bmcompiler.frontends.onnx.expansion import Body, graph_nodes
from bmcompiler.frontends.onnx.node import Node, axis_of
from bmcompiler.frontends.onnx.registry import Tensor
from bmcompiler.ir import Value

MAX_STEPS = 1024
"""Iterations of the longest loop that is unrolled."""

Unroller = Callable[[Node, str, Mapping[str, Tensor]], Iterator[Body]]
"""Yields bodies to import one after the other, given the node, a scope for new names, and the tensors known so far."""


def _if(node: Node, scope: str, tensors: Mapping[str, Tensor]) -> Iterator[Body]:
    branches = {True: node.graph("then_branch"), False: node.graph("else_branch")}
    for graph in branches.values():
        _need_outputs(node, len(graph.output))
    if isinstance(node.tensor(0), Value):
        yield from _taken(node, branches, scope, tensors)
        return
    graph = branches[bool(node.scalar(0))]
    names = [output.name for output in graph.output]
    yield graph_nodes(graph, {}, dict(zip(names, node.proto.output)), scope)


def _taken(
    node: Node, branches: Mapping[bool, onnx.GraphProto], scope: str, tensors: Mapping[str, Tensor]
) -> Iterator[Body]:
    """Both branches, which know no side effects, and of each result the one that the condition says."""
    if prod(node.shape(0)) != 1:
        raise FileFormatError(f"input 0 must be a single truth value, got shape {list(node.shape(0))}")
    made: dict[bool, list[str]] = {}
    for taken, graph in branches.items():
        here = f"{scope}/{'then' if taken else 'else'}"
        made[taken] = [f"{here}/out/{i}" for i in range(len(graph.output))]
        yield graph_nodes(graph, {}, dict(zip((output.name for output in graph.output), made[taken])), here)
    nodes, condition = _as_scalar(node.proto.input[0], f"{scope}/condition")
    for output, *pair in zip(node.proto.output, made[True], made[False]):
        first, second = (tuple(tensors[name].shape) for name in pair)
        if first != second:
            raise UnsupportedError(
                f"its branches give the shapes {list(first)} and {list(second)}, and which is taken depends on the "
                "net's inputs"
            )
        nodes.append(helper.make_node("Where", [condition, *pair], [output]))
    yield Body(nodes, {})


def _loop(node: Node, scope: str, tensors: Mapping[str, Tensor]) -> Iterator[Body]:
    graph, trips = node.graph("body"), node.scalar(0)
    carried = list(node.proto.input[2:])
    if len(graph.input) != len(carried) + 2 or len(graph.output) <= len(carried):
        raise FileFormatError(f"the body has {len(graph.input)} inputs for {len(carried)} carried values")
    _need_outputs(node, len(graph.output) - 1)
    gathered: list[list[str]] = [[] for _ in graph.output[len(carried) + 1 :]]
    counted = trips is not None and not gathered
    first = node.tensors[1] if len(node.tensors) > 1 else None
    computed = isinstance(first, Value) and counted
    go = _single(node.proto.input[1], first) if computed else node.scalar(1) is not False
    guards: list[tuple[str, list[str]]] = []
    step = 0
    while go and (trips is None or step < trips):
        _check_steps(step)
        if isinstance(go, str):
            _check_steps((trips or 1) - 1)
            guards.append((go, carried))
        here = f"{scope}/{step}"
        counters = [_constant(np.int64(step), f"{here}/step"), _constant(np.bool_(True), f"{here}/go")]
        names = [counters[0].output[0], counters[1].output[0], *carried]
        inputs = dict(zip((i.name for i in graph.input), names))
        outputs = {output.name: f"{here}/out/{i}" for i, output in enumerate(graph.output)}
        body = graph_nodes(graph, inputs, outputs, here)
        yield Body([*counters, *body.nodes], {})
        results = [outputs[output.name] for output in graph.output]
        go = _single(results[0], tensors[results[0]])
        if isinstance(go, str) and not counted:
            raise UnsupportedError("the condition of the loop depends on the net's inputs, so it cannot be unrolled")
        carried = results[1 : 1 + len(carried)]
        for names, name in zip(gathered, results[1 + len(carried) :]):
            names.append(name)
        step += 1
    for number, (condition, before) in reversed(list(enumerate(guards))):
        shapes = [[list(tensors[name].shape) for name in names] for names in (before, carried)]
        if shapes[0] != shapes[1]:
            raise UnsupportedError("what the loop carries changes its shape, and its trips depend on the net's inputs")
        nodes, single = _as_scalar(condition, f"{scope}/guard/{number}")
        kept = [old if old == new else f"{single}/{i}" for i, (old, new) in enumerate(zip(before, carried))]
        pairs = zip(kept, carried, before)
        nodes += [helper.make_node("Where", [single, new, old], [name]) for name, new, old in pairs if name != old]
        yield Body(nodes, {})
        carried = kept
    yield Body(_results(node, scope, carried, gathered, [0] * len(gathered)), {})


def _single(name: str, tensor: Tensor | None) -> bool | str:
    """A truth value, or its name where it is known at run time only."""
    if isinstance(tensor, np.ndarray) and tensor.size == 1:
        return bool(tensor.reshape(-1)[0])
    if tensor is None or prod(tensor.shape) != 1:
        raise FileFormatError("the condition of the loop must be a single truth value")
    return name


def _as_scalar(name: str, result: str) -> tuple[list[onnx.NodeProto], str]:
    """Nodes that make a scalar of a single element."""
    shape = _constant(np.zeros(0, np.int64), f"{result}/no_axes")
    return [shape, helper.make_node("Reshape", [name, shape.output[0]], [result])], result


def _scan(node: Node, scope: str, tensors: Mapping[str, Tensor]) -> Iterator[Body]:
    if node.opset < 9:
        raise UnsupportedError("the batched form of opset 8 is not supported")
    graph, count = node.graph("body"), node.int("num_scan_inputs")
    states = len(node) - count
    if count < 1 or states < 0 or len(graph.input) != len(node) or len(graph.output) < states:
        raise FileFormatError(f"the body has {len(graph.input)} inputs, the node {len(node)}")
    made = len(graph.output) - states
    _need_outputs(node, len(graph.output))
    axes = [axis_of(a, node.rank(states + i)) for i, a in enumerate(_list(node, "scan_input_axes", count))]
    backwards = _list(node, "scan_input_directions", count)
    lengths = {node.shape(states + i)[axis] for i, axis in enumerate(axes)}
    if len(lengths) != 1:
        raise FileFormatError(f"the scanned inputs have lengths {sorted(lengths)}")
    (length,) = lengths
    _check_steps(length - 1)
    carried = list(node.proto.input[:states])
    gathered: list[list[str]] = [[] for _ in range(made)]
    for step in range(length):
        here = f"{scope}/{step}"
        nodes, names = [], []
        for i, (axis, turned) in enumerate(zip(axes, backwards)):
            place = _constant(np.int64(length - 1 - step if turned else step), f"{here}/place/{i}")
            names.append(f"{here}/in/{i}")
            source = node.proto.input[states + i]
            nodes += [place, helper.make_node("Gather", [source, place.output[0]], [names[-1]], axis=axis)]
        inputs = dict(zip((i.name for i in graph.input), [*carried, *names]))
        outputs = {output.name: f"{here}/out/{i}" for i, output in enumerate(graph.output)}
        yield Body([*nodes, *graph_nodes(graph, inputs, outputs, here).nodes], {})
        results = [outputs[output.name] for output in graph.output]
        carried = results[:states]
        for found, name in zip(gathered, results[states:]):
            found.append(name)
    for found, turned in zip(gathered, _list(node, "scan_output_directions", made)):
        if turned:
            found.reverse()
    yield Body(_results(node, scope, carried, gathered, _list(node, "scan_output_axes", made)), {})


UNROLLERS: dict[str, Unroller] = {"If": _if, "Loop": _loop, "Scan": _scan}


def _list(node: Node, name: str, count: int) -> list[int]:
    values = list(node.ints(name, (0,) * count))
    if len(values) != count:
        raise FileFormatError(f"attribute '{name}' must have {count} entries, got {len(values)}")
    return values


def _need_outputs(node: Node, have: int) -> None:
    if len(node.proto.output) > have:
        raise FileFormatError(f"has {len(node.proto.output)} outputs, but its body makes {have}")


def _check_steps(step: int) -> None:
    if step >= MAX_STEPS:
        raise UnsupportedError(f"a loop of more than {MAX_STEPS} steps is not unrolled")


def _constant(value: np.generic | np.ndarray, name: str) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value)))


def _results(
    node: Node, scope: str, carried: Sequence[str], gathered: Sequence[Sequence[str]], axes: Sequence[int]
) -> list[onnx.NodeProto]:
    """Nodes that give the carried values and the stacked results of all steps their final names."""
    outputs = list(node.proto.output)
    nodes = [helper.make_node("Identity", [n], [o]) for n, o in zip(carried, outputs) if o]
    for i, (names, output, axis) in enumerate(zip(gathered, outputs[len(carried) :], axes)):
        if not output:
            continue
        if not names:
            raise UnsupportedError("a loop without steps gives empty results, which are not supported")
        pieces = [f"{scope}/piece/{i}/{step}" for step in range(len(names))]
        nodes += [_unsqueeze(node.opset, n, piece, axis, f"{scope}/axis/{i}") for n, piece in zip(names, pieces)]
        if node.opset >= 13:
            nodes.insert(0, _constant(np.asarray([axis], np.int64), f"{scope}/axis/{i}"))
        nodes.append(helper.make_node("Concat", pieces, [output], axis=axis))
    return nodes


def _unsqueeze(opset: int, name: str, result: str, axis: int, axes: str) -> onnx.NodeProto:
    if opset >= 13:
        return helper.make_node("Unsqueeze", [name, axes], [result])
    return helper.make_node("Unsqueeze", [name], [result], axes=[axis])
