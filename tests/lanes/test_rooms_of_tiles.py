"""What a tile takes of local memory, and how long, does not depend on where in the result it lies."""

from __future__ import annotations

import numpy as np
import pytest
from cycle_nets import BYTES, FLOATS, Make
from lane_nets import Net

from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.codegen.kernels import LocalKernel
from bmcompiler.codegen.tiling import Axis, Box, Buffer
from bmcompiler.ir import Value
from bmcompiler.target import find_target, unsupported_reason

WIDE = 3 * 64
"""Channels, which fill the lanes of each chip several times."""


def scaled(net: Net) -> list[Value]:
    """Bias and factors of the mode channel."""
    factors = np.tile(np.array([3, 9], np.int32), (WIDE, 1))
    return [net.integers("i32", WIDE), net.b.weight(factors, "factors")]


NETS: dict[str, dict[str, Make]] = {
    "f32": FLOATS
    | {
        "wide conv": lambda t, x: t.b.conv(x, t.f32(WIDE, WIDE, 3, 3), t.f32(WIDE)),
        "wide deconv": lambda t, x: t.b.deconv(x, t.f32(WIDE, WIDE, 2, 2), strides=(2, 2)),
        "wide product": lambda t, x: t.b.matmul(x, t.f32(x.shape[-1], 400), t.f32(400)),
    },
    "i8": BYTES
    | {
        "wide conv": lambda t, x: t.b.conv(x, t.integers("i8", WIDE, WIDE, 3, 3), t.integers("i16", WIDE), rshift=9),
        "wide deconv": lambda t, x: t.b.deconv(x, t.integers("i8", WIDE, WIDE, 2, 2), strides=(2, 2), rshift=9),
        "conv by factors": lambda t, x: t.b.conv(x, t.integers("i8", WIDE, WIDE, 3, 3), *scaled(t), mode="channel"),
        "deconv by factors": lambda t, x: t.b.deconv(x, t.integers("i8", WIDE, WIDE, 2, 2), *scaled(t), mode="channel"),
        "depthwise by factors": lambda t, x: t.b.conv(
            x, t.integers("i8", WIDE, 1, 3, 3), *scaled(t), group=WIDE, mode="channel"
        ),
        "product by factors": lambda t, x: t.b.matmul(
            x, t.integers("i8", x.shape[-1], WIDE), *scaled(t), mode="channel"
        ),
        "prelu": lambda t, x: t.b.prelu(x, t.integers("i8", WIDE), multiplier=3, rshift=1, slope_rshift=7),
        "factors": lambda t, x: t.b.mul_shift(x, t.integers("i8", 1, WIDE, 1, 1), rshift=6),
    },
}
CASES = [(kind, name) for kind, nets in NETS.items() for name in nets]


@pytest.mark.parametrize("chip", ["bm1880", "bm1684", "bm1684x"])
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_tiles_along_images_and_channels_are_alike(kind: str, name: str, chip: str) -> None:
    net, target = Net([(3, WIDE, 6, 7)], dtype=kind), find_target(chip)
    module = net.module([NETS[kind][name](net, net.inputs[0])])
    for op in module.main.ops:
        kernel = None if unsupported_reason(target, op) else target.kernel_for(op)
        while isinstance(kernel, FormsKernel):
            kernel = kernel.form(op)
        if isinstance(kernel, LocalKernel):
            grid = kernel.grid(op)
            for axis in range(2):
                boxes = inner(grid, axis)
                works = [kernel.work(op, box) for box in boxes]
                rooms = [(list(map(taken, (*w.inputs, *w.outputs))), w.scratch, w.cycles) for w in works]
                assert rooms[1:] == rooms[:-1], (op.name, boxes)


def taken(buffer: Buffer) -> tuple[int, ...]:
    """What a buffer takes of a lane and of the bus."""
    return buffer.lane_bytes, buffer.nbytes, buffer.loads, buffer.late, buffer.ahead, buffer.spare


def inner(grid: tuple[Axis, ...], number: int) -> list[Box]:
    """Tiles of one size along an axis: the first that it has, the second, and so on."""
    axis = grid[number]
    size = min(axis.size // 3 // axis.step * axis.step, axis.most or axis.size)
    if not size or not axis.cuts or axis.period not in (0, axis.size):
        return []
    whole = [(0, min(each.size, each.most or each.size)) for each in grid]
    places = [(start, start + size) for start in range(0, axis.size - size + 1, size)]
    return [tuple(place if at == number else each for at, each in enumerate(whole)) for place in places]
