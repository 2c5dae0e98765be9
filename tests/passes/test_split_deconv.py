"""Deconvolutions become convolutions of phases: which of them, and with the same bits on the chip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.errors import UsageError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Operation, Quant, TensorType, verify_module
from bmcompiler.numeric.factors import apart
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.split_deconv import SplitDeconv
from bmcompiler.passmanager import PassContext
from bmcompiler.target import Target, find_target
from bmcompiler.testing import check_op

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
    assert op.macs() == 20 * 20 * 4 * channels[0] * channels[1]


def test_phases_of_some_channels_begin_at_lane_0() -> None:
    module = net((24, 24), (1, 20, 20))
    split(module)
    (conv,) = (op for op in module.main.ops if op.short_name == "conv")
    assert conv.type.shape == (1, 4 * 64, 20, 20)
    (joined,) = (op for op in module.main.ops if op.short_name == "interleave")
    assert joined.attributes["source.tensor"] == "up" and "source.tensor" not in conv.attributes


WINDOWS: list[Mapping[str, Any]] = [
    {"kernel": (4, 4), "pads": (1, 1, 1, 1)},
    {"kernel": (3, 3), "pads": (1, 1, 1, 1), "output_pads": (1, 1)},
    {"kernel": (3, 3), "pads": (1, 1, 1, 1)},
    {"kernel": (16, 16), "stride": (8, 8), "pads": (4, 4, 4, 4), "activation": "relu"},
    {"kernel": (5, 5), "stride": (3, 3)},
    {"kernel": (4, 7), "stride": (2, 3), "pads": (0, 3, 2, 1)},
    {"kernel": (5, 3), "stride": (1, 2), "pads": (2, 2, 0, 1), "activation": "relu6"},
    {"kernel": (2, 2), "pads": (0, 1, 0, 0)},
    {"kernel": (1, 3), "output_pads": (0, 1)},
    {"kernel": (4, 4), "pads": (3, 3, 3, 3)},
    {"kernel": (3, 3), "pads": (0, 9, 2, 5)},
    {"kernel": (4, 4), "pads": (1, 1, 1, 1), "group": 2},
    {"kernel": (3, 4), "pads": (1, 1, 1, 1), "group": 2, "activation": "relu"},
    {"kernel": (2, 2), "group": 2},
]
"""Windows that overlap, leave gaps or reach over the border."""


def overlapping(attributes: Mapping[str, Any]) -> Module:
    return net((8, 6), (2, 9, 7), **attributes)


class Eager(type(TARGET)):  # type: ignore[misc]
    """A chip on which each op takes one cycle, a deconv by far the most: every rule that can be is taken."""

    def local_cycles(self, op: Operation, parts: int = 1) -> int:
        return 1 << 40 if op.name.endswith("deconv") else 1

    def moving_cycles(self, op: Operation) -> int:
        return 1


class Groupwise(Eager):
    """A chip that computes deconvolutions group by group in global memory, and nothing in local memory."""

    def local_cycles(self, op: Operation, parts: int = 1) -> None:
        return None

    def cycles(self, op: Operation) -> int:
        return 1 << 40 if op.name.endswith("deconv") else 1


@pytest.mark.parametrize("attributes", WINDOWS, ids=str)
def test_windows_that_overlap_become_phases(attributes: Mapping[str, Any]) -> None:
    becomes_phases(attributes, Eager(), 1)


@pytest.mark.parametrize("attributes", [each for each in WINDOWS if "group" in each], ids=str)
def test_groups_stay_where_zeros_between_them_are_more_work(attributes: Mapping[str, Any]) -> None:
    becomes_phases(attributes, Groupwise(), attributes["group"])


def becomes_phases(attributes: Mapping[str, Any], target: Target, groups: int) -> None:
    before, after = overlapping(attributes), overlapping(attributes)
    (deconv,) = (op for op in before.main.ops if op.short_name == "deconv")
    SplitDeconv().run(after, PassContext(target=target))
    verify_module(after)
    ops = Counter(op.short_name for op in after.main.ops)
    assert (ops["deconv"], ops["conv"], ops["interleave"]) == (0, 1, 1)
    (conv,) = (op for op in after.main.ops if op.short_name == "conv")
    assert conv.attributes.get("group", 1) == groups
    x = {"x": np.random.default_rng(4).standard_normal((2, 8, 9, 7)).astype(np.float32)}
    np.testing.assert_allclose(run_module(after, x)["y"], run_module(before, x)["y"], rtol=1e-5, atol=1e-5)
    assert sum(op.macs() for op in after.main.ops) == deconv.macs()
    (named,) = (op for op in after.main.ops if "source.tensor" in op.attributes)
    assert named.result.type == deconv.result.type


@pytest.mark.parametrize(("chip", "precision"), [("bm1684", "f32"), *(("bm1684x", p) for p in ("f32", "f16", "bf16"))])
@pytest.mark.parametrize("attributes", [each for each in WINDOWS if min(each["kernel"]) > 1], ids=str)
def test_chips_compute_windows_that_overlap(attributes: Mapping[str, Any], chip: str, precision: str) -> None:
    """The bits of `evaluate` and near ONNX Runtime, whichever way the chip takes."""
    weight = np.random.default_rng(5).standard_normal((40, 24 // attributes.get("group", 1), *attributes["kernel"]))
    changes = {"strides": attributes.get("stride", (2, 2))} | {
        name: value for name, value in attributes.items() if name not in ("kernel", "stride")
    }
    check_op(
        lambda b, x: b.deconv(x, b.weight(weight.astype(np.float32), "w"), **changes),
        [(1, 40, *((13, 11) if max(attributes["kernel"]) < 9 else (5, 4)))],
        target=chip,
        quantize=precision,
        seeds=1,
    )


@pytest.mark.parametrize(("depth", "size", "groups"), [(16, 40, 1), (128, 20, 4)])
@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
def test_groups_of_few_channels_are_joined_by_zeros(chip: str, depth: int, size: int, groups: int) -> None:
    """They leave lanes empty; groups that fill the lanes stay."""
    module = net((4 * depth, 4 * depth), (1, size, size), kernel=(4, 4), pads=(1, 1, 1, 1), group=4)
    SplitDeconv().run(module, PassContext(target=find_target(chip)))
    (conv,) = (op for op in module.main.ops if op.short_name == "conv")
    assert conv.attributes.get("group", 1) == groups


def test_more_weights_count() -> None:
    """Windows cut from the first result on have more taps, which a small map does not win back."""
    module = net((256, 128), (1, 4, 4), kernel=(4, 4), pads=(1, 1, 1, 1))
    SplitDeconv().run(module, PassContext(target=TARGET))
    assert all(op.operands[1].type.shape[2:] in ((2, 2), (4, 4)) for op in module.main.ops if len(op.operands) == 3)


KINDS: list[tuple[str, Mapping[str, Any], str]] = [("f32", {}, "integers"), ("i8", LOW, "floats")]


def test_kinds_are_taken_apart() -> None:
    for dtype, modes, kind in KINDS:
        module = net((24, 24), (1, 20, 20), dtype=dtype, **modes)
        assert not SplitDeconv(kind=kind).run(module, PassContext(target=TARGET)).modified
    with pytest.raises(UsageError, match="kind is one of"):
        SplitDeconv(kind="bytes")


def test_what_has_no_phases_stays() -> None:
    for change in (
        {"stride": (1, 1)},
        {"kernel": (3, 3), "dilations": (2, 2)},
        {"kernel": (3, 3), "stride": (1, 1)},
        {"kernel": (2, 2), "output_pads": (1, 0)},  # chips have no windows that lie in the padding
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
