"""Programs of kernel calls for the timing, trace and race tests."""

from __future__ import annotations

from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NEURON,
    CTRL_WEIGHT,
    FMT_I8,
    Bmk1880Context,
    bmk1880_acquire_cmdbuf,
    bmk1880_gdma_load,
    bmk1880_gdma_store,
    bmk1880_parallel_disable,
    bmk1880_parallel_enable,
    bmk1880_register,
    bmk1880_relu_param_t,
    bmk1880_tl_prealloc_align,
    bmk1880_tpu_relu,
    shape_t4,
)
from bmcompiler.backends.bm1880.cmdbuf import records
from bmcompiler.backends.bm1880.isa import FORMATS, Engine
from bmcompiler.bmodel import TensorInfo
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.bmodel.layers import LayerSpan, encode_layers
from bmcompiler.runtime.simulator.bm1880.analysis import Bm1880Analysis, analyze

CHANNELS, SIDE = 32, 16
TILE_BYTES = CHANNELS * SIDE * SIDE
_LANE_BYTES = SIDE * SIDE
_WAIT = {Engine.TPU: "cmd_id_gdma", Engine.GDMA: "cmd_id_tpu"}


def model(cmdbuf: bytes, spans: list[LayerSpan] | None = None, name: str = "net") -> Bm1880Model:
    """A model around a command buffer whose input is 2 tiles at 0 and whose output is 2 tiles behind it."""
    source = TensorInfo("x", (2, CHANNELS, SIDE, SIDE), threshold=4.0)
    result = TensorInfo("y", (2, CHANNELS, SIDE, SIDE), offset=2 * TILE_BYTES, threshold=4.0)
    layers = encode_layers(spans or [])
    return Bm1880Model(name, [Command([source], [result], cmdbuf, 4 * TILE_BYTES, layers=layers)], [bytes(64)])


def analysed(cmdbuf: bytes, spans: list[LayerSpan] | None = None) -> Bm1880Analysis:
    return analyze(model(cmdbuf, spans))


def relu_tiles(*, parallel: bool, tiles: int = 2) -> bytes:
    """y = relu(x) tile by tile; with `parallel`, tile i + 1 is loaded and i - 1 stored while tile i is computed."""
    ctx = bmk1880_register()
    slots = [bmk1880_tl_prealloc_align(ctx, i * _LANE_BYTES, shape_t4(1, CHANNELS, SIDE, SIDE), FMT_I8) for i in (0, 1)]

    def load(i: int) -> None:
        bmk1880_gdma_load(ctx, slots[i % 2], i * TILE_BYTES, CTRL_NEURON)

    def compute(i: int) -> None:
        bmk1880_tpu_relu(ctx, bmk1880_relu_param_t(slots[i % 2], slots[i % 2]))

    def store(i: int) -> None:
        bmk1880_gdma_store(ctx, slots[i % 2], (2 + i) * TILE_BYTES, CTRL_NEURON)

    if not parallel:
        for i in range(tiles):
            load(i)
            compute(i)
            store(i)
        return bmk1880_acquire_cmdbuf(ctx)
    for step in range(tiles + 2):
        bmk1880_parallel_enable(ctx)
        if 0 <= step - 2 < tiles:  # before the load that takes its slot
            store(step - 2)
        if step < tiles:
            load(step)
        if 0 <= step - 1 < tiles:
            compute(step - 1)
        bmk1880_parallel_disable(ctx)
    return bmk1880_acquire_cmdbuf(ctx)


def one_load(flag: int = CTRL_WEIGHT) -> bytes:
    """A single load of 32 x 2 bytes."""
    ctx: Bmk1880Context = bmk1880_register()
    bmk1880_gdma_load(ctx, bmk1880_tl_prealloc_align(ctx, 0, shape_t4(1, 32, 1, 2), FMT_I8), 0, flag)
    return bmk1880_acquire_cmdbuf(ctx)


def waits(cmdbuf: bytes) -> list[int]:
    """Wait id of every record, 0 for CPU records."""
    found = []
    for engine, payload, _ in records(cmdbuf):
        kind = Engine(engine)
        found.append(FORMATS[kind].unpack(payload)[_WAIT[kind]] if kind in _WAIT else 0)
    return found


def with_wait(cmdbuf: bytes, record: int, wait: int) -> bytes:
    """The program with another wait id in one record."""
    index = records(cmdbuf)
    kind, at, size = Engine(int(index.engine[record])), int(index.offset[record]), int(index.length[record])
    fields = FORMATS[kind].unpack(cmdbuf[at : at + size]) | {_WAIT[kind]: wait}
    return cmdbuf[:at] + FORMATS[kind].pack(fields) + cmdbuf[at + size :]
