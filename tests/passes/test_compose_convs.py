"""A 1x1 convolution of a convolution becomes one: which of them, and what stays of the numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.precision.compose_convs import ComposeConvs
from bmcompiler.passmanager import PassContext
from bmcompiler.target import find_target

ONE = (1, 1)


def net(
    channels: tuple[int, int, int] = (32, 16, 48),
    kernels: tuple[tuple[int, int], tuple[int, int]] = (ONE, ONE),
    first: dict[str, Any] | None = None,
    last: dict[str, Any] | None = None,
    biased: tuple[bool, bool] = (True, True),
    read_twice: bool = False,
) -> Module:
    """Two convolutions of 40 x 40 pixels, one behind the other."""
    rng, b = np.random.default_rng(3), Builder.new("net")
    made = b.input("x", TensorType((1, channels[0], 40, 40), "f32"))
    between = []
    for depth, count, kernel, more, bias in zip(channels, channels[1:], kernels, (first, last), biased):
        weight = b.weight(rng.standard_normal((count, depth, *kernel)).astype(np.float32), "w")
        vector = b.weight(rng.standard_normal(count).astype(np.float32), "bias") if bias else None
        made = b.conv(made, weight, vector, **(more or {}))
        between.append(made)
    made.op.attributes["source.tensor"] = "last"
    return b.outputs([made, between[0]], ["y", "z"]) if read_twice else b.outputs([made], ["y"])


def composed(module: Module) -> Module:
    """The net after the pass, whose result stays to rounding."""
    x = np.random.default_rng(4).standard_normal(module.main.arguments[0].shape).astype(np.float32)
    before = run_module(module, {"x": x}, target=TARGET)["y"]
    assert ComposeConvs().run(module, PassContext(target=TARGET)).modified
    verify_module(module)
    after = run_module(module, {"x": x}, target=TARGET)["y"]
    np.testing.assert_allclose(after, before, atol=2e-6 * np.abs(before).max())
    assert Counter(op.short_name for op in module.main.ops)["conv"] == 1
    return module


@pytest.mark.parametrize("biased", [(True, True), (False, True), (True, False), (False, False)])
def test_two_pointwise_convolutions_are_one(biased: tuple[bool, bool]) -> None:
    module = composed(net(biased=biased))
    (conv,) = (op for op in module.main.ops if op.short_name == "conv")
    assert conv.macs() == (32 * 16 + 16 * 48) * 40 * 40
    assert conv.attributes["source.tensor"] == "last"


def test_the_first_one_may_have_a_window_and_the_last_one_an_activation() -> None:
    first = {"strides": (2, 2), "pads": (1, 1, 1, 1)}
    module = composed(net((8, 32, 48), ((3, 3), ONE), first, {"activation": "relu"}))
    (conv,) = (op for op in module.main.ops if op.short_name == "conv")
    assert conv.attributes["activation"] == "relu" and tuple(conv.attributes["strides"]) == (2, 2)


@pytest.mark.parametrize(
    "more",
    [
        {"first": {"activation": "relu"}},
        {"last": {"pads": (1, 1, 1, 1)}},
        {"last": {"strides": (2, 2)}},
        {"kernels": (ONE, (3, 3))},
        {"read_twice": True},
        {"channels": (256, 8, 256)},  # the product of the weights has more channels to add up
    ],
)
def test_what_is_read_between_or_takes_longer_stays(more: dict[str, Any]) -> None:
    assert not ComposeConvs().run(net(**more), PassContext(target=TARGET)).modified


def test_weights_that_are_no_numbers_stay() -> None:
    module = net()
    for key in list(module.weights):
        module.weights.get(key).flat[0] = np.inf
    assert not ComposeConvs().run(module, PassContext(target=TARGET)).modified


def test_targets_that_have_no_time_for_it_keep_both() -> None:
    for target in (None, find_target("dv700")):
        assert not ComposeConvs().run(net(), PassContext(target=target)).modified
