"""The bytes the race check thinks a command touches are those the simulator touches."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import golden_cases
import numpy as np
import pytest
from chip_nets import Net, local_memory

from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.cmdbuf import records
from bmcompiler.backends.bm1880.isa import HEADER_SIZE, Engine
from bmcompiler.backends.bm1880.target import TARGET
from bmcompiler.bmodel.bm1880 import Bm1880Model
from bmcompiler.ir import Value
from bmcompiler.runtime.simulator.bm1880 import GlobalMemory, LocalMemory, Memories, compile_plan
from bmcompiler.runtime.simulator.bm1880.analysis import Bm1880Analysis, analyze
from bmcompiler.runtime.simulator.bm1880.decoded import decode
from bmcompiler.runtime.simulator.bm1880.memory import Shape, Tensor
from bmcompiler.runtime.simulator.races import Accesses

CASES = [row["case"] for row in json.loads((Path(__file__).parents[1] / "data/bm1880_golden.json").read_text())]
WEIGHTS, NEURONS = 0x10000, 0x80000
GLOBAL_SIZE = 0x100000


def box(start: int, dims: Sequence[int], strides: Sequence[int]) -> set[int]:
    """All addresses of a strided box."""
    addresses = np.array([start])
    for size, stride in zip(dims, strides):
        addresses = np.add.outer(addresses, np.arange(size) * stride).reshape(-1)
    return set(addresses.tolist())


class RecordingLocal(LocalMemory):
    """Local memory that notes the flat addresses of every tensor asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()

    def tensor(self, lane: int, offset: int, shape: Shape, strides: Shape, *args: object, **kw: object) -> Tensor:
        n, c, h, w = shape
        for channel in range(c):
            group, at = divmod(lane + channel, CHIP.lanes)
            start = at * CHIP.lmem_size + offset + group * strides[1]
            self.seen |= box(start, (n, h, w), (strides[0], strides[2], strides[3]))
        return super().tensor(lane, offset, shape, strides, *args, **kw)  # type: ignore[arg-type]


def claimed(table: Accesses, record: int, *, write: bool | None = None) -> set[int]:
    """Addresses in local memory that the race check knows of for one record."""
    rows = np.flatnonzero(table.command == record)
    kept = [row for row in rows.tolist() if write is None or table.write[row] == write]
    parts = [box(int(table.start[row]), table.dims[row].tolist(), table.strides[row].tolist()) for row in kept]
    return set().union(*parts)


def check_program(cmdbuf: bytes) -> int:
    """Compare every TPU and GDMA record of a program; returns how many there were."""
    table = Bm1880Analysis("net", decode(cmdbuf), []).accesses()
    local, remote = RecordingLocal(), GlobalMemory()
    rng = np.random.default_rng(0)
    memory = rng.integers(0, 256, GLOBAL_SIZE, np.uint8)
    remote.map(0, memory)
    local.bytes[...] = rng.integers(0, 256, local.bytes.shape, np.uint8)
    index = records(cmdbuf)
    checked = 0
    for record, engine in enumerate(index.engine.tolist()):
        if engine == Engine.CPU:
            continue
        local.seen = set()
        at = int(index.offset[record])
        part = cmdbuf[at - HEADER_SIZE : at + int(index.length[record])]
        before = local.bytes.copy()
        compile_plan(part, Memories(remote, local), NEURONS, WEIGHTS).run()
        assert local.seen == claimed(table, record)
        changed = np.flatnonzero((local.bytes != before).reshape(-1)).tolist()
        assert set(changed) <= claimed(table, record, write=True)
        checked += 1
    return checked


@pytest.mark.parametrize("case", CASES)
def test_golden_programs(case: str) -> None:
    assert check_program(golden_cases.build(case)[0]) >= 2


Make = Callable[[Net, Value], Value]
NETS: dict[str, tuple[tuple[int, ...], Make]] = {
    "conv": ((1, 5, 12, 9), lambda n, x: n.b.conv(x, n.i8(40, 5, 3, 3), n.bias(40), pads=(1, 1, 1, 1), rshift=8)),
    "depthwise": ((1, 40, 9, 9), lambda n, x: n.b.conv(x, n.i8(40, 1, 3, 3), n.bias(40), group=40, rshift=6)),
    "matmul": ((3, 70), lambda n, x: n.b.matmul(x, n.i8(70, 45), None, rshift=7)),
    "max_pool": ((2, 33, 8, 8), lambda n, x: n.b.max_pool(x, kernel=(2, 2), strides=(2, 2))),
    "relu": ((1, 3, 40, 20), lambda n, x: n.b.relu(x)),
    "permute": ((1, 6, 5, 4), lambda n, x: n.b.permute(x, order=(0, 2, 3, 1))),
}


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("lane_bytes", [1024, 65536])
def test_compiled_programs_are_seen_right_and_have_no_race(name: str, lane_bytes: int) -> None:
    shape, make = NETS[name]
    net = Net([shape])
    with local_memory(lane_bytes):
        module = net.module([make(net, net.inputs[0])])
        model = TARGET.compile([module], 2).model
    assert isinstance(model, Bm1880Model)
    assert check_program(model.commands[0].cmdbuf) >= 1
    assert not analyze(model).races()
