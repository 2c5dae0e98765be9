"""int8 layers with trained statistics: the commands compute what `evaluate` says, at the extremes of every table.

Seeded weights have biases of 16 bits, factors of like size and no dead channel; a trained network has none of that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from trained_weights import trained_layer

from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder
from bmcompiler.testing import check_op

Layer = Callable[[Builder, np.random.Generator, Value], Value]


def _conv(shape: tuple[int, ...], **attributes: object) -> Layer:
    def make(b: Builder, rng: np.random.Generator, x: Value) -> Value:
        weight, bias = trained_layer(rng, shape)
        return b.conv(x, b.weight(weight, "w"), b.weight(bias, "bias"), **attributes)

    return make


def _deconv(b: Builder, rng: np.random.Generator, x: Value) -> Value:
    weight, bias = trained_layer(rng, (24, 16, 4, 4), axis=1)
    return b.deconv(x, b.weight(weight, "w"), b.weight(bias, "bias"), strides=(2, 2), pads=(1, 1, 1, 1))


def _depthwise_deconv(b: Builder, rng: np.random.Generator, x: Value) -> Value:
    weight, bias = trained_layer(rng, (24, 1, 4, 4))
    return b.deconv(x, b.weight(weight, "w"), b.weight(bias, "bias"), strides=(2, 2), pads=(1, 1, 1, 1), group=24)


def _matmul(b: Builder, rng: np.random.Generator, x: Value) -> Value:
    weight, bias = trained_layer(rng, (24 * 9 * 9, 40), axis=1)
    return b.matmul(b.reshape(x, shape=(1, 24 * 9 * 9)), b.weight(weight, "w"), b.weight(bias, "bias"))


def _scale(b: Builder, rng: np.random.Generator, x: Value) -> Value:
    _, bias = trained_layer(rng, (24,))
    gain = 10.0 ** rng.uniform(-3, 1, 24) * rng.choice([-1, 1], 24)
    return b.scale(x, b.weight(gain.astype(np.float32), "w"), b.weight(bias, "bias"))


AROUND = {"pads": (1, 1, 1, 1)}
LAYERS: dict[str, Layer] = {
    "dense": _conv((40, 24, 3, 3), **AROUND),
    "pointwise": _conv((130, 24, 1, 1)),
    "depthwise": _conv((24, 1, 3, 3), **AROUND, group=24),
    "depthwise with strides and padding at one end": _conv((24, 1, 3, 3), pads=(0, 0, 1, 1), strides=(2, 2), group=24),
    "groups": _conv((40, 6, 3, 3), **AROUND, group=4),
    "deconv": _deconv,
    "depthwise deconv": _depthwise_deconv,
    "inner product": _matmul,
    "scale": _scale,
}
BEHIND: dict[str, tuple[Callable[[Builder, Value], Value], tuple[int, ...]]] = {
    "nothing": (lambda b, x: x, (0,)),
    "relu": (lambda b, x: b.relu(x), (1,)),
    "relu6": (lambda b, x: b.clip(x, min=0.0, max=6.0), (0, 1)),
}
"""What reads the layer, and seeds: all layers have both, and both where a bound is added."""


@pytest.mark.parametrize("chip", ["bm1684x", "bm1684", "bm1880"])
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_trained_layer_computes_what_evaluate_says(layer: str, behind: str, chip: str) -> None:
    follow, seeds = BEHIND[behind]
    for seed in seeds:
        rng = np.random.default_rng(seed)

        def make(b: Builder, x: Value, rng: np.random.Generator = rng) -> Value:
            first, more = trained_layer(rng, (24, 3, 1, 1))
            low = b.clip(b.conv(x, b.weight(first, "first"), b.weight(more, "more")), min=0.0, max=6.0)
            return follow(b, LAYERS[layer](b, rng, low))

        check_op(make, [(1, 3, 9, 9)], target=chip, quantize="int8", seeds=1, levels=(2,), on_device=False)


def test_biases_far_below_zero_before_a_relu6_on_every_seed() -> None:
    """What a bias has beyond 16 bits is added behind the factor, where an unsigned result takes no negative number."""
    for seed in range(6):
        rng = np.random.default_rng(seed)

        def make(b: Builder, x: Value, rng: np.random.Generator = rng) -> Value:
            first, more = rng.standard_normal((32, 3, 1, 1)) * 0.5, rng.standard_normal(32)
            weight = np.abs(rng.standard_normal((32, 1, 3, 3))) * 0.3
            weight[::2] *= -1
            bias = -weight.sum((1, 2, 3)) * rng.uniform(0, 6, 32)
            w = [b.weight(array.astype(np.float32), f"w{i}") for i, array in enumerate((first, more, weight, bias))]
            low = b.clip(b.conv(x, w[0], w[1]), min=0.0, max=6.0)
            depthwise = b.conv(low, w[2], w[3], group=32, strides=(2, 2), pads=(0, 0, 1, 1))
            return b.clip(depthwise, min=0.0, max=6.0)

        check_op(make, [(1, 3, 32, 32)], target="bm1684x", quantize="int8", seeds=1, levels=(2,))
