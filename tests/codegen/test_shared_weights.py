"""Ops with many weights are groups that are cut along their channels, where their kernel makes parts of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from bmcompiler.codegen.groups.choose import _HEAVY, _shared_weights
from bmcompiler.codegen.tiling import Buffer, TileWork
from bmcompiler.ir import Operation, TensorType
from bmcompiler.ops.builder import Builder

LANE, LANES = 1 << 14, 64


def relu(channels: int) -> Operation:
    b = Builder.new("net")
    op = b.relu(b.input("x", TensorType((1, channels, 4, 4), "f32"))).op
    assert op is not None
    return op


def work(weights: int) -> TileWork:
    buffer = Buffer(weights, "c", weights, lambda build, address: None, True)
    return TileWork((buffer,), (), (), lambda *places: None, 100)


def cut(*ops: tuple[Operation, int], whole: tuple[Operation, ...] = ()) -> list[tuple[Operation, tuple[int, ...]]]:
    """Of ops and bytes of their weights in a lane, which are cut and into how many slices; not those of `whole`."""
    segments: Any = SimpleNamespace(
        ops=[op for op, _ in ops],
        works=[work(weights) for _, weights in ops],
        tiler=SimpleNamespace(lane_bytes=LANE),
        copier=SimpleNamespace(grain=lambda value: (1, LANES, 1, 1)),
        kernels=SimpleNamespace(part=lambda op, box: None if op in whole else work(1)),
    )
    return [(op, slices) for (op,), slices in _shared_weights(segments, [], _HEAVY)]


def test_many_weights_are_cut_along_channels() -> None:
    wide, narrow, light = relu(3 * LANES), relu(LANES), relu(3 * LANES)
    assert cut((wide, LANE // 2), (narrow, LANE // 2), (light, LANE // 8 - 1)) == [(wide, (1, 3, 1, 1))]


def test_what_the_kernel_does_not_cut_stays_whole() -> None:
    one, other = relu(3 * LANES), relu(3 * LANES)
    assert cut((one, LANE // 2), (other, LANE // 2), whole=(one,)) == [(other, (1, 3, 1, 1))]
