"""Layers computed together slice by slice on the BM1880: the same bytes however they are grouped, and no race."""

from __future__ import annotations

import pytest
from chip_nets import Net, check, local_memory
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1880.target import TARGET
from bmcompiler.ir import Module, Operation, TensorType, Value
from bmcompiler.ir.keys import GROUP, SLICES
from bmcompiler.passes.schedule.group_layers import GroupLayers
from bmcompiler.passmanager import PassContext
from bmcompiler.runtime.simulator.bm1880.analysis import analyze
from bmcompiler.target import Compiled


def conv(net: Net, x: Value, channels: int, kernel: int = 3, stride: int = 1) -> Value:
    n, c, h, w = x.shape
    pads = (kernel // 2,) * 4
    rows, columns = ((size - 1) // stride + 1 for size in (h, w))
    out = TensorType((n, channels, rows, columns), "i8")
    weight, bias = net.i8(channels, c, kernel, kernel), net.bias(channels)
    return net.b.conv(x, weight, bias, strides=(stride, stride), pads=pads, rshift=9, out=out)


def layer(draw: st.DrawFn, net: Net, values: list[Value]) -> Value:
    """A random op on one of the last values; sums and joins need another one of the same size."""
    x = values[-min(draw(st.integers(1, 3)), len(values))]
    alike = [value for value in values if value.shape == x.shape]
    joins = [value for value in values if value.shape[2:] == x.shape[2:] and value is not x]
    small = max(x.shape[2:]) < 20
    kinds = ["conv", "conv", "pointwise", "stride", "relu", "sum", "pool", *(["upsample"] if small else [])]
    kind = draw(st.sampled_from([*kinds, *(["concat"] if joins and x.shape[1] < 50 else [])]))
    with net.b.at(f"{kind}{len(values)}"):
        if kind == "relu":
            return net.b.relu(x)
        if kind == "sum":
            return net.b.mac_shift(x, alike[draw(st.integers(0, len(alike) - 1))], multipliers=(3, 5), rshift=3)
        if kind == "pool":
            return net.b.max_pool(x, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
        if kind == "upsample":
            return net.b.upsample(x, scale=(2, 3))
        if kind == "concat":
            return net.b.concat(x, joins[draw(st.integers(0, len(joins) - 1))], axis=1)
        kernel, stride = {"conv": (3, 1), "pointwise": (1, 1), "stride": (draw(st.sampled_from([1, 3])), 2)}[kind]
        return conv(net, x, draw(st.sampled_from([3, 20, 40])), kernel, stride)


@st.composite
def nets(draw: st.DrawFn) -> Module:
    net = Net([(draw(st.sampled_from([1, 2, 3])), 4, draw(st.integers(7, 16)), draw(st.integers(5, 12)))])
    values = list(net.inputs)
    for _ in range(draw(st.integers(2, 7))):
        values.append(layer(draw, net, values))
    more = draw(st.lists(st.sampled_from(values[1:]), max_size=1))
    return net.module(list({id(value): value for value in [values[-1], *more]}.values()))


def layers(module: Module) -> list[Operation]:
    return [op for op in module.main.ops if op.name.startswith("tensorop.") and op.short_name != "weight"]


def verified(module: Module) -> Compiled:
    compiled = check(module)
    assert [str(race) for race in analyze(compiled.model, 0).races()] == []
    return compiled


@settings(max_examples=15, deadline=None)
@given(nets(), st.data())
def test_any_groups_and_slices_give_the_same_bytes(module: Module, data: st.DataObject) -> None:
    ops, start = layers(module), 0
    while start < len(ops):
        size = data.draw(st.integers(1, len(ops)))
        images, channels, rows = (data.draw(st.sampled_from([1, 1, 2, 3])) for _ in range(3))
        for op in ops[start : start + size]:
            op.attributes[GROUP] = start
            op.attributes[SLICES] = (images, channels if size == 1 else 1, rows, 1)
        start += size
    with local_memory(data.draw(st.sampled_from([1 << 11, 1 << 12, 1 << 16]))):
        verified(module)


@settings(max_examples=8, deadline=None)
@given(nets(), st.sampled_from([800, 1200, 2400]), st.integers(0, 2))
def test_chosen_groups_give_the_same_bytes(module: Module, lanes: int, level: int) -> None:
    with local_memory(lanes):
        GroupLayers(level).run(module, PassContext(target=TARGET))
        verified(module)


def features(compiled: Compiled) -> int:
    return sum(row.loaded + row.stored - row.weights for row in compiled.rows)


def residual() -> Module:
    net = Net([(1, 4, 64, 48)])
    (x,) = net.inputs
    values = [net.b.relu(conv(net, x, 32))]
    for name in ("first", "second"):
        with net.b.at(name):
            inner = net.b.relu(conv(net, values[-1], 48))
            values.append(net.b.mac_shift(conv(net, inner, 32, 1), values[-1], multipliers=(3, 5), rshift=3))
    return net.module([conv(net, values[-1], 8, 3, 2)])


@pytest.mark.parametrize("level", [1, 2])
def test_groups_spare_global_memory(level: int) -> None:
    module = residual()
    with local_memory(1 << 13):
        alone = verified(module)
        GroupLayers(level).run(module, PassContext(target=TARGET))
        grouped = verified(module)
    cycles = [analyze(compiled.model, 0).timing().cycles for compiled in (alone, grouped)]
    assert features(grouped) < 0.6 * features(alone)
    assert cycles[1] < cycles[0]


def shuffled(net: Net, x: Value, groups: int) -> Value:
    """Channels of the groups in turn, through five axes."""
    n, c, h, w = x.shape
    apart = net.b.permute(net.b.reshape(x, shape=(n, groups, c // groups, h, w)), order=(0, 2, 1, 3, 4))
    return net.b.reshape(apart, shape=(n, c, h, w))


@pytest.mark.parametrize("level", [1, 2])
def test_groups_beside_values_of_five_axes(level: int) -> None:
    net = Net([(1, 8, 24, 20)])
    (x,) = net.inputs
    for number in range(3):
        with net.b.at(f"unit{number}"):
            inner = shuffled(net, net.b.relu(conv(net, x, 36, 1)), 3)
            x = net.b.mac_shift(conv(net, inner, 36), conv(net, x, 36, 1), multipliers=(3, 5), rshift=3)
    module = net.module([x])
    with local_memory(900):
        GroupLayers(level).run(module, PassContext(target=TARGET))
        verified(module)
