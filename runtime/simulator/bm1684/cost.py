"""Cycles, multiply-accumulates and bytes of BM1684 commands, vectorised over a program.

What a command costs is said in `backends/bm1684/cycles.py`; here its parameters are read from the fields of commands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.cycles import PIXELS, Count, CycleTable
from bmcompiler.backends.bm1684.isa import (
    FORMAT_BYTES,
    DataFormat,
    Direction,
    Engine,
    Eu,
    Function,
    Precision,
    StrideCode,
    Task,
)
from bmcompiler.backends.bm1684.timing_profile import PROFILE, TimingProfile
from bmcompiler.backends.lanes.counts import run_of
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import Columns
from bmcompiler.numeric.arrays import Doubles, Ints, Mask
from bmcompiler.runtime.simulator.analysis import Costs
from bmcompiler.runtime.simulator.bm168x.cost import Moved, Work, stage_costs
from bmcompiler.runtime.simulator.bm168x.decoded import DecodedStage

_INTEGER_RATE = 8  # int8 products for one of fp32 (bm1684.md 1)
_MANY = 1000  # groups, of which one takes as long as it does without rounding
_LANE_RATE = CHIP.lanes * CHIP.execution_units
_KNOWN = (
    *(Task.CONV, Task.POOL_OR_DEPTHWISE, Task.MATRIX, Task.TENSOR, Task.LUT),
    *(Task.SCALAR, Task.SFU, Task.LINEAR, Task.COMPARE, Task.VECTOR_CORRELATION),
)


def costs(decoded: DecodedStage, profile: TimingProfile = PROFILE) -> Costs:
    """Costs of all records; those of the host cost nothing here. Raises SimulatorError for tasks of unknown cost."""
    table = CycleTable(profile)
    return stage_costs(decoded, lambda fields, _: _tiu(fields, table), lambda fields, _: _gdma(fields, table))


def cycles_of(engine: Engine, fields: Columns, profile: TimingProfile = PROFILE) -> Count:
    """Cycles of commands of one engine by their fields."""
    return (_tiu if engine is Engine.TIU else _gdma)(fields, CycleTable(profile)).cycles


def _tiu(f: Columns, table: CycleTable) -> Work:
    task, unit = f["tsk_typ"], f["tsk_eu_typ"]
    unknown = np.flatnonzero(~np.isin(task, _KNOWN))
    if len(unknown):
        raise SimulatorError(f"nothing is known of the time that task {task[unknown[0]]} takes")
    narrow = f["opt_opd0_prec"] == Precision.INT8
    item = _item_bytes(f)
    images = table.word_images(f["res0_n"], item)
    groups = table.groups_of(images, f["res0_c"], f["res0_h"] * f["res0_w"])
    window = f["opd1_h"] * f["opd1_w"]
    rows, depth = _matrix(f)
    of_row = table.groups_of(rows, f["res0_c"], f["res0_h"] * f["res0_w"])
    outputs = f["res0_n"] * f["res0_c"] * f["res0_h"] * f["res0_w"]
    sums, stride = unit == Eu.MAC, f["res_op_x_str"]
    pair = (task == Task.TENSOR) & ~np.isin(unit, (Eu.COPY, Eu.DIVIDE))
    pair &= (f["opt_opd0_const"] | f["opt_opd1_const"]) == 0
    kinds: list[Mask] = [task == Task.CONV, task == Task.MATRIX, task == Task.POOL_OR_DEPTHWISE]
    kinds.append(task == Task.VECTOR_CORRELATION)

    def of_groups(count: Count, table: CycleTable = table) -> list[Count]:
        """Cycles of windows, correlations, and of all other commands that multiply nothing."""
        return [
            table.window(count, f["opd1_h"], f["opd1_w"], stride, sums),
            table.correlation(count, depth),
            table.element_wise(count, table.steps_of(task, unit, f["opd1_n"]), pair),
        ]

    windows, correlations, others = of_groups(groups)
    correlations = table.correlation(table.groups_of(1, f["res0_c"], f["res0_h"] * f["res0_w"]), depth)
    old, shared = f["opt_res_add"] == 1, shared_banks(f)
    conv = table.convolution(groups, window, f["opd0_c"], narrow, stride, old, shared)
    dense = [conv, table.matrix(of_row, depth, narrow)]
    cycles = np.select(kinds, [*dense, windows, correlations], others)
    macs = np.select(
        kinds[:3],
        [
            outputs * window * f["opd0_c"],
            rows * depth * f["res0_c"] * f["res0_w"],
            outputs * window * (sums & (f["opt_opd1_const"] == 0)),
        ],
        0,
    )
    rate = _LANE_RATE * np.where(narrow, _INTEGER_RATE, 1)
    full = f["res0_c"] / CHIP.lanes * (f["res0_h"] * f["res0_w"]) / PIXELS  # groups without empty places
    windows, correlations, others = of_groups(_MANY, CycleTable(replace(table.profile, start=0)))
    ideal = np.select(kinds[2:], [windows, correlations], others) / _MANY
    ideal = ideal * np.where(kinds[3], full, full * (f["res0_n"] * item / 4))
    return Work(cycles, macs, np.where(macs > 0, macs / rate, ideal))


def _item_bytes(f: Columns) -> Ints:
    """Bytes of elements by which images share words: the widest of result and operand counts."""
    result, operand = (_PRECISION_BYTES[f[f"opt_{name}_prec"]] for name in ("res0", "opd0"))
    halves = (f["tsk_typ"] <= Task.POOL_OR_DEPTHWISE) & (result == 2)  # four images take 8 bytes, next to each other
    return np.maximum(np.where(halves, 1, result), operand)


def _matrix(f: Columns) -> tuple[Ints, Ints]:
    """(rows of the result, length of the sums) of matrix commands (bm1684.md 6.3)."""
    columns = (f["opd0_c"] - 1) * f["opd0_w"] + f["opd1_w"]
    transposed = f["opt_left_tran"] == 1
    return np.where(transposed, columns, f["opd0_n"]), np.where(transposed, f["opd0_n"], columns)


def _gdma(f: Columns, table: CycleTable) -> Moved:
    """Cycles of transfers and the bytes they move over the global memory bus."""
    direction = f["direction"]
    copies = direction == Direction.SYSTEM_TO_SYSTEM
    loads = (direction == Direction.SYSTEM_TO_LOCAL) | copies
    loads &= f["special_func"] != Function.FILL
    stores = (direction == Direction.LOCAL_TO_SYSTEM) | copies
    source, target = _side(f, "src"), _side(f, "dst")
    read = np.where(
        copies,  # were never timed: short runs are read as they are written
        table.stored(source.size, source.runs, 0),
        table.loaded(source.size, source.runs, target.lane_runs),
    )
    written = table.stored(target.size, target.runs, np.where(copies, 0, source.lane_runs))
    read, written = (side * _pitched(f, name, table) for side, name in ((read, "src"), (written, "dst")))
    inside = np.where(direction == Direction.LOCAL_TO_LOCAL, target.size, 0)
    cycles = table.transfer(loads, stores, loads * read + inside, stores * written)
    return Moved(cycles, source.address, target.address, source.outside(loads), target.outside(stores))


def _pitched(f: Columns, side: str, table: CycleTable) -> Doubles:
    """What the bytes of one side cost more as a matrix whose rows are no multiples of 64 bytes."""
    pitch = f[f"{side}_h_str"] * _ITEM_BYTES[f[f"{side}_data_format"]]
    return np.where(f["sys_mem_type"] == 1, table.pitched(pitch), 1.0)


@dataclass(frozen=True)
class _Side:
    """One side of transfers.

    Attributes:
        address, size: in bytes.
        run: bytes of its runs of consecutive ones.
        lane_runs: runs of consecutive words in lanes, if the side is in local memory.
    """

    address: Ints
    size: Ints
    run: Ints
    lane_runs: Ints

    @property
    def runs(self) -> Ints:
        """How many there are."""
        return self.size // np.maximum(self.run, 1)

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
    strides = tuple(f[f"{side}_{axis}_str"] for axis in "nchw")
    dense = linear | (f["stride_enable"] == 0)
    run = np.where(dense, size, run_of((n, c, h, w), strides))
    rows = strides[3] * item <= CHIP.word  # bytes of consecutive words follow each other
    joined = rows & ((h == 1) | (strides[2] == w * strides[3]))
    in_lane = np.where(dense | joined, n * c, np.where(rows, n * c * h, size))
    address = f[f"{side}_addr_lo"] | f[f"{side}_addr_hi"] << 32
    return _Side(address, size * item, run * item, np.where(linear, 1, in_lane))


_ITEM_BYTES = np.array([FORMAT_BYTES.get(DataFormat(code), 1) if code < len(DataFormat) else 1 for code in range(8)])
_PRECISION_BYTES = np.array([{Precision.INT8: 1, Precision.INT16: 2}.get(code, 4) for code in range(8)])  # type: ignore[call-overload]


def shared_banks(f: Columns) -> Doubles:
    """Which part of input and weights of convolutions lie in the same bank of local memory: 0 to 1.

    The sum over the banks of the products of the parts of both that lie there (bm1684-timing.md 3).
    """
    narrow = f["opt_opd0_prec"] == Precision.INT8
    h, w, rows = f["opd0_h"], f["opd0_w"], -(-f["opd0_c"] // CHIP.lanes)
    aligned = -(-h * w // CHIP.execution_units) * CHIP.execution_units
    own = f["short_opd0_str"] == StrideCode.EXPLICIT
    of_row, of_image = np.where(own, f["opd0_c_str"], aligned), np.where(own, f["opd0_n_str"], aligned * rows)
    images = CycleTable.word_images(f["res0_n"], np.where(narrow, 1, 4))
    values = ((images - 1) * of_image + rows * of_row) * CHIP.word
    depth = np.where(narrow, -(-f["opd0_c"] // 4) * 4, -(-f["opd0_c"] // 2) * 8)
    weights = -(-f["res0_c"] // CHIP.lanes) * f["opd1_h"] * f["opd1_w"] * depth
    sides = ((f["opd0_addr"], values), (f["opd1_addr"], weights))
    ours, theirs = (_in_banks(address % CHIP.lmem_size, size) for address, size in sides)
    shared: Doubles = (ours * theirs).sum(axis=1)
    return np.where((f["tsk_typ"] == Task.CONV) & (f["opt_opd1_const"] == 0), shared, 0.0)


def _in_banks(start: Ints, size: Ints) -> Doubles:
    """Part of the bytes from `start` of a lane that lie in each bank: (n, banks)."""
    begin = np.arange(CHIP.lmem_banks) * CHIP.lmem_bank_size
    end = np.minimum((start + size)[:, None], begin + CHIP.lmem_bank_size)
    return np.maximum(end - np.maximum(start[:, None], begin), 0) / np.maximum(size, 1)[:, None]
