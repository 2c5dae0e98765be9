"""All layers at once that nothing here can import, and where the net can be cut so that none is left."""

from __future__ import annotations

from collections.abc import Sequence

from bmcompiler.errors import BMError, UnsupportedError
from bmcompiler.frontends.caffe.graph import INPUT_TYPES, Graph, Ref
from bmcompiler.frontends.caffe.layer import GROUP, REFUSED, find_converter, nearest_types
from bmcompiler.plugins.registry import failure_note
from bmcompiler.text import some_names


def refuse_unknown(graph: Graph, needed: Sequence[int], outputs: Sequence[Ref]) -> None:
    """Raise UnsupportedError that names every layer of an unknown type, when several layers of the net have one.

    A single one is left to the importer, which knows its reason.

    Args:
        graph: the net.
        needed: indices of the nodes that its outputs depend on.
        outputs: those outputs.
    """
    unknown = [index for index in needed if _is_unknown(graph.nodes[index].layer.type)]
    if len(unknown) < 2:
        return
    layers: dict[str, list[str]] = {}
    for index in unknown:
        layer = graph.nodes[index].layer
        layers.setdefault(layer.type, []).append(layer.name)
    listed = "; ".join(f"{_described(kind)} in {some_names(names)}" for kind, names in layers.items())
    what = "this layer type is" if len(layers) == 1 else f"{len(layers)} layer types are"
    error = UnsupportedError(f"{what} not supported: {listed}", file=graph.path)
    raise with_remedy(error, graph, unknown, outputs)


def with_remedy(error: BMError, graph: Graph, refused: Sequence[int], outputs: Sequence[Ref]) -> BMError:
    """Give an error about some nodes the ways on: a cut of the net that leaves them all out, or a plugin."""
    cut = graph.cut_before(refused, outputs)
    it, layer = ("it", "a custom layer") if len(refused) == 1 else ("them", "custom layers")
    way = f"pass --outputs {','.join(cut)} to end the net before {it}, or " if cut else ""
    error.remedy = f"{way}register {layer} through the entry point group '{GROUP}'" + failure_note(GROUP)
    return error


def _is_unknown(kind: str) -> bool:
    return kind not in INPUT_TYPES and (kind in REFUSED or find_converter(kind) is None)


def _described(kind: str) -> str:
    near = [] if kind in REFUSED else nearest_types(kind)
    return f"{kind} (nearest supported: {', '.join(near)})" if near else kind
