"""Pooling on the BM1684: what the simulator computes from the commands is what the chip's arithmetic says."""

from __future__ import annotations

from typing import Any

import pytest
from bm1684_nets import FULL, Net, check_op
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bmcompiler.ir import TensorType, Value

LANES = st.sampled_from([1024, 4096, FULL])
CHANNELS = st.one_of(st.integers(1, 9), st.sampled_from([63, 64, 65, 130]))
BATCH = st.integers(1, 9)
SEED = st.integers(0, 99)
FLOAT_MODES = ("kernel", "strides", "pads", "ceil_mode", "count_include_pad")
property_test = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def windows(draw: st.DrawFn) -> tuple[tuple[int, int], dict[str, Any]]:
    """(input size, attributes) of a pooling op; padding and strides beyond what the engine's fields hold included."""
    kernel = draw(st.tuples(*[st.one_of(st.integers(1, 5), st.sampled_from([17, 20]))] * 2))
    strides = draw(st.tuples(*[st.one_of(st.integers(1, 4), st.sampled_from([16, 19]))] * 2))
    pads = [draw(st.integers(0, k - 1)) for k in kernel for _ in range(2)]
    size = draw(st.tuples(st.integers(1, 24), st.integers(1, 24)))
    for axis in range(2):
        assume(size[axis] + pads[2 * axis] + pads[2 * axis + 1] >= kernel[axis])
    ceil_mode = draw(st.booleans())
    return size, {"kernel": kernel, "strides": strides, "pads": tuple(pads), "ceil_mode": ceil_mode}


@property_test
@given(windows(), BATCH, CHANNELS, st.sampled_from(["f32", "i8", "u8"]), LANES, SEED)
def test_max_pool(g: Any, n: int, channels: int, dtype: str, lanes: int, seed: int) -> None:
    size, modes = g
    check_op(lambda net, x: net.b.max_pool(x, **modes), (n, channels, *size), dtype=dtype, seed=seed, lanes=lanes)


@property_test
@given(windows(), st.integers(1, 3), CHANNELS, st.booleans(), LANES, SEED)
def test_avg_pool(g: Any, n: int, channels: int, count_include_pad: bool, lanes: int, seed: int) -> None:
    size, modes = g
    modes = {**modes, "count_include_pad": count_include_pad}
    check_op(lambda net, x: net.b.avg_pool(x, **modes), (n, channels, *size), seed=seed, lanes=lanes)


@pytest.mark.parametrize("size", [(7, 7), (56, 56), (1, 300)])
def test_global_average(size: tuple[int, int]) -> None:
    check_op(lambda net, x: net.b.avg_pool(x, kernel=size), (2, 70, *size))


def test_the_largest_input_and_the_largest_output_belong_to_different_tiles() -> None:
    modes = {"kernel": (17, 17), "pads": (6, 0, 0, 7), "count_include_pad": True, "multiplier": 3, "rshift": 8}
    check_op(lambda net, x: net.b.avg_pool(x, **modes), (1, 1, 12, 11), dtype="i8", lanes=1024)


@property_test
@given(
    windows(),
    BATCH,
    CHANNELS,
    st.sampled_from(["i8", "u8"]),
    st.sampled_from(["i8", "u8"]),
    st.integers(-128, 255),
    st.integers(0, 16),
    LANES,
    SEED,
)
def test_shifted_average_of_bytes(
    g: Any, n: int, channels: int, dtype: str, result: str, multiplier: int, rshift: int, lanes: int, seed: int
) -> None:
    size, modes = g
    modes = {**modes, "count_include_pad": True, "multiplier": multiplier, "rshift": rshift}
    check_op(lambda net, x: pooled(net, x, result, modes), (n, channels, *size), dtype=dtype, seed=seed, lanes=lanes)


@property_test
@given(
    windows(),
    BATCH,
    CHANNELS,
    st.sampled_from(["i8", "u8"]),
    st.sampled_from(["i8", "u8"]),
    st.sampled_from([1 / 9, 1 / 4, 0.013, 1.0, 3.7]),
    LANES,
    SEED,
)
def test_scaled_average_of_bytes(
    g: Any, n: int, channels: int, dtype: str, result: str, scale: float, lanes: int, seed: int
) -> None:
    size, modes = g
    modes = {**modes, "count_include_pad": True, "scale": scale}
    check_op(lambda net, x: pooled(net, x, result, modes), (n, channels, *size), dtype=dtype, seed=seed, lanes=lanes)


def pooled(net: Net, x: Value, dtype: str, modes: dict[str, Any]) -> Value:
    """avg_pool with a result of `dtype`."""
    floats = Net([x.shape])
    shape = floats.b.avg_pool(*floats.inputs, **{k: v for k, v in modes.items() if k in FLOAT_MODES}).shape
    return net.b.avg_pool(x, out=TensorType(shape, dtype), **modes)
