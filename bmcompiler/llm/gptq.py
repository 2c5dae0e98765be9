"""GPTQ: codes that make up for the errors of those before, by the inputs of samples (Frantar et al., arXiv 2210.17323).

Inputs of a product are quantized one after the other; what one loses is spread over those that are left, so that the
outputs for the samples change least. Layers are quantized in order, each for the states that quantized ones give.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bmcompiler.errors import UsageError
from bmcompiler.ir.types import numpy_dtype
from bmcompiler.llm.float_model import FloatModel
from bmcompiler.llm.linear import LinearLayer
from bmcompiler.llm.model import LINEAR, DerivedModel, LanguageModel, LayerWeights
from bmcompiler.llm.precision import Precision
from bmcompiler.numeric.arrays import Array, Bytes, Doubles, Floats
from bmcompiler.numeric.packed_weights import PackedWeights, packed, quantized

_DAMPING = 0.01  # of the mean of the diagonal, which keeps seldom inputs from ruling


@dataclass(frozen=True)
class QuantizedModel(DerivedModel):
    """A model whose layers have codes; they are in memory, all other weights are read when they are asked for."""

    quantized: tuple[LayerWeights, ...]

    def layer(self, index: int) -> LayerWeights:
        return self.quantized[index]


def gptq_model(model: LanguageModel, precision: Precision, samples: Sequence[Sequence[int]]) -> QuantizedModel:
    """The model with codes of `precision` for the products of its layers, judged by what it computes for the samples.

    Products that have codes already keep them. Raises UsageError: the precision has no codes, or there are no samples.
    """
    if precision.bits is None or not samples:
        raise UsageError("GPTQ makes codes by samples", remedy="choose weights of 4 or 8 bits, and give a text")
    watched = _Watched(model, max(map(len, samples)))
    states, done = [watched.embed(ids) for ids in samples], []
    for index in range(model.architecture.layers):
        exact = model.layer(index)
        squares: dict[str, Doubles] = {}
        watched.weights, watched.squares = exact, squares
        for x in states:
            watched.step(index, x)
        parts = exact._asdict()
        parts |= {part: _in_codes(parts[part], squares[part], precision) for part in LINEAR}
        done.append(LayerWeights(**parts))
        watched.weights, watched.squares = done[-1], None
        states = [watched.step(index, x) for x in states]
    return QuantizedModel(model.path, model.architecture, model, tuple(done))


class _Watched(FloatModel):
    """Layers with weights that are given; sums of the products of inputs, (K, K) f64, for each part."""

    weights: LayerWeights
    squares: dict[str, Doubles] | None = None

    def layer(self, index: int) -> LayerWeights:
        return self.weights

    def step(self, index: int, x: Floats) -> Floats:
        """States behind a layer."""
        cache = self.new_cache()
        return self.block(index, x, 0, cache.keys[index], cache.values[index])[0]

    def product(self, index: int, part: str, linear: LinearLayer, x: Floats) -> Floats:
        if self.squares is not None:
            wide = x.astype(np.float64)
            self.squares[part] = self.squares.get(part, np.zeros((x.shape[1],) * 2)) + wide.T @ wide
        return super().product(index, part, linear, x)


def _in_codes(linear: LinearLayer, squares: Doubles, precision: Precision) -> LinearLayer:
    if isinstance(linear.weight, PackedWeights):
        return linear
    return replace(linear, weight=nearest_outputs(linear.dense(), squares, precision))


def nearest_outputs(weight: Floats, squares: Doubles, precision: Precision) -> PackedWeights:
    """Codes of f32 weights (N, K) for inputs whose products have the sums `squares` (K, K) f64."""
    bits = precision.bits or 8
    rest, size = weight.astype(np.float64), precision.group_size or weight.shape[1]
    spread = _spread(squares)
    found = list(_groups(rest, spread, size, bits, precision))
    codes = np.concatenate([each[0] for each in found], axis=1)
    scale, zero = np.stack([each[1] for each in found], axis=1), np.stack([each[2] for each in found], axis=1)
    return PackedWeights(packed(codes, bits), scale, None if precision.symmetric else zero, bits, precision.group_size)


def _spread(squares: Doubles) -> Doubles:
    """How an error of an input's weight is made up for by those behind it: Cholesky of the inverse, (K, K) upper."""
    damped = squares.copy()
    places = np.arange(len(damped))
    damped[places, places] += _DAMPING * max(float(np.trace(squares)) / len(squares), 1e-30)
    upper: Doubles = np.linalg.cholesky(np.linalg.inv(damped)).T
    return upper


def _groups(
    rest: Doubles, spread: Doubles, size: int, bits: int, precision: Precision
) -> Iterator[tuple[Bytes, Array, Bytes]]:
    """Codes (N, g), scales and zero points (N) of each group; `rest` is what is left to quantize, and changes."""
    top, depth = 2**bits - 1, rest.shape[1]
    for first in range(0, depth, size):
        last = min(first + size, depth)
        part = rest[:, first:last]
        range_of = quantized(
            part.astype(np.float32), bits, 0, numpy_dtype(precision.dtype), symmetric=precision.symmetric
        )
        scale = range_of.scale[:, 0]
        middle = range_of.zero_point
        zero = np.full(len(part), 2 ** (bits - 1), np.uint8) if middle is None else middle[:, 0]
        step, codes, errors = scale.astype(np.float64), np.empty(part.shape, np.uint8), np.empty_like(part)
        step = np.where(step == 0, 1, step)
        for k in range(last - first):
            codes[:, k] = np.clip(np.rint(part[:, k] / step) + zero, 0, top)
            made = (codes[:, k].astype(np.float64) - zero) * step
            errors[:, k] = (part[:, k] - made) / spread[first + k, first + k]
            part[:, k + 1 :] -= errors[:, k, None] * spread[first + k, first + k + 1 : last]
        rest[:, last:] -= errors @ spread[first:last, last:]
        yield codes, scale, zero
