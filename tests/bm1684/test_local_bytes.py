"""Ops on bytes with operands and results in local memory: only inputs, outputs and weights cross the bus."""

from __future__ import annotations

from typing import Any

from bm1684_nets import Net, check
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.ir import Quant, TensorType, Value

BATCH = st.sampled_from([1, 2, 3, 4, 5, 8])
SHAPE = st.tuples(BATCH, st.integers(33, 70), st.integers(6, 9), st.integers(6, 9))
"""Channels and pixels enough for element-wise ops to see the map in its own shape."""
DTYPE = st.sampled_from(["i8", "u8"])
property_test = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def spill(net: Net, *results: Value) -> int:
    """Bytes that cross the bus beside weights, inputs and outputs, after the check of bits and races."""
    module = net.module(results)
    rows = check(module).rows
    borders = sum(v.type.nbytes for v in (*module.main.arguments, *module.main.returned))
    return sum(row.loaded + row.stored - row.weights for row in rows) - borders


@property_test
@given(SHAPE, DTYPE, DTYPE)
def test_lookup(shape: Any, dtype: str, out: str) -> None:
    net = Net([shape], dtype=dtype)
    value = net.b.lut(net.b.relu(net.inputs[0]), net.integers(out, 256))
    assert spill(net, net.b.lut(net.b.relu(value), net.integers(dtype, 256))) == 0


@property_test
@given(SHAPE, DTYPE, DTYPE, st.sampled_from([(3, 3), (2, 2), (5, 1)]), st.integers(0, 1))
def test_average_of_windows(shape: Any, dtype: str, out: str, kernel: tuple[int, int], pad: int) -> None:
    net = Net([shape], dtype=dtype)
    modes = {"kernel": kernel, "pads": (min(pad, kernel[0] - 1), 0, 0, min(pad, kernel[1] - 1)), "scale": 0.11}
    assert spill(net, net.b.relu(average(net, net.b.relu(net.inputs[0]), out, modes))) == 0


@property_test
@given(BATCH, st.integers(33, 70), st.sampled_from([(7, 7), (40, 24), (17, 34), (19, 23), (80, 80)]), DTYPE, DTYPE)
def test_average_of_all(n: int, c: int, size: tuple[int, int], dtype: str, out: str) -> None:
    """Windows too large for sums of 16 bits are added up in two stages."""
    net = Net([(n, c, *size)], dtype=dtype)
    scale = 1 / (size[0] * size[1])
    assert spill(net, average(net, net.b.relu(net.inputs[0]), out, {"kernel": size, "scale": scale})) == 0


@property_test
@given(BATCH, st.integers(1, 70), st.sampled_from([(30, 15), (16, 18)]), st.integers(1, 3), DTYPE)
def test_average_of_large_windows_side_by_side(n: int, c: int, kernel: tuple[int, int], count: int, dtype: str) -> None:
    net = Net([(n, c, count * kernel[0], 2 * kernel[1])], dtype=dtype)
    spill(net, average(net, net.inputs[0], dtype, {"kernel": kernel, "strides": kernel, "scale": 0.003}))


def average(net: Net, x: Value, dtype: str, modes: dict[str, Any]) -> Value:
    """avg_pool of bytes with a result of `dtype`."""
    (n, c, *size), kernel = x.shape, modes["kernel"]
    top, bottom, left, right = modes.get("pads", (0, 0, 0, 0))
    steps = modes.get("strides", (1, 1))
    h, w = ((s + p - k) // step + 1 for s, p, k, step in zip(size, (top + bottom, left + right), kernel, steps))
    return net.b.avg_pool(x, out=TensorType((n, c, h, w), dtype), count_include_pad=True, **modes)


@property_test
@given(SHAPE, DTYPE, st.sampled_from(["i16", "u16"]), st.sampled_from(["high", "asymmetric"]))
def test_halfwords_of_a_convolution_become_floats_where_they_lie(shape: Any, dtype: str, out: str, mode: str) -> None:
    net = Net([shape], dtype=dtype)
    n, c, h, w = shape
    more: dict[str, Any] = {"zero_points": (0, 0, 0)} if mode == "asymmetric" else {}
    more |= {"out": TensorType((n, c, h, w), out, Quant(2.0**-7)), "mode": mode, "scale": 0.02}
    made = net.b.conv(net.b.relu(net.inputs[0]), net.integers("i8", c, c, 1, 1), **more)
    assert spill(net, net.b.sqrt(net.b.dequantize(made))) == 0
