"""Attention of a decoder layer in a graph: ONNX Runtime's GroupQueryAttention, or Attention of opset 23 and later."""

from __future__ import annotations

from typing import NamedTuple

import onnx

from bmcompiler.frontends.onnx.decoder_graph import DecoderGraph, Norm, Product
from bmcompiler.frontends.onnx.decoder_mask import window_of
from bmcompiler.frontends.onnx.ops.transformer import need_plain

_OWN = "GroupQueryAttention"
KINDS = (_OWN, "Attention")
"""Ops by which layers are found."""
_MICROSOFT = "com.microsoft"


class Attention(NamedTuple):
    """An attention, and what its queries, keys and values are made of.

    Attributes:
        products: q, k, v, or one of all three. head_norms: of q and k. tables: names of cosines and sines.
        scale, cap: 0 where the node says nothing. window: tokens that are seen, None for all.
        interleaved: pairs that are rotated are neighbours, not the halves of a head.
    """

    node: onnx.NodeProto
    products: tuple[Product, ...]
    head_norms: tuple[Norm | None, Norm | None]
    tables: tuple[str, str]
    heads: int
    kv_heads: int
    scale: float
    cap: float
    window: int | None
    interleaved: bool


class _Operand(NamedTuple):
    """Queries, keys or values: a product, a norm of it and tables it is rotated by, where there are such."""

    product: Product
    norm: Norm | None
    tables: tuple[str, str] | None = None
    interleaved: bool = False


def attention_of(graph: DecoderGraph, name: str) -> Attention:
    """What makes a tensor, which an 'o' takes. Raises UnsupportedError for other nodes and forms."""
    node = graph.maker(_unpermuted(graph, name))
    if node is not None and node.op_type == _OWN:
        return _own(graph, node)
    if node is not None and node.op_type == "Attention" and node.domain != _MICROSOFT:
        return _standard(graph, node)
    graph.refuse(f"'o' should be a product of {' or '.join(KINDS)}", node)


def _own(graph: DecoderGraph, node: onnx.NodeProto) -> Attention:
    facts = graph.node(node)
    need_plain(facts)
    if len(node.input) > 10 and node.input[10]:
        graph.refuse("an attention bias is not supported", node)
    operands = [_operand(graph, each) for each in node.input[: 3 if node.input[1] else 1]]
    if facts.flag("do_rotary"):
        if any(each.tables for each in operands):
            graph.refuse("rotates what is rotated", node)
        turned = (node.input[7], node.input[8]), facts.flag("rotary_interleaved")
        operands[:2] = [_Operand(each.product, each.norm, *turned) for each in operands[:2]]
    window = facts.int("local_window_size", -1)
    return _checked(
        graph, node, operands, (facts.int("num_heads"), facts.int("kv_num_heads")),
        (facts.float("scale", 0.0), facts.float("softcap", 0.0)), None if window < 0 else window,
    )  # fmt: skip


def _standard(graph: DecoderGraph, node: onnx.NodeProto) -> Attention:
    facts = graph.node(node)
    masked = len(node.input) > 3 and node.input[3]
    if not masked and not facts.flag("is_causal"):
        graph.refuse("is not causal, so that tokens see those behind them", node)
    names = [_newest(graph, each) for each in node.input[:3]]
    operands = [_operand(graph, each) for each in names]
    heads = tuple(
        facts.int(key, 0) or _heads(graph, name, operand.product)
        for key, name, operand in zip(("q_num_heads", "kv_num_heads"), names, operands)
    )
    numbers = (facts.float("scale", 0.0), facts.float("softcap", 0.0))
    found = _checked(graph, node, operands, (heads[0], heads[1]), numbers, None)
    if not masked:
        return found
    rows = min(len(table) for name in found.tables for table in graph.choices(name))
    return found._replace(window=window_of(graph, node, rows))


def _checked(
    graph: DecoderGraph, node: onnx.NodeProto, operands: list[_Operand], heads: tuple[int, int],
    numbers: tuple[float, float], window: int | None,
) -> Attention:  # fmt: skip
    """The attention, of whose operands it is known that they belong together."""
    query, key = operands[0], operands[min(1, len(operands) - 1)]
    if len({each.product.source for each in operands}) != 1:
        graph.refuse("query, key and value are not of one tensor", node)
    if (query.tables, query.interleaved) != (key.tables, key.interleaved):
        graph.refuse("queries and keys are rotated otherwise", node)
    if query.tables is None or not all(map(graph.choices, query.tables)):
        graph.refuse("has no constant tables of a rotary embedding", node)
    if min(heads) < 1 or heads[0] % heads[1]:
        graph.refuse(f"{heads[0]} heads of queries do not share {heads[1]} heads of keys", node)
    norms = (query.norm, key.norm if len(operands) > 1 else None)
    products = tuple(each.product for each in operands)
    return Attention(node, products, norms, query.tables, *heads, *numbers, window, query.interleaved)


def _operand(graph: DecoderGraph, name: str) -> _Operand:
    name, tables, interleaved = _unpermuted(graph, name), None, False
    rotary = graph.maker(name)
    if rotary is not None and rotary.op_type == "RotaryEmbedding":
        facts, first = graph.node(rotary), 2 if rotary.domain == _MICROSOFT else 1
        if facts.float("scale", 1.0) != 1:
            graph.refuse("a scale of the rotary embedding is not supported", rotary)
        tables = (_table(graph, rotary.input[first]), _table(graph, rotary.input[first + 1]))
        name, interleaved = _unpermuted(graph, rotary.input[0]), facts.flag("interleaved")
    norm = graph.norm(name)
    inner = name if norm is None else _unpermuted(graph, norm.source)
    product = graph.product(inner)
    if product is None:
        graph.refuse(f"'{inner}' should be a product with constants", graph.maker(inner))
    return _Operand(product, norm, tables, interleaved)


def _table(graph: DecoderGraph, name: str) -> str:
    """The table whose rows of the tokens' places a tensor holds; itself where it is one."""
    node = None if graph.choices(name) else graph.maker(name)
    return node.input[0] if node is not None and node.op_type == "Gather" else name


def _unpermuted(graph: DecoderGraph, name: str) -> str:
    """(batch, tokens, heads, width) of which a tensor is (batch, heads, tokens, width), or the other way round."""
    node = graph.maker(name)
    while node is not None and node.op_type == "Transpose" and graph.node(node).ints("perm", ()) == (0, 2, 1, 3):
        name = node.input[0]
        node = graph.maker(name)
    return name


def _newest(graph: DecoderGraph, name: str) -> str:
    """What is written into a cache, or set behind it, where a tensor is the cache behind that."""
    node = graph.maker(name)
    if node is not None and node.op_type == "Concat" and len(node.input) == 2:
        return node.input[1] if graph.origin(node.input[0]) in (each.name for each in graph.graph.input) else name
    return node.input[1] if node is not None and node.op_type == "TensorScatter" else name


def _heads(graph: DecoderGraph, name: str, product: Product) -> int:
    """Heads by the constant shape (batch, tokens, heads, width) that a product gets; 0 where there is none."""
    for node in graph.before(name):
        if node is product.node:
            return 0
        if node.op_type == "Reshape" and graph.is_constant(node.input[1]):
            shape = graph.constant(node.input[1]).reshape(-1).tolist()
            if len(shape) == 4 and max(shape[2:]) > 0:
                return int(graph.outputs(product) // shape[3] if shape[3] > 0 else shape[2])
    return 0
