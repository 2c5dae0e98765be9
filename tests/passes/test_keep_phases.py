"""1x1 convolutions compute phases before these are joined: with the same bits on the chips, where that is faster."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.keep_phases import KeepPhases
from bmcompiler.passmanager import PassContext
from bmcompiler.target import find_target

INTEGERS = {"mode": "low", "scale": 2.0**-9}


class Net:
    """conv -> interleave -> conv -> interleave."""

    def __init__(self, dtype: str, size: tuple[int, int]) -> None:
        self.rng, self.b, self.dtype = np.random.default_rng(3), Builder.new("net"), dtype
        self.x = self.b.input("x", TensorType((1 if dtype != "i8" else 4, 24, *size), dtype))

    def conv(self, x: Value, kept: np.ndarray, kernel: int = 1, **attributes: Any) -> Value:
        """Channels of the result that are not `kept` are all 0."""
        n, c, h, w = x.shape
        if self.dtype == "i8":
            weight = self.rng.integers(-128, 128, (len(kept), c, kernel, kernel)).astype(np.int8)
            bias = self.rng.integers(-3000, 3000, len(kept)).astype(np.int16)
            attributes |= INTEGERS
        else:
            weight = self.rng.standard_normal((len(kept), c, kernel, kernel)).astype(self.dtype.replace("f", "float"))
            bias = self.rng.standard_normal(len(kept)).astype(np.float32)
        weight[~kept], bias[~kept] = 0, 0
        out = TensorType((n, len(kept), h, w), self.dtype)
        return self.b.conv(
            x, self.b.weight(weight, "w"), self.b.weight(bias, "b"), out=out, pads=(kernel // 2,) * 4, **attributes
        )

    def phases(self, x: Value, scale: tuple[int, int], channels: int, pitch: int, **attributes: Any) -> Value:
        kept = np.tile(np.arange(pitch) < channels, scale[0] * scale[1])
        made = self.conv(x, kept, **attributes)
        return self.b.interleave(made, scale=scale, channels=channels)

    def module(self, *values: Value) -> Module:
        return self.b.outputs(list(values), [f"y{i}" for i in range(len(values))])


def kept(module: Module, target: Any = TARGET) -> Counter[str]:
    """The ops after the pass; outputs on the chip stay, bit for bit."""
    verify_module(module)
    (x,) = module.main.arguments
    rng = np.random.default_rng(4)
    numbers = rng.standard_normal(x.shape) if x.type.is_float else rng.integers(-128, 128, x.shape)
    inputs = {"x": numbers.astype(x.type.numpy)}
    before = run_module(module, inputs, target=target)
    needed = sum(op.macs() for op in module.main.ops)
    KeepPhases().run(module, PassContext(target=target))
    verify_module(module)
    assert sum(op.macs() for op in module.main.ops) == needed
    for name, array in run_module(module, inputs, target=target).items():
        np.testing.assert_array_equal(before[name].view(np.uint8), array.view(np.uint8))
    return Counter(op.short_name for op in module.main.ops)


@pytest.mark.parametrize(("chip", "dtype"), [("bm1684", "f32"), ("bm1684x", "f32"), ("bm1684x", "f16")])
@pytest.mark.parametrize("channels", [24, 21])
def test_floats_stay_bit_for_bit(channels: int, chip: str, dtype: str) -> None:
    net = Net(dtype, (40, 40))
    x = net.phases(net.x, (2, 2), channels, 64, activation="relu")
    ops = kept(net.module(net.phases(x, (2, 2), 1, 1)), find_target(chip))
    assert (ops["conv"], ops["interleave"]) == (2, 1)


@pytest.mark.parametrize("scale", [(2, 2), (2, 1), (1, 3)])
def test_bytes_stay_bit_for_bit(scale: tuple[int, int]) -> None:
    net = Net("i8", (40, 40))
    x = net.phases(net.x, scale, 24, 64)
    ops = kept(net.module(net.conv(x, np.ones(5, bool))))
    assert (ops["conv"], ops["interleave"]) == (2, 1)


def test_phases_of_both_are_joined_at_once_without_channels_between_them() -> None:
    net = Net("f32", (40, 40))
    module = net.module(net.phases(net.phases(net.x, (2, 2), 24, 64), (2, 1), 3, 4))
    assert kept(module)["interleave"] == 1
    (joined,) = (op for op in module.main.ops if op.short_name == "interleave")
    assert (joined.scale, joined.channels, joined.x.shape[1]) == ((4, 2), 3, 24)
    assert [op.type.shape[1] for op in module.main.ops if op.short_name == "conv"] == [96, 24]


def test_what_others_read_and_windows_stay() -> None:
    for others, kernel in ((True, 1), (False, 3)):
        net = Net("f32", (40, 40))
        x = net.phases(net.x, (2, 2), 24, 64)
        y = net.conv(x, np.ones(4, bool), kernel)
        module = net.module(y, net.b.relu(x)) if others else net.module(y)
        assert [op.type.shape[1] for op in module.main.ops if op.short_name == "conv"] == [256, 4]
        kept(module)
        assert [op.type.shape[1] for op in module.main.ops if op.short_name == "conv"] == [256, 4]


def test_many_channels_stay_where_they_are() -> None:
    net = Net("f32", (40, 40))
    x = net.phases(net.x, (2, 2), 64, 64)
    module = net.module(net.conv(x, np.ones(64, bool)))
    kept(module)
    assert [op.type.shape for op in module.main.ops if op.short_name == "conv"][1] == (1, 64, 80, 80)
