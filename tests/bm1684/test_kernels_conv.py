"""Convolutions on the BM1684: what the simulator computes from the commands is what the chip's arithmetic says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bm1684_nets import FULL, Net, check_op
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684.kernels import ConvKernel, FloatConvKernel
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.backends.lanes.kernels.windows import winograd_cells
from bmcompiler.bmodel.bm168x import Bm168xModel
from bmcompiler.ir import TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.runtime.simulator.bm1684.analysis import analyze
from bmcompiler.target import find_target, unsupported_reason

LANES = st.sampled_from([2048, 8192, 20000, FULL])
SIDE = st.integers(1, 17)
BATCH = st.integers(1, 3)
CHANNELS = st.one_of(st.integers(1, 9), st.sampled_from([63, 64, 65, 130]))
ACTIVATION = st.sampled_from(["", "relu", "relu6"])
SEED = st.integers(0, 99)
property_test = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def pair(values: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(values, values)


@st.composite
def windows(draw: st.DrawFn) -> dict[str, Any]:
    """Geometry of a convolution, padding and strides beyond the engine's fields included."""
    size, kernel = draw(pair(SIDE)), draw(pair(st.one_of(st.integers(1, 5), st.just(19))))
    strides = draw(pair(st.one_of(st.integers(1, 4), st.sampled_from([16, 18]))))
    dilations = draw(pair(st.integers(1, 3)))
    pads = tuple(draw(st.one_of(st.integers(0, 3), st.just(17))) for _ in range(4))
    for axis in range(2):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        span = size[axis] + pads[2 * axis] + pads[2 * axis + 1] - reach
        assume(span >= 0 and pads[2 * axis] < reach and pads[2 * axis + 1] < reach)
        assume((span // strides[axis]) * strides[axis] < pads[2 * axis] + size[axis])
    return {"size": size, "kernel": kernel, "strides": strides, "pads": pads, "dilations": dilations}


@property_test
@given(windows(), BATCH, st.integers(1, 3), CHANNELS, CHANNELS, st.booleans(), ACTIVATION, LANES, SEED)
def test_conv(
    g: dict[str, Any], n: int, group: int, ci: int, co: int, bias: bool, activation: str, lanes: int, seed: int
) -> None:
    def make(net: Net, x: Value) -> Value:
        w = net.f32(co * group, ci, *g["kernel"])
        b = net.f32(co * group) if bias else None
        modes = {key: g[key] for key in ("strides", "pads", "dilations")}
        return net.b.conv(x, w, b, group=group, activation=activation, **modes)

    check_op(make, (n, ci * group, *g["size"]), seed=seed, lanes=lanes)


@property_test
@given(
    pair(SIDE),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 2),
    st.tuples(*[st.integers(0, 2)] * 4),
    BATCH,
    CHANNELS,
    CHANNELS,
    st.booleans(),
    ACTIVATION,
    LANES,
    SEED,
    st.booleans(),
)
def test_cells_of_two_results(
    size: tuple[int, int],
    across: int,
    stride: int,
    dilation: int,
    pads: tuple[int, int, int, int],
    n: int,
    ci: int,
    co: int,
    bias: bool,
    activation: str,
    lanes: int,
    seed: int,
    turned: bool,
) -> None:
    """Along h or w, also where they do not pay: every border, odd tiles, steps and gaps along the other axis."""
    assume(size[0] + pads[0] + pads[1] >= 3 and size[1] + pads[2] + pads[3] > (across - 1) * dilation)
    assume(max(pads[2:]) <= (across - 1) * dilation)

    def make(net: Net, x: Value) -> Value:
        kernel, strides, dilations, borders = (3, across), (1, stride), (1, dilation), (pads[:2], pads[2:])
        if turned:
            kernel, strides, dilations, borders = kernel[::-1], strides[::-1], dilations[::-1], borders[::-1]
        modes = {"strides": strides, "pads": (*borders[0], *borders[1]), "dilations": dilations}
        weight, vector = net.f32(co, ci, *kernel), net.f32(co) if bias else None
        return net.b.conv(x, weight, vector, activation=activation, **modes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(winograd_cells, "_GAIN", 1e9)
        check_op(make, (n, ci, *(size[::-1] if turned else size)), seed=seed, lanes=lanes)


@pytest.mark.parametrize(
    ("inside", "size", "modes", "expected"),
    [
        (64, 56, {}, True),
        (96, 26, {}, True),
        (96, 13, {}, False),  # too few groups of results
        (256, 14, {}, True),
        (3, 56, {}, False),  # rows of the window are channels
        (16, 8, {}, False),
        (512, 7, {}, False),  # weights take longer to transform than products are saved
        (64, 56, {"strides": (2, 2)}, False),
        (64, 56, {"dilations": (2, 2)}, False),
        (64, 56, {"group": 2}, False),
    ],
)
def test_cells_are_for_maps_that_gain_by_them(inside: int, size: int, modes: dict[str, Any], expected: bool) -> None:
    """8 rows of products for 4 of results instead of 12, and a tenth at least is left of the gain."""
    net, group = Net([(1, inside, size, size)]), modes.get("group", 1)
    made = net.b.conv(net.inputs[0], net.f32(inside, inside // group, 3, 3), pads=(1, 1, 1, 1), **modes)
    op = made.op
    assert isinstance(op, Conv)
    kernel = next(form for form in ConvKernel(TARGET.machine).forms if isinstance(form, FloatConvKernel))
    assert (winograd_cells.axis_of(kernel, op) is not None) is expected
    if expected:
        work = kernel.work(op, tuple((0, extent) for extent in op.type.shape))
        direct = TARGET.machine.cycles.convolution(op.type.shape, 9, inside)
        assert work.cycles < 0.93 * direct
        (apart,) = work.apart
        assert (apart.first, apart.second) == (len(work.inputs), len(work.inputs) + 2)


@property_test
@given(windows(), BATCH, CHANNELS, st.booleans(), LANES, SEED)
def test_depthwise(g: dict[str, Any], n: int, channels: int, bias: bool, lanes: int, seed: int) -> None:
    def make(net: Net, x: Value) -> Value:
        b = net.f32(channels) if bias else None
        modes = {key: g[key] for key in ("strides", "pads", "dilations")}
        return net.b.conv(x, net.f32(channels, 1, *g["kernel"]), b, group=channels, **modes)

    check_op(make, (n, channels, *g["size"]), seed=seed, lanes=lanes)


@property_test
@given(
    pair(st.integers(1, 9)),
    pair(st.integers(1, 4)),
    pair(st.integers(1, 3)),
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
    group: int,
    ci: int,
    co: int,
    lanes: int,
    seed: int,
) -> None:
    pads = (kernel[0] // 2, (kernel[0] - 1) // 2, kernel[1] // 2, (kernel[1] - 1) // 2)

    def make(net: Net, x: Value) -> Value:
        return net.b.deconv(
            x, net.f32(ci * group, co, *kernel), net.f32(co * group), strides=strides, pads=pads, group=group
        )

    assume(
        all(k >= t and (s - 1) * t + k - sum(p) >= 1 for s, t, k, p in zip(size, strides, kernel, (pads[:2], pads[2:])))
    )
    check_op(make, (1, ci * group, *size), seed=seed, lanes=lanes)


def test_convolutions_of_doubles_are_refused_with_a_reason() -> None:
    builder = Builder.new("net")
    x = builder.input("x", TensorType((1, 3, 9, 9), "f64"))
    out = builder.conv(x, builder.weight(np.ones((4, 3, 3, 3)), "w"))
    assert "f32" in str(unsupported_reason(find_target("bm1684"), out.op))


@pytest.mark.parametrize(("channels", "group", "loads"), [(9, 1, 2), (128, 128, 2), (120, 1, 2), (130, 1, 3)])
def test_weights_and_bias_are_one_load(channels: int, group: int, loads: int) -> None:
    """Beside that of the input; not where zeros for lanes without a last channel would take longer."""
    net = Net([(1, 128, 5, 5)])
    made = net.b.conv(net.inputs[0], net.f32(channels, 128 // group, 1, 1), net.f32(channels), group=group)
    compiled = TARGET.compile([net.module([made])], 2)
    assert isinstance(compiled.model, Bm168xModel)
    assert analyze(compiled.model).timing().engines[1].commands == loads + 1
