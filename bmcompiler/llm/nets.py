"""The nets of a bundle as modules, with the names, tensors and orders that runtimes look for (bm1684x-llm.md 2).

The nets of a layer have the same weights: `block_I` takes all tokens of a prompt, `block_cache_I` one token with the
keys and values of those before, `block_kv_I` several tokens with those. What a family does otherwise comes from its
architecture.
"""

from __future__ import annotations

import re

import numpy as np

from bmcompiler.errors import UsageError
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.llm.heads import GREEDY, SAMPLE, best_token, greedy_head, sample_head
from bmcompiler.llm.model import LINEAR, LanguageModel, LayerWeights
from bmcompiler.llm.precision import Precision, in_precision, narrowed, product
from bmcompiler.numeric.arrays import Array, Floats
from bmcompiler.ops.builder import Builder

MASKED = -10000.0
"""What a mask adds to the score of a token that is not seen; of bf16 it is the next number, -9984."""
_NET = re.compile(rf"(embedding|embedding_cache|lm_head|{GREEDY}|{SAMPLE}|block_(?:cache_|kv_)?(\d+))$")


def net_names(model: LanguageModel) -> list[str]:
    """All nets of a bundle; those behind `lm_head` where it gives scores, `block_kv_I` where prompts go on."""
    layers = range(model.architecture.layers)
    return [
        "embedding",
        "embedding_cache",
        *(f"block_{i}" for i in layers),
        *(f"block_cache_{i}" for i in layers),
        *(f"block_kv_{i}" for i in layers),
        "lm_head",
        GREEDY,
        SAMPLE,
    ]


def build_net(
    model: LanguageModel,
    name: str,
    *,
    length: int,
    cache: int | None = None,
    precision: Precision | None = None,
    logits: bool = False,
    layers: dict[int, LayerWeights] | None = None,
) -> Module:
    """A net of the bundle.

    Args:
        name: one of `net_names`.
        length: tokens of a prompt. cache: tokens the cache holds; default is `length`.
        logits: lm_head gives f32 (1, vocabulary) and not the token of the highest score, i32 (1, 1).
        layers: weights of layers in the precision, as other nets of the bundle left them; those of this one are added.

    Raises:
        UsageError: there is no such net, or lengths that cannot be.
        FileFormatError, UnsupportedError: of the weights.
    """
    match, cache = _NET.match(name), length if cache is None else cache
    if not match or (match[2] is not None and int(match[2]) >= model.architecture.layers):
        raise UsageError(
            f"no net '{name}'",
            remedy=f"there are embedding, lm_head, block_0 .. block_cache_{model.architecture.layers - 1}",
        )
    if not 1 <= length <= cache:
        raise UsageError(f"prompts of {length} tokens do not fit a cache of {cache}", remedy="both are 1 or more")
    if name in (GREEDY, SAMPLE):
        vocabulary = model.architecture.vocabulary
        return greedy_head(vocabulary) if name == GREEDY else sample_head(vocabulary, cache)
    nets = _NetMaker(model, precision or Precision(), length, cache, {} if layers is None else layers)
    if match[2] is not None:
        return nets.block(name, int(match[2]))
    return nets.head(logits) if name == "lm_head" else nets.embedding(name)


class _NetMaker:
    def __init__(
        self,
        model: LanguageModel,
        precision: Precision,
        length: int,
        cache: int,
        layers: dict[int, LayerWeights],
    ) -> None:
        self.model, self.facts, self.precision = model, model.architecture, precision
        self.length, self.cache, self.layers = length, cache, layers

    def layer(self, index: int) -> LayerWeights:
        """The weights of a layer in the precision of the bundle."""
        if index not in self.layers:
            read, bits = self.model.layer(index), self.precision.bits
            q, k, v, o, gate, up, down = (
                in_precision(getattr(read, part), self.precision, bits, f"layers.{index}.{part}") for part in LINEAR
            )
            self.layers[index] = read._replace(q=q, k=k, v=v, o=o, gate=gate, up=up, down=down)
        return self.layers[index]

    def type(self, *shape: int) -> TensorType:
        return TensorType(shape, self.precision.dtype)

    def constant(self, b: Builder, name: str, values: Array) -> Value:
        return b.weight(narrowed(values, self.precision.dtype, name), name)

    def number(self, b: Builder, name: str, value: float) -> Value:
        return self.constant(b, name, np.full(1, value, np.float32))

    def embedding(self, name: str) -> Module:
        """Token ids (1, tokens) to rows of the table."""
        b = Builder.new(name)
        ids = b.input("input_ids", TensorType((1, self.length if name == "embedding" else 1), "i32"))
        table = self.constant(b, "embed_tokens", self.model.embedding())
        out = b.gather(table, ids, axis=0)
        if self.facts.embedding_scale != 1:
            out = b.mul(out, self.number(b, "embedding_scale", self.facts.embedding_scale))
        return b.outputs([out], [name])

    def head(self, logits: bool) -> Module:
        """The state of a token (1, hidden), behind the last norm, to the scores of all tokens or the best one."""
        b = Builder.new("lm_head")
        x = b.input("hidden_states", self.type(1, self.facts.hidden))
        linear = in_precision(self.model.head(), self.precision, self.precision.head_bits, "lm_head")
        with b.at("lm_head"):
            scores = product(b, x, linear, self.precision.dtype, "lm_head")
            scores = scores if self.precision.dtype == "f32" else b.cast(scores, dtype="f32")
            cap = self.facts.logit_cap
            if cap is not None:
                scores = _capped(b, scores, b.weight(np.full(1, cap, np.float32), "logit_cap"))
            if logits:
                return b.outputs([scores], ["lm_head.reshape_f32"])
            return b.outputs([best_token(b, scores)], ["token_id"])

    def block(self, name: str, index: int) -> Module:
        """A layer for a prompt, or for one or several tokens behind those of the cache."""
        b, facts = Builder.new(name), self.facts
        tokens = 1 if "_cache_" in name else self.length
        before = 0 if name == f"block_{index}" else self.cache
        width = before + tokens
        x = b.input("input_states", self.type(1, tokens, facts.hidden))
        positions = b.input("position_ids", TensorType((1, tokens), "i32"))
        mask = b.input("attention_mask", self.type(1, 1, tokens, width))
        rows = self.type(1, self.cache, facts.kv_heads, facts.head_dim)
        history = [[b.input(f"history_{each}", rows)] if before else [] for each in "kv"]
        mask = self._windowed(b, mask, positions, facts.windows[index], before)
        w, dtype = self.layer(index), self.precision.dtype

        def linear(x: Value, part: str) -> Value:
            with b.at(part):
                return product(b, x, getattr(w, part), dtype, part)

        y = self._norm(b, x, w.attention_norm, "attention_norm")

        def heads(part: str, count: int) -> Value:
            return b.reshape(linear(y, part), shape=[1, tokens, count, facts.head_dim])

        v = heads("v", facts.kv_heads)  # stored first, so that all values arrive while others are computed
        values = b.concat(*history[1], v, axis=1) if before else v
        q, k = heads("q", facts.heads), heads("k", facts.kv_heads)
        q, k = self._norm(b, q, w.q_norm, "q_norm"), self._norm(b, k, w.k_norm, "k_norm")
        q, k = self._rotated(b, [q, k], positions, index)
        keys = b.concat(*history[0], k, axis=1) if before else k
        y = linear(self._attention(b, q, keys, values, mask), "o")
        x = b.add(x, self._norm(b, y, w.attention_out_norm, "attention_out_norm"))
        y = self._norm(b, x, w.mlp_norm, "mlp_norm")
        y = linear(b.mul(self._activated(b, linear(y, "gate")), linear(y, "up")), "down")
        x = b.add(x, self._norm(b, y, w.mlp_out_norm, "mlp_out_norm"))
        if index == facts.layers - 1:
            x = self._norm(b, x, self.model.final_norm(), "final_norm")
        return b.outputs([x, k, v], ["output_states", "k_cache", "v_cache"])

    def _norm(self, b: Builder, x: Value, factors: Floats | None, name: str) -> Value:
        if factors is None:
            return x
        with b.at(name):
            return b.rms_norm(x, self.constant(b, name, factors), axis=x.type.rank - 1, epsilon=self.facts.epsilon)

    def _rotated(self, b: Builder, values: list[Value], positions: Value, index: int) -> list[Value]:
        """Rotary embedding of (1, tokens, heads, head_dim); the sine has the sign of the half it is added to."""
        cos, sin = self.facts.rotaries[index].tables(self.cache)
        dims, tokens = cos.shape[1], positions.shape[1]
        sin = np.concatenate([-sin[:, : dims // 2], sin[:, dims // 2 :]], 1)
        tables = [self.constant(b, name, table) for name, table in (("rotary_cos", cos), ("rotary_sin", sin))]
        with b.at("rotary"):
            cosine, sine = (b.reshape(b.gather(t, positions, axis=0), shape=[1, tokens, 1, dims]) for t in tables)
            return [self._rotated_one(b, x, cosine, sine) for x in values]

    def _rotated_one(self, b: Builder, x: Value, cosine: Value, sine: Value) -> Value:
        dims, width = cosine.shape[-1], x.shape[-1]

        def part(first: int, last: int) -> Value:
            return b.slice(x, starts=[0, 0, 0, first], ends=[*x.shape[:3], last], steps=[1] * 4)

        rest = None if dims == width else part(dims, width)
        swapped = b.concat(part(dims // 2, dims), part(0, dims // 2), axis=3)
        whole = x if rest is None else part(0, dims)
        out = b.add(b.mul(whole, cosine), b.mul(swapped, sine))
        return out if rest is None else b.concat(out, rest, axis=3)

    def _attention(self, b: Builder, q: Value, k: Value, v: Value, mask: Value) -> Value:
        """(1, tokens, heads * head_dim); queries of one token that share keys are rows of one product."""
        facts, tokens, width = self.facts, q.shape[1], k.shape[1]
        shared = facts.heads // facts.kv_heads
        rows = (1, shared) if tokens == 1 else (shared, tokens)
        with b.at("attention"):
            q = b.mul(q, self.number(b, "attention_scale", facts.attention_scale))
            q = b.reshape(b.permute(q, order=[0, 2, 1, 3]), shape=[facts.kv_heads, *rows, facts.head_dim])
            k, v = (
                b.reshape(b.permute(each, order=[0, 2, 1, 3]), shape=[facts.kv_heads, 1, width, facts.head_dim])
                for each in (k, v)
            )
            scores = b.matmul(q, k, transpose_right=True)
            if facts.attention_cap is not None:
                scores = _capped(b, scores, self.number(b, "attention_cap", facts.attention_cap))
            scores = b.softmax(b.add(scores, mask), axis=3)
            mixed = b.reshape(b.matmul(scores, v), shape=[1, facts.heads, tokens, facts.head_dim])
            return b.reshape(b.permute(mixed, order=[0, 2, 1, 3]), shape=[1, tokens, facts.heads * facts.head_dim])

    def _windowed(self, b: Builder, mask: Value, positions: Value, window: int | None, before: int) -> Value:
        """The mask, and in layers with a window what lies before it is not seen either.

        Args:
            before: rows of the cache, which stand before the new tokens.
        """
        tokens = positions.shape[1]
        if window is None or window >= self.cache + (tokens == 1):
            return mask
        with b.at("window"):
            distant = np.tri(tokens, k=-window, dtype=np.float32)  # of the new tokens from each other
            if not before:
                return b.min(mask, self.constant(b, "window", distant * np.float32(MASKED)))
            columns = np.full((1, 1, tokens, before + tokens), 1 << 24, np.float32)  # the token itself, and near ones
            columns[..., :before], columns[..., before:][..., distant > 0] = np.arange(before), -1
            last = b.sub(b.cast(positions, dtype="f32"), b.weight(np.full(1, window, np.float32), "window"))
            far = b.compare(
                b.weight(columns, "columns"),
                b.reshape(last, shape=[1, 1, tokens, 1]),
                method="less_equal",
            )
            return b.where(far, self.number(b, "masked", MASKED), mask)

    def _activated(self, b: Builder, x: Value) -> Value:
        if self.facts.activation == "silu":
            return b.swish(x)
        return b.gelu(x, approximate="tanh" if self.facts.activation == "gelu_tanh" else "none")


def _capped(b: Builder, x: Value, cap: Value) -> Value:
    """cap * tanh(x / cap)."""
    return b.mul(b.tanh(b.div(x, cap)), cap)
