"""A language model in float32, layer by layer with numpy: what its nets are held to, and its perplexity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bmcompiler.errors import RuntimeUseError
from bmcompiler.llm.linear import LinearLayer
from bmcompiler.llm.model import LINEAR, LanguageModel, LayerWeights
from bmcompiler.llm.precision import Precision, in_precision
from bmcompiler.numeric.arrays import Array, Floats, Mask
from bmcompiler.numeric.special import erf


@dataclass
class Cache:
    """Keys and values of the tokens so far, of each layer f32 (tokens, kv heads, head_dim), keys rotated."""

    keys: list[Floats] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Tokens in it."""
        return len(self.keys[0]) if self.keys else 0


class FloatModel:
    """The model by its definition. Weights are read for each layer when it is computed, and not kept.

    Args:
        rows: positions for which the rotary embedding is made; default is what the model was made for.
        precision: linear layers have the weights that a bundle of this precision would have; default is their own.
    """

    def __init__(self, model: LanguageModel, rows: int | None = None, precision: Precision | None = None) -> None:
        self.model, self.facts, self.precision = model, model.architecture, precision
        self.rows = rows or self.facts.positions
        self.tables = {rotary: rotary.tables(self.rows) for rotary in self.facts.rotaries}

    def new_cache(self) -> Cache:
        """A cache without tokens."""
        empty = np.zeros((0, self.facts.kv_heads, self.facts.head_dim), np.float32)
        return Cache([empty] * self.facts.layers, [empty] * self.facts.layers)

    def embed(self, ids: Sequence[int]) -> Floats:
        """(tokens, hidden). Raises RuntimeUseError for a token that the vocabulary does not have."""
        wanted = np.asarray(ids, np.int64)
        if wanted.size and not 0 <= wanted.min() <= wanted.max() < self.facts.vocabulary:
            raise RuntimeUseError(f"tokens must be 0 to {self.facts.vocabulary - 1}, got {list(ids)}")
        return self.model.embedding()[wanted].astype(np.float32) * np.float32(self.facts.embedding_scale)

    def states(self, ids: Sequence[int], cache: Cache | None = None) -> Floats:
        """What stands behind the last norm, (tokens, hidden); tokens come after those of the cache, which grows.

        Raises RuntimeUseError: no more positions, an unknown token.
        """
        cache = self.new_cache() if cache is None else cache
        first, x = cache.length, self.embed(ids)
        if first + len(x) > self.rows:
            raise RuntimeUseError(f"{first + len(x)} tokens exceed the {self.rows} positions of the model")
        for index in range(self.facts.layers):
            x, keys, values = self.block(index, x, first, cache.keys[index], cache.values[index])
            cache.keys[index] = np.concatenate([cache.keys[index], keys])
            cache.values[index] = np.concatenate([cache.values[index], values])
        return x

    def logits(self, states: Floats) -> Floats:
        """(tokens, vocabulary)."""
        head = self.model.head()
        if self.precision is not None:
            head = in_precision(head, self.precision, self.precision.head_bits, "lm_head")
        return capped(apply(head, states), self.facts.logit_cap)

    def layer(self, index: int) -> LayerWeights:
        """The weights of a layer, in the precision asked for."""
        found, precision = self.model.layer(index), self.precision
        if precision is None:
            return found
        parts = found._asdict()
        for name in LINEAR:
            parts[name] = in_precision(parts[name], precision, precision.bits, name)
        return LayerWeights(**parts)

    def product(self, index: int, part: str, linear: LinearLayer, x: Floats) -> Floats:
        """A linear layer, one of `LINEAR`, of a layer: (tokens, inputs) to (tokens, outputs)."""
        return apply(linear, x)

    def block(self, index: int, x: Floats, first: int, keys: Floats, values: Floats) -> tuple[Floats, Floats, Floats]:
        """A layer; behind the last one its norm, too.

        Args:
            x: (tokens, hidden), at positions from `first` on. keys, values: of tokens 0 .. first - 1.

        Returns:
            (tokens, hidden), and keys and values of these tokens.
        """
        weights, epsilon = self.layer(index), self.facts.epsilon
        y, k, v = self._attention(index, weights, rms_norm(x, weights.attention_norm, epsilon), first, keys, values)
        x = x + rms_norm(y, weights.attention_out_norm, epsilon)
        y = rms_norm(x, weights.mlp_norm, epsilon)
        gate, up = (self.product(index, part, getattr(weights, part), y) for part in ("gate", "up"))
        y = self.product(index, "down", weights.down, activated(gate, self.facts.activation) * up)
        x = x + rms_norm(y, weights.mlp_out_norm, epsilon)
        if index == self.facts.layers - 1:
            x = rms_norm(x, self.model.final_norm(), epsilon)
        return x, k, v

    def _attention(
        self, index: int, weights: LayerWeights, x: Floats, first: int, keys: Floats, values: Floats
    ) -> tuple[Floats, Floats, Floats]:
        facts, tokens = self.facts, len(x)
        each = (self.product(index, part, getattr(weights, part), x) for part in "qkv")
        q, k, v = (y.reshape(tokens, -1, facts.head_dim) for y in each)
        q, k = rms_norm(q, weights.q_norm, facts.epsilon), rms_norm(k, weights.k_norm, facts.epsilon)
        cos, sin = (table[first : first + tokens, None] for table in self.tables[facts.rotaries[index]])
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        all_keys, all_values = np.concatenate([keys, k]), np.concatenate([values, v])
        grouped = q.reshape(tokens, facts.kv_heads, -1, facts.head_dim)
        scores = np.einsum("nhgd,thd->hgnt", grouped, all_keys, optimize=True) * np.float32(facts.attention_scale)
        scores = capped(scores, facts.attention_cap)
        scores[..., ~visible(first, tokens, facts.windows[index])] = -np.inf
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        mixed = np.einsum("hgnt,thd->nhgd", scores, all_values, optimize=True)
        return self.product(index, "o", weights.o, mixed.reshape(tokens, -1)), k, v


def perplexity(model: FloatModel, ids: Sequence[int], window: int, begin: Sequence[int] = ()) -> float:
    """exp of the mean of -log p(token | those before it) over whole windows of `ids`, each behind the tokens `begin`.

    Raises RuntimeUseError: there is no whole window.
    """
    total, count = 0.0, 0
    for start in range(0, len(ids) - window + 1, window):
        part = list(ids[start : start + window])
        logits = model.logits(model.states([*begin, *part][:-1]))[-window:].astype(np.float64)
        part = part[-len(logits) :]
        highest = logits.max(-1)
        sums = highest + np.log(np.exp(logits - highest[:, None]).sum(-1))
        total += float(np.sum(sums - logits[range(len(part)), part]))
        count += len(part)
    if not count:
        raise RuntimeUseError(f"{len(ids)} tokens make no window of {window}")
    return float(np.exp(total / count))


def apply(linear: LinearLayer, x: Floats) -> Floats:
    """(tokens, K) to (tokens, N)."""
    out = x @ linear.dense().T
    return out if linear.bias is None else out + linear.bias


def rms_norm(x: Floats, factors: Floats | None, epsilon: float) -> Floats:
    """Along the last axis; x itself where there are no factors."""
    if factors is None:
        return x
    return x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + np.float32(epsilon)) * factors


def rotated(x: Floats, cos: Floats, sin: Floats) -> Floats:
    """Rotary embedding of the first dimensions of the last axis, as many as the tables have."""
    dims = cos.shape[-1]
    first, second = x[..., : dims // 2], x[..., dims // 2 : dims]
    both = x[..., :dims] * cos + np.concatenate([-second, first], -1) * sin
    return np.concatenate([both, x[..., dims:]], -1)


def capped(x: Floats, cap: float | None) -> Floats:
    """cap * tanh(x / cap)."""
    return x if cap is None else np.tanh(x / np.float32(cap)) * np.float32(cap)


def activated(x: Floats, activation: str) -> Array:
    """Of the gate."""
    if activation == "silu":
        return x / (1 + np.exp(-x))
    if activation == "gelu":
        return x / 2 * (1 + erf(x * np.float32(0.5**0.5)))
    return x / 2 * (1 + np.tanh(np.float32((2 / np.pi) ** 0.5) * (x + np.float32(0.044715) * x * x * x)))


def visible(first: int, tokens: int, window: int | None) -> Mask:
    """(tokens, first + tokens): which tokens one at first + i sees, itself and earlier ones, at most `window`."""
    distance = np.arange(first, first + tokens)[:, None] - np.arange(first + tokens)
    return (distance >= 0) if window is None else (distance >= 0) & (distance < window)
