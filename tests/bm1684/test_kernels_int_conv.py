"""Convolutions of bytes on the BM1684: the simulator equals the exact integer op, in all modes and element types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bm1684_nets import FULL, Net, check, check_op, local_memory
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from int_samples import Sums, sums

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.kernels import ConvKernel
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.ir import TensorType, Value
from bmcompiler.target import unsupported_reason

LANES = st.sampled_from([4096, 16384, FULL])
SIDE = st.integers(1, 12)
BATCH = st.integers(1, 9)
CHANNELS = st.one_of(st.integers(1, 9), st.sampled_from([63, 64, 65, 130]))
SEED = st.integers(0, 99)
property_test = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def windows(draw: st.DrawFn) -> tuple[tuple[int, int], dict[str, Any]]:
    """((h, w) of the input, geometry of a convolution)."""
    pair = lambda values: st.tuples(values, values)  # noqa: E731
    size, kernel = draw(pair(SIDE)), draw(pair(st.one_of(st.integers(1, 4), st.just(18))))
    strides, dilations = draw(pair(st.one_of(st.integers(1, 3), st.just(17)))), draw(pair(st.integers(1, 2)))
    pads = tuple(draw(st.one_of(st.integers(0, 2), st.just(16))) for _ in range(4))
    for axis in range(2):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        span = size[axis] + pads[2 * axis] + pads[2 * axis + 1] - reach
        assume(span >= 0 and pads[2 * axis] < reach and pads[2 * axis + 1] < reach)
        assume((span // strides[axis]) * strides[axis] < pads[2 * axis] + size[axis])
    return size, {"kernel": kernel, "strides": strides, "pads": pads, "dilations": dilations}


def out_size(size: tuple[int, int], g: dict[str, Any]) -> tuple[int, ...]:
    return tuple(
        (n + g["pads"][2 * i] + g["pads"][2 * i + 1] - (g["kernel"][i] - 1) * g["dilations"][i] - 1) // g["strides"][i]
        + 1
        for i, n in enumerate(size)
    )


@property_test
@given(windows(), sums(), BATCH, st.integers(1, 3), CHANNELS, CHANNELS, LANES, SEED)
def test_conv(g: Any, kind: Sums, n: int, group: int, ci: int, co: int, lanes: int, seed: int) -> None:
    size, window = g
    assume(ci * window["kernel"][0] * window["kernel"][1] <= 15000)  # else sums of u8 exceed 32 bits

    def make(net: Net, x: Value) -> Value:
        weight, bias = net.integers(kind.weight, co * group, ci, *window["kernel"]), kind.constant_bias(net, co * group)
        geometry = {key: window[key] for key in ("strides", "pads", "dilations")}
        out = kind.out((n, co * group, *out_size(size, window)))
        factors = kind.factors(net, co * group)
        return net.b.conv(x, weight, bias, factors, group=group, out=out, **geometry, **kind.modes)

    check_op(make, (n, ci * group, *size), dtype=kind.data, seed=seed, lanes=lanes)


@property_test
@given(windows(), sums(), BATCH, CHANNELS, LANES, SEED)
def test_depthwise(g: Any, kind: Sums, n: int, channels: int, lanes: int, seed: int) -> None:
    size, window = g

    def make(net: Net, x: Value) -> Value:
        weight, bias = net.integers(kind.weight, channels, 1, *window["kernel"]), kind.constant_bias(net, channels)
        geometry = {key: window[key] for key in ("strides", "pads", "dilations")}
        out = kind.out((n, channels, *out_size(size, window)))
        factors = kind.factors(net, channels)
        return net.b.conv(x, weight, bias, factors, group=channels, out=out, **geometry, **kind.modes)

    check_op(make, (n, channels, *size), dtype=kind.data, seed=seed, lanes=lanes)


@property_test
@given(
    st.tuples(st.integers(1, 7), st.integers(1, 7)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    sums(("", "low", "high", "channel")),
    BATCH,
    st.integers(1, 3),
    CHANNELS,
    CHANNELS,
    LANES,
    SEED,
)
def test_deconv(
    size: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    kind: Sums,
    n: int,
    group: int,
    ci: int,
    co: int,
    lanes: int,
    seed: int,
) -> None:
    pads = (kernel[0] // 2, (kernel[0] - 1) // 2, kernel[1] // 2, (kernel[1] - 1) // 2)
    outs = tuple((s - 1) * t + k - k // 2 - (k - 1) // 2 for s, t, k in zip(size, strides, kernel))
    assume(all(k >= t for t, k in zip(strides, kernel)) and min(outs) >= 1)

    def make(net: Net, x: Value) -> Value:
        weight, bias = net.integers(kind.weight, ci * group, co, *kernel), kind.constant_bias(net, co * group)
        out = kind.out((n, co * group, *outs))
        factors, window = kind.factors(net, co * group), {"strides": strides, "pads": pads, "group": group}
        return net.b.deconv(x, weight, bias, factors, out=out, **window, **kind.modes)

    check_op(make, (n, ci * group, *size), dtype=kind.data, seed=seed, lanes=lanes)


def test_sums_at_the_limit_of_the_accumulator() -> None:
    net = Net([(1, 4095, 2, 4)], dtype="u8")
    weight = net.b.weight(np.full((1, 4095, 2, 4), 255, np.uint8), "w")
    y = net.b.conv(net.inputs[0], weight, out=TensorType((1, 1, 1, 1), "u16"), rshift=15)
    check(net.module([y]), inputs={"x0": np.full((1, 4095, 2, 4), 255, np.uint8)})


@pytest.mark.parametrize(
    ("shape", "bias", "reason"),
    [((1, 4095, 3, 3), "i16", "The sums must fit 32 bits"), ((1, 3, 3, 3), "i32", "must be i16 or u16")],
)
def test_what_would_not_be_exact_is_refused(shape: tuple[int, int, int, int], bias: str, reason: str) -> None:
    net = Net([shape], dtype="u8")
    out = TensorType((1, 1, 1, 1), "u8")
    y = net.b.conv(net.inputs[0], net.integers("u8", *shape), net.integers(bias, 1), out=out, rshift=20)
    net.module([y])
    assert reason in (unsupported_reason(TARGET, y.op) or "")


def test_tiles_that_share_an_input_lay_it_out_alike() -> None:
    """The last tile has fewer channels than those before, and would alone be done sooner without bands."""

    def make(net: Net, x: Value) -> Value:
        out = TensorType((1, 320, 15, 15), "i8")
        return net.b.conv(x, net.integers("i8", 320, 960, 1, 1), None, out=out, mode="low", scale=2.0**-11)

    check_op(make, (1, 960, 15, 15), dtype="i8", level=0)


@pytest.mark.parametrize(
    ("batch", "kernel", "pads", "dilation", "transfers"),
    [(1, 5, (0, 0, 0, 0), 1, 1), (4, 3, (0, 0, 1, 1), 2, 1), (1, 3, (1, 1, 1, 1), 1, 3), (5, 3, (0, 0, 0, 0), 1, 3)],
)
def test_rows_of_windows_that_see_as_much_come_by_one_transfer(
    batch: int, kernel: int, pads: tuple[int, int, int, int], dilation: int, transfers: int
) -> None:
    """Of one image of words: what lies in local memory already is read several times, from another row each time."""
    net = Net([(batch, 3, 12, 12)], dtype="i8")
    x = net.b.relu(net.inputs[0])
    reach = (kernel - 1) * dilation + 1
    out = TensorType((batch, 20, 13 - reach + pads[0] + pads[1], 13 - reach + pads[2] + pads[3]), "i8")
    y = net.b.conv(
        x, net.integers("i8", 20, 3, kernel, kernel), out=out, rshift=8, pads=pads, dilations=(dilation, dilation)
    )
    compiled = check(net.module([y]))
    listing = TARGET.disassemble(compiled.model)
    assert listing.count("l2l.copy") == transfers


@pytest.mark.parametrize(("channels", "group", "kernel"), [(20, 1, 3), (130, 1, 1), (70, 70, 3), (64, 64, 5)])
def test_weights_and_bias_of_a_layer_are_one_load(channels: int, group: int, kernel: int) -> None:
    """One run for each lane, whatever rounds of lanes there are."""
    net = Net([(1, group if group > 1 else 9, 8, 8)], dtype="i8")
    weight = net.integers("i8", channels, 1 if group > 1 else 9, kernel, kernel)
    size = 9 - kernel
    out = TensorType((1, channels, size, size), "i8")
    y = net.b.conv(net.inputs[0], weight, net.integers("i16", channels), group=group, out=out, mode="low", scale=0.003)
    listing = TARGET.disassemble(check(net.module([y])).model)
    assert listing.count("s2l.copy") == 2


@pytest.mark.parametrize("images", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("result", ["i8", "u8"])
def test_shifts_of_channels_take_two_commands_for_up_to_four_images(images: int, result: str) -> None:
    net = Net([(images, 16, 6, 7)], dtype="i8")
    rows = (np.arange(70) % 8).astype(np.int16)[:, None]
    operands = net.integers("i8", 70, 16, 1, 1), net.integers("i16", 70), net.b.weight(rows, "w")
    out = TensorType((images, 70, 6, 7), result)
    y = net.b.conv(net.inputs[0], *operands, mode="channel", narrow=True, rshift=2, out=out)
    assert check(net.module([y])).totals["TIU commands"] == 1 + 2 * -(-images // 4)


@property_test
@given(
    st.sampled_from([(40, 3), (48, 3), (64, 2), (64, 3), (57, 5)]),
    st.tuples(st.integers(1, 3), st.integers(1, 2)),
    st.integers(1, 2),
    st.sampled_from([1, 3, 4, 9]),
    LANES,
)
def test_rows_of_a_window_are_channels_64_further(
    window: tuple[int, int], strides: tuple[int, int], dilation: int, images: int, lanes: int
) -> None:
    """Of other rows 64 channels each, so that the command has them as one position."""
    channels, rows = window
    size, points = (14, 9), {"mode": "asymmetric", "scale": 0.002, "zero_points": (3, 0, 5)}
    geometry = {"kernel": (rows, 3), "strides": strides, "pads": (0, 0, 1, 1), "dilations": (dilation, 1)}
    net = Net([(images, channels, *size)], dtype="i8")
    out = TensorType((images, 70, *out_size(size, geometry)), "i8")
    del geometry["kernel"]
    y = net.b.conv(
        net.b.relu(net.inputs[0]), net.integers("i8", 70, channels, rows, 3), None, out=out, **geometry, **points
    )
    kernel = TARGET.kernel_for(y.op)  # type: ignore[arg-type]
    assert isinstance(kernel, ConvKernel)
    assert kernel.form(y.op).stacks_rows(y.op)  # type: ignore[arg-type, union-attr, attr-defined]
    with local_memory(lanes):
        check(net.module([y]), level=2)


@pytest.mark.parametrize(
    ("channels", "changes"),
    [(24, {}), (65, {}), (64, {"pads": (1, 1, 1, 1)}), (64, {"zero_points": (0, 2, 0)}), (64, {"group": 2})],
)
def test_rows_with_few_channels_padding_or_zero_points_of_weights_stay(channels: int, changes: dict[str, Any]) -> None:
    net = Net([(4, channels * changes.get("group", 1), 8, 8)], dtype="i8")
    points = {"mode": "asymmetric", "scale": 0.002, "zero_points": (0, 0, 0), "pads": (0, 0, 1, 1)} | changes
    rows = 8 if changes.get("pads") else 6
    weight = net.integers("i8", 70, channels, 3, 3)
    y = net.b.conv(net.inputs[0], weight, None, out=TensorType((4, 70, rows, 8), "i8"), **points)
    assert not TARGET.kernel_for(y.op).form(y.op).stacks_rows(y.op)  # type: ignore[union-attr, arg-type, attr-defined]
    check(net.module([y]))


@pytest.mark.parametrize(("rows", "channels"), [(64, 63), (64, 64), (63, 64), (65, 30)])
def test_rows_become_channels_up_to_the_depth_of_a_command(rows: int, channels: int) -> None:
    net = Net([(1, channels, rows + 3, 4)], dtype="i8")
    points = {"mode": "asymmetric", "scale": 0.002, "zero_points": (0, 0, 0)}
    weight = net.integers("i8", 70, channels, rows, 1)
    y = net.b.conv(net.inputs[0], weight, None, out=TensorType((1, 70, 4, 4), "i8"), **points)
    form = TARGET.kernel_for(y.op).form(y.op)  # type: ignore[union-attr, arg-type, attr-defined]
    depth = CHIP.lanes * (rows - 1) + channels
    assert form.stacks_rows(y.op) == (depth <= CHIP.most_depth)
    assert form.command(y.op)[1] <= CHIP.most_depth
