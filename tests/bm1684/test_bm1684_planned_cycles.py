"""The planner's cycles of a tile are those of the timing model for the commands that compute it, for every kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from bm1684_nets import FULL, Net, local_memory
from hypothesis import given, settings
from hypothesis import strategies as st
from int_samples import Sums, sums
from planned_cycles import STREAMED, check, computations, taken

from bmcompiler.backends.bm1684.packed import int_short
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.backends.bm1684.timing_profile import SILICON, TimingProfile
from bmcompiler.backends.lanes.recipes.int_numbers import Ending, Numbers, find_numbers
from bmcompiler.bmodel.bm168x import Bm168xModel
from bmcompiler.ir import TensorType, Value
from bmcompiler.runtime.simulator.bm1684.analysis import analyze

Make = Callable[[Net, Value], Any]


def flat(net: Net, x: Value) -> Value:
    """An image in each row."""
    return net.b.reshape(x, shape=(x.shape[0], x.type.size // x.shape[0]))


FLOATS: dict[str, Make] = {
    "conv": lambda t, x: t.b.conv(x, t.f32(9, x.shape[1], 3, 3), t.f32(9), pads=(1, 1, 1, 1), activation="relu6"),
    "strided": lambda t, x: t.b.conv(x, t.f32(70, x.shape[1], 3, 2), pads=(1, 1, 1, 1), strides=(2, 2)),
    "depthwise": lambda t, x: t.b.conv(
        x, t.f32(x.shape[1], 1, 3, 3), pads=(1, 1, 1, 1), strides=(2, 2), group=x.shape[1]
    ),
    "deconv": lambda t, x: t.b.deconv(x, t.f32(x.shape[1], 5, 3, 3), strides=(2, 2)),
    "max_pool": lambda t, x: t.b.max_pool(x, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
    "avg_pool": lambda t, x: t.b.avg_pool(x, kernel=(2, 3), strides=(1, 2), pads=(0, 1, 0, 1)),
    "add": lambda t, x: t.b.add(x, t.f32(*x.shape), activation="relu"),
    "div": lambda t, x: t.b.div(x, t.f32(1, x.shape[1], 1, 1)),
    "pow": lambda t, x: t.b.pow(x, t.f32(*x.shape)),
    "sqrt": lambda t, x: t.b.sqrt(x),
    "sigmoid": lambda t, x: t.b.sigmoid(x),
    "gelu": lambda t, x: t.b.gelu(x),
    "sin": lambda t, x: t.b.sin(x),
    "softmax": lambda t, x: t.b.softmax(x, axis=1),
    "softmax of rows": lambda t, x: t.b.softmax(x, axis=3),
    "reduce": lambda t, x: t.b.reduce(x, axes=(2, 3), method="mean"),
    "cumulate": lambda t, x: t.b.cumulate(x, axis=2, method="sum"),
    "lrn": lambda t, x: t.b.lrn(x, size=3),
    "concat": lambda t, x: t.b.relu(t.b.concat(t.b.sqrt(x), t.b.relu(x), axis=1)),
    "pad": lambda t, x: t.b.relu(t.b.pad(t.b.sqrt(x), pads=(0, 0, 0, 9, 0, 0, 0, 0), value=2.0)),
    "upsample": lambda t, x: t.b.sqrt(t.b.upsample(t.b.relu(x), scale=(2, 3))),
    "matmul": lambda t, x: t.b.matmul(x, t.f32(x.shape[-1], 70), activation="relu"),
    "deep matmul": lambda t, x: t.b.matmul(flat(t, x), t.f32(x.type.size // x.shape[0], 9)),
}
BYTES: dict[str, Make] = {
    "add": lambda t, x: t.b.add_shift(x, t.integers("i8", *x.shape), rshift=1),
    "mac": lambda t, x: t.b.mac_shift(x, t.b.maxs(x, value=5), multipliers=(3, -5), rshift=3),
    "muls": lambda t, x: t.b.muls_shift(x, multiplier=300, rshift=9),
    "relu": lambda t, x: t.b.relu(x),
    "lut": lambda t, x: t.b.lut(x, t.integers("i8", 256)),
    "max_pool": lambda t, x: t.b.max_pool(x, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
    "avg_pool": lambda t, x: t.b.avg_pool(x, kernel=(2, 2), strides=(2, 2), multiplier=64, rshift=8),
    "scaled avg_pool": lambda t, x: t.b.avg_pool(x, kernel=x.shape[2:], scale=1 / 7),
    "concat": lambda t, x: t.b.relu(t.b.concat(t.b.maxs(x, value=3), t.b.relu(x), axis=1)),
    "pad": lambda t, x: t.b.relu(t.b.pad(t.b.maxs(x, value=3), pads=(0, 0, 1, 2, 0, 0, 0, 0), value=2.0)),
    "dequantize": lambda t, x: t.b.dequantize(x),
}
SHAPES = st.tuples(st.integers(1, 5), st.integers(2, 130), st.integers(3, 20), st.integers(3, 30))
LANES = st.sampled_from([FULL, FULL, 16384])


def compare(make: Make, shape: tuple[int, ...], dtype: str, lanes: int, level: int, profile: str) -> None:
    net = Net([shape], 0, dtype)
    made = make(net, net.inputs[0])
    module = net.module([made] if isinstance(made, Value) else list(made))
    with TARGET.planned_with(TimingProfile.NAMED[profile]), local_memory(lanes), computations() as found:
        TARGET.compile([module], level)
        check(found)


@pytest.mark.parametrize("profile", TimingProfile.NAMED)
@pytest.mark.parametrize("name", FLOATS)
@given(shape=SHAPES, lanes=LANES, level=st.sampled_from([0, 2]))
@settings(max_examples=4, deadline=None)
def test_floats(name: str, profile: str, shape: tuple[int, ...], lanes: int, level: int) -> None:
    compare(FLOATS[name], shape, "f32", lanes, level, profile)


@pytest.mark.parametrize("profile", TimingProfile.NAMED)
@pytest.mark.parametrize("name", BYTES)
@given(shape=SHAPES, lanes=LANES, level=st.sampled_from([0, 2]))
@settings(max_examples=4, deadline=None)
def test_bytes(name: str, profile: str, shape: tuple[int, ...], lanes: int, level: int) -> None:
    compare(BYTES[name], shape, "i8", lanes, level, profile)


@pytest.mark.parametrize("profile", TimingProfile.NAMED)
@given(sums(), SHAPES, st.integers(1, 3), LANES, st.sampled_from([0, 2]))
@settings(max_examples=25, deadline=None)
def test_convolutions_of_bytes(
    profile: str, case: Sums, shape: tuple[int, ...], kernel: int, lanes: int, level: int
) -> None:
    def make(net: Net, x: Value) -> Value:
        weight, out = net.integers(case.weight, 70, x.shape[1], kernel, kernel), [s - kernel + 1 for s in x.shape[2:]]
        bias = case.constant_bias(net, 70)
        return net.b.conv(x, weight, bias, out=case.out((x.shape[0], 70, *out)), **case.modes)

    compare(make, shape, case.data, lanes, level, profile)


@pytest.mark.parametrize("form", ["none", "clipped"])
@pytest.mark.parametrize("mode", ["high", "asymmetric"])
@given(shape=SHAPES, dtype=st.sampled_from(["i8", "u8"]))
@settings(max_examples=6, deadline=None)
def test_convolutions_whose_weights_allow_no_short_end(
    form: str, mode: str, shape: tuple[int, ...], dtype: str
) -> None:
    """Which numbers there are for a short end follows from weights; plans read them, too."""
    modes: dict[str, Any] = {"mode": mode, "scale": 0.0123}
    if mode == "asymmetric":
        modes["zero_points"] = (3, -5, 40)

    def make(net: Net, x: Value) -> Value:
        weight, bias = net.integers("i8", 70, x.shape[1], 3, 3), net.integers("i16", 70)
        out = TensorType((x.shape[0], 70, *x.shape[2:]), dtype)
        return net.b.conv(x, weight, bias, pads=(1, 1, 1, 1), out=out, **modes)

    def forced(end: Ending, bounds: Any) -> Numbers | None:
        found = find_numbers(end, bounds)
        return None if form == "none" or found is None else replace(found, clipped=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(int_short, "find_numbers", forced)
        compare(make, shape, dtype, FULL, 2, "vendor")


def test_plans_follow_the_profile() -> None:
    net = Net([(1, 64, 56, 56)])
    net_module = net.module([net.b.conv(net.inputs[0], net.f32(64, 64, 3, 3), pads=(1, 1, 1, 1))])
    found = {}
    for name, profile in TimingProfile.NAMED.items():
        with TARGET.planned_with(profile):
            compiled = TARGET.compile([net_module], 2)
        assert isinstance(compiled.model, Bm168xModel)
        found[name] = analyze(compiled.model, 0, SILICON).timing().cycles
    assert found["silicon"] < 0.75 * found["vendor"]  # input and weights no longer share a bank
    with TARGET.planned_with(SILICON):
        assert TARGET.machine().tiler.bytes_per_cycle == SILICON.bus_bytes_per_cycle


def test_what_is_streamed_runs_beside_the_products() -> None:
    with computations() as found:
        net = Net([(3, 9000)])
        compiled = TARGET.compile([net.module([net.b.matmul(net.inputs[0], net.f32(9000, 40))])], 2)
    (one,) = [one for one in found if one.kernel == STREAMED]
    assert 0 < one.planned < taken(one)
    assert isinstance(compiled.model, Bm168xModel)
    (row,) = (row for row in compiled.rows if row.weights)
    assert row.weights == analyze(compiled.model, 0).timing().weights  # of all chunks, in whole sections


@pytest.mark.parametrize("name", FLOATS)
def test_estimates_of_ops_agree_with_programs_of_them_alone(name: str) -> None:
    net = Net([(2, 96, 40, 40)])
    made = FLOATS[name](net, net.inputs[0])
    compiled = TARGET.compile([net.module([made])], 1)
    assert isinstance(compiled.model, Bm168xModel)
    planned = [TARGET.cycles(op) for op in compiled_ops(made)]
    if None not in planned:
        assert 0.9 <= sum(filter(None, planned)) / analyze(compiled.model, 0).timing().cycles <= 1.1


def compiled_ops(value: Value) -> list[Any]:
    """The ops that make a value, constants left out."""
    if value.op is None or value.op.short_name == "weight":
        return []
    return [op for operand in value.op.operands for op in compiled_ops(operand)] + [value.op]
