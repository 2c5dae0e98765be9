"""Scales by activations: inputs that are large keep more of their weights' precision (Lin et al., arXiv 2306.00978).

Inputs of a linear layer are divided by s and its weights multiplied, which changes nothing before quantization; what
makes the inputs, the factors of a norm or the rows of another layer, takes the division. s = mean(|x|) ** a, with the a
of a few whose quantized products are nearest to those of floats on samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bmcompiler.llm.float_model import FloatModel
from bmcompiler.llm.linear import LinearLayer
from bmcompiler.llm.model import DerivedModel, LanguageModel, LayerWeights
from bmcompiler.llm.precision import Precision, in_precision
from bmcompiler.numeric.arrays import Floats

_EXPONENTS = tuple(i / 10 for i in range(11))
_SHARING = (("q", "k", "v"), ("o",), ("gate", "up"), ("down",))
"""Linear layers that have their inputs in common."""


class LayerScales(NamedTuple):
    """Factors of the inputs of a layer's products: of q, k and v, of o, of gate and up, of down."""

    attention: Floats
    out: Floats
    mlp: Floats
    down: Floats


@dataclass(frozen=True)
class ScaledModel(DerivedModel):
    """A model whose layers compute the same with scaled weights, which are f32."""

    scales: tuple[LayerScales, ...]

    def layer(self, index: int) -> LayerWeights:
        return scaled(super().layer(index), self.scales[index], self.architecture.head_dim)


@dataclass(frozen=True)
class BlockError:
    """How far a layer with other weights is from the model's own, on the same inputs.

    Attributes:
        index: of the layer. relative: root of the mean square of the difference of the states, over that of what the
            layer adds to them.
    """

    index: int
    relative: float


def scaled(weights: LayerWeights, scales: LayerScales, head_dim: int) -> LayerWeights:
    """The same layer with factors moved from what makes the inputs of its products into their weights."""
    attention, out, mlp, down = scales
    shared = weights.o.depth // len(out)
    repeated = np.repeat(out.reshape(-1, head_dim), shared, axis=0).reshape(-1)
    return weights._replace(
        attention_norm=None if weights.attention_norm is None else weights.attention_norm / attention,
        mlp_norm=None if weights.mlp_norm is None else weights.mlp_norm / mlp,
        q=_scaled(weights.q, attention),
        k=_scaled(weights.k, attention),
        v=_scaled(weights.v, attention, out),
        o=_scaled(weights.o, repeated),
        gate=_scaled(weights.gate, mlp),
        up=_scaled(weights.up, mlp, down),
        down=_scaled(weights.down, down),
    )


def activation_scales(model: LanguageModel, precision: Precision, ids: Sequence[int]) -> ScaledModel:
    """A model that loses less when it is quantized with `precision`, judged by what it computes for these tokens.

    Heads that share keys and values share the factors of what they give, too. Where no norm stands before a half of a
    layer its inputs are not scaled.
    """
    facts = model.architecture
    watched = _Watched(model, len(ids))
    watched.states(ids)
    found = []
    for index in range(facts.layers):
        weights, inputs = model.layer(index), watched.inputs[index]
        shared = facts.heads // facts.kv_heads
        attention, out, mlp, down = (
            _best(
                [getattr(weights, part) for part in parts],
                inputs[parts[0]],
                (shared, facts.head_dim) if parts == ("o",) else (1, inputs[parts[0]].shape[1]),
                precision,
                fixed=(parts[0] == "q" and not facts.family.norms.attention)
                or (parts[0] == "gate" and not facts.family.norms.mlp),
            )
            for parts in _SHARING
        )
        found.append(LayerScales(attention, out, mlp, down))
    return ScaledModel(model.path, model.architecture, model, tuple(found))


def block_errors(
    model: LanguageModel, other: LanguageModel, precision: Precision, ids: Sequence[int]
) -> list[BlockError]:
    """What each layer of `other` in a precision makes wrong on the states that `model` has in float32."""
    exact, rough = FloatModel(model, len(ids)), FloatModel(other, len(ids), precision)
    x, out = exact.embed(ids), []
    empty = exact.new_cache()
    for index in range(model.architecture.layers):
        history = (empty.keys[index], empty.values[index])
        wanted, found = (each.block(index, x, 0, *history)[0] for each in (exact, rough))
        added = float(np.sqrt(np.mean(np.square(wanted - x))))
        out.append(BlockError(index, float(np.sqrt(np.mean(np.square(found - wanted)))) / added))
        x = wanted
    return out


class _Watched(FloatModel):
    """Keeps the inputs of each product, by layer and part."""

    def __init__(self, model: LanguageModel, rows: int) -> None:
        super().__init__(model, rows)
        self.inputs: list[dict[str, Floats]] = [{} for _ in range(self.facts.layers)]

    def product(self, index: int, part: str, linear: LinearLayer, x: Floats) -> Floats:
        self.inputs[index][part] = x
        return super().product(index, part, linear, x)


def _scaled(linear: LinearLayer, inputs: Floats, outputs: Floats | None = None) -> LinearLayer:
    weight, bias = linear.dense() * inputs, linear.bias
    if outputs is not None:
        weight = weight / outputs[:, None]
        bias = None if bias is None else bias / outputs
    return LinearLayer(weight, linear.depth, bias)


def _best(
    linears: list[LinearLayer], x: Floats, shared: tuple[int, int], precision: Precision, *, fixed: bool
) -> Floats:
    """Factors of the inputs x (tokens, K); of K / (heads * width) groups each has the same for all its heads.

    Args: shared: heads, and the width of a head.
    """
    heads, width = shared
    size = np.abs(x).mean(0).reshape(-1, heads, width).mean(1).reshape(-1)
    ones = np.ones_like(size)
    if fixed or precision.bits is None or not np.all(size > 0):
        return ones
    products = [each.dense() @ x.T for each in linears]
    errors = []
    for exponent in _EXPONENTS:
        factors = _factors(size, exponent)
        wide = np.repeat(factors.reshape(-1, width), heads, axis=0).reshape(-1)
        rough = (in_precision(_scaled(each, wide), precision, precision.bits, "scaled") for each in linears)
        scaled_inputs = (x / wide).T
        errors.append(sum(float(np.sum(np.square(r.dense() @ scaled_inputs - p))) for r, p in zip(rough, products)))
    return _factors(size, _EXPONENTS[int(np.argmin(errors))])


def _factors(size: Floats, exponent: float) -> Floats:
    """Powers of the inputs' sizes, about 1 in the middle."""
    powers = size ** np.float32(exponent)
    return (powers / np.sqrt(powers.max() * powers.min())).astype(np.float32)
