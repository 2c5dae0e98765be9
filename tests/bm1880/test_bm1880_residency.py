"""Values stay in local memory between ops of a BM1880 program: same bytes at all levels and in small local memory."""

from __future__ import annotations

import numpy as np
import pytest
from chip_nets import Net, check, local_memory

from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.runtime.simulator.bm1880.analysis import analyze
from bmcompiler.target import Compiled

FULL = 1 << 16


def conv(net: Net, x: Value, channels: int, kernel: int = 3) -> Value:
    n, c, h, w = x.shape
    pads, out = (kernel // 2,) * 4, TensorType((n, channels, h, w), "i8")
    return net.b.conv(x, net.i8(channels, c, kernel, kernel), net.bias(channels), pads=pads, rshift=9, out=out)


def module(batch: int) -> Module:
    """Residual blocks by mac_shift, whose sums take two planes; prelu; a concatenation; a value read as an output."""
    net = Net([(batch, 12, 9, 9)])
    (a,) = net.inputs
    b = net.b.relu(conv(net, a, 12))
    c = net.b.mac_shift(conv(net, b, 12, 1), a, multipliers=(3, 5), rshift=3)
    d = net.b.max_pool(c, kernel=(2, 2), strides=(2, 2))
    e = net.b.concat(conv(net, d, 20), net.b.max(d, d), axis=1)
    return net.module([conv(net, e, 7), c])


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("lanes", [512, 1024, 2048, FULL])
def test_nets_give_the_same_bytes(lanes: int, batch: int) -> None:
    with local_memory(lanes):
        check(module(batch))


def test_a_residual_net_moves_its_input_and_output_alone() -> None:
    net = Net([(2, 32, 9, 9)])
    (a,) = net.inputs
    total = net.b.mac_shift(conv(net, conv(net, a, 32), 32), a, multipliers=(1, 2), rshift=2)
    compiled = check(net.module([total]))
    assert features(compiled) == a.type.nbytes + total.type.nbytes


def features(compiled: Compiled) -> int:
    """Bytes of activations that cross the bus."""
    return sum(row.loaded + row.stored - row.weights for row in compiled.rows)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("counts", [(32, 64, 5), (12, 7, 40), (33, 31)])
def test_feature_maps_are_joined_in_local_memory(batch: int, counts: tuple[int, ...]) -> None:
    net = Net([(batch, 8, 7, 7)])
    (a,) = net.inputs
    joined = net.b.concat(*(conv(net, a, count, 1) for count in counts), axis=1)
    out = net.b.max_pool(net.b.relu(joined), kernel=(2, 2))
    compiled = check(net.module([out]))
    assert features(compiled) == a.type.nbytes + out.type.nbytes
    assert analyze(compiled.model, 0).races() == []


def test_values_keep_their_layout_through_reshapes_and_small_products() -> None:
    net = Net([(2, 8, 6, 6)])
    (a,) = net.inputs
    rows = net.b.reshape(net.b.max_pool(conv(net, a, 40), kernel=(6, 6)), shape=(2, 40))
    hidden = net.b.relu(net.b.matmul(rows, net.i8(40, 24), net.bias(24), rshift=8))
    out = net.b.matmul(net.b.maxs(hidden, value=3), net.i8(24, 10), rshift=8)
    compiled = check(net.module([out]))
    assert features(compiled) == a.type.nbytes + out.type.nbytes
    assert analyze(compiled.model, 0).races() == []


def test_a_permutation_of_two_blocks_of_axes_takes_few_commands_and_long_runs() -> None:
    for shape, order in (
        ((2, 9, 11, 3), (0, 3, 1, 2)),
        ((3, 50, 40), (2, 0, 1)),
        ((1, 70, 1, 33), (3, 0, 2, 1)),
        ((2, 4, 55, 70), (0, 2, 3, 1)),
        ((1, 2, 260, 256), (0, 2, 3, 1)),
        ((1, 260, 256, 2), (0, 3, 1, 2)),
    ):
        net = Net([shape])
        compiled = check(net.module([net.b.permute(net.inputs[0], order=order)]))
        assert compiled.rows[0].commands <= 12
        assert analyze(compiled.model, 0).timing().cycles < 2 * np.prod(shape)


@pytest.mark.parametrize("bias", [True, False])
def test_large_weights_arrive_while_their_first_channels_compute(bias: bool) -> None:
    """The weights of 544 channels, in shares: less time than to load all of them and to compute then."""
    net = Net([(1, 64, 6, 6)])
    (a,) = net.inputs
    weight, pads = net.i8(544, 64, 3, 3), (1, 1, 1, 1)
    out = TensorType((1, 544, 6, 6), "i8")
    compiled = check(
        net.module([net.b.conv(a, weight, net.bias(544) if bias else None, pads=pads, rshift=11, out=out)])
    )
    analysis = analyze(compiled.model, 0)
    assert analysis.races() == []
    compute, transfer = (engine.busy for engine in analysis.timing().engines)
    assert analysis.timing().cycles < 0.85 * (compute + transfer)
