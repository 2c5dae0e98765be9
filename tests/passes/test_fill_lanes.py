"""Convolutions of few channels make rows as channels: which of them, and with the same results on the chip."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.fill_lanes import FillLanes
from bmcompiler.passmanager import PassContext
from bmcompiler.target import find_target


def net(
    channels: tuple[int, int],
    size: tuple[int, int],
    dtype: str = "f32",
    then: str = "",
    reader: Any = None,
    **more: Any,
) -> Module:
    """A conv 3x3 with a bias, the function `then` behind it and a conv of its result with the attributes `reader`."""
    rng, b = np.random.default_rng(3), Builder.new("net")
    (c, o), kernel, floats = channels, more.pop("kernel", (3, 3)), dtype == "f32"
    x = b.input("x", TensorType((1 if floats else 4, c, *size), dtype))

    def conv(x: Any, o: int, **attributes: Any) -> Any:
        shape = (o, x.shape[1], *kernel)
        if floats:
            weight, bias = (rng.standard_normal(s).astype(np.float32) for s in (shape, (o,)))
            return b.conv(x, b.weight(weight, "w"), b.weight(bias, "bias"), **attributes)
        weight = rng.integers(-128, 128, shape).astype(np.int8)
        bias = b.weight(rng.integers(-3000, 3000, o).astype(np.int16), "bias")
        if "narrow" not in attributes:
            return b.conv(x, b.weight(weight, "w"), bias, rshift=9, **attributes)
        rows = rng.integers(1, 7, (o, 1)).astype(np.int16)
        return b.conv(x, b.weight(weight, "w"), bias, b.weight(rows, "f"), mode="channel", rshift=5, **attributes)

    made = conv(x, o, **{"pads": (1, 1, 1, 1)} | more)
    made.op.attributes["source.tensor"] = "few"
    made = getattr(b, then)(made) if then else made
    return b.outputs([conv(made, 8, **reader) if reader else made], ["y"])


def filled(module: Module) -> Counter[str]:
    """The ops after the pass; results on the chip stay to rounding, those of integers bit for bit."""
    argument = module.main.arguments[0]
    rng = np.random.default_rng(4)
    x = rng.standard_normal(argument.shape) if argument.type.is_float else rng.integers(-128, 128, argument.shape)
    inputs = {"x": x.astype(argument.type.numpy)}
    before = run_module(module, inputs, target=TARGET)["y"]
    FillLanes().run(module, PassContext(target=TARGET))
    verify_module(module)
    after = run_module(module, inputs, target=TARGET)["y"]
    assert before.dtype == after.dtype
    if argument.type.is_float:
        spread = max(4 * (9 * argument.shape[1]) ** 0.5, np.abs(before).max())  # of sums before they are clipped
        np.testing.assert_allclose(after, before, atol=2e-6 * spread)
    else:
        np.testing.assert_array_equal(after, before)
    return Counter(op.short_name for op in module.main.ops)


@pytest.mark.parametrize(("side", "rows"), [(8, False), (32, True)])
def test_rows_are_made_of_maps_that_gain_more_than_their_weights_take_to_load(side: int, rows: bool) -> None:
    assert ("interleave" in filled(net((256, 18), (side, side)))) == rows


@pytest.mark.parametrize(
    ("channels", "more"),
    [
        ((96, 24), {}),
        ((96, 12), {"activation": "relu6"}),
        ((96, 24), {"strides": (2, 2), "pads": (1, 0, 1, 0)}),
        ((96, 30), {"then": "relu"}),
    ],
)
def test_floats_stay(channels: tuple[int, int], more: dict[str, Any]) -> None:
    ops = filled(net(channels, (80, 80), **more))
    assert (ops["conv"], ops["interleave"], ops["relu"]) == (1, 1, int("then" in more))


def test_sums_of_whole_quadruples_of_products_stay_bit_for_bit() -> None:
    """Products go to four accumulators in turn: zeros in front of them by fours move none to another."""
    module = net((96, 24), (80, 80), kernel=(5, 5), pads=(2, 2, 2, 2))
    x = {"x": np.random.default_rng(1).standard_normal((1, 96, 80, 80), np.float32)}
    before = run_module(module, x, target=TARGET)["y"]
    assert FillLanes().run(module, PassContext(target=TARGET)).modified
    np.testing.assert_array_equal(run_module(module, x, target=TARGET)["y"].view(np.uint32), before.view(np.uint32))


@pytest.mark.parametrize("more", [{}, {"narrow": True}])
def test_bytes_stay_bit_for_bit(more: dict[str, Any]) -> None:
    ops = filled(net((96, 24), (20, 80), "i8", **more))
    assert (ops["conv"], ops["interleave"]) == (1, 1)


@pytest.mark.parametrize("then", ["", "relu"])
def test_channels_beyond_full_rounds_of_lanes_are_made_in_rows(then: str) -> None:
    module = net((96, 96), (14, 52), "i8", then=then)
    ops = filled(module)
    assert (ops["conv"], ops["relu"], ops["interleave"], ops["concat"]) == (2, 2 * bool(then), 1, 1)
    rest, whole = (op for op in module.main.ops if op.short_name == "conv")
    assert (rest.type.shape, whole.type.shape) == ((4, 64, 7, 52), (4, 64, 14, 52))
    assert sum(op.macs() for op in module.main.ops) == rest.macs() + whole.macs()
    assert [rest.macs(), whole.macs()] == [channels * 96 * 9 * 4 * 14 * 52 for channels in (32, 64)]
    assert filled(net((96, 96), (14, 52)))["concat"] == filled(net((96, 128), (14, 52), "i8"))["concat"] == 0


def test_a_conv_with_steps_reads_the_rows_where_they_are() -> None:
    module = net((24, 24), (64, 64), then="swish", reader={"strides": (2, 2), "pads": (1, 1, 1, 1)})
    ops = filled(module)
    assert (ops["conv"], ops["interleave"], ops["swish"]) == (2, 0, 1)
    first, second = (op for op in module.main.ops if op.short_name == "conv")
    assert first.macs() == 24 * 24 * 9 * 64 * 64 and second.macs() == 8 * 24 * 9 * 32 * 32


@pytest.mark.parametrize(("points", "count"), [((0, 0, 0), 1), ((0, 0, -5), 1), ((3, 0, 0), 0), ((0, 2, 0), 0)])
def test_zeros_are_added_where_zero_is_no_number(points: tuple[int, int, int], count: int) -> None:
    rng, b = np.random.default_rng(3), Builder.new("net")
    x = b.input("x", TensorType((4, 96, 20, 80), "i8"))
    weight = b.weight(rng.integers(-128, 128, (24, 96, 3, 3)).astype(np.int8), "w")
    bias = b.weight(rng.integers(-3000, 3000, 24).astype(np.int32), "bias")
    made = b.conv(x, weight, bias, mode="asymmetric", scale=0.0017, zero_points=points, pads=(1, 1, 1, 1))
    assert filled(b.outputs([made], ["y"]))["interleave"] == count


def in_bands(height: int, top: int, bottom: int, kernel: int) -> Module:
    """Four bands of 32 rows: a conv of few channels, then one that steps by two rows and reads neighbours."""
    rng, b = np.random.default_rng(3), Builder.new("net")
    x = b.input("x", TensorType((4, 24, 34, 60), "i8"))
    weights = [rng.integers(-128, 128, shape).astype(np.int8) for shape in ((24, 24, 3, 3), (48, 24, kernel, 3))]
    few = b.conv(x, b.weight(weights[0], "w"), rshift=9, pads=(0, 0, 1, 1))
    cut = b.regroup_bands(few, rows=32, top=top, bottom=bottom, fill=3, height=height)
    return b.outputs([b.conv(cut, b.weight(weights[1], "w"), rshift=9, strides=(2, 2), pads=(0, 0, 1, 1))], ["y"])


@pytest.mark.parametrize(
    ("height", "top", "bottom", "kernel"), [(128, 1, 0, 3), (110, 1, 0, 3), (128, 2, 1, 5), (122, 1, 1, 4)]
)
def test_bands_of_rows_are_bands_of_cells(height: int, top: int, bottom: int, kernel: int) -> None:
    module = in_bands(height, top, bottom, kernel)
    ops = filled(module)
    assert (ops["conv"], ops["interleave"], ops["regroup_bands"]) == (2, 0, 1)
    (cut,) = (op for op in module.main.ops if op.short_name == "regroup_bands")
    assert (cut.rows, cut.height, cut.x.shape[1:3]) == (16, height // 2, (48, 16))


def test_images_that_end_inside_of_a_cell_have_their_rows_joined_first() -> None:
    ops = filled(in_bands(127, 1, 0, 3))
    assert (ops["conv"], ops["interleave"], ops["regroup_bands"]) == (2, 1, 1)


def test_names_go_to_what_holds_the_values() -> None:
    module = net((96, 24), (80, 80))
    filled(module)
    (joined,) = (op for op in module.main.ops if op.short_name == "interleave")
    (conv,) = (op for op in module.main.ops if op.short_name == "conv")
    assert joined.attributes["source.tensor"] == "few" and "source.tensor" not in conv.attributes


def test_what_has_work_for_all_lanes_or_no_pairs_of_rows_stays() -> None:
    for channels, size, more in (
        ((96, 64), (80, 80), {}),
        ((96, 24), (81, 80), {}),
        ((96, 24), (80, 80), {"dilations": (2, 2), "pads": (2, 2, 2, 2)}),
    ):
        assert not FillLanes().run(net(channels, size, **more), PassContext(target=TARGET)).modified


def test_targets_that_have_no_time_for_it_keep_the_conv() -> None:
    for target in (None, find_target("dv700")):
        assert not FillLanes().run(net((96, 24), (80, 80)), PassContext(target=target)).modified


def net_with_factors(size: int, **more: Any) -> Module:
    """A conv of bytes with a factor and a bias for each channel, and a function behind it."""
    rng, b = np.random.default_rng(5), Builder.new("net")
    x = b.input("x", TensorType((1, 3, size, size), "i8"))
    weight = b.weight(rng.integers(-128, 128, (24, 3, 3, 3)).astype(np.int8), "w")
    bias = b.weight(rng.standard_normal(24).astype(np.float32) * 20, "bias")
    factors = b.weight(rng.uniform(0.001, 0.01, (24, 1)).astype(np.float32), "factors")
    made = b.conv(x, weight, bias, factors, mode="channel", pads=(1, 1, 1, 1), **more)
    return b.outputs([b.relu(made)], ["y"])


@pytest.mark.parametrize("more", [{}, {"zero_points": (7, 0, 0)}])
def test_factors_go_with_their_channels(more: dict[str, Any]) -> None:
    module, chip = net_with_factors(160, **more), find_target("bm1684x")
    inputs = {"x": np.random.default_rng(6).integers(-128, 128, (1, 3, 160, 160)).astype(np.int8)}
    before = run_module(module, inputs, target=chip)["y"]
    assert FillLanes("integers").run(module, PassContext(target=chip)).modified
    verify_module(module)
    np.testing.assert_array_equal(run_module(module, inputs, target=chip)["y"], before)


@pytest.mark.parametrize(("later", "changes"), [(90.0, True), (100.0, False)])
def test_what_saves_nothing_in_the_plan_of_the_net_stays(
    monkeypatch: pytest.MonkeyPatch, later: float, changes: bool
) -> None:
    """The same convolution, which is quicker in rows wherever its data lies, in a plan that says otherwise."""
    module, chip, times = net_with_factors(160), find_target("bm1684x"), iter((100.0, later))
    text = str(module)
    monkeypatch.setattr(type(chip), "planned_cycles", lambda *_: next(times))
    assert FillLanes("integers", planned=True).run(module, PassContext(target=chip)).modified == changes
    assert (str(module) != text) == changes


@pytest.mark.parametrize("images", [16, 32])
def test_batches_that_are_computed_in_parts_have_rows_as_their_parts_have(images: int) -> None:
    """A function that reads the convolution in another layout is asked together with the copy that makes it."""
    b, rng = Builder.new("net"), np.random.default_rng(5)
    weight = b.weight(rng.standard_normal((12, 1, 3, 3)).astype(np.float32))
    x = b.input("x", TensorType((images, 1, 32, 32), "f32"))
    module = b.outputs([b.tanh(b.conv(x, weight, pads=(1, 1, 1, 1)))], ["y"])
    FillLanes().run(module, PassContext(target=find_target("bm1684x")))
    (joined,) = (op for op in module.main.ops if op.short_name == "interleave")
    assert joined.attributes["scale"] == (4, 1)
