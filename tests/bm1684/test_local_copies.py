"""Joining and repeating feature maps that are in local memory: nothing but inputs and outputs crosses the bus."""

from __future__ import annotations

import numpy as np
import pytest
from bm1684_nets import Net, check
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.ir import Value

CHANNELS = st.one_of(st.integers(1, 9), st.sampled_from([63, 64, 65, 128, 130]))
SIDE = st.integers(1, 9)
FEW = 32
"""Channels or pixels below which an element-wise op may see a map in another shape, to use more lanes."""
DTYPE = st.sampled_from(["f32", "i8", "u8", "i16"])
property_test = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


def moved(net: Net, result: Value) -> tuple[int, int]:
    """(bytes that a net without weights moves, bytes of its inputs and outputs)."""
    module = net.module([result])
    rows = check(module).rows
    borders = sum(v.type.nbytes for v in (*module.main.arguments, *module.main.returned))
    return sum(row.loaded + row.stored for row in rows), borders


@property_test
@given(st.integers(1, 5), st.lists(CHANNELS, min_size=2, max_size=4), SIDE, SIDE, DTYPE)
def test_concat(n: int, channels: list[int], h: int, w: int, dtype: str) -> None:
    net = Net([(n, c, h, w) for c in channels], dtype=dtype)
    got, least = moved(net, net.b.relu(net.b.concat(*map(net.b.relu, net.inputs), axis=1)))
    assert got == least or min(*channels, h * w) < FEW


@property_test
@given(st.integers(1, 5), CHANNELS, SIDE, SIDE, st.tuples(st.sampled_from([0, 0, 1, 64]), st.integers(0, 70)), DTYPE)
def test_pad_of_channels(n: int, c: int, h: int, w: int, pads: tuple[int, int], dtype: str) -> None:
    net = Net([(n, c, h, w)], dtype=dtype)
    padded = net.b.pad(net.b.relu(net.inputs[0]), pads=(0, 0, *pads, 0, 0, 0, 0), value=3.0)
    got, least = moved(net, net.b.relu(padded))
    assert got == least or min(c, h * w) < FEW


@property_test
@given(st.integers(1, 5), CHANNELS, SIDE, SIDE, st.tuples(st.integers(1, 4), st.integers(1, 4)), DTYPE)
def test_upsample(n: int, c: int, h: int, w: int, scale: tuple[int, int], dtype: str) -> None:
    net = Net([(n, c, h, w)], dtype=dtype)
    got, least = moved(net, net.b.relu(net.b.upsample(net.b.relu(net.inputs[0]), scale=scale)))
    assert got == least or min(c, h * w) < FEW


@pytest.mark.parametrize("dtype", ["f32", "i8"])
def test_copies_keep_all_bits(dtype: str) -> None:
    """Denormals and NaN are words like all others."""
    net = Net([(2, 3, 4, 5)], dtype=dtype)
    module = net.module(
        [net.b.concat(net.b.upsample(net.inputs[0], scale=(2, 2)), net.b.upsample(net.inputs[0], scale=(2, 2)), axis=1)]
    )
    bits = np.random.default_rng(0).integers(0, 256, module.main.arguments[0].type.nbytes).astype(np.uint8)
    check(module, inputs={"x0": bits.view(module.main.arguments[0].type.numpy).reshape(2, 3, 4, 5)})
