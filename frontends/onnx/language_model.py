"""Language models in the ops of ONNX Runtime GenAI: sizes and weights of each layer, by the structure of the graph.

A layer is what stands around a GroupQueryAttention: sums with norms behind them (`SkipSimplifiedLayerNormalization`),
products with constants (`MatMul`, `MatMulNBits`), rotary embedding in the attention or as ops of its own. Its own nets
for prompts and for one token are made of that, as of a folder; past and present of the graph are their caches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import onnx

from bmcompiler.frontends.onnx.decoder_attention import KINDS, Attention, attention_of
from bmcompiler.frontends.onnx.decoder_graph import DecoderGraph, Norm, Product
from bmcompiler.ir.types import FROM_NUMPY
from bmcompiler.llm.config import Architecture
from bmcompiler.llm.families import Family
from bmcompiler.llm.linear import LinearLayer
from bmcompiler.llm.model import LanguageModel, LayerWeights
from bmcompiler.llm.rotary import Rotary
from bmcompiler.numeric.arrays import Array, Floats, Indices

_GELU = {"Gelu": "gelu", "FastGelu": "gelu_tanh"}
_SILU = ("Silu", "Swish")


class _Branch(NamedTuple):
    """What a sum adds to the stream: a product, and perhaps a norm of it."""

    product: Product
    norm: Norm | None


class _Layer(NamedTuple):
    """A decoder layer, from its end to its beginning."""

    attention: Attention
    attention_norm: Norm
    out: _Branch
    mlp_norm: Norm
    gate: Product
    up: Product
    down: _Branch
    activation: str


@dataclass(frozen=True, eq=False)
class _Tables(Rotary):
    """A rotary embedding whose cosines and sines (positions, dims / 2) are given, shorter tables first."""

    pairs: tuple[tuple[Floats, Floats], ...] = ()

    __eq__, __hash__ = object.__eq__, object.__hash__

    def tables(self, rows: int) -> tuple[Floats, Floats]:
        """As long as the shortest that has all rows: models for longer texts rotate those otherwise."""
        cos, sin = next((pair for pair in self.pairs if len(pair[0]) >= rows), self.pairs[-1])
        return np.tile(cos[:rows], 2), np.tile(sin[:rows], 2)


class _Parts(NamedTuple):
    """The whole model: constants by name, layers from the first on."""

    table: onnx.NodeProto
    embedding_scale: float
    layers: tuple[_Layer, ...]
    final_norm: Norm
    head: Product
    logit_cap: float | None


@dataclass(frozen=True)
class GraphModel(LanguageModel):
    """A language model in a graph; weights are read when they are asked for."""

    graph: DecoderGraph
    parts: _Parts

    def layer(self, index: int) -> LayerWeights:
        with self.graph.named():
            return self._layer(index)

    def embedding(self) -> Array:
        return self.graph.table(self.parts.table)

    def head(self) -> LinearLayer:
        with self.graph.named():
            return self.graph.linear(self.parts.head)

    def final_norm(self) -> Floats:
        return self._factors(self.parts.final_norm)

    def files(self) -> set[Path]:
        """The model file, and those its constants lie in."""
        return self.graph.files()

    def let_go(self) -> None:
        """Nothing is kept: each constant is read again when it is needed."""

    def _layer(self, index: int) -> LayerWeights:
        facts, layer = self.architecture, self.parts.layers[index]
        attention = layer.attention
        queries, keys = facts.heads * facts.head_dim, facts.kv_heads * facts.head_dim
        linears = [self.graph.linear(each) for each in attention.products]
        if len(linears) == 1:
            ends = (0, queries, queries + keys, queries + 2 * keys)
            linears = [linears[0].rows(slice(*each)) for each in pairwise(ends)]
        q, k, v = linears
        q_norm, k_norm = map(self._optional, attention.head_norms)
        if attention.interleaved:
            order = self._halves(index)
            q, k = (each.rows(_by_heads(order, count)) for each, count in ((q, facts.heads), (k, facts.kv_heads)))
            q_norm, k_norm = (None if each is None else each[order] for each in (q_norm, k_norm))
        return LayerWeights(
            attention_norm=self._factors(layer.attention_norm),
            attention_out_norm=self._optional(layer.out.norm),
            mlp_norm=self._factors(layer.mlp_norm),
            mlp_out_norm=self._optional(layer.down.norm),
            q_norm=q_norm,
            k_norm=k_norm,
            q=q,
            k=k,
            v=v,
            o=self.graph.linear(layer.out.product),
            gate=self.graph.linear(layer.gate),
            up=self.graph.linear(layer.up),
            down=self.graph.linear(layer.down.product),
        )

    def _halves(self, index: int) -> Indices:
        """Channels of a head whose pairs are neighbours, ordered so that pairs are the halves of what is turned."""
        width, turned = self.architecture.head_dim, self.architecture.rotaries[index].dims
        return np.concatenate([np.arange(0, turned, 2), np.arange(1, turned, 2), np.arange(turned, width)])

    def _optional(self, norm: Norm | None) -> Floats | None:
        return None if norm is None else self._factors(norm)

    def _factors(self, norm: Norm) -> Floats:
        return self.graph.constant(norm.factors).astype(np.float32).reshape(-1)


def _by_heads(order: Indices, heads: int) -> Indices:
    """The order of the channels of several heads alike."""
    return (np.arange(heads)[:, None] * len(order) + order).reshape(-1)


def read_language_model(path: Path, file: Path) -> GraphModel:
    """The language model in a file. path: what the user named, the file or its folder.

    Raises FileFormatError, UnsupportedError: it is damaged, or its graph is none of a known decoder.
    """
    graph = DecoderGraph(file)
    with graph.named():
        parts = _Walk(graph).parts()
        return GraphModel(path, _architecture(graph, parts), graph, parts)


class _Walk:
    """From the scores to the tokens."""

    def __init__(self, graph: DecoderGraph) -> None:
        self.graph = graph

    def parts(self) -> _Parts:
        """Raises UnsupportedError at the node that is not understood."""
        if not any(node.op_type in KINDS for node in self.graph.graph.node):
            self.graph.refuse(f"holds no {' or '.join(KINDS)}, by which the layers of a language model are found")
        outputs = [each.name for each in self.graph.graph.output]
        name, cap = self._uncapped("logits" if "logits" in outputs else outputs[0])
        head = self.graph.product(name) or self._refuse(name, "a product that gives scores")
        final = self._norm(self._last_token(head.source))
        layers, behind = [], final
        while behind.terms:
            layer = self._layer(behind)
            layers.append(layer)
            behind = layer.attention_norm
        table, scale = self._embedding(behind.source)
        return _Parts(table, scale, tuple(reversed(layers)), final, head, cap)

    def _refuse(self, name: str, wanted: str) -> NoReturn:
        """Raise UnsupportedError at what makes a tensor."""
        self.graph.refuse(f"'{name}' should be {wanted}", self.graph.maker(name))

    def _norm(self, name: str) -> Norm:
        found = self.graph.norm(name)
        return found or self._refuse(name, "a norm of the stream")

    def _uncapped(self, name: str) -> tuple[str, float | None]:
        """What cap * tanh(x / cap) is taken of, and the cap; the tensor itself where nothing is."""
        outer = self.graph.maker(name)
        if outer is None or outer.op_type != "Mul" or not self.graph.is_constant(outer.input[1]):
            return name, None
        tanh = self.graph.maker(outer.input[0])
        inner = self.graph.maker(tanh.input[0]) if tanh is not None and tanh.op_type == "Tanh" else None
        if inner is None or inner.op_type not in ("Div", "Mul") or not self.graph.is_constant(inner.input[1]):
            self._refuse(name, "scores, or cap * tanh(scores / cap)")
        return inner.input[0], self.graph.number(outer.input[1])

    def _last_token(self, name: str) -> str:
        """The states of all tokens, of which an exporter may take the last."""
        node = self.graph.maker(name)
        while node is not None and node.op_type in ("Gather", "GatherND", "Slice"):
            name = node.input[0]
            node = self.graph.maker(name)
        return name

    def _branch(self, name: str) -> _Branch | None:
        norm = self.graph.norm(name)
        if norm is not None and norm.terms:
            return None
        product = self.graph.product(norm.source if norm is not None else name)
        return None if product is None else _Branch(product, norm)

    def _added(self, norm: Norm) -> tuple[str, _Branch]:
        """The stream before a sum, and what is added to it."""
        for stream, added in (norm.terms, norm.terms[::-1]):
            branch = self._branch(added)
            if branch is not None:
                return stream, branch
        self.graph.refuse("adds no product to the stream", norm.adder)

    def _layer(self, behind: Norm) -> _Layer:
        """The layer before a norm."""
        stream, down = self._added(behind)
        activation, gate, up = self._gated(down.product.source)
        middle = self._norm(up.source)
        if gate.source != up.source or not middle.terms or middle.adder is None:
            self.graph.refuse("gate and up are not of one sum and norm", gate.node)
        if not self.graph.is_sum(stream, middle.adder):
            self.graph.refuse("adds to another stream than that of its layer", behind.adder)
        before, out = self._added(middle)
        attention = attention_of(self.graph, out.product.source)
        first = self._norm(attention.products[0].source)
        same = self.graph.is_sum(before, first.adder) if first.adder is not None else self._is(before, first.source)
        if not same:
            self.graph.refuse("adds to another stream than that of its layer", middle.adder)
        return _Layer(attention, first, out, middle, gate, up, down, activation)

    def _is(self, one: str, other: str) -> bool:
        maker = self.graph.maker(one)
        return one == other or (maker is not None and maker is self.graph.maker(other))

    def _gated(self, name: str) -> tuple[str, Product, Product]:
        """activation(gate) * up."""
        node = self.graph.maker(name)
        if node is not None and node.op_type == "Mul":
            for first, second in (node.input, node.input[::-1]):
                up, (activation, inner) = self.graph.product(second), self._activated(first)
                gate = self.graph.product(inner) if activation else None
                if up is not None and gate is not None:
                    return activation, gate, up
        self.graph.refuse("should be activation(gate) * up, of silu or gelu", node)

    def _activated(self, name: str) -> tuple[str, str]:
        """The activation that makes a tensor, and of what; "" for none."""
        node = self.graph.maker(name)
        if node is None:
            return "", ""
        if node.op_type in _GELU and len(node.input) == 1:
            approximate = any(each.name == "approximate" and each.s == b"tanh" for each in node.attribute)
            return "gelu_tanh" if approximate else _GELU[node.op_type], node.input[0]
        if node.op_type in _SILU:
            return "silu", node.input[0]
        if node.op_type == "Mul":
            for first, second in (node.input, node.input[::-1]):
                sigmoid = self.graph.maker(second)
                if sigmoid is not None and sigmoid.op_type == "Sigmoid" and self._is(sigmoid.input[0], first):
                    return "silu", first
        return "", ""

    def _embedding(self, name: str) -> tuple[onnx.NodeProto, float]:
        """What takes rows of a table for the first layer, and their factor."""
        node, scale = self.graph.maker(name), 1.0
        if node is not None and node.op_type == "Mul" and self.graph.is_constant(node.input[1]):
            name, scale = node.input[0], self.graph.number(node.input[1])
        rows = self.graph.rows(name)
        if rows is None:
            self.graph.refuse("the stream should begin with rows of a constant table", self.graph.maker(name))
        return rows, scale


def _architecture(graph: DecoderGraph, parts: _Parts) -> Architecture:
    """What `config.json` would say. Raises UnsupportedError where layers differ in what must be the same."""
    first = parts.layers[0]
    attention = first.attention
    heads, shared = attention.heads, attention.kv_heads
    width = graph.outputs(first.attention.products[0])
    head_dim = width // (heads if len(first.attention.products) == 3 else heads + 2 * shared)
    table = graph.table(parts.table)
    rotaries = tuple(_rotaries(graph, parts.layers))
    found = Architecture(
        model_type="onnx",
        family=Family(),
        hidden=table.shape[1],
        inner=graph.outputs(first.gate),
        heads=heads,
        kv_heads=shared,
        head_dim=head_dim,
        vocabulary=table.shape[0],
        epsilon=parts.final_norm.epsilon,
        activation=first.activation,
        attention_scale=attention.scale or head_dim**-0.5,
        embedding_scale=parts.embedding_scale,
        attention_cap=attention.cap or None,
        logit_cap=parts.logit_cap,
        windows=tuple(layer.attention.window for layer in parts.layers),
        rotaries=rotaries,
        qkv_bias=any(product.bias for product in first.attention.products),
        out_bias=bool(first.out.product.bias),
        mlp_bias=bool(first.gate.bias),
        tied=False,
        dtype=FROM_NUMPY[table.dtype.name],
        positions=min(len(each.pairs[-1][0]) for each in rotaries),
        quantization=None,
    )
    for layer in parts.layers:
        _need_alike(graph, found, layer)
    return found


def _need_alike(graph: DecoderGraph, facts: Architecture, layer: _Layer) -> None:
    """Whether a layer has the sizes and numbers of the first. Raises UnsupportedError."""
    attention = layer.attention
    norms = (layer.attention_norm, layer.mlp_norm, layer.out.norm, layer.down.norm, *attention.head_norms)
    epsilons = {norm.epsilon for norm in norms if norm is not None}
    alike = (
        epsilons == {facts.epsilon}
        and (attention.heads, attention.kv_heads) == (facts.heads, facts.kv_heads)
        and (attention.scale or facts.head_dim**-0.5) == facts.attention_scale
        and (attention.cap or None) == facts.attention_cap
        and layer.activation == facts.activation
        and graph.outputs(layer.gate) == graph.outputs(layer.up) == facts.inner
        and graph.outputs(layer.out.product) == graph.outputs(layer.down.product) == facts.hidden
    )
    if not alike:
        graph.refuse("differs from the first layer in sizes, norms or activation", layer.attention.node)


def _rotaries(graph: DecoderGraph, layers: tuple[_Layer, ...]) -> Iterator[_Tables]:
    """Of each layer; the same object where tables are the same."""
    known: dict[tuple[str, str], _Tables] = {}
    for layer in layers:
        names = layer.attention.tables
        if names not in known:
            pairs = sorted(zip(*map(graph.choices, names)), key=lambda pair: len(pair[0]))
            if len({(cos.ndim, *cos.shape[1:], *sin.shape[1:]) for cos, sin in pairs}) != 1:
                graph.refuse("tables of the rotary embedding are not of one width", layer.attention.node)
            for cos, sin in pairs:
                if cos.ndim != 2 or cos.shape != sin.shape:
                    graph.refuse(
                        f"tables of {list(cos.shape)} and {list(sin.shape)} are no pairs", layer.attention.node
                    )
            floats = tuple((cos.astype(np.float32), sin.astype(np.float32)) for cos, sin in pairs)
            known[names] = _Tables(0.0, 2 * floats[0][0].shape[1], len(floats[-1][0]), pairs=floats)
        yield known[names]
