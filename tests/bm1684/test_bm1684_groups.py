"""Layers computed together slice by slice on the BM1684: the same bits however they are grouped, and no race."""

from __future__ import annotations

from typing import Any

import pytest
from bm1684_nets import Net, check, local_memory
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.bmodel.bm168x import Bm168xModel
from bmcompiler.ir import Module, Operation, TensorType, Value
from bmcompiler.ir.keys import GROUP, SLICES
from bmcompiler.passes.schedule.group_layers import GroupLayers
from bmcompiler.passmanager import PassContext
from bmcompiler.runtime.simulator.bm1684.analysis import analyze
from bmcompiler.target import Compiled

MODES: dict[str, dict[str, Any]] = {"f32": {}, "i8": {"mode": "low", "scale": 2.0**-9}}


def conv(net: Net, x: Value, channels: int, kernel: int = 3, stride: int = 1, pad: int = -1) -> Value:
    n, c, h, w = x.shape
    pad = kernel // 2 if pad < 0 else pad
    rows, columns = ((size + 2 * pad - kernel) // stride + 1 for size in (h, w))
    weight = (
        net.f32(channels, c, kernel, kernel) if x.dtype == "f32" else net.integers("i8", channels, c, kernel, kernel)
    )
    out = TensorType((n, channels, rows, columns), x.dtype)
    return net.b.conv(x, weight, None, strides=(stride, stride), pads=(pad,) * 4, out=out, **MODES[x.dtype])


def layer(draw: st.DrawFn, net: Net, values: list[Value]) -> Value:
    """A random op on one of the last values; sums and joins need another one of the same size."""
    x = values[-min(draw(st.integers(1, 3)), len(values))]
    _, c, h, w = x.shape
    alike = [value for value in values if value.shape == x.shape]
    joins = [value for value in values if value.shape[2:] == (h, w) and value is not x]
    kinds = ["conv", "conv", "pointwise", "relu", "add", *(["pool", "stride"] if min(h, w) > 4 else [])]
    kind = draw(st.sampled_from([*kinds, *(["upsample"] if h < 20 else []), *(["concat"] if joins and c < 90 else [])]))
    with net.b.at(f"{kind}{len(values)}"):
        if kind == "conv":
            return conv(net, x, draw(st.sampled_from([3, 20, 70])))
        if kind == "pointwise":
            return conv(net, x, draw(st.sampled_from([5, 66])), 1)
        if kind == "stride":
            kernel = draw(st.sampled_from([1, 3]))
            return conv(net, x, 16, kernel, 2, kernel // 3)
        if kind == "pool":
            return net.b.max_pool(x, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
        if kind == "relu":
            return net.b.relu(x)
        if kind == "add":
            return net.b.add(x, alike[draw(st.integers(0, len(alike) - 1))], out=TensorType(x.shape, x.dtype))
        if kind == "upsample":
            return net.b.upsample(x, scale=(2, 2))
        return net.b.concat(x, joins[draw(st.integers(0, len(joins) - 1))], axis=1)


@st.composite
def nets(draw: st.DrawFn) -> Module:
    dtype = draw(st.sampled_from(sorted(MODES)))
    net = Net([(draw(st.sampled_from([1, 2, 5])), 4, draw(st.integers(7, 16)), draw(st.integers(5, 12)))], 0, dtype)
    values = list(net.inputs)
    for _ in range(draw(st.integers(2, 7))):
        values.append(layer(draw, net, values))
    more = draw(st.lists(st.sampled_from(values[1:]), max_size=1, unique_by=id))
    return net.module(list({id(value): value for value in [values[-1], *more]}.values()))


def layers(module: Module) -> list[Operation]:
    return [op for op in module.main.ops if op.name.startswith("tensorop.") and op.short_name != "weight"]


@settings(max_examples=15, deadline=None)
@given(nets(), st.data())
def test_any_groups_and_slices_give_the_same_bits(module: Module, data: st.DataObject) -> None:
    ops, start = layers(module), 0
    while start < len(ops):
        size = data.draw(st.integers(1, len(ops)))
        slices = tuple(data.draw(st.sampled_from([1, 1, 2, 3])) for _ in range(2))
        for op in ops[start : start + size]:
            op.attributes[GROUP], op.attributes[SLICES] = start, (slices[0], 1, slices[1], 1)
        start += size
    with local_memory(data.draw(st.sampled_from([1 << 13, 1 << 14, 1 << 19]))):
        check(module)


@settings(max_examples=8, deadline=None)
@given(nets(), st.sampled_from([3000, 1 << 12, 1 << 13]), st.integers(0, 2))
def test_chosen_groups_give_the_same_bits(module: Module, lanes: int, level: int) -> None:
    with local_memory(lanes // 128 * 128):
        if all(TARGET.kernel_for(op).unsupported_reason(op) is None for op in layers(module)):  # type: ignore[union-attr, arg-type]
            GroupLayers(level).run(module, PassContext(target=TARGET))
            check(module, level=2)


def decoder() -> Module:
    """A residual block at full size, a smaller branch, and both joined again."""
    net = Net([(1, 3, 64, 48)])
    (x,) = net.inputs
    with net.b.at("stem"):
        a = conv(net, x, 24)
    with net.b.at("inner"):
        b = net.b.relu(conv(net, a, 40))
    with net.b.at("sum"):
        c = net.b.add(conv(net, b, 24, 1), a)
    with net.b.at("down"):
        d = conv(net, c, 48, 3, 2)
    with net.b.at("up"):
        e = net.b.upsample(conv(net, d, 24, 1), scale=(2, 2))
    with net.b.at("out"):
        return net.module([conv(net, net.b.add(e, c), 2, 1)])


def features(compiled: Compiled) -> int:
    return sum(row.loaded + row.stored - row.weights for row in compiled.rows)


@pytest.mark.parametrize("level", [1, 2])
def test_groups_spare_global_memory(level: int) -> None:
    module = decoder()
    with local_memory(1 << 15):
        alone = check(module)
        GroupLayers(level).run(module, PassContext(target=TARGET))
        grouped = check(module)
    assert features(grouped) < 0.6 * features(alone)
    assert grouped.groups is not None
    cut = [group for group in grouped.groups if max(group.slices) > 1]
    assert cut
    for group in grouped.groups:
        assert group.lane_bytes <= 1 << 15
        assert all(live_range.address + live_range.lane_bytes <= 1 << 15 for live_range in group.live_ranges)
        assert all(live_range.first_step <= live_range.last_step for live_range in group.live_ranges)
    kinds = {live_range.kind for group in cut for live_range in group.live_ranges}
    assert kinds >= {"weight", "value"}


def test_joins_are_made_row_by_row() -> None:
    net = Net([(1, 24, 64, 48), (1, 40, 64, 48)])
    join = net.b.concat(*net.inputs, axis=1).op
    kernel, rows = TARGET.kernel_for(join), (8, 16)
    work = kernel.boxed(join, ((0, 1), (0, 64), rows, (0, 48)))
    assert work is not None
    read = [buffer.contents.box for buffer in work.inputs if buffer.contents is not None]
    assert read == [((0, 1), (0, channels), rows, (0, 48)) for channels in (24, 40)]
    assert kernel.boxed(join, ((0, 1), (0, 30), rows, (0, 48))) is None


def many_weights() -> Module:
    """Convolutions on small maps, whose weights take longer to load than their products."""
    net = Net([(1, 256, 7, 7)])
    x = net.inputs[0]
    for index, channels in enumerate((256, 512, 256, 512, 256)):
        with net.b.at(f"conv{index}"):
            x = conv(net, x, channels)
    return net.module([x])


def cycles(compiled: Compiled) -> int:
    assert isinstance(compiled.model, Bm168xModel)
    return analyze(compiled.model).timing().cycles


def test_many_weights_arrive_in_parts() -> None:
    module = many_weights()
    alone = check(module)
    GroupLayers(2).run(module, PassContext(target=TARGET))
    parts = {op.label: op.attributes[SLICES][1] for op in module.main.ops if SLICES in op.attributes}
    assert parts == dict.fromkeys(["conv1", "conv2", "conv3", "conv4"], 4)
    assert cycles(check(module)) < 0.95 * cycles(alone)
