"""`import_caffe`: files -> graph -> TensorOp IR.

All layers at once that nothing here can import, and where the net can be cut so that none is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

from bmcompiler.errors import BMError, FileFormatError, ShapeError, UnsupportedError
from bmcompiler.files.store import StrPath
from bmcompiler.frontend import network_name
from bmcompiler.frontends.caffe.files import NetFile, order_files, read_net
from bmcompiler.frontends.caffe.graph import INPUT_TYPES, Graph, Node, Ref, build_graph, locate, log
from bmcompiler.frontends.caffe.inputs import Shape, UserShapes, input_shapes
from bmcompiler.frontends.caffe.layer import (
    GROUP,
    MAX_ELEMENTS,
    REFUSED,
    Converter,
    Layer,
    find_converter,
    nearest_types,
    run_converter,
)
from bmcompiler.frontends.caffe.upgrade import upgrade_net
from bmcompiler.frontends.caffe.weights import Blob, read_weights
from bmcompiler.ir import Module, Operation, TensorType, Value, erase_dead
from bmcompiler.ir.keys import TENSOR_NAME, WEIGHT
from bmcompiler.ops.builder import Builder
from bmcompiler.plugins.registry import failure_note
from bmcompiler.spelling import spelled


def with_remedy(error: BMError, graph: Graph, refused: Sequence[int], outputs: Sequence[Ref]) -> BMError:
    """Give an error about some nodes the ways on: a cut of the net that leaves them all out, or a plugin."""
    cut = graph.cut_before(refused, outputs)
    it, layer = ("it", "a custom layer") if len(refused) == 1 else ("them", "custom layers")
    way = f"pass {spelled('outputs', cut)} to end the net before {it}, or " if cut else ""
    error.remedy = f"{way}register {layer} through the entry point group '{GROUP}'" + failure_note(GROUP)
    return error


def _is_unknown(kind: str) -> bool:
    return kind not in INPUT_TYPES and (kind in REFUSED or find_converter(kind) is None)


_STRUCTURE = "give the .prototxt of the net beside it (a .caffemodel alone holds the net as it was trained)"


def import_caffe(
    prototxt: StrPath,
    caffemodel: StrPath | None = None,
    *,
    shapes: UserShapes = None,
    outputs: Sequence[str] | None = None,
    name: str | None = None,
) -> Module:
    """Read a Caffe net as TensorOp IR with float32 inputs and weights.

    Args:
        prototxt: structure (text). The two files may come in either order; a .caffemodel alone holds the structure too.
        caffemodel: trained weights, matched by layer name.
        shapes: input shapes instead of the file's, in input order or by input name. Needed where the file has none.
        outputs: blob (or layer) names to end the net at, in this order. Default: every blob that nothing reads.
        name: name of the net; default: the file's.

    The TEST phase is imported. Losses and metrics are dropped, so a training file's net ends at what they read; data
    layers become inputs that take the data as it is after the layer's own transform.

    Raises:
        FileFormatError: malformed, truncated or inconsistent files. ShapeError: shapes that do not fit together.
        UnsupportedError: a layer type or setting without converter. UsageError: arguments that do not fit the net.
    """
    path, weights_path = order_files(prototxt, caffemodel)
    source = read_net(path)
    source_layers: list[Any] = [*source.net.layer, *source.net.layers]
    if weights_path is None and any(layer.blobs for layer in source_layers):
        weights_path = path
    try:
        return _imported(source, weights_path, shapes, outputs, name)
    except BMError as error:
        if weights_path == path:
            error.remedy = " or ".join(filter(None, (_STRUCTURE, error.remedy)))
        raise


def _imported(
    source: NetFile, weights_path: Path | None, shapes: UserShapes, outputs: Sequence[str] | None, name: str | None
) -> Module:
    path = source.path
    upgrade_net(source.net, path)
    graph = build_graph(source.net, source.notes, path)
    chosen = graph.find_outputs(list(outputs) if outputs is not None else None)
    needed = graph.needed(chosen.values())
    read = {ref for i in needed for ref in graph.nodes[i].bottoms if isinstance(ref, Ref)} | set(chosen.values())
    inputs = input_shapes(graph, read, shapes)
    weights = read_weights(weights_path) if weights_path is not None else {}
    return _Importer(graph, needed, inputs, weights, weights_path).run(
        chosen, name or source.net.name or network_name(path)
    )


class _Importer:
    def __init__(
        self,
        graph: Graph,
        needed: list[int],
        inputs: dict[Ref, Shape],
        weights: dict[str, list[Blob]],
        weights_path: Path | None,
    ) -> None:
        self.graph, self.needed, self.inputs = graph, needed, inputs
        self.weights, self.weights_path = weights, weights_path
        self.values: dict[Ref, Value] = {}

    def run(self, outputs: dict[str, Ref], name: str) -> Module:
        self._check_unique_names()
        b = Builder.new(name)
        refusals = self._add_nodes(b)
        if refusals:
            error: BMError = UnsupportedError.of_all(list(refusals.values()))
            if error.remedy is None:
                error = with_remedy(error, self.graph, list(refusals), list(outputs.values()))
            raise error.located(file=self.graph.path)
        self._name_tensors(b.function.input_names)
        module = b.outputs([self.values[ref] for ref in outputs.values()], list(outputs))
        erase_dead(module.main)
        used = {op.attributes["key"] for op in module.main.ops if op.name == WEIGHT}
        for key in set(module.weights) - used:
            del module.weights[key]
        return module

    def _add_nodes(self, b: Builder) -> dict[int, UnsupportedError]:
        """Import the nodes; those that are refused, with the reason. Other errors end it at once.

        Behind a refused layer those are looked at that read what it changes in place, and those of unknown types.
        """
        refusals: dict[int, UnsupportedError] = {}
        for index in self.needed:
            node = self.graph.nodes[index]
            read = [ref for ref in node.bottoms if isinstance(ref, Ref)]
            if not self.values.keys() >= set(read) and not _is_unknown(node.layer.type):
                continue
            try:
                with b.at(node.layer.name):
                    self._node(b, index, node)
            except UnsupportedError as error:
                refusals[index] = error
                locate(error, self.graph.path, node.layer)
                before = dict(zip(node.layer.bottom, read))
                for i, top in enumerate(node.layer.top):
                    if before.get(top) in self.values:
                        self.values[Ref(index, i)] = self.values[before[top]]
            except BMError as error:
                if not refusals:
                    raise locate(error, self.graph.path, node.layer) from None
                break  # it may be that a refused layer's results differ from what stands in for them
        return refusals

    def _node(self, b: Builder, index: int, node: Node) -> None:
        refs = [Ref(index, i) for i in range(len(node.layer.top))]
        arguments = [ref for ref in refs if ref in self.inputs]
        if arguments or node.layer.type in INPUT_TYPES:
            for ref in arguments:
                self.values[ref] = b.input(node.layer.top[ref.index], TensorType(self.inputs[ref]))
            return
        convert = find_converter(node.layer.type)
        if convert is None:
            near = nearest_types(node.layer.type)
            hint = f"; the nearest supported types: {', '.join(near)}" if near else ""
            raise UnsupportedError(f"layers of type '{node.layer.type}' are not supported{hint}")
        self._report_unread(node, convert)
        inputs = [self.values[ref] for ref in node.bottoms if ref in self.values]
        blobs = self.weights.get(node.layer.name)
        made = run_converter(
            convert, Layer(node.layer, inputs, blobs, b, extra=node.extra, weights_file=self.weights_path)
        )
        values = [made] if isinstance(made, Value) else list(made)
        if len(values) != len(refs):
            raise FileFormatError(f"has {len(refs)} tops, its type makes {len(values)}")
        for value in values:
            if not 0 < prod(value.shape) <= MAX_ELEMENTS:
                raise ShapeError(f"result of shape {list(value.shape)} is empty or larger than {MAX_ELEMENTS} elements")
        self.values.update(zip(refs, values))

    def _report_unread(self, node: Node, convert: Converter) -> None:
        """Settings unknown to the schema; a plugin's converter may read them itself."""
        if node.extra and getattr(convert, "__module__", "").startswith("bmcompiler."):
            fields = ", ".join(node.extra)
            log.warning("%s: layer '%s': unknown settings are ignored: %s", self.graph.path, node.layer.name, fields)

    def _check_unique_names(self) -> None:
        """Weights go by layer name, so two layers with weights cannot share one."""
        seen: set[str] = set()
        for index in self.needed:
            layer = self.graph.nodes[index].layer
            if layer.name in seen and layer.name in self.weights:
                raise FileFormatError(
                    "two layers with weights have this name", file=self.graph.path, layer=layer.name, kind=layer.type
                )
            seen.add(layer.name)

    def _name_tensors(self, input_names: Sequence[str]) -> None:
        """Note blob names on the producing ops; of several names of one value the first."""
        names: dict[Operation, list[str]] = {}
        for ref, value in self.values.items():
            name, op = self.graph.name_of(ref), value.op
            if not name or op is None or op.name == WEIGHT or name in input_names:
                continue
            of_op = names.setdefault(op, [""] * len(op.results))
            of_op[value.index] = of_op[value.index] or name
        for op, found in names.items():
            op.attributes[TENSOR_NAME] = found[0] if len(found) == 1 else tuple(found)
