"""The planner's cycles of a tile are those of the timing model for the commands that compute it.

Left out are kernels whose tiles fill tables for the whole program, softmax along rows, and what banks cost.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from bm1684x_nets import Net
from hypothesis import given, settings
from hypothesis import strategies as st
from planned_cycles import Computation, computations

from bmcompiler.backends.bm1684x.cycles import PROFILE, CycleTable
from bmcompiler.backends.bm1684x.stream import split
from bmcompiler.backends.bm1684x.target import TARGET
from bmcompiler.instructions.order import Engine
from bmcompiler.ir import Value
from bmcompiler.runtime.simulator.bm1684x import cost

FLOATS: dict[str, Callable[[Net, Value], Value]] = {
    "strided": lambda t, x: t.b.conv(x, t.f32(70, x.shape[1], 3, 2), pads=(1, 1, 1, 1), strides=(2, 2)),
    "depthwise": lambda t, x: t.b.conv(x, t.f32(x.shape[1], 1, 3, 3), pads=(1, 1, 1, 1), group=x.shape[1]),
    "deconv": lambda t, x: t.b.deconv(x, t.f32(x.shape[1], 5, 3, 3), strides=(2, 2)),
    "max_pool": lambda t, x: t.b.max_pool(x, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
    "avg_pool": lambda t, x: t.b.avg_pool(x, kernel=(2, 3), strides=(1, 2), pads=(0, 1, 0, 1)),
    "add": lambda t, x: t.b.add(x, t.f32(*x.shape), activation="relu"),
    "div": lambda t, x: t.b.div(x, t.f32(1, x.shape[1], 1, 1)),
    "sqrt": lambda t, x: t.b.sqrt(x),
    "reduce": lambda t, x: t.b.reduce(x, axes=(2, 3), method="mean"),
    "cumulate": lambda t, x: t.b.cumulate(x, axis=2, method="sum"),
    "concat": lambda t, x: t.b.relu(t.b.concat(t.b.sqrt(x), t.b.relu(x), axis=1)),
    "pad": lambda t, x: t.b.relu(t.b.pad(t.b.sqrt(x), pads=(0, 0, 0, 9, 0, 0, 0, 0), value=2.0)),
    "upsample": lambda t, x: t.b.sqrt(t.b.upsample(t.b.relu(x), scale=(2, 3))),
    "matmul": lambda t, x: t.b.matmul(x, t.f32(x.shape[-1], 70), activation="relu"),
}


def taken(found: Computation) -> int:
    """Cycles of the commands, with operands in different banks."""
    total, table = 0, CycleTable(PROFILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "_share_a_bank", lambda fields: np.bool_(False))
        for engine in {engine for engine, _ in found.commands}:
            raw = b"".join(command for one, command in found.commands if one is engine)
            for numbers, _, columns in split(engine, raw).columns():
                if engine is Engine.TIU:
                    total += int(cost._tiu(cost._Fields(columns, len(numbers)), table)[0].sum())
                else:
                    total += int(cost.moves(columns, len(numbers), table).cycles.sum())
    return total


@pytest.mark.parametrize("name", FLOATS)
@given(
    shape=st.tuples(st.integers(1, 5), st.integers(2, 130), st.integers(3, 20), st.integers(3, 30)),
    level=st.sampled_from([0, 2]),
)
@settings(max_examples=5, deadline=None)
def test_floats(name: str, shape: tuple[int, ...], level: int) -> None:
    net = Net([shape])
    module = net.module([FLOATS[name](net, net.inputs[0])])
    with computations() as found:
        TARGET.compile([module], level)
    assert found
    for one in found:
        assert one.planned == taken(one), one.kernel
