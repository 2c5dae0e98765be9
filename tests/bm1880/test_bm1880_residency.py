"""Values stay in local memory between ops of a BM1880 program: same bytes at all levels and in small local memory."""

from __future__ import annotations

import pytest
from chip_nets import Net, check, local_memory

from bmcompiler.ir import Module, TensorType, Value

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
    features = sum(row.loaded + row.stored - row.weights for row in compiled.rows)
    assert features == a.type.nbytes + total.type.nbytes
