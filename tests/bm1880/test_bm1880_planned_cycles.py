"""The planner's cycles of a tile are those of the timing model for the instructions that compute it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from chip_nets import Net, local_memory
from hypothesis import given, settings
from hypothesis import strategies as st
from planned_cycles import check, computations, kernels_met, tile_kernels

from bmcompiler.backends.bm1880.target import TARGET
from bmcompiler.ir import Value

OPS: dict[str, Callable[[Net, Value], Value]] = {
    "conv": lambda t, x: t.b.conv(x, t.i8(40, x.shape[1], 3, 3), t.bias(40), pads=(1, 1, 1, 1), rshift=9),
    "grouped": lambda t, x: t.b.conv(x, t.i8(6, x.shape[1] // 2, 2, 2), group=2, rshift=9),
    "depthwise": lambda t, x: t.b.conv(x, t.i8(x.shape[1], 1, 2, 2), dilations=(2, 2), group=x.shape[1], rshift=7),
    "deconv": lambda t, x: t.b.deconv(x, t.i8(x.shape[1], 9, 2, 2), strides=(2, 2), rshift=9),
    "max_pool": lambda t, x: t.b.max_pool(x, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
    "avg_pool": lambda t, x: t.b.avg_pool(x, kernel=(2, 3), strides=(2, 1), multiplier=171, rshift=10),
    "relu": lambda t, x: t.b.relu(x),
    "max": lambda t, x: t.b.max(x, t.b.muls_shift(x, multiplier=-3, rshift=1)),
    "bits": lambda t, x: t.b.bit_xor(x, t.b.muls_shift(x, multiplier=-3, rshift=1)),
    "mac_shift": lambda t, x: t.b.mac_shift(x, t.b.maxs(x, value=5), multipliers=(3, -5), rshift=3),
    "mul": lambda t, x: t.b.mul_shift(x, t.b.maxs(x, value=5), rshift=6),
    "factor": lambda t, x: t.b.mul_shift(x, t.i8(x.shape[0], x.shape[1], 1, 1), rshift=6),
    "lut": lambda t, x: t.b.lut(x, t.i8(256)),
    "prelu": lambda t, x: t.b.prelu(x, t.i8(x.shape[1]), multiplier=3, rshift=1, slope_rshift=7),
    "upsample": lambda t, x: t.b.relu(t.b.upsample(t.b.maxs(x, value=5), scale=(3, 2))),
    "pad": lambda t, x: t.b.relu(t.b.pad(t.b.maxs(x, value=5), pads=(0, 0, 1, 2, 0, 0, 0, 0))),
    "concat": lambda t, x: t.b.relu(t.b.concat(x, t.b.maxs(x, value=5), axis=1)),
    "matmul": lambda t, x: t.b.matmul(t.b.relu(x), t.i8(x.shape[-1], 70), rshift=9),
    "permute": lambda t, x: t.b.permute(x, order=(0, 2, 3, 1)),
}


@pytest.mark.parametrize("name", OPS)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 40).map(lambda c: 2 * c), st.integers(3, 20), st.integers(3, 30)),
    lanes=st.sampled_from([TARGET.machine.tiler.lane_bytes, TARGET.machine.tiler.lane_bytes, 4096]),
    level=st.sampled_from([0, 2]),
)
@settings(max_examples=8, deadline=None)
def test_every_kernel(name: str, shape: tuple[int, ...], lanes: int, level: int) -> None:
    net = Net([shape])
    module = net.module([OPS[name](net, net.inputs[0])])
    with local_memory(lanes), computations() as found:
        TARGET.compile([module], level)
    assert found
    check(found)


def test_no_kernel_is_left_out() -> None:
    target, met = TARGET, set[type]()
    for make in OPS.values():
        net = Net([(2, 40, 9, 11)])
        met |= kernels_met(target, net.module([make(net, net.inputs[0])]))
    assert tile_kernels(target) <= met
