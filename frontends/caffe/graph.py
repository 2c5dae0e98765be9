"""What runs at inference and in which order: phases, training-only layers, names resolved to producers.

Caffe blobs are mutable: an in-place layer writes its bottom again. Here every write is a `Ref` of its own, so later
steps see plain data flow.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bmcompiler.errors import BMError, FileFormatError, UsageError
from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.frontends.caffe.textformat import LayerNotes, Tree
from bmcompiler.spelling import spelled

log = logging.getLogger(__name__)

DATA_TYPES = frozenset(
    {"Data", "ImageData", "MemoryData", "HDF5Data", "WindowData", "AnnotatedData", "VideoData", "ImageSegData"}
)
INPUT_TYPES = DATA_TYPES | {"Input"}
# losses, metrics and sinks: dropped, their first bottom becomes an output where nothing else reads it
TRAINING_TYPES = frozenset(
    {"Accuracy", "SoftmaxWithLoss", "SigmoidCrossEntropyLoss", "EuclideanLoss", "HingeLoss", "ContrastiveLoss",
     "InfogainLoss", "MultinomialLogisticLoss", "SmoothL1Loss", "MultiBoxLoss", "DetectionEvaluate", "HDF5Output"}
)  # fmt: skip
_SINK_TYPES = frozenset({"Silence"})  # reads on purpose: what it reads is no output


@dataclass(frozen=True)
class Ref:
    """One write of a blob: top `index` of node `node`."""

    node: int
    index: int


@dataclass(frozen=True)
class Undefined:
    """A bottom that nothing before the layer writes; an error only if the layer is needed."""

    name: str
    reason: str


@dataclass
class Node:
    """A source layer with its bottoms resolved."""

    layer: caffe_pb2.LayerParameter
    bottoms: list[Ref | Undefined]
    extra: Tree = field(default_factory=dict)


@dataclass
class Graph:
    """Layers that run at inference, in file order, and where each blob name points at the end of the net."""

    path: Path
    nodes: list[Node]
    final: dict[str, Ref]
    default_outputs: list[str]

    def needed(self, outputs: Iterable[Ref]) -> list[int]:
        """Indices of the nodes `outputs` depend on, in file order. Raises FileFormatError for an undefined bottom."""
        seen: set[int] = set()
        work = [ref.node for ref in outputs]
        while work:
            index = work.pop()
            if index in seen:
                continue
            seen.add(index)
            for bottom in self.nodes[index].bottoms:
                if isinstance(bottom, Undefined):
                    layer = self.nodes[index].layer
                    raise FileFormatError(
                        f"bottom '{bottom.name}' {bottom.reason}", file=self.path, layer=layer.name, kind=layer.type
                    )
                work.append(bottom.node)
        return sorted(seen)

    def find_outputs(self, names: Sequence[str] | None) -> dict[str, Ref]:
        """Output name -> its write. A name is a blob, else a layer (its first top). Raises UsageError for others."""
        chosen = list(names) if names is not None else self.default_outputs
        if len(set(chosen)) != len(chosen):
            raise UsageError(f"an output is named twice in {', '.join(chosen)}", file=self.path)
        if not chosen:
            raise UsageError("the net has no output", file=self.path, remedy=f"name one with {spelled('outputs')}")
        layers = {node.layer.name: Ref(i, 0) for i, node in enumerate(self.nodes) if node.layer.top}
        found = {}
        for name in chosen:
            ref = self.final.get(name) or layers.get(name)
            if ref is None:
                near = difflib.get_close_matches(name, [*self.final, *layers], 3, 0.4)
                remedy = f"name one of the net's blobs, such as {', '.join(near or list(self.final)[-3:])}"
                raise UsageError(f"has no blob or layer called '{name}'", file=self.path, remedy=remedy)
            found[name] = ref
        return found

    def name_of(self, ref: Ref) -> str | None:
        """Blob name of a write, when it is the blob's last one (an in-place layer takes the name over)."""
        name = self.nodes[ref.node].layer.top[ref.index]
        return name if self.final.get(name) == ref else None

    def cut_before(self, refused: Collection[int], outputs: Iterable[Ref]) -> list[str]:
        """Blob names that, as outputs, leave these nodes out: what is made without them and read behind them.

        Of `outputs` those stay that need no refused node.
        """
        behind: set[int] = set()
        frontier: dict[Ref, None] = {}
        for index, node in enumerate(self.nodes):
            read = [ref for ref in node.bottoms if isinstance(ref, Ref)]
            if index in refused or any(ref.node in behind for ref in read):
                behind.add(index)
                frontier.update((ref, None) for ref in read if ref.node not in behind)
        stay = [ref for ref in outputs if ref.node not in behind]
        return self._names_at([*frontier, *stay])

    def _names_at(self, refs: list[Ref]) -> list[str]:
        """Blob names of values; of one whose name an in-place layer took over, the names of what it was made of."""
        names: dict[str, None] = {}
        seen: set[int] = set()
        while refs:
            ref = refs.pop(0)
            if self.nodes[ref.node].layer.type in INPUT_TYPES:
                continue
            name = self.name_of(ref)
            if name is not None:
                names[name] = None
            elif ref.node not in seen:
                seen.add(ref.node)
                refs += [b for b in self.nodes[ref.node].bottoms if isinstance(b, Ref)]
        return list(names)


def build_graph(net: caffe_pb2.NetParameter, notes: Sequence[LayerNotes], path: Path) -> Graph:
    """Keep the TEST phase layers of an upgraded net and resolve their blobs.

    Raises:
        FileFormatError: a layer without name or type, or a blob written by two layers.
    """
    extras = _extras(net, notes)
    nodes: list[Node] = []
    final: dict[str, Ref] = {}
    dropped: dict[str, str] = {}
    read: dict[str, None] = {}
    kept = [i for i, layer in enumerate(net.layer) if runs_at_inference(layer, net.state)]
    later = {top: net.layer[i].name for i in reversed(kept) for top in net.layer[i].top}
    for layer, extra in ((net.layer[i], extras[i]) for i in kept):
        if not layer.type:
            raise FileFormatError("has no (known) type", file=path, layer=layer.name)
        if layer.type in TRAINING_TYPES:
            _drop(layer, final, dropped, path)
            continue
        bottoms = [final.get(b) or _undefined(b, layer.name, later, dropped) for b in layer.bottom]
        if layer.type in _SINK_TYPES:
            read.update(dict.fromkeys(layer.bottom))
            continue
        for top in layer.top:
            if top in final and top not in layer.bottom:
                first = nodes[final[top].node].layer.name
                raise FileFormatError(
                    f"writes blob '{top}', which layer '{first}' writes already",
                    file=path,
                    layer=layer.name,
                    kind=layer.type,
                )
        if len(set(layer.top)) != len(layer.top):
            raise FileFormatError("has two tops of one name", file=path, layer=layer.name, kind=layer.type)
        read.update(dict.fromkeys(layer.bottom))
        for i, top in enumerate(layer.top):
            read.pop(top, None)
            final[top] = Ref(len(nodes), i)
        nodes.append(Node(layer, list(bottoms), extra))
    outputs = [n for n, ref in final.items() if n not in read and nodes[ref.node].layer.type not in INPUT_TYPES]
    return Graph(path, nodes, final, outputs)


def runs_at_inference(layer: caffe_pb2.LayerParameter, state: caffe_pb2.NetState) -> bool:
    """Caffe's include/exclude rules with the net's level and stages, in the TEST phase."""
    if layer.include:
        return any(_meets(rule, state) for rule in layer.include)
    return not any(_meets(rule, state) for rule in layer.exclude)


def _meets(rule: caffe_pb2.NetStateRule, state: caffe_pb2.NetState) -> bool:
    if rule.HasField("phase") and rule.phase != caffe_pb2.TEST:
        return False
    if rule.HasField("min_level") and state.level < rule.min_level:
        return False
    if rule.HasField("max_level") and state.level > rule.max_level:
        return False
    return set(rule.stage) <= set(state.stage) and not set(rule.not_stage) & set(state.stage)


def _drop(layer: caffe_pb2.LayerParameter, final: dict[str, Ref], dropped: dict[str, str], path: Path) -> None:
    dropped.update(dict.fromkeys(layer.top, f"is made by '{layer.name}' ({layer.type}), which only training has"))
    first = next((b for b in layer.bottom if b in final), None)
    becomes = f"; its input '{first}' stays" if first else ""
    log.info("%s: layer '%s' (%s) is for training only and was dropped%s", path, layer.name, layer.type, becomes)


def _undefined(name: str, reader: str, later: dict[str, str], dropped: dict[str, str]) -> Undefined:
    if name in dropped:
        return Undefined(name, dropped[name])
    if name in later:
        where = "itself" if later[name] == reader else f"the later layer '{later[name]}'"
        return Undefined(name, f"is written only by {where}: the layers form a cycle or are out of order")
    near = difflib.get_close_matches(name, later, 1)
    return Undefined(name, "is written by no layer" + (f" (did you mean '{near[0]}'?)" if near else ""))


def _extras(net: caffe_pb2.NetParameter, notes: Sequence[LayerNotes]) -> list[Tree]:
    """Unknown fields per layer; the upgrade may have put one Input layer in front (or taken V0 padding away)."""
    extras: list[Tree] = [note.extra for note in notes]
    missing = len(net.layer) - len(extras)
    return [{}] * len(net.layer) if not extras or missing < 0 else [{}] * missing + extras


def locate(error: BMError, path: Path, layer: caffe_pb2.LayerParameter) -> BMError:
    """Say which file and layer an error is about, with the source type instead of the TensorOp's."""
    error.file = error.file if error.file is not None else path
    error.layer, error.kind = layer.name, layer.type
    return error
