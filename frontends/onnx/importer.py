"""Walks the graph: folds what is constant, hands the rest to its converter, names every tensor for calibration."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx

from bmcompiler.errors import BMError, FileFormatError, UnsupportedError, VerifyError
from bmcompiler.frontend import network_name
from bmcompiler.frontends.onnx.constants import find_folder, fold, growth_limit
from bmcompiler.frontends.onnx.control_flow import UNROLLERS
from bmcompiler.frontends.onnx.expansion import Body, domain_of, find_body, model_functions, reads
from bmcompiler.frontends.onnx.graph import node_name, ordered_nodes, output_tensors, producers
from bmcompiler.frontends.onnx.inputs import input_type, shapes_by_name
from bmcompiler.frontends.onnx.large_tensors import Span
from bmcompiler.frontends.onnx.model_file import check_model, parse_model, read_model
from bmcompiler.frontends.onnx.node import Node
from bmcompiler.frontends.onnx.padded import padding_notes
from bmcompiler.frontends.onnx.refusals import CUSTOM_GROUP, is_unknown, no_converter, result_types, ways_on
from bmcompiler.frontends.onnx.registry import Converter, Tensor, find_converter, run_converter
from bmcompiler.frontends.onnx.tensors import NARROW, check_extent, to_array
from bmcompiler.interpreter import evaluate_op
from bmcompiler.ir import Module, Operation, Value, erase_dead
from bmcompiler.ir.keys import TENSOR_NAME, WEIGHT
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.elements.elementwise import Arithmetic
from bmcompiler.ops.elements.linear_quant import DequantizeLinear
from bmcompiler.ops.layers.reduce import Reduce
from bmcompiler.plugins.registry import failure_note
from bmcompiler.spelling import spelled

if TYPE_CHECKING:
    from bmcompiler.frontends.onnx import Shapes

_MAX_DEPTH = 32
_MAX_EXPANDED = 1 << 16
"""Nodes that all functions and loops of a model may stand for together."""


def import_model(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    shapes: Shapes,
    outputs: Sequence[str] | None,
    name: str | None,
) -> Module:
    """See `bmcompiler.frontends.onnx.import_onnx`."""
    if isinstance(model, bytes):
        model = parse_model(model, "the network")
    if isinstance(model, onnx.ModelProto):
        return _located(model, None, name or model.graph.name or "net", shapes, outputs)
    path = Path(model)
    proto, spans = read_model(path)
    return _located(proto, path, name or network_name(path), shapes, outputs, spans)


def _located(
    proto: onnx.ModelProto,
    path: Path | None,
    name: str,
    shapes: Shapes,
    outputs: Sequence[str] | None,
    spans: Mapping[int, Span] | None = None,
) -> Module:
    """Import, with the file in every error."""
    try:
        return _Importer(proto, path, name, spans or {}).run(shapes, outputs)
    except BMError as error:
        for each in (error, *(error.refusals if isinstance(error, UnsupportedError) else ())):
            each.reason, each.remedy = _one_line(each.reason), _one_line(each.remedy or "") or None
            each.layer, each.kind = _one_line(each.layer or "") or None, _one_line(each.kind or "") or None
        raise error.located(file=path) from error.__cause__


def _one_line(text: str) -> str:
    """Names come from the file and may hold line breaks; messages must not."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class _Importer:
    def __init__(self, model: onnx.ModelProto, path: Path | None, name: str, spans: Mapping[int, Span]) -> None:
        self.opsets: Mapping[str, int] = check_model(model)
        self.functions = model_functions(model)
        self.callers: list[str] = []
        self.scopes: dict[str, int] = {}
        self.expanded = 0
        self.graph, self.folder = model.graph, path.parent if path is not None else None
        self.builder = Builder.new(name)
        self.tensors: dict[str, Tensor] = {}
        self.weights: dict[str, Value] = {}
        self.initializers = {tensor.name: tensor for tensor in self.graph.initializer}
        self.spans = {tensor.name: spans.get(i) for i, tensor in enumerate(self.graph.initializer)}
        self.names = sorted({name for node in self.graph.node for name in node.output})
        self.unmade: dict[str, str] = {}
        self.notes: list[str] = []
        self.refusals: dict[str, UnsupportedError] = {}
        self.lost: set[str] = set()
        """Results of refused nodes whose types nobody knows, and all that depends on them."""
        self.stated: dict[str, onnx.TypeProto] = {}
        self.plugin_remedy: str | None = None
        """What to do about an op without converter that is all that is refused."""

    def run(self, shapes: Shapes, wanted: Sequence[str] | None) -> Module:
        made = producers(self.graph)
        infos = [info for info in self.graph.input if info.name not in self.initializers]
        known = {*made, *self.initializers, *(info.name for info in infos)}
        outputs = output_tensors(self.graph, wanted, known)
        order = ordered_nodes(self.graph, made, outputs)
        read = {name for index in order for name in reads(self.graph.node[index])} | set(outputs)
        self._add_inputs(infos, shapes, read)
        if not shapes:
            self.stated = {info.name: info.type for info in (*self.graph.value_info, *self.graph.output)}
        self._add_nodes([self.graph.node[index] for index in order], outputs)
        return self._finish(outputs)

    def _add_nodes(self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> None:
        """Import the graph's nodes. Raises UnsupportedError for all that are refused; other errors end it at once."""
        refused = []
        for node in nodes:
            before = len(self.refusals)
            try:
                self._add_node(node)
            except BMError:
                if not self.refusals:
                    raise
                break  # it may be that the refused nodes' results differ from what stands in for them
            if len(self.refusals) > before:
                refused.append(node)
        if self.refusals:
            error = UnsupportedError.of_all(list(self.refusals.values()))
            ways = ways_on(nodes, refused, outputs, self.initializers) if error.refusals else self.plugin_remedy
            error.remedy = error.remedy or ways
            raise error

    # -- inputs and outputs -------------------------------------------------------------
    def _add_inputs(self, infos: Sequence[onnx.ValueInfoProto], shapes: Shapes, read: set[str]) -> None:
        names = [info.name for info in infos]
        if len(set(names)) != len(names) or "" in names:
            raise FileFormatError("two graph inputs have the same name, or one has none")
        given = shapes_by_name(shapes, names)
        for info in infos:
            if info.name in read:
                type = input_type(info, given.get(info.name), names, self.notes)
                self.tensors[info.name] = self.builder.input(info.name, type)

    def _finish(self, outputs: Sequence[str]) -> Module:
        values = [self._value(name, self._tensor(name, "the graph's output")) for name in outputs]
        module = self.builder.outputs(values, outputs)
        erase_dead(module.main)
        used = {op.attributes["key"] for op in module.walk() if op.name == WEIGHT}
        for key in [key for key in module.weights if key not in used]:
            del module.weights[key]
        self.notes += padding_notes(module)
        if self.notes:
            module.attributes["notes"] = tuple(self.notes)
        return module

    def _tensor(self, name: str, reader: str) -> Tensor:
        if name not in self.tensors:
            if name in self.unmade:
                raise UnsupportedError(
                    f"tensor '{name}', read as {reader}, is {self.unmade[name]}, which is not supported"
                )
            if name not in self.initializers:
                raise FileFormatError(f"tensor '{name}', read as {reader}, is made by no node and given by no input")
            self.tensors[name] = to_array(self.initializers[name], self.folder, self.spans[name])
        return self.tensors[name]

    def _value(self, name: str, tensor: Tensor) -> Value:
        if isinstance(tensor, Value):
            return tensor
        if tensor.dtype.name in NARROW:
            raise UnsupportedError(f"tensor '{name}' is of type {tensor.dtype.name}, which only DequantizeLinear reads")
        if name not in self.weights:
            self.weights[name] = self.builder.weight(tensor, name)
        return self.weights[name]

    # -- nodes --------------------------------------------------------------------------
    def _add_node(self, proto: onnx.NodeProto) -> None:
        """Import a node, or note that it is refused. What depends on a lost result is left out."""
        if self.lost.intersection(reads(proto) if self.lost else ()):
            self.lost.update(proto.output)
            if not is_unknown(proto, self.opsets, self.functions):
                return
        try:
            self._import_node(proto)
        except UnsupportedError as error:
            self.refusals.setdefault(str(error), error)
            self._stand_in(proto)

    def _stand_in(self, proto: onnx.NodeProto) -> None:
        """Give a refused node's results values of their types, so that the nodes behind it are looked at, too."""
        opset = self.opsets.get(domain_of(proto), 1)
        operands = [value for name in proto.input if isinstance(value := self.tensors.get(name), Value)]
        types = result_types(proto, opset, self.tensors, self.stated) if operands else {}
        for name, type in types.items():
            self.tensors[name] = self.builder.append(Operation("refused", operands, [type])).result
        self.lost.update(name for name in proto.output if name not in types)

    def _import_node(self, proto: onnx.NodeProto) -> None:
        label = self.callers[0] if self.callers else node_name(proto)
        domain = domain_of(proto)
        opset = self.opsets.get(domain, 1)
        try:
            with self.builder.at(label):
                bodies = self._convert(proto, label, domain, opset)
        except BMError as error:
            error.layer, error.kind = label, f"{proto.op_type}, opset {opset}"
            raise
        if bodies is not None:
            self.callers.append(label)
            try:
                self._expand(proto, label, bodies)
            finally:
                self.callers.pop()

    def _expand(self, proto: onnx.NodeProto, label: str, bodies: Iterator[Body]) -> None:
        """Import what a node stands for. Raises FileFormatError when it stands for itself."""
        if len(self.callers) > _MAX_DEPTH:
            raise FileFormatError(
                f"calls more than {_MAX_DEPTH} functions in one another", layer=label, kind=proto.op_type
            )
        before = self.opsets
        for body in self._labelled(bodies, label, proto.op_type):
            self.expanded += len(body.nodes)
            if self.expanded > _MAX_EXPANDED:
                raise UnsupportedError(
                    f"functions and loops stand for more than {_MAX_EXPANDED} nodes", layer=label, kind=proto.op_type
                )
            self.opsets = {**before, **body.opsets}
            for node in body.nodes:
                self._add_node(node)
            self.opsets = before
            if self.lost.intersection(name for node in body.nodes for name in node.output):
                self.lost.update(name for name in proto.output if name not in self.tensors)
                break

    def _labelled(self, bodies: Iterator[Body], label: str, kind: str) -> Iterator[Body]:
        """The bodies; what is wrong with the node itself is found while they are made."""
        while True:
            try:
                body = next(bodies)
            except StopIteration:
                return
            except BMError as error:
                raise error.located(layer=label, kind=kind) from None
            yield body

    def _scope(self, label: str) -> str:
        """A prefix for new tensor names, used once."""
        while True:
            count = self.scopes[label] = self.scopes.get(label, 0) + 1
            scope = label if count == 1 else f"{label}#{count}"
            place = bisect_left(self.names, f"{scope}/")
            if place == len(self.names) or not self.names[place].startswith(f"{scope}/"):
                return scope

    def _convert(self, proto: onnx.NodeProto, label: str, domain: str, opset: int) -> Iterator[Body] | None:
        """Build one node, or return the bodies it stands for."""
        names = list(proto.input)
        while names and not names[-1]:
            names.pop()
        if not self.lost.isdisjoint(names):
            raise no_converter(proto, opset)
        tensors = [self._tensor(name, f"input {i}") if name else None for i, name in enumerate(names)]
        node = Node(proto, label, opset, tensors, materialize=self._value, folder=self.folder)
        constant = not any(isinstance(tensor, Value) for tensor in tensors)
        called = (domain, proto.op_type, proto.overload) in self.functions
        folder = None if called else find_folder(domain, proto.op_type, constant)
        converter = None if called else find_converter(domain, proto.op_type, opset)
        results: list[Tensor]
        if folder is not None:
            results = fold(folder, node)
        elif converter is not None:
            results = self._build(converter, node, constant)
        elif not domain and proto.op_type in UNROLLERS:
            return UNROLLERS[proto.op_type](node, self._scope(label), self.tensors)
        else:
            scope = self._scope(f"{label}/{proto.op_type}" if self.callers else label)
            body = find_body(proto, opset, tensors, self.functions, scope)
            if body is None:
                raise self._no_converter(node, domain)
            return iter((body,))
        if node.unread:
            raise UnsupportedError(f"attribute '{node.unread[0]}' is not supported")
        self._record(proto, results)
        return None

    def _no_converter(self, node: Node, domain: str) -> UnsupportedError:
        moving = [n for n, t in zip(node.proto.input, node.tensors) if isinstance(t, Value)]
        cut = f"cut the net before it with {spelled('outputs', moving)}, or " if moving else ""
        if find_folder(domain, node.type, constant=True) is not None:
            return UnsupportedError(
                "this op is only supported where all its inputs are constants",
                remedy=f"give fixed {spelled('shapes')}, {cut}install a plugin (entry point group {CUSTOM_GROUP})",
            )
        plugin = f"install a plugin that registers one in the entry point group {CUSTOM_GROUP}"
        self.plugin_remedy = self.plugin_remedy or cut + plugin + failure_note(CUSTOM_GROUP)
        return no_converter(node.proto, node.opset)

    def _build(self, converter: Converter, node: Node, constant: bool) -> list[Tensor]:
        """Run a converter. On constant inputs its ops are evaluated at once where the results are small enough."""
        function = self.builder.function
        mark = len(function.ops)
        made = run_converter(converter, node, self.builder)
        results = list(made) if isinstance(made, tuple) else [made]
        ops = function.ops[mark:]
        for op in ops:
            self._check_op(op)
        arrays = [tensor for tensor in node.tensors if isinstance(tensor, np.ndarray)]
        blocks = any(isinstance(op, DequantizeLinear) and op.in_blocks for op in ops)  # a product may take them so
        if not constant or blocks or sum(r.type.size for op in ops for r in op.results) > 4 * growth_limit(arrays):
            return results
        known: dict[Value, np.ndarray] = {}
        for value in self.weights.values():
            known[value] = self.builder.module.weights[_operation(value).attributes["key"]]
        for op in ops:
            if op.name == WEIGHT:
                known[op.result] = self.builder.module.weights[op.attributes["key"]]
            else:
                known.update(zip(op.results, map(np.asarray, evaluate_op(op, [known[v] for v in op.operands]))))
        return [known[r] if isinstance(r, Value) else r for r in results]

    def _record(self, proto: onnx.NodeProto, results: Sequence[Tensor]) -> None:
        for index, name in enumerate(proto.output):
            if index >= len(results):
                self.unmade[name] = f"output {index} of node '{node_name(proto)}' ({proto.op_type})"
        for name, tensor in zip(proto.output, results):
            if name:
                self.tensors[name] = tensor
        named = {t: n for n, t in zip(proto.output, results) if n and isinstance(t, Value)}
        for op in {value.op: None for value in named}:
            if op is None or TENSOR_NAME in op.attributes or op.location != self.builder.location:
                continue
            names = tuple(named.get(result, "") for result in op.results)
            op.attributes[TENSOR_NAME] = names if len(names) > 1 else names[0]

    def _check_op(self, op: Operation) -> None:
        """Refuse what TensorOps cannot do in ONNX's sense: element types, saturating integers, absurd sizes."""
        for result in op.results:
            check_extent(op.label, result.shape)
        if not isinstance(op, TensorOp):
            return
        try:
            op.check_all()
        except VerifyError as error:
            raise UnsupportedError(error.reason) from None
        types = {result.dtype for result in op.results if result.type.is_integer}
        exact = isinstance(op, (Arithmetic, Reduce)) and (op.wrap or types == {"i32"})
        if op.saturates and types and not exact:
            raise UnsupportedError(f"computing with elements of type {', '.join(types)} is not supported")


def _operation(value: Value) -> Operation:
    if value.op is None:
        raise ValueError("a weight is always made by an op")
    return value.op
