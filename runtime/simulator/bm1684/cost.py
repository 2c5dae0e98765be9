"""Cycles, multiply-accumulates and bytes of BM1684 commands, vectorised over a program.

The figures are those of bm1684.md 12, where the vendor's cycle estimates were sampled; what was not sampled there
follows the nearest kind of command that was, and is said in `TimingProfile.assumptions`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.isa import FORMAT_BYTES, DataFormat, Direction, Engine, Eu, Function, Precision, Task
from bmcompiler.bmodel.bm1684 import Bm1684Stage
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import Columns
from bmcompiler.runtime.simulator.analysis import Costs
from bmcompiler.runtime.simulator.bm1684.decoded import Decoded
from bmcompiler.runtime.simulator.timing import Ints
from bmcompiler.runtime.simulator.traffic import NetMemory, Transfers, compulsory

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_PIXELS = 16  # results of one channel that a lane makes at once
_PASS = 2  # cycles of one step of arithmetic on `_PIXELS` words
_FLOAT_TAP = {1: 2.0, 3: 5.0}
"""Cycles of a kernel position by input channels, in fp32, where it is not one for every two channels."""
_FLOAT_START, _INTEGER_START = 5.0, 10.0
_INTEGER_TAP = ((4, 6.8125, 9.6875), (8, 7.8125, 9.6875), (16, 5.1875, 9.8125))
"""(input channels up to, cycles of a kernel position, and per group of pixels) of int8; above, one for every four."""
_AVERAGE_START = 5
_RSQRT_STEPS = 14  # arithmetic steps of bm1684.md 7.1
_DIVIDE_STEPS = _RSQRT_STEPS + 2
_TAYLOR_STEPS = 2  # per coefficient
_INTEGER_RATE = 8  # int8 products for one of fp32 (bm1684.md 1)
_LANE_RATE = CHIP.lanes * CHIP.execution_units
_KNOWN = (
    *(Task.CONV, Task.POOL_OR_DEPTHWISE, Task.MATRIX, Task.TENSOR, Task.LUT),
    *(Task.SCALAR, Task.SFU, Task.LINEAR, Task.COMPARE, Task.VECTOR_CORRELATION),
)


@dataclass(frozen=True)
class TimingProfile:
    """Parameters of the model; cycles are counted by the TIU clock.

    Attributes:
        tiu_hz, gdma_hz: clocks of the vendor's profiler (bm1684.md 1).
        gdma_bytes_per_cycle: in each direction, of GDMA cycles; load_start, store_start: GDMA cycles before the first
            byte (bm1684.md 12). The memory of real boards may be slower.
        ddr_burst: bytes of the smallest memory access; every run of consecutive bytes is rounded up to it.
    """

    tiu_hz: float = CHIP.tiu_hz
    gdma_hz: float = CHIP.gdma_hz
    gdma_bytes_per_cycle: float = 53.4
    load_start: int = 137
    store_start: int = 45
    ddr_burst: int = 64

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ValueError(f"{field.name} must be positive, got {getattr(self, field.name)}")

    @property
    def clock_hz(self) -> float:
        """The clock in which cycles are counted: the TIU's."""
        return self.tiu_hz

    @property
    def bus_bytes_per_cycle(self) -> float:
        """GDMA at its best, for TIU cycles."""
        return self.gdma_bytes_per_cycle * self.gdma_hz / self.tiu_hz

    def assumptions(self) -> tuple[str, ...]:
        """The parameters, and what was not sampled, in words."""
        return (
            f"clocks {self.tiu_hz / 1e6:g} MHz (TIU, counted) and {self.gdma_hz / 1e6:g} MHz (GDMA)",
            f"GDMA {self.gdma_bytes_per_cycle:g} bytes per cycle after {self.load_start} cycles (loads) or "
            f"{self.store_start} (stores), in bursts of {self.ddr_burst} bytes; copies in global memory pay both ways",
            "matrix products like 1x1 convolutions, other steps like tensor arithmetic, "
            f"{_DIVIDE_STEPS} of them for a division, {_TAYLOR_STEPS} per term of a series",
            "host functions take no time",
        )


PROFILE = TimingProfile()


def costs(decoded: Decoded, profile: TimingProfile = PROFILE) -> Costs:
    """Costs of all records; those of the host cost nothing here. Raises SimulatorError for tasks of unknown cost."""
    cycles, macs, weights, loaded, stored = np.zeros((5, len(decoded)), np.int64)
    ideal = np.zeros(len(decoded))
    tiu, gdma = (decoded.at[engine] for engine in (Engine.TIU, Engine.GDMA))
    work = _tiu(decoded.fields[Engine.TIU])
    cycles[tiu], macs[tiu], ideal[tiu] = work.cycles, work.macs, work.ideal
    moved = _gdma(decoded.fields[Engine.GDMA], profile)
    coefficient = moved.source < decoded.stage.ctx_address
    cycles[gdma] = np.ceil(moved.cycles * (profile.tiu_hz / profile.gdma_hz)).astype(np.int64)
    weights[gdma], loaded[gdma], stored[gdma] = moved.read * coefficient, moved.read * ~coefficient, moved.written
    columns = np.zeros((2, len(decoded)), np.int64)
    columns[0, gdma], columns[1, gdma] = moved.source, moved.target
    transfers = Transfers(columns[0], weights + loaded, columns[1], stored, weights > 0)
    return Costs(cycles, macs, ideal, weights, loaded, stored, *compulsory(transfers, _memory(decoded.stage)))


def _memory(stage: Bm1684Stage) -> NetMemory:
    inputs, outputs = (
        tuple((tensor.address, tensor.size) for tensor in side) for side in (stage.inputs, stage.outputs)
    )
    return NetMemory(inputs, outputs, len(stage.coefficients))


def _up(value: Ints, step: int | Ints) -> Ints:
    return -(-value // step)


@dataclass(frozen=True)
class _Work:
    cycles: Ints
    macs: Ints
    ideal: Floats


def _tiu(f: Columns) -> _Work:
    """Cycles and multiply-accumulates of TIU commands."""
    task, unit = f["tsk_typ"], f["tsk_eu_typ"]
    unknown = np.flatnonzero(~np.isin(task, _KNOWN))
    if len(unknown):
        raise SimulatorError(f"nothing is known of the time that task {task[unknown[0]]} takes")
    narrow = f["opt_opd0_prec"] == Precision.INT8
    groups = _up(f["res0_c"], CHIP.lanes) * _up(f["res0_h"] * f["res0_w"], _PIXELS)
    images = np.ceil(_word_images(f))
    window = f["opd1_h"] * f["opd1_w"]
    rows, depth = _matrix(f)
    average = unit == Eu.MAC
    row_cycles = f["opd1_h"] * (
        (f["res_op_x_str"] + 1) * f["opd1_w"] - 1
    )  # fits the samples: 5, 8 and 15 for 2x2 to 3x3
    outputs = f["res0_n"] * f["res0_c"] * f["res0_h"] * f["res0_w"]
    kinds: list[Mask] = [task == Task.CONV, task == Task.POOL_OR_DEPTHWISE, task == Task.MATRIX]
    kinds.append(task == Task.VECTOR_CORRELATION)
    steps = _steps(f)
    cycles = np.select(
        kinds,
        [
            images * groups * _taps(window, f["opd0_c"], narrow),
            images * groups * (row_cycles + _AVERAGE_START * average),
            rows * groups * _taps(np.ones_like(depth), depth, narrow, few=False),
            depth * groups * _PASS,
        ],
        images * groups * _PASS * steps,
    )
    macs = np.select(
        kinds[:3],
        [
            outputs * window * f["opd0_c"],
            outputs * window * (average & (f["opt_opd1_const"] == 0)),
            rows * depth * f["res0_c"] * f["res0_w"],
        ],
        0,
    )
    rate = _LANE_RATE * np.where(narrow, _INTEGER_RATE, 1)
    full = f["res0_c"] / CHIP.lanes * (f["res0_h"] * f["res0_w"]) / _PIXELS  # groups without empty places
    other = np.select(
        [kinds[1], kinds[3]], [row_cycles + _AVERAGE_START * average, depth * _PASS], _PASS * steps
    ) * np.where(kinds[3], full, full * _word_images(f))
    return _Work(np.ceil(cycles).astype(np.int64), macs, np.where(macs > 0, macs / rate, other))


def _word_images(f: Columns) -> Floats:
    """Images of words: four int8 or two int16 images share one; the widest of result and operand counts."""
    words = np.zeros(len(f["res0_n"]))
    for name in ("res0", "opd0"):
        precision = f[f"opt_{name}_prec"]
        slots = np.select([precision == Precision.INT8, precision == Precision.INT16], [4, 2], 1)
        if name == "res0":  # 16-bit results of convolutions take 8 bytes for four images
            slots = np.where((f["tsk_typ"] <= Task.POOL_OR_DEPTHWISE) & (slots == 2), 4, slots)
        words = np.maximum(words, f["res0_n"] / slots)
    return words


def _taps(positions: Ints, channels: Ints, narrow: Mask, few: bool = True) -> Floats:
    """Cycles of a group of pixels; with `few`, the samples of few channels apply."""
    wide_tap = _up(channels, 2).astype(np.float64)
    tap, start = _up(channels, 4).astype(np.float64), np.full(len(channels), _INTEGER_START)
    if few:
        for count, cycles in _FLOAT_TAP.items():
            wide_tap[channels == count] = cycles
        for most, cycles, begin in reversed(_INTEGER_TAP):
            tap[channels <= most], start[channels <= most] = cycles, begin
    return np.where(narrow, positions * tap + start, positions * wide_tap + _FLOAT_START)


def _matrix(f: Columns) -> tuple[Ints, Ints]:
    """(rows of the result, length of the sums) of matrix commands (bm1684.md 6.3)."""
    columns = (f["opd0_c"] - 1) * f["opd0_w"] + f["opd1_w"]
    transposed = f["opt_left_tran"] == 1
    return np.where(transposed, columns, f["opd0_n"]), np.where(transposed, f["opd0_n"], columns)


def _steps(f: Columns) -> Ints:
    """Arithmetic steps per element of tensor, scalar, linear, special-function, compare and table commands."""
    task, unit = f["tsk_typ"], f["tsk_eu_typ"]
    special = task == Task.SFU
    arithmetic = (task == Task.TENSOR) | (task == Task.SCALAR)
    return np.select(
        [special & (unit == Eu.TAYLOR), special & (unit == Eu.RSQRT), arithmetic & (unit == Eu.DIVIDE)],
        [_TAYLOR_STEPS * f["opd1_n"], _RSQRT_STEPS, _DIVIDE_STEPS],
        np.where(task == Task.LINEAR, 2, 1),
    )


@dataclass(frozen=True)
class _Moved:
    """GDMA cycles; addresses and bytes read from and written to global memory."""

    cycles: Floats
    source: Ints
    target: Ints
    read: Ints
    written: Ints


def _gdma(f: Columns, profile: TimingProfile) -> _Moved:
    """Cycles of transfers and the bytes they move over the global memory bus."""
    direction = f["direction"]
    loads = (direction == Direction.SYSTEM_TO_LOCAL) | (direction == Direction.SYSTEM_TO_SYSTEM)
    loads &= f["special_func"] != Function.FILL
    stores = (direction == Direction.LOCAL_TO_SYSTEM) | (direction == Direction.SYSTEM_TO_SYSTEM)
    source, target = _side(f, "src"), _side(f, "dst")
    bus = loads * source.bursts(profile.ddr_burst) + stores * target.bursts(profile.ddr_burst)
    inside = np.where(direction == Direction.LOCAL_TO_LOCAL, target.size, 0)
    start = loads * profile.load_start + (stores | ~loads) * profile.store_start
    cycles = start + (bus + inside) / profile.gdma_bytes_per_cycle
    return _Moved(cycles, source.address, target.address, source.outside(loads), target.outside(stores))


@dataclass(frozen=True)
class _Side:
    """One side of transfers: address, bytes, and the length of its runs of consecutive bytes."""

    address: Ints
    size: Ints
    run: Ints

    def bursts(self, burst: int) -> Ints:
        """Bytes that cross the bus."""
        return self.size // np.maximum(self.run, 1) * _up(self.run, burst) * burst

    def outside(self, used: Mask) -> Ints:
        """Bytes in global memory, which L2 is no part of."""
        return np.where(used & (self.address >= CHIP.global_base), self.size, 0)


def _side(f: Columns, side: str) -> _Side:
    """The sizes that count: the source's where the command says so; C and W in their transposition (bm1684.md 5)."""
    item = _ITEM_BYTES[f[f"{side}_data_format"]]
    linear, across = f["common_mode"] == 1, f["special_func"] == Function.CW_TRANSPOSE
    copied = (f["chw_copy"] == 1) & (side == "dst")
    n, c, h, w = (np.where(copied, f[f"src_{axis}"], f[f"{side}_{axis}"]) for axis in "nchw")
    n, h = np.where(across, 1, n), np.where(across, 1, h)
    size = np.where(linear, f["src_n_str"], n * c * h * w)
    run, full = np.where(f[f"{side}_w_str"] == 1, w, 1), w
    for count, axis in ((h, "h"), (c, "c"), (n, "n")):
        joined = (run == full) & ((count == 1) | (f[f"{side}_{axis}_str"] == full))
        full = full * count
        run = np.where(joined, full, run)
    dense = linear | (f["stride_enable"] == 0)
    address = f[f"{side}_addr_lo"] | f[f"{side}_addr_hi"] << 32
    return _Side(address, size * item, np.where(dense, size, run) * item)


_ITEM_BYTES = np.array([FORMAT_BYTES.get(DataFormat(code), 1) if code < len(DataFormat) else 1 for code in range(8)])
