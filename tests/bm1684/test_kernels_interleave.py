"""interleave on the BM1684: alone, between ops in local memory, and slice by slice; the bits are those of the op."""

from __future__ import annotations

import pytest
from bm1684_nets import FULL, Net, check, check_op
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.errors import ShapeError
from bmcompiler.ir import Value
from bmcompiler.ir.keys import GROUP, SLICES

property_test = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def around(net: Net, x: Value, scale: tuple[int, int], channels: int) -> Value:
    """Made and read in local memory: between two ops that are computed there."""
    return net.b.relu(net.b.interleave(net.b.relu(x), scale=scale, channels=channels))


@property_test
@given(
    st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from([1, 2, 24, 64, 65]),
    st.integers(0, 40),
    st.sampled_from(["f32", "i8", "u8", "i16"]),
    st.sampled_from([0, 2]),
    st.integers(0, 99),
)
def test_phases_become_pixels(
    size: tuple[int, int, int], scale: tuple[int, int], channels: int, gap: int, dtype: str, level: int, seed: int
) -> None:
    n, h, w = size
    shape = (n, scale[0] * scale[1] * (channels + gap), h, w)
    check_op(lambda net, x: around(net, x, scale, channels), shape, dtype=dtype, seed=seed, level=level)


def test_what_exceeds_local_memory_is_copied_in_global_memory() -> None:
    check_op(lambda net, x: net.b.interleave(x, scale=(2, 2), channels=3), (1, 12, 64, 64), lanes=FULL // 16)


@pytest.mark.parametrize("slices", [(1, 1, 3, 1), (2, 1, 2, 2), (1, 1, 7, 3)])
def test_slices_begin_at_any_row_and_column(slices: tuple[int, ...]) -> None:
    """Cells of 2 x 3 pixels are cut anywhere."""
    net = Net([(2, 16, 7, 5)])
    value = net.b.interleave(net.b.conv(net.inputs[0], net.f32(36, 16, 1, 1)), scale=(2, 3), channels=5)
    module = net.module([net.b.max_pool(value, kernel=(3, 3), pads=(1, 1, 1, 1))])
    for op in module.main.ops:
        if op.short_name != "weight":
            op.attributes |= {GROUP: 0, SLICES: slices}
    check(module)


def time_of(channels: int, gap: int) -> int:
    net = Net([(1, 4 * (channels + gap), 40, 40)])
    made = net.b.interleave(net.inputs[0], scale=(2, 2), channels=channels)
    assert made.op is not None
    found = TARGET.local_cycles(made.op)
    assert found is not None
    return found


def test_phases_that_begin_at_lane_0_are_joined_faster() -> None:
    assert time_of(24, 40) < time_of(24, 8) < time_of(24, 0)


def test_values_of_other_shapes_are_refused() -> None:
    net = Net([(1, 10, 4, 4)])
    for scale, channels in (((2, 2), 2), ((5, 1), 3), ((0, 1), 1), ((1, 2), 0)):
        with pytest.raises(ShapeError):
            net.b.interleave(net.inputs[0], scale=scale, channels=channels)
