"""BM1684 programs with groups and bands: of every wait that is dropped, the races that it prevented are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bm1684_nets import Net
from bm1684_programs import waiting, with_wait
from happens_before import conflicting, races_by_definition, races_found

from bmcompiler.backends.bm1684.isa import Engine
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.bmodel.bm168x import Bm168xModel, TpuSubnet
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.passes.layout.bands import FillImageSlots
from bmcompiler.passes.schedule.group_layers import GroupLayers
from bmcompiler.passmanager import PassContext
from bmcompiler.runtime.simulator.bm168x.analysis import StageAnalysis
from bmcompiler.runtime.simulator.bm1684.analysis import analyze
from bmcompiler.target import Compiled


def conv(net: Net, x: Value, channels: int, kernel: int = 3) -> Value:
    n, _, h, w = x.shape
    shape, pads = (channels, x.shape[1], kernel, kernel), (kernel // 2,) * 4
    out = TensorType((n, channels, h, w), x.dtype)
    if x.dtype == "f32":
        return net.b.conv(x, net.f32(*shape), None, pads=pads, out=out)
    return net.b.conv(x, net.integers("i8", *shape), None, pads=pads, out=out, mode="low", scale=2.0**-9)


def residual(shape: tuple[int, ...], dtype: str) -> Module:
    """Two blocks with a sum and a pooling between them."""
    net = Net([shape], 0, dtype)
    (x,) = net.inputs
    with net.b.at("stem"):
        a = net.b.relu(conv(net, x, 24))
    with net.b.at("block"):
        b = net.b.add(conv(net, conv(net, a, 40), 24, 1), a, out=a.type)
    with net.b.at("pool"):
        c = net.b.max_pool(b, kernel=(2, 2), strides=(2, 2))
    with net.b.at("last"):
        return net.module([conv(net, c, 8), c])


def compiled(dtype: str, lanes: int, bands: bool) -> Compiled:
    target = TARGET.planner()  # kernels of another remember what they decided for its size of local memory
    module, ctx = residual((1, 3, 40, 24), dtype), PassContext(target=target)
    if bands:
        assert FillImageSlots().run(module, ctx).modified
    target.machine.tiler.lane_bytes = lanes
    GroupLayers(2).run(module, ctx)
    return target.compile([module], 2)


def without(model: Bm168xModel, place: tuple[int, Engine, int]) -> StageAnalysis:
    """The program without one wait."""
    (net,), stage = model.nets, model.nets[0].stages[0]
    (subnet,) = stage.subnets
    assert isinstance(subnet, TpuSubnet)
    changed = replace(subnet, groups=with_wait(subnet.groups, place, 0))
    return analyze(replace(model, nets=[replace(net, stages=[replace(stage, subnets=[changed])])]))


def same_commands(whole: StageAnalysis, broken: StageAnalysis) -> list[int]:
    """Records of `whole` by record of `broken`: without a wait, commands are listed in another order."""
    keys, others = (list(zip(each.commands.engine.tolist(), each.decoded.number.tolist())) for each in (whole, broken))
    return [keys.index(key) for key in others]


@pytest.mark.parametrize(
    ("dtype", "lanes", "bands"),
    [
        ("f32", 1 << 13, False),
        ("f32", 3 << 11, False),
        ("i8", 1 << 12, False),
        ("i8", 1 << 11, True),
        ("i8", 1 << 19, True),
    ],
)
def test_the_loss_of_a_wait_of_a_grouped_program_is_found(dtype: str, lanes: int, bands: bool) -> None:
    found = compiled(dtype, lanes, bands)
    model = found.model
    assert isinstance(model, Bm168xModel) and found.groups
    if lanes < 1 << 19:
        assert any(max(group.slices) > 1 for group in found.groups)
    whole = analyze(model)
    conflicts = conflicting(whole.accesses(), len(whole.commands))
    assert races_by_definition(whole.commands, conflicts) == races_found(whole) == set()
    needed = 0
    places = waiting(model.nets[0].stages[0].groups)
    for place in places:
        broken = without(model, place)
        order = same_commands(whole, broken)
        expected = races_by_definition(broken.commands, conflicts[np.ix_(order, order)])
        assert races_found(broken) == expected, place
        needed += bool(expected)
    assert needed >= 4
