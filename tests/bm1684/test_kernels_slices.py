"""Slices of channels on the BM1684 in local memory: between ops there, and slice by slice; the bits are the op's."""

from __future__ import annotations

import pytest
from bm1684_nets import Net, check, check_op
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.ir import Value
from bmcompiler.ir.keys import GROUP, SLICES

property_test = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def channels(net: Net, x: Value, first: int, end: int) -> Value:
    n, _, h, w = x.shape
    return net.b.slice(x, starts=(0, first, 0, 0), ends=(n, end, h, w), steps=(1, 1, 1, 1))


@property_test
@given(
    st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5)),
    st.tuples(st.integers(0, 70), st.integers(1, 70), st.integers(0, 70)),
    st.sampled_from(["f32", "i8", "u8", "i16"]),
    st.sampled_from([0, 2]),
    st.integers(0, 99),
)
def test_channels_are_taken(
    size: tuple[int, int, int], parts: tuple[int, int, int], dtype: str, level: int, seed: int
) -> None:
    n, h, w = size
    before, count, _ = parts
    shape = (n, sum(parts), h, w)
    check_op(
        lambda net, x: net.b.relu(channels(net, net.b.relu(x), before, before + count)),
        shape,
        dtype=dtype,
        seed=seed,
        level=level,
    )


@pytest.mark.parametrize("slices", [(1, 1, 3, 1), (2, 1, 2, 2), (1, 2, 1, 1)])
def test_parts_of_maps_are_taken(slices: tuple[int, ...]) -> None:
    net = Net([(2, 16, 7, 5)])
    value = channels(net, net.b.conv(net.inputs[0], net.f32(150, 16, 1, 1)), 20, 150)
    module = net.module([net.b.max_pool(value, kernel=(3, 3), pads=(1, 1, 1, 1))])
    for op in module.main.ops:
        if op.short_name != "weight":
            op.attributes |= {GROUP: 0, SLICES: slices}
    check(module)


def test_what_begins_at_lane_0_is_taken_faster_and_rows_are_not_taken_there() -> None:
    net = Net([(1, 128, 40, 40)])
    (x,) = net.inputs
    rows = net.b.slice(x, starts=(0, 0, 2, 0), ends=(1, 128, 9, 40), steps=(1, 1, 1, 1))
    parts = channels(net, x, 64, 100), channels(net, x, 63, 99), rows
    first, other, none = (TARGET.local_cycles(part.op) for part in parts if part.op is not None)
    assert first is not None and other is not None and first < other
    assert none is None
