"""What language models in ONNX Runtime's own ops consist of: norms, rotary embedding, attention with a cache.

Sizes are static: a cache is a buffer of as many tokens as the file says; how many of them hold something is a value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bmcompiler.errors import FileFormatError, ShapeError, UnsupportedError
from bmcompiler.frontends.onnx.node import Node, axis_of
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder

_MICROSOFT = "com.microsoft"
_HIDDEN = 10000.0
"""What is taken from scores of tokens that a query must not see; it fits 16 bits."""


def _need_no_outputs(node: Node, *indices: int) -> None:
    for index in indices:
        if index < len(node.proto.output) and node.proto.output[index]:
            raise UnsupportedError(f"output {index} ('{node.proto.output[index]}') is for training, and not supported")


@onnx_op("SimplifiedLayerNormalization")
def simplified_layer_normalization(node: Node, b: Builder) -> Value:
    """x / sqrt(mean(x**2) + epsilon) * gamma over the last axes."""
    node.ignore("stash_type")
    _need_no_outputs(node, 1)
    axis = axis_of(node.int("axis", -1), node.rank(0, least=1))
    return b.rms_norm(node.input(0), node.input(1), axis=axis, epsilon=node.float("epsilon", 1e-5))


@onnx_op("SkipSimplifiedLayerNormalization", domain=_MICROSOFT)
def skip_simplified_layer_normalization(node: Node, b: Builder) -> tuple[Value, ...]:
    """The norm of a sum, and the sum."""
    _need_no_outputs(node, 1, 2)
    total = b.add(node.input(0), node.input(1))
    total = b.add(total, node.input(3)) if node.has(3) else total
    out = b.rms_norm(total, node.input(2), axis=total.type.rank - 1, epsilon=node.float("epsilon", 1e-5))
    return out, out, out, total


class Angles(NamedTuple):
    """Cosines and sines (places, pairs) of a rotary embedding; interleaved: pairs are neighbours, not halves."""

    cos: Value
    sin: Value
    interleaved: bool


def rotated(b: Builder, x: Value, places: Value, angles: Angles) -> Value:
    """x (batch, heads, tokens, size) paired by the angles of its places (batch, tokens).

    Channels behind those that the angles reach stay as they are.
    """
    pairs, size = angles.cos.shape[1], x.shape[-1]
    if 2 * pairs > size:
        raise ShapeError(f"angles of {pairs} pairs are more than {size} channels of a head have")
    batch, heads, tokens, _ = x.shape
    cos, sin = (
        b.reshape(b.gather(table, places, axis=0), shape=(places.shape[0], 1, tokens, pairs))
        for table in (angles.cos, angles.sin)
    )
    paired, *rest = [x] if 2 * pairs == size else _parts(b, x, 3, 2 * pairs, size - 2 * pairs)
    if angles.interleaved:
        paired = b.reshape(paired, shape=(batch, heads, tokens, pairs, 2))
        paired = b.reshape(b.permute(paired, order=(0, 1, 2, 4, 3)), shape=(batch, heads, tokens, 2 * pairs))
    low, high = _parts(b, paired, 3, pairs, pairs)
    out = b.concat(b.sub(b.mul(low, cos), b.mul(high, sin)), b.add(b.mul(high, cos), b.mul(low, sin)), axis=3)
    if angles.interleaved:
        out = b.permute(b.reshape(out, shape=(batch, heads, tokens, 2, pairs)), order=(0, 1, 2, 4, 3))
        out = b.reshape(out, shape=(batch, heads, tokens, 2 * pairs))
    return b.concat(out, *rest, axis=3) if rest else out


def _parts(b: Builder, x: Value, axis: int, *sizes: int) -> list[Value]:
    return b.create("split", [x], {"axis": axis, "sizes": sizes}).results


def heads_of(b: Builder, x: Value, heads: int) -> Value:
    """(batch, tokens, heads * size) as (batch, heads, tokens, size)."""
    batch, tokens, width = x.shape
    if width % heads:
        raise ShapeError(f"{width} channels are no {heads} heads")
    return b.permute(b.reshape(x, shape=(batch, tokens, heads, width // heads)), order=(0, 2, 1, 3))


def joined_heads(b: Builder, x: Value) -> Value:
    """The inverse of `heads_of`."""
    batch, heads, tokens, size = x.shape
    return b.reshape(b.permute(x, order=(0, 2, 1, 3)), shape=(batch, tokens, heads * size))


@onnx_op("RotaryEmbedding", domain=_MICROSOFT)
def rotary_embedding(node: Node, b: Builder) -> Value:
    node.ignore("rotary_embedding_dim", "is_packed_batching")  # as wide as the tables are
    if node.float("scale", 1.0) != 1:
        raise UnsupportedError("a scale is not supported", remedy="put it into the tables of cosines and sines")
    x, places = node.input(0), node.input(1)
    angles = Angles(node.input(2), node.input(3), node.flag("interleaved"))
    heads, rank = node.int("num_heads", 0), node.rank(0, least=3)
    if rank == 3:
        heads = heads or x.shape[-1] // (2 * angles.cos.shape[1])
    parts = heads_of(b, x, heads) if rank == 3 else x
    tokens = parts.shape[2]
    if places.type.size == 1 and tokens > 1:  # of the first token
        steps = b.weight(np.arange(tokens, dtype=np.int32)[None], "steps")
        places = b.add(b.reshape(b.cast(places, dtype="i32"), shape=(1, 1)), steps)
    else:
        places = b.reshape(places, shape=(-(-places.type.size // tokens), tokens))
    out = rotated(b, parts, places, angles)
    return joined_heads(b, out) if rank == 3 else out


@onnx_op("GroupQueryAttention", domain=_MICROSOFT)
def group_query_attention(node: Node, b: Builder) -> tuple[Value, ...]:
    """Causal attention of new tokens on a cache and on themselves; queries of several heads share a head of keys."""
    heads, shared = node.int("num_heads"), node.int("kv_num_heads")
    need_plain(node)
    if min(heads, shared) < 1 or heads % shared:
        raise FileFormatError(f"{heads} heads of queries do not share {shared} heads of keys")
    query, key, value = _queries(node, b, heads, shared)
    batch, _, tokens, size = query.shape
    total = node.whole(6)
    before = _before(node, b, tokens, total)
    if node.flag("do_rotary"):
        angles = Angles(node.input(7), node.input(8), node.flag("rotary_interleaved"))
        places = b.reshape(node.input(9), shape=(batch, tokens)) if node.has(9) else _places(b, before, batch, tokens)
        query, key = rotated(b, query, places, angles), rotated(b, key, places, angles)
    keys, values = (_extended(node, b, index, new, before, total) for index, new in ((3, key), (4, value)))
    scale = node.float("scale", 0.0) or size**-0.5
    group = heads // shared
    rows = b.reshape(query, shape=(batch, shared, group * tokens, size))
    scores = b.mul(b.matmul(rows, keys, transpose_right=True), b.weight(np.asarray(scale, query.type.numpy), "scale"))
    limit = node.float("softcap", 0.0)
    if limit:
        scores = b.mul(
            b.tanh(b.mul(scores, b.weight(np.asarray(1 / limit, query.type.numpy), "inverse"))),
            b.weight(np.asarray(limit, query.type.numpy), "softcap"),
        )
    length = keys.shape[2]
    scores = b.reshape(scores, shape=(batch, heads, tokens, length))
    scores = b.add(scores, _hidden(node, b, before, (tokens, length), query.dtype))
    scores = b.add(scores, node.input(10)) if node.has(10) else scores
    weights = b.reshape(b.softmax(scores, axis=3), shape=(batch, shared, group * tokens, length))
    out = b.reshape(b.matmul(weights, values), shape=(batch, heads, tokens, size))
    return joined_heads(b, out), keys, values


def need_plain(node: Node) -> None:
    """Refuse forms of GroupQueryAttention that are not computed. Raises UnsupportedError."""
    node.ignore("kv_cache_bit_width")
    for name in ("smooth_softmax", "qk_output"):
        if node.int(name, 0) > 0:
            raise UnsupportedError(f"{name} is not supported")
    for name in ("k_quant_type", "v_quant_type"):
        if node.string(name, "NONE") != "NONE":
            raise UnsupportedError("a quantized cache is not supported", remedy="export the model with a float cache")
    if node.has(11):
        raise UnsupportedError("head_sink (input 11) is not supported")
    _need_no_outputs(node, 3)


def _queries(node: Node, b: Builder, heads: int, shared: int) -> tuple[Value, Value, Value]:
    """Queries, keys and values by heads; one tensor may hold all three."""
    if node.has(1) != node.has(2):
        raise FileFormatError("key and value must be there both, or neither")
    if node.has(1):
        counts = zip((0, 1, 2), (heads, shared, shared))
        query, key, value = (heads_of(b, node.input(index), count) for index, count in counts)
        return query, key, value
    whole = heads_of(b, node.input(0), heads + 2 * shared)
    query, key, value = _parts(b, whole, 1, heads, shared, shared)
    return query, key, value


def _before(node: Node, b: Builder, tokens: int, total: int) -> Value | int:
    """Tokens of the cache before the new ones, i32 (batch), or one number for all that is known now."""
    if total == tokens:
        return 0
    past = node.shape(3)[2] if node.has(3) else 0
    if past + tokens == total and node.shape(0)[0] == 1:  # the cache grows by what is new
        return past
    if node.is_constant(5) and len(set(node.constant(5).reshape(-1).tolist())) == 1:
        return int(node.constant(5).reshape(-1)[0]) + 1 - tokens
    lengths = b.reshape(b.cast(node.input(5), dtype="i32"), shape=(node.shape(0)[0],))
    return b.add(lengths, b.weight(np.asarray([1 - tokens], np.int32), "new"))


def _places(b: Builder, before: Value | int, batch: int, tokens: int) -> Value:
    """Of new tokens, (batch, tokens)."""
    steps = np.arange(tokens, dtype=np.int32)
    if isinstance(before, int):
        return b.weight(np.tile(steps + np.int32(before), (batch, 1)), "places")
    return b.add(b.reshape(before, shape=(batch, 1)), b.weight(np.tile(steps, (batch, 1)), "steps"))


def _extended(node: Node, b: Builder, index: int, new: Value, before: Value | int, total: int) -> Value:
    """A cache with what is new written behind what it holds; as long as it was, or as all tokens."""
    batch, heads, tokens, size = new.shape
    length = max(total, node.shape(index)[2] if node.has(index) else 0)
    if length == tokens:
        return new
    if not node.has(index):
        raise FileFormatError(f"input {index} is missing: {total} tokens are more than the {tokens} new ones")
    past = node.input(index)
    if past.shape[:2] != (batch, heads) or past.shape[3] != size:
        raise ShapeError(f"a cache of shape {list(past.shape)} does not fit new keys {list(new.shape)}")
    if isinstance(before, int):
        one = (1, 1, 1, 1)
        parts = [b.slice(past, starts=(0, 0, 0, 0), ends=(batch, heads, before, size), steps=one)] if before else []
        rest = length - before - tokens
        if rest < 0:
            raise ShapeError(f"{before} tokens and {tokens} new ones are more than the {length} of the cache")
        if rest:
            if past.shape[2] < length:
                raise ShapeError(f"a cache of {past.shape[2]} tokens does not hold {length}")
            parts.append(b.slice(past, starts=(0, 0, before + tokens, 0), ends=(batch, heads, length, size), steps=one))
        at = 1 if before else 0
        return b.concat(*parts[:at], new, *parts[at:], axis=2)
    if past.shape[2] < length:
        past = b.pad(past, pads=(0, 0, 0, 0, 0, 0, length - past.shape[2], 0))
    places = b.reshape(_places(b, before, batch, tokens), shape=(batch, 1, tokens, 1))
    spread = b.weight(np.zeros((batch, heads, tokens, size), np.int32), "everywhere")
    return b.scatter_elements(past, b.add(places, spread), new, axis=2)


def _hidden(node: Node, b: Builder, before: Value | int, sizes: tuple[int, int], dtype: str) -> Value:
    """What scores lose, (batch or 1, 1, tokens, length): behind the query, and further back than its window."""
    tokens, length = sizes
    places = np.arange(max(tokens, length), dtype=np.float32)
    ahead = places[:tokens, None] - places[:length]  # of queries from place 0 on
    window = node.int("local_window_size", -1)

    def lost(distance: Value) -> Value:
        return b.clip(b.mul(distance, b.weight(np.asarray(_HIDDEN, np.float32), "hidden")), min=-_HIDDEN, max=0.0)

    if isinstance(before, int):
        known = ahead + before
        seen = (known >= 0) & ((known < window) | (window < 0))
        return b.cast(b.weight(np.where(seen, 0, -_HIDDEN).astype(np.float32)[None, None], "mask"), dtype=dtype)
    first = b.reshape(b.cast(before, dtype="f32"), shape=(before.type.size, 1, 1, 1))
    distance = b.add(first, b.weight(ahead[None, None], "ahead"))
    mask = lost(distance)
    if window >= 0:
        mask = b.add(mask, lost(b.sub(b.weight(np.asarray(window - 1, np.float32), "window"), distance)))
    return mask if dtype == "f32" else b.cast(mask, dtype=dtype)
