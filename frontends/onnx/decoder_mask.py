"""Masks that a graph computes itself, before an Attention: known by what comes out of them, not by how they are made.

Exporters write a causal mask in many forms (Trilu, Range and Greater, Where, sums of large negative numbers, gathered
rows of `attention_mask`). Its nodes are computed, for a whole prompt, for tokens behind others and for the last token
of all: where each token sees itself and those before it, or the same number of those, the mask says what the bundle's
own programs do anyhow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from bmcompiler.frontends.onnx.decoder_graph import DecoderGraph
from bmcompiler.frontends.onnx.decoder_weights import GATHERS
from bmcompiler.numeric.arrays import Array, Mask

_HIDDEN = -1e4
"""A term of a score that hides a token; exporters take this, the least number of a type, or minus infinity."""
_WHOLE = 4096
"""Tokens of the longest prompt of which a mask is computed, all rows at once, where a graph has no cache."""
_MICROSOFT = "com.microsoft"


class _Case(NamedTuple):
    """A launch: tokens behind `first` others, a cache with room for `room`."""

    tokens: int
    first: int
    room: int


def window_of(graph: DecoderGraph, node: onnx.NodeProto, positions: int) -> int | None:
    """Tokens that one sees by the mask of an Attention (input 3), itself included; None for all before it.

    positions: tokens that the model can read. Raises UnsupportedError: the mask is none of a causal attention, or
    depends on what is not known.
    """
    part = _Part(graph, node, node.input[3])
    causal, found = graph.node(node).flag("is_causal"), set()
    for case in part.cases(positions):
        distance = np.arange(case.first, case.first + case.tokens)[:, None] - np.arange(case.room)
        seen = part.seen(case) & ((distance >= 0) | (not causal))
        window = int(seen[-1].sum())
        if not np.array_equal(seen, (distance >= 0) & (distance < window)):
            graph.refuse(f"the mask '{node.input[3]}' is not causal: a token must see itself and those before it", node)
        found.add(None if window == case.first + case.tokens else window)
    narrow = found - {None}
    if len(narrow) > 1:
        graph.refuse(f"the mask '{node.input[3]}' shows other numbers of tokens to other tokens", node)
    return next(iter(narrow), None)


class _Part:
    """The nodes that make a mask, of the tokens' number and places, of `attention_mask` and of sizes of caches."""

    def __init__(self, graph: DecoderGraph, attention: onnx.NodeProto, mask: str) -> None:
        self.graph, self.attention, self.mask = graph, attention, mask
        self.inputs = {each.name: each for each in graph.graph.input if not graph.is_constant(each.name)}
        self.places = set(_places(graph))
        self.given: list[str] = []
        self.made: list[onnx.NodeProto] = []
        self.known: dict[str, Array] = {}
        self._walk()

    def cases(self, positions: int) -> Iterator[_Case]:
        """Launches that show each kind of row; without a cache whole prompts alone."""
        held = [shape[2] for shape in map(self._dims, self.inputs) if len(shape) == 4]
        room = min((size for size in held if size), default=0)
        rows = min(positions, room or positions)
        if not held and rows > _WHOLE:
            self.graph.refuse(
                f"a mask of {rows} tokens without a cache is not computed", self.attention, "export with a cache"
            )
        if not held:
            yield from (_Case(count, 0, count) for count in sorted({1, min(5, rows), rows}))
            return
        for tokens, first in ((min(5, rows), 0), (min(3, rows), min(4, max(rows - 3, 0))), (1, rows - 1)):
            yield _Case(tokens, first, room or first + tokens)

    def seen(self, case: _Case) -> Mask:
        """(tokens, room) that the mask shows, alike for all heads."""
        values = {name: self._value(name, case) for name in self.given}
        try:
            found = np.asarray(self._run(values))
        except Exception as error:  # of numpy, of any kind, by a graph that is wrong or has fixed other sizes
            self.graph.refuse(f"the mask '{self.mask}' cannot be computed ({type(error).__name__})", self.attention)
        if found.dtype != bool:
            if np.any((found != 0) & (found > _HIDDEN)):
                self.graph.refuse(f"the mask '{self.mask}' adds to scores, where it should hide", self.attention)
            found = found == 0
        whole = found.reshape(-1, *found.shape[-2:])
        wanted = (case.tokens, case.room)
        if any(have not in (1, want) for have, want in zip(whole.shape[1:], wanted)) or (whole != whole[:1]).any():
            self.graph.refuse(f"a mask of shape {list(found.shape)} is not supported", self.attention)
        return np.broadcast_to(whole[0], wanted)

    def _run(self, values: dict[str, Array]) -> Array:
        if self.mask in values:
            return values[self.mask]
        inputs = [helper.make_tensor_value_info(each, onnx.TensorProto.UNDEFINED, None) for each in values]
        output = helper.make_tensor_value_info(self.mask, onnx.TensorProto.UNDEFINED, None)
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.graph.opsets.items()]
        whole = helper.make_graph(self.made, "mask", inputs, [output])
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(helper.make_model(whole, opset_imports=opsets)).run(None, values | self.known)
        assert isinstance(found, list), "one value for each output"
        made: Array = found[0]
        return made

    def _walk(self) -> None:
        """Collect nodes from the mask backwards, and what they begin with."""
        todo, seen = [self.mask], {""}
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            node = self.graph.direct(name)
            if self.graph.is_constant(name):
                self.known[name] = self.graph.constant(name)
            elif node is None or (node.op_type in GATHERS and self.graph.is_constant(node.input[0])):
                self.given.append(name)
            else:
                self.made.append(node)
                todo += [*node.input, *_captured(node)]
        order = {id(node): place for place, node in enumerate(self.graph.graph.node)}
        self.made = sorted({id(node): node for node in self.made}.values(), key=lambda node: order[id(node)])

    def _dims(self, name: str) -> tuple[int, ...]:
        """0 for sizes that are not fixed."""
        return tuple(each.dim_value for each in self.inputs[name].type.tensor_type.shape.dim)

    def _value(self, name: str, case: _Case) -> Array:
        """What an input is where the launch is that of a case. Raises UnsupportedError for others."""
        node = self.graph.direct(name)
        if node is not None:  # rows of the table of embeddings, of which the shape alone may matter
            return np.zeros((1, case.tokens, 1), np.float32)
        info = self.inputs[name].type.tensor_type
        dtype, dims = helper.tensor_dtype_to_np_dtype(info.elem_type), self._dims(name)
        place = np.arange(case.first, case.first + case.tokens)
        if len(dims) == 4:
            return np.zeros((dims[0] or 1, dims[1] or 1, dims[2] or case.first, dims[3] or 1), dtype)
        if dtype.kind in "iub" and len(dims) == 2:
            if name in self.places:
                return place[None].astype(dtype)
            ids = any(node.op_type in GATHERS and node.input[1] == name for node in self.graph.graph.node)
            return np.ones((1, case.tokens if ids else dims[1] or case.first + case.tokens), dtype)
        if dtype.kind in "iu" and len(dims) == 1:
            return (place[:1] if dims[0] == 1 else place).astype(dtype)
        self.graph.refuse(f"the mask '{self.mask}' is not known before '{name}' is given", self.attention)


def _captured(node: onnx.NodeProto) -> Iterator[str]:
    """Tensors that the branches of a node take from around it."""
    for each in node.attribute:
        if each.type == onnx.AttributeProto.GRAPH:
            made = {name for inner in each.g.node for name in inner.output} | {tensor.name for tensor in each.g.input}
            made |= {tensor.name for tensor in each.g.initializer}
            for inner in each.g.node:
                yield from (name for name in (*inner.input, *_captured(inner)) if name not in made)


def _places(graph: DecoderGraph) -> Iterator[str]:
    """Inputs that hold the places of the tokens: rotary embeddings take rows of their tables by them."""
    for node in graph.graph.node:
        if node.op_type != "RotaryEmbedding":
            continue
        own = node.domain == _MICROSOFT
        tables = list(node.input[2:4] if own else node.input[1:3])
        indices = list(node.input[1:2] if own else node.input[3:4])
        makers = (graph.maker(name) for name in tables)
        indices += [maker.input[1] for maker in makers if maker is not None and maker.op_type == "Gather"]
        yield from map(graph.origin, indices)
