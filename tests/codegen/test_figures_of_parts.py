"""What an op of a group costs, figure by figure, of a made-up work."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bmcompiler.codegen.bus import Bus
from bmcompiler.codegen.groups.parts import Parts
from bmcompiler.codegen.stream import Stream
from bmcompiler.codegen.tiling import Box, Buffer, Contents, Runs, Tiler, TileWork
from bmcompiler.ir import Operation, TensorType, Value
from bmcompiler.ops.builder import Builder

BOX: Box = ((0, 1), (0, 4), (0, 2), (0, 5))


def _buffer(lane_bytes: int, nbytes: int, value: Value | None = None, **more: object) -> Buffer:
    contents = None if value is None else Contents(value, value.shape, BOX)
    return Buffer(lane_bytes, "nc", nbytes, lambda build, address: None, contents=contents, **more)  # type: ignore[arg-type]


def _net() -> tuple[Sequence[Operation], Value]:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 4, 2, 5), "f32"))
    made = b.neg(x)
    return (b.relu(made).op,), made


@pytest.mark.parametrize("loads", [(), (30,), (30, 70, 5)])
def test_bytes_of_coefficients_are_loads_and_what_is_loaded_beside_steps(loads: tuple[int, ...]) -> None:
    ops, read = _net()
    ins = (
        _buffer(33, 100, read, loads=2, runs=Runs(3, 3)),
        _buffer(8, 20),  # of whatever the op reads
        _buffer(17, 200, coefficient=True),
        _buffer(40, 50, coefficient=True, runs=Runs(4, 4)),
    )
    stream = Stream((10,) * (len(loads) + 2), loads, 999, True) if loads else None
    work = TileWork(
        ins, (_buffer(70, 80, ops[0].results[0]),), (5, 16), lambda *_: None, 321, stream=stream, transfers=7
    )
    tiler = Tiler(1 << 12, 16, bytes_per_cycle=2.5, bus=Bus(load_run=40))
    part = Parts(ops, [{read}], lambda op, box: work if box == BOX else None, tiler)(0, BOX)
    assert part is not None
    assert (part.cycles, part.transfers) == (321, 7)
    assert part.weights == (2, 32 + 48, round(2.5 * sum(loads)) + 200 + 160)
    assert part.loads == ((read, 120, 48, 2), (read, 40, 16, 1))
    assert (part.size, part.need) == (80, 80 + 48 + 16 + 32 + 48 + 16 + 16)
    assert part.boxes == ((read, BOX),) and not part.unsaid


def test_what_cannot_be_computed_so_has_no_figures() -> None:
    ops, read = _net()
    assert Parts(ops, [{read}], lambda op, box: None, Tiler(1 << 12, 16))(0, BOX) is None
