"""Deconvolutions become 1x1 convolutions: which of them, and with the same bits on the chip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.codegen import rows
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Quant, TensorType, verify_module
from bmcompiler.numeric.factors import apart
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.split_deconv import SplitDeconv
from bmcompiler.passmanager import PassContext
from bmcompiler.target import Target, find_target

LOW = {"mode": "low", "scale": 2.0**-9}
HIGH = {"mode": "high", "scale": 0.0017}


CHANNEL = {"mode": "channel", "zero_points": (5, 0, -3)}


def net(
    channels: tuple[int, int],
    size: tuple[int, int, int],
    stride: tuple[int, int] = (2, 2),
    dtype: str = "f32",
    weight: np.ndarray | None = None,
    **attributes: Any,
) -> Module:
    """A deconv as large as its stride, with a bias."""
    rng, b = np.random.default_rng(3), Builder.new("net")
    (c, o), (n, h, w) = channels, size
    x = b.input("x", TensorType((n, c, h, w), dtype))
    kernel = attributes.pop("kernel", stride)
    groups = attributes.get("group", 1)
    if dtype == "f32":
        weight = rng.standard_normal((c, o // groups, *kernel)).astype(np.float32) if weight is None else weight
        bias = b.weight(rng.standard_normal(o).astype(np.float32), "bias")
        made = b.deconv(x, b.weight(weight, "w"), bias, strides=stride, **attributes)
    else:
        weight = rng.integers(-128, 128, (c, o, *kernel)).astype(np.int8)
        bias = rng.integers(-3000, 3000, o).astype(np.int16)
        out = TensorType((n, o, h * stride[0], w * stride[1]), "i8")
        vectors = [bias.astype(np.int32), apart(rng.uniform(0.001, 0.01, o))] if "zero_points" in attributes else [bias]
        operands = [b.weight(array, "vector") for array in vectors]
        if "zero_points" in attributes:
            operands[0].type = TensorType((o,), "i32", Quant.along(0, np.full(o, 2.0**-9)))
        made = b.deconv(x, b.weight(weight, "w"), *operands, strides=stride, out=out, **attributes)
    made.op.attributes["source.tensor"] = "up"
    return b.outputs([made], ["y"])


def split(module: Module, target: Target = TARGET) -> Counter[str]:
    """The ops after the pass; outputs on the chip stay, bit for bit."""
    verify_module(module)
    argument = module.main.arguments[0]
    rng = np.random.default_rng(4)
    x = rng.standard_normal(argument.shape) if argument.type.is_float else rng.integers(-128, 128, argument.shape)
    inputs = {"x": x.astype(argument.type.numpy)}
    before = run_module(module, inputs, target=target)["y"]
    SplitDeconv().run(module, PassContext(target=target))
    verify_module(module)
    after = run_module(module, inputs, target=target)["y"]
    np.testing.assert_array_equal(before.view(np.uint8), after.view(np.uint8))
    return Counter(op.short_name for op in module.main.ops)


@pytest.mark.parametrize(
    ("channels", "attributes"),
    [
        ((24, 1), {}),
        ((24, 24), {"activation": "relu6"}),
        ((6, 5), {"stride": (3, 2), "activation": "relu"}),
        ((1, 70), {}),
        ((7, 2), {"stride": (1, 2)}),
    ],
)
def test_floats_stay_bit_for_bit(channels: tuple[int, int], attributes: Mapping[str, Any]) -> None:
    ops = split(net(channels, (1, 20, 20), **attributes))
    assert (ops["deconv"], ops["conv"], ops["interleave"], ops["weight"]) == (0, 1, 1, 2)


@pytest.mark.parametrize("modes", [LOW, HIGH, {"rshift": 9}], ids=["low", "high", "shift"])
@pytest.mark.parametrize("channels", [(24, 1), (24, 24)])
def test_bytes_stay_bit_for_bit(channels: tuple[int, int], modes: Mapping[str, Any]) -> None:
    ops = split(net(channels, (4, 20, 20), dtype="i8", **modes))
    assert (ops["deconv"], ops["conv"], ops["interleave"]) == (0, 1, 1)


@pytest.mark.parametrize("channels", [(24, 1), (24, 24)])
def test_factors_of_channels_go_with_them(channels: tuple[int, int]) -> None:
    module = net(channels, (1, 20, 20), dtype="i8", **CHANNEL)
    ops = split(module, find_target("bm1684x"))
    assert (ops["deconv"], ops["conv"], ops["interleave"]) == (0, 1, 1)
    (op,) = (op for op in module.main.ops if op.short_name == "conv")
    assert rows.macs(op) == 20 * 20 * 4 * channels[0] * channels[1]


def test_phases_of_some_channels_begin_at_lane_0() -> None:
    module = net((24, 24), (1, 20, 20))
    split(module)
    (conv,) = (op for op in module.main.ops if op.short_name == "conv")
    assert conv.type.shape == (1, 4 * 64, 20, 20)
    (joined,) = (op for op in module.main.ops if op.short_name == "interleave")
    assert joined.attributes["source.tensor"] == "up" and "source.tensor" not in conv.attributes


def test_what_overlaps_or_leaves_gaps_stays() -> None:
    for change in (
        {"kernel": (3, 3)},
        {"pads": (0, 1, 0, 0)},
        {"output_pads": (1, 0)},
        {"group": 2},
        {"stride": (1, 1)},
    ):
        module = net((8, 8), (1, 20, 20), **change)
        assert not SplitDeconv().run(module, PassContext(target=TARGET)).modified
    infinite = np.full((8, 8, 2, 2), np.inf, np.float32)
    assert not SplitDeconv().run(net((8, 8), (1, 20, 20), weight=infinite), PassContext(target=TARGET)).modified


def test_targets_that_have_no_time_for_it_keep_the_deconv() -> None:
    for target in (None, find_target("dv700")):
        assert not SplitDeconv().run(net((8, 8), (1, 20, 20)), PassContext(target=target)).modified


def test_small_maps_stay_and_large_ones_are_made_in_parts() -> None:
    """Copies between lanes take time to start; what exceeds local memory is estimated in parts of its rows."""
    assert split_or_not((1, 1, 1)) == 1
    assert split_or_not((1, 600, 600)) == 0


def split_or_not(size: tuple[int, int, int]) -> int:
    """Deconvolutions that the pass leaves."""
    module = net((4, 1), size)
    SplitDeconv().run(module, PassContext(target=TARGET))
    return sum(op.short_name == "deconv" for op in module.main.ops)
