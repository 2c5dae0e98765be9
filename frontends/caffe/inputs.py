"""Shapes of the net's inputs: from the file, from what data layers say, or from the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from bmcompiler.errors import BMError, ShapeError, UnsupportedError, UsageError
from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.frontends.caffe.graph import INPUT_TYPES, Graph, Ref, locate
from bmcompiler.frontends.caffe.layer import MAX_ELEMENTS
from bmcompiler.spelling import spelled

Shape = tuple[int, ...]
UserShapes = Sequence[Sequence[int]] | Mapping[str, Sequence[int]] | None


def input_shapes(graph: Graph, read: set[Ref], given: UserShapes) -> dict[Ref, Shape]:
    """Shape of every blob in `read` that is an input, in file order.

    DummyData is an input where the user names it. Raises UsageError (names or counts that do not fit), ShapeError,
    UnsupportedError (no shape known).
    """
    refs = [Ref(n, i) for n, node in enumerate(graph.nodes) for i in range(len(node.layer.top))]
    inputs = {_top(graph, ref): ref for ref in refs if _layer(graph, ref).type in INPUT_TYPES}
    dummies = {_top(graph, ref): ref for ref in refs if _layer(graph, ref).type == "DummyData"}
    wanted = _by_name(graph, [n for n, ref in inputs.items() if ref in read], list(inputs), [*dummies], given)
    inputs.update({name: ref for name, ref in dummies.items() if name in wanted})
    shapes: dict[Ref, Shape] = {}
    for name, ref in sorted(inputs.items(), key=lambda item: (item[1].node, item[1].index)):
        if ref not in read:
            continue
        try:
            shapes[ref] = _shape(_layer(graph, ref), ref.index, wanted.get(name))
        except BMError as error:
            raise locate(error, graph.path, _layer(graph, ref)) from None
    return shapes


def _by_name(
    graph: Graph, needed: list[str], inputs: list[str], dummies: list[str], given: UserShapes
) -> dict[str, Shape]:
    if given is None:
        return {}
    if isinstance(given, Mapping):
        for name in given:
            if name not in inputs and name not in dummies:
                raise UsageError(
                    f"has no input called '{name}'; inputs: {', '.join(inputs) or 'none'}", file=graph.path
                )
        return {name: tuple(shape) for name, shape in given.items()}
    names = needed if len(given) <= len(needed) else inputs
    if len(given) > len(names):
        raise UsageError(f"got {len(given)} shapes for {len(names)} inputs ({', '.join(names)})", file=graph.path)
    return {name: tuple(shape) for name, shape in zip(names, given)}


def _shape(layer: caffe_pb2.LayerParameter, index: int, given: Shape | None) -> Shape:
    stated = _stated(layer, index)
    if given is not None:
        if stated and len(stated) != len(given):
            raise ShapeError(f"input '{layer.top[index]}' has {len(stated)} axes {list(stated)}, got {list(given)}")
        stated = given
    if not stated or min(stated) < 1:
        known = f" (the file says {list(stated)})" if stated else ""
        raise UnsupportedError(
            f"input '{layer.top[index]}' has no fixed shape{known}", remedy=f"give it with {spelled('shapes')}"
        )
    if prod(stated) > MAX_ELEMENTS:
        raise ShapeError(f"input '{layer.top[index]}' of shape {list(stated)} is larger than {MAX_ELEMENTS} elements")
    return stated


def _stated(layer: caffe_pb2.LayerParameter, index: int) -> Shape:
    """What the file says, () for nothing. Data layers: batch 1, and the size of the crop that training took."""
    if layer.type == "Input":
        shapes = layer.input_param.shape
        of_top = 0 if len(shapes) == 1 else index  # one shape stands for all tops
        return tuple(shapes[of_top].dim) if of_top < len(shapes) else ()
    if layer.type == "MemoryData" and index == 0:
        p = layer.memory_data_param
        return (p.batch_size, p.channels, p.height, p.width)
    t = layer.transform_param
    legacy = (layer.data_param.crop_size, layer.image_data_param.crop_size, layer.window_data_param.crop_size)
    size = (t.crop_h, t.crop_w) if t.crop_h and t.crop_w else (max(t.crop_size, *legacy),) * 2
    if index or not all(size):
        return ()
    gray = t.force_gray or len(t.mean_value) == 1 or not layer.image_data_param.is_color
    return (1, 1 if gray else 3, *size)


def _layer(graph: Graph, ref: Ref) -> caffe_pb2.LayerParameter:
    return graph.nodes[ref.node].layer


def _top(graph: Graph, ref: Ref) -> str:
    return _layer(graph, ref).top[ref.index]
