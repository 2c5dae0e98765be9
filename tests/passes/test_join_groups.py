"""Grouped convolutions become dense, shuffles of channels go into weights: when, and with the same bits on the chip."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.numeric.factors import apart
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.join_groups import JoinGroups
from bmcompiler.passmanager import PassContext
from bmcompiler.target import find_target

CONSTANTS = {"channel": 3}
"""Of a convolution; in the mode channel factors, too."""


class Net:
    """A net of 4-D feature maps under construction."""

    def __init__(self, channels: int, dtype: str = "f32", size: int = 12) -> None:
        self.rng, self.b, self.dtype = np.random.default_rng(7), Builder.new("net"), dtype
        self.x = self.b.input("x", TensorType((1, channels, size, size), "f32" if dtype == "f32" else "i8"))

    def conv(self, x: Value, channels: int, group: int, kernel: int = 1, **more: Any) -> Value:
        shape = (channels, x.shape[1] // group, kernel, kernel)
        size = x.shape[2] - kernel + 1
        weight, bias = self.rng.standard_normal(shape).astype(np.float32), self.rng.standard_normal(channels)
        if self.dtype == "f32":
            arrays = weight, bias.astype(np.float32)
        else:
            arrays = (weight * 50).clip(-128, 127).astype(np.int8), (bias * 900).astype(np.int16)
            more = {"out": TensorType((1, channels, size, size), "i8"), **more}
        if self.dtype == "i8":
            more["rshift"] = 7
        elif self.dtype == "channel":
            arrays = (*arrays[:1], arrays[1].astype(np.int32), apart(self.rng.uniform(0.003, 0.02, channels)))
            more |= {"mode": "channel", "zero_points": (5, 0, -3)}
        operands = [self.b.weight(array, "weight") for array in arrays]
        return self.b.conv(x, *operands, group=group, **more)

    def shuffled(self, x: Value, groups: int, order: tuple[int, ...] = (0, 2, 1, 3, 4)) -> Value:
        n, c, h, w = x.shape
        split = self.b.reshape(x, shape=(n, groups, c // groups, h, w))
        return self.b.reshape(self.b.permute(split, order=order), shape=x.shape)

    def module(self, *values: Value) -> Module:
        return self.b.outputs(list(values), [f"y{i}" for i in range(len(values))])


def joined(module: Module) -> Counter[str]:
    """The ops after the pass; outputs on the chip stay, bit for bit."""
    verify_module(module)
    by_channel = any(len(op.operands) > 3 for op in module.main.ops if op.short_name == "conv")
    target = find_target("bm1684x") if by_channel else TARGET
    argument = module.main.arguments[0]
    rng = np.random.default_rng(4)
    x = rng.standard_normal(argument.shape) if argument.type.is_float else rng.integers(-128, 128, argument.shape)
    inputs = {"x": x.astype(argument.type.numpy)}
    before = run_module(module, inputs, target=target)
    JoinGroups().run(module, PassContext(target=target))
    verify_module(module)
    for name, after in run_module(module, inputs, target=target).items():
        np.testing.assert_array_equal(before[name].view(np.uint8), after.view(np.uint8))
    return Counter(op.short_name for op in module.main.ops)


def groups_of(module: Module) -> list[int]:
    return [op.attributes.get("group", 1) for op in module.main.ops if op.short_name == "conv"]


@pytest.mark.parametrize("dtype", ["f32", "i8", "channel"])
@pytest.mark.parametrize(("depth", "group"), [(2, 3), (3, 4), (5, 2), (8, 4), (7, 5)])
def test_rule_1_groups_become_zeros_among_the_weights(depth: int, group: int, dtype: str) -> None:
    net = Net(depth * group, dtype)
    module = net.module(net.conv(net.x, 3 * group, group, activation="relu"))
    assert joined(module)["weight"] == CONSTANTS.get(dtype, 2)
    assert groups_of(module) == [1]


def test_rule_1_others_stay() -> None:
    depthwise, window, large = Net(8), Net(8), Net(64, size=2)
    for net, module in (
        (depthwise, depthwise.module(depthwise.conv(depthwise.x, 8, 8))),
        (window, window.module(window.conv(window.x, 8, 2, kernel=3))),
        (large, large.module(large.conv(large.x, 64, 4))),
    ):
        before = groups_of(module)
        joined(module)
        assert groups_of(module) == before != [1], net.x.shape


@pytest.mark.parametrize("dtype", ["f32", "i8", "channel"])
@pytest.mark.parametrize("kernel", [1, 3])
def test_rule_2_a_shuffle_goes_into_the_weights(dtype: str, kernel: int) -> None:
    net = Net(6, dtype)
    module = net.module(net.shuffled(net.conv(net.x, 12, 1, kernel=kernel), 3))
    assert joined(module) == {"conv": 1, "weight": CONSTANTS.get(dtype, 2), "return": 1}


def test_both_rules_leave_a_shufflenet_unit_without_moves() -> None:
    net = Net(16)
    middle = net.shuffled(net.conv(net.x, 8, 4, activation="relu"), 4)
    deep = net.conv(middle, 8, 8, kernel=3)
    module = net.module(net.conv(deep, 16, 4))
    assert joined(module) == {"conv": 3, "weight": 6, "return": 1}
    assert groups_of(module) == [1, 8, 1]


def test_rule_2_other_orders_and_values_read_twice_stay() -> None:
    net = Net(6)
    twice = net.conv(net.x, 12, 1)
    moved = net.shuffled(net.conv(net.x, 12, 1), 3, (0, 1, 2, 4, 3))
    ops = joined(net.module(net.shuffled(twice, 3), twice, moved, net.shuffled(net.x, 2)))
    assert (ops["permute"], ops["reshape"]) == (3, 6)
