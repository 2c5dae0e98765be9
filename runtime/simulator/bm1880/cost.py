"""Cycles, multiply-accumulates and bytes of BM1880 commands, vectorised over a program.

Arithmetic follows bm1880.md 15: 32 lanes of 16 units, one multiply-accumulate per unit and cycle. Clock, memory
bandwidth and start-up times are documented nowhere; they are parameters (`TimingProfile`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.isa import FLAG_WEIGHT, Direction, GdmaFunction, Task, WindowOp
from bmcompiler.instructions.isa import Columns
from bmcompiler.runtime.simulator.analysis import Costs
from bmcompiler.runtime.simulator.bm1880.decoded import Decoded
from bmcompiler.runtime.simulator.timing import Ints
from bmcompiler.runtime.simulator.traffic import NetMemory, Transfers, compulsory

_WINOGRAD_PRODUCTS = 16  # of a 4x4 transformed tile, which yields 2x2 results
_WINOGRAD_PIXELS = 4


@dataclass(frozen=True)
class TimingProfile:
    """Parameters that the sources do not give; every one is an assumption. Cycles are of the TPU clock.

    Attributes:
        clock_hz: 512 multiply-accumulates per cycle at 1 GHz are the advertised 1 TOPS (bm1880.md 15).
        ddr_bytes_per_cycle: 8 bytes per cycle at 1 GHz are 8 GB/s, about 60 % of a 32-bit LPDDR4-3200 interface.
        ddr_burst: bytes of the smallest memory access; every run of consecutive bytes is rounded up to it.
        local_bytes_per_cycle: copies inside local memory: 16 bytes per lane port, four lanes at a time.
        gdma_start: cycles between a transfer's start and its first byte (memory latency, descriptor).
        tpu_start: cycles to start an instruction and to drain its pipeline.
        wide_passes: passes of an element-wise operation with 16-bit operands or results, one per byte plane.
    """

    clock_hz: float = 1e9
    ddr_bytes_per_cycle: float = 8.0
    ddr_burst: int = 32
    local_bytes_per_cycle: float = 64.0
    gdma_start: int = 100
    tpu_start: int = 16
    wide_passes: int = 2

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ValueError(f"{field.name} must be positive, got {getattr(self, field.name)}")

    @property
    def bus_bytes_per_cycle(self) -> float:
        """Global memory at its best."""
        return self.ddr_bytes_per_cycle

    def assumptions(self) -> tuple[str, ...]:
        """The parameters in words."""
        return (
            f"clock {self.clock_hz / 1e6:g} MHz",
            f"global memory {self.ddr_bytes_per_cycle:g} bytes per cycle in bursts of {self.ddr_burst} bytes",
            f"start-up {self.gdma_start} cycles per transfer, {self.tpu_start} per TPU instruction",
            "host functions take no time",
        )


PROFILE = TimingProfile()


def costs(decoded: Decoded, profile: TimingProfile = PROFILE, net: NetMemory | None = None) -> Costs:
    """Costs of all records; CPU records cost nothing here. `net` is in addresses as transfers have them."""
    cycles, macs, weights, loaded, stored = np.zeros((5, len(decoded)), np.int64)
    ideal = np.zeros(len(decoded))
    cycles[decoded.tpu_at], macs[decoded.tpu_at], ideal[decoded.tpu_at] = _tpu(decoded.tpu, profile)
    moved = _gdma(decoded.gdma, profile)
    at = decoded.gdma_at
    coefficient = (decoded.flags[at] & FLAG_WEIGHT) != 0
    cycles[at] = moved.cycles
    weights[at], loaded[at], stored[at] = moved.read * coefficient, moved.read * ~coefficient, moved.written
    columns = np.zeros((2, len(decoded)), np.int64)
    for column, side in zip(columns, ("src", "dst")):
        column[at] = decoded.gdma[f"{side}_addr_lo"] | decoded.gdma[f"{side}_addr_hi"] << 32
    transfers = Transfers(columns[0], weights + loaded, columns[1], stored, weights > 0)
    return Costs(cycles, macs, ideal, weights, loaded, stored, *compulsory(transfers, net or NetMemory()))


def _up(value: Ints, step: int) -> Ints:
    return -(-value // step)


def _tpu(f: Columns, profile: TimingProfile) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Cycles, multiply-accumulates, and cycles with every unit at work of TPU instructions (bm1880.md 15)."""
    task, unit = f["tsk_typ"], f["tsk_eu_typ"]
    mdsum = f["tens_mdsum"] == 1
    n, c, h, w = (np.where(mdsum & (task == Task.TENSOR), f[f"opd0_{d}"], f[f"res0_{d}"]) for d in "nchw")
    pixels = h * w
    steps = n * _up(c, CHIP.lanes) * _up(pixels, CHIP.execution_units)
    window = f["opd1_h"] * f["opd1_w"]
    depth = f["opd1_n"]
    winograd = (task == Task.CONV) & (f["opt_winograd"] == 1)
    tiles = _up(pixels, _WINOGRAD_PIXELS)
    wide = (f["opt_res0_int8"] & f["opt_opd0_int8"] & f["opt_opd1_int8"]) == 0
    kinds: list[NDArray[np.bool_]] = [
        winograd,
        task == Task.CONV,
        task == Task.WINDOW,
        task == Task.MATRIX_MAC,
        task == Task.MATRIX_MAC_2,
    ]
    each: list[Ints] = [_WINOGRAD_PRODUCTS * depth, window * depth, window, depth, f["opd0_w"]]
    turns = np.select(kinds, each, np.where(wide, profile.wide_passes, 1))
    tile_steps = n * _up(c, CHIP.lanes) * _up(tiles, CHIP.execution_units)
    cycles = np.where(winograd, tile_steps, steps) * turns
    outputs = n * c * pixels
    ideal = outputs / np.where(winograd, _WINOGRAD_PIXELS, 1) / (CHIP.lanes * CHIP.execution_units) * turns
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
    return cycles + profile.tpu_start, macs, ideal


@dataclass(frozen=True)
class _Moved:
    cycles: Ints
    read: Ints
    written: Ints


def _gdma(f: Columns, profile: TimingProfile) -> _Moved:
    """Cycles of transfers and the bytes they move over the global memory bus."""
    direction, matrix = f["direction"], f["matrix"] == 1
    source = _side(f, "src", f["src_n"], matrix & (direction != Direction.STORE))
    batch = np.where(f["function"] == GdmaFunction.TRANSPOSE, f["src_c"], f["src_n"])
    target = _side(f, "dst", batch, matrix & (direction == Direction.STORE))
    reads = (direction == Direction.LOAD) | (direction == Direction.GLOBAL)
    writes = (direction == Direction.STORE) | (direction == Direction.GLOBAL)
    bus = reads * source.bursts(profile.ddr_burst) + writes * target.bursts(profile.ddr_burst)
    inside = np.where(direction == Direction.LOCAL, source.size, 0)
    cycles = np.ceil(bus / profile.ddr_bytes_per_cycle + inside / profile.local_bytes_per_cycle).astype(np.int64)
    return _Moved(cycles + profile.gdma_start, reads * source.size, writes * target.size)


@dataclass(frozen=True)
class _Side:
    """Bytes of one side of transfers, and the length of its runs of consecutive bytes."""

    size: Ints
    run: Ints

    def bursts(self, burst: int) -> Ints:
        """Bytes that cross the bus."""
        return self.size // np.maximum(self.run, 1) * _up(self.run, burst) * burst


def _side(f: Columns, side: str, batch: Ints, matrix: NDArray[np.bool_]) -> _Side:
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
