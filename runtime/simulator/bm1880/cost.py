"""Cycles, multiply-accumulates and bytes of BM1880 commands, vectorised over a program.

What a command costs is said in `backends/bm1880/cycles.py`; here its parameters are read from the fields of commands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.cycles import PROFILE, WINOGRAD_PIXELS, Count, CycleTable, TimingProfile
from bmcompiler.backends.bm1880.isa import FLAG_WEIGHT, Direction, Engine, GdmaFunction, Task, WindowOp
from bmcompiler.backends.lanes.counts import up
from bmcompiler.instructions.isa import Columns
from bmcompiler.numeric.arrays import Doubles, Ints, Mask
from bmcompiler.runtime.simulator.analysis import Costs
from bmcompiler.runtime.simulator.bm1880.decoded import Decoded
from bmcompiler.runtime.simulator.traffic import NetMemory, Transfers, compulsory


def costs(decoded: Decoded, profile: TimingProfile = PROFILE, net: NetMemory | None = None) -> Costs:
    """Costs of all records; CPU records cost nothing here. `net` is in addresses as transfers have them."""
    cycles, macs, weights, loaded, stored = np.zeros((5, len(decoded)), np.int64)
    ideal = np.zeros(len(decoded))
    table = CycleTable(profile)
    cycles[decoded.tpu_at], macs[decoded.tpu_at], ideal[decoded.tpu_at] = _tpu(decoded.tpu, table)
    moved = _gdma(decoded.gdma, table)
    at = decoded.gdma_at
    coefficient = (decoded.flags[at] & FLAG_WEIGHT) != 0
    cycles[at] = moved.cycles
    weights[at], loaded[at], stored[at] = moved.read * coefficient, moved.read * ~coefficient, moved.written
    columns = np.zeros((2, len(decoded)), np.int64)
    for column, side in zip(columns, ("src", "dst")):
        column[at] = decoded.gdma[f"{side}_addr_lo"] | decoded.gdma[f"{side}_addr_hi"] << 32
    transfers = Transfers(columns[0], weights + loaded, columns[1], stored, weights > 0)
    return Costs(cycles, macs, ideal, weights, loaded, stored, *compulsory(transfers, net or NetMemory()))


def cycles_of(engine: Engine, fields: Columns, profile: TimingProfile = PROFILE) -> Count:
    """Cycles of instructions of one engine by their fields."""
    table = CycleTable(profile)
    return _tpu(fields, table)[0] if engine is Engine.TPU else _gdma(fields, table).cycles


def _tpu(f: Columns, table: CycleTable) -> tuple[Count, Ints, Doubles]:
    """Cycles, multiply-accumulates, and cycles with every unit at work of TPU instructions (bm1880.md 15)."""
    task, unit = f["tsk_typ"], f["tsk_eu_typ"]
    mdsum = f["tens_mdsum"] == 1
    n, c, h, w = (np.where(mdsum & (task == Task.TENSOR), f[f"opd0_{d}"], f[f"res0_{d}"]) for d in "nchw")
    pixels = h * w
    window = f["opd1_h"] * f["opd1_w"]
    depth = f["opd1_n"]
    winograd = (task == Task.CONV) & (f["opt_winograd"] == 1)
    wide = (f["opt_res0_int8"] & f["opt_opd0_int8"] & f["opt_opd1_int8"]) == 0
    kinds: list[Mask] = [
        winograd,
        task == Task.CONV,
        task == Task.WINDOW,
        task == Task.MATRIX_MAC,
        task == Task.MATRIX_MAC_2,
    ]
    each: list[Count] = [table.winograd_turns(depth), window * depth, window, depth, f["opd0_w"]]
    turns = np.select(kinds, each, table.element_wise_turns(wide))
    places = np.where(winograd, up(pixels, WINOGRAD_PIXELS), pixels)
    outputs = n * c * pixels
    ideal = outputs / np.where(winograd, WINOGRAD_PIXELS, 1) / (CHIP.lanes * CHIP.execution_units) * turns
    macs = np.select(
        kinds,
        [
            outputs * 9 * depth,
            outputs * window * depth,
            outputs * window * (unit == WindowOp.DEPTHWISE),
            outputs * depth,
            outputs * f["opd0_w"],
        ],
        0,
    )
    return table.tpu(table.groups_of(n, c, places), turns), macs, ideal


@dataclass(frozen=True)
class _Moved:
    cycles: Count
    read: Ints
    written: Ints


def _gdma(f: Columns, table: CycleTable) -> _Moved:
    """Cycles of transfers and the bytes they move over the global memory bus."""
    direction, matrix = f["direction"], f["matrix"] == 1
    source = _side(f, "src", f["src_n"], matrix & (direction != Direction.STORE))
    batch = np.where(f["function"] == GdmaFunction.TRANSPOSE, f["src_c"], f["src_n"])
    target = _side(f, "dst", batch, matrix & (direction == Direction.STORE))
    reads = (direction == Direction.LOAD) | (direction == Direction.GLOBAL)
    writes = (direction == Direction.STORE) | (direction == Direction.GLOBAL)
    bus = reads * source.bursts(table) + writes * target.bursts(table)
    inside = np.where(direction == Direction.LOCAL, source.size, 0)
    return _Moved(table.transfer(bus, inside), reads * source.size, writes * target.size)


@dataclass(frozen=True)
class _Side:
    """Bytes of one side of transfers, and the length of its runs of consecutive bytes."""

    size: Ints
    run: Ints

    def bursts(self, table: CycleTable) -> Count:
        """Bytes that cross the bus."""
        return self.size // np.maximum(self.run, 1) * table.bursts(self.run)


def _side(f: Columns, side: str, batch: Ints, matrix: Mask) -> _Side:
    """A global side. Matrices are h rows of w bytes, an h stride apart (bm1880.md 5.1)."""
    n, c = np.where(matrix, 1, batch), np.where(matrix, 1, f[f"{side}_c"])
    h, w = f[f"{side}_h"], f[f"{side}_w"]
    size = n * c * h * w
    transposed = f["function"] == GdmaFunction.TRANSPOSE
    # n and c are exchanged, so only one channel's pixels are moved in one piece
    packed = np.where(transposed & ~matrix, h * w, size)
    channel = f[f"{side}_c_str_lo"] | f[f"{side}_c_str_hi"] << 16
    run = full = w
    for count, stride in ((h, f[f"{side}_h_str"]), (c, channel), (n, f[f"{side}_n_str"])):
        joined = (run == full) & ((count == 1) | (stride == full))
        full = full * count
        run = np.where(joined, full, run)
    strided = (f["enable_stride"] == 1) | matrix
    return _Side(size, np.where(strided, run, packed))
