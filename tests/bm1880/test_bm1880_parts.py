"""Kernels of the BM1880 compute any part of a result from the parts of the operands that it needs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from chip_nets import Net, compare

from bmcompiler.backends.bm1880.build import Build
from bmcompiler.backends.bm1880.kernels.base import DeviceKernel
from bmcompiler.backends.bm1880.target import TARGET
from bmcompiler.codegen.schedule import Moved
from bmcompiler.codegen.tiling import Box
from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.runtime.simulator.bm1880.analysis import analyze

PARTS: dict[str, Callable[[Net, Value], Value]] = {
    "conv": lambda net, x: net.b.conv(x, net.i8(40, 40, 3, 3), net.bias(40), pads=(1, 1, 1, 1), rshift=9),
    "strided": lambda net, x: net.b.conv(x, net.i8(7, 40, 3, 3), pads=(1, 1, 1, 1), strides=(2, 2), rshift=9),
    "depthwise": lambda net, x: net.b.conv(x, net.i8(40, 1, 3, 3), pads=(1, 1, 1, 1), group=40, rshift=7),
    "deconv": lambda net, x: net.b.deconv(x, net.i8(40, 9, 2, 2), strides=(2, 2), rshift=9),
    "max_pool": lambda net, x: net.b.max_pool(x, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
    "avg_pool": lambda net, x: net.b.avg_pool(x, kernel=(2, 3), strides=(2, 1), multiplier=171, rshift=10),
    "relu": lambda net, x: net.b.relu(x),
    "max": lambda net, x: net.b.max(x, net.b.muls_shift(x, multiplier=-3, rshift=1)),
    "mac_shift": lambda net, x: net.b.mac_shift(x, net.b.maxs(x, value=5), multipliers=(3, -5), rshift=3),
    "factor": lambda net, x: net.b.mul_shift(x, net.i8(2, 40, 1, 1), rshift=6),
    "lut": lambda net, x: net.b.lut(x, net.i8(256)),
    "prelu": lambda net, x: net.b.prelu(x, net.i8(40), multiplier=3, rshift=1, slope_rshift=7),
    "upsample": lambda net, x: net.b.upsample(x, scale=(3, 2)),
    "pad": lambda net, x: net.b.relu(net.b.pad(x, pads=(0, 0, 1, 2, 0, 0, 0, 0))),
    "concat": lambda net, x: net.b.relu(net.b.concat(x, net.b.maxs(x, value=5), axis=1)),
}


@pytest.mark.parametrize("name", sorted(PARTS))
def test_parts_of_a_result_need_only_their_boxes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every result is made box by box; the boxes are such as no tiling has."""
    made = 0

    def emit(self: DeviceKernel, op: TensorOp, build: Build) -> Moved:
        nonlocal made
        for box in boxes(op.type.shape):
            work = self.boxed(op, box)
            assert work is not None
            buffers = (*work.inputs, *work.outputs)
            sizes = [
                TARGET.machine.tiler.rounded(size)
                for size in (*(buffer.lane_bytes for buffer in buffers), *work.scratch)
            ]
            places = [sum(sizes[:i]) for i in range(len(sizes))]
            inside = len(work.inputs)
            for buffer, place in zip(work.inputs, places):
                buffer.transfer(build, place)
            work.compute(build, places[:inside], places[inside : len(buffers)], places[len(buffers) :])
            for buffer, place in zip(work.outputs, places[inside:]):
                buffer.transfer(build, place)
            made += 1
        return Moved(tiles=1)

    for kernel in TARGET.kernels():
        monkeypatch.setattr(type(kernel), "emit", emit)
    net = Net([(2, 40, 7, 9)])
    module = net.module([PARTS[name](net, *net.inputs)])
    compiled = TARGET.compile([module], 0)
    compare([module], compiled.model)
    assert analyze(compiled.model, 0).races() == []
    assert made


def boxes(shape: tuple[int, ...]) -> list[Box]:
    """Uneven parts along n, h and w."""
    n, c, h, w = shape
    return list(product(halves(n), [(0, c)], halves(h), halves(w)))


def halves(size: int) -> list[tuple[int, int]]:
    """Two uneven parts of an axis."""
    cut = max(1, size // 3)
    return [(0, cut), (cut, size)]
