"""Cycles, multiply-accumulates and bytes of BM1684X commands, vectorised over a program.

What a command costs is said in `backends/bm1684x/cycles.py`; here its parameters are read from the fields of commands.
"""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import (
    ITEM_BYTES,
    Ar,
    Function,
    Gather,
    Matrix,
    Move,
    Pord,
    Precision,
    Task,
    Trans,
)
from bmcompiler.backends.bm1684x.cycles import DIVIDE_STEPS, SINGLE_PIXELS, CycleTable
from bmcompiler.backends.bm1684x.isa import ADDRESS_LOW
from bmcompiler.backends.bm1684x.timing_profile import GROUP, PIXELS, PROFILE, TimingProfile
from bmcompiler.backends.lanes.counts import run_of
from bmcompiler.instructions.isa import Columns
from bmcompiler.numeric.arrays import Ints, Mask
from bmcompiler.runtime.simulator.analysis import Costs
from bmcompiler.runtime.simulator.bm168x.cost import Moved, Work, stage_costs
from bmcompiler.runtime.simulator.bm168x.decoded import DecodedStage

_ITEMS = np.array([ITEM_BYTES.get(Precision(code), 1) if code in list(Precision) else 1 for code in range(8)])
_RATES = np.array(
    [
        CHIP.lanes * GROUP.get(Precision(code), 1) * (SINGLE_PIXELS if GROUP.get(Precision(code), 1) == 1 else PIXELS)
        if code in list(Precision)
        else CHIP.lanes
        for code in range(8)
    ]
)
"""Multiply-accumulates of a cycle, by precision."""
_ONE_OPERAND = 1
_FREE = (Task.SYSTEM, Task.LAR)


def costs(decoded: DecodedStage, profile: TimingProfile = PROFILE) -> Costs:
    """Costs of all records; those of the host cost nothing here."""
    table = CycleTable(profile)
    return stage_costs(
        decoded,
        lambda fields, count: _tiu(_Fields(fields, count), table),
        lambda fields, count: moves(fields, count, table),
        lambda fields: table.sort(fields["len"], fields["topk"], fields["index_en"] == 1),
    )


class _Fields(dict[str, Ints]):
    """Columns in which fields that no command has are 0."""

    def __init__(self, columns: Columns, count: int) -> None:
        super().__init__(columns)
        self._none = np.zeros(count, np.int64)

    def __missing__(self, name: str) -> Ints:
        return self._none


def _tiu(f: _Fields, table: CycleTable) -> Work:
    task, unit = f["tsk_typ"], f["tsk_eu_typ"]
    n, c, h, w = (np.maximum(f[f"res0_{axis}"], 1) for axis in "nchw")
    pixels, taps, kind = h * w, np.maximum(f["opd1_h"] * f["opd1_w"], 1), f["opd0_prec"]
    item = np.maximum(_ITEMS[f["res0_prec"]], _ITEMS[kind])
    vectors = table.vectors(n, c, pixels, item)
    rows, depth = _matrix(f)
    by_rows = (task == Task.MATRIX) & (unit >= Matrix.NN)
    depth_by_rows = np.where(unit == Matrix.NN, f["opd1_c"], f["opd1_w"])
    depthwise = (task == Task.POOL_OR_DEPTHWISE) & np.isin(unit, (Pord.DEPTHWISE, Pord.DEPTHWISE_RELU))
    divides = ((task == Task.ARITHMETIC) | (task == Task.VECTOR)) & (unit == Ar.DIVIDE)
    kinds: list[Mask] = [
        task == Task.CONV,
        by_rows,
        task == Task.MATRIX,
        task == Task.POOL_OR_DEPTHWISE,
        task == Task.SFU,
        (task == Task.GATHER) | ((task == Task.TRANSPOSE) & (unit == Trans.LANE_COPY)),
        task == Task.TRANSPOSE,
        divides,
        np.isin(task, _FREE),
    ]
    vector_rows = np.where(task == Task.VECTOR, rows, n)
    some = table.vectors(vector_rows, c, pixels, item)
    cycles = np.select(
        kinds,
        [
            table.convolution(n, c, pixels, taps, f["opd0_c"], kind),
            table.row_matrix(c, depth_by_rows, w, kind),
            table.matrix(rows, depth, c, w, f["opd2_const"] == 0),
            table.window(vectors, taps, f["res_op_x_str"]),
            table.special(vectors, unit, f["opd1_n"]),
            np.where(task == Task.GATHER, table.gather(n, c, _indices(f, unit)), c * vectors),
            vectors,
            some * DIVIDE_STEPS,
            np.zeros_like(task),
        ],
        table.element_wise(some, _share_a_bank(f)),
    )
    macs = np.select(
        [kinds[0], by_rows, kinds[2], depthwise & (f["opd1_const"] == 0)],
        [n * c * pixels * taps * f["opd0_c"], c * depth_by_rows * w, rows * depth * c * w, n * c * pixels * taps],
        0,
    )
    full = n * c / CHIP.lanes * (pixels * item / CHIP.alignment)  # vectors without empty places
    dense = kinds[0] | kinds[2]
    rates = _RATES[kind] / np.where(kinds[0], table.slowness(taps, kind), 1)
    ideal = np.where(dense, macs / rates, cycles / np.maximum(vectors, 1) * full)
    return Work(cycles, macs, np.minimum(ideal, cycles))


def _indices(f: _Fields, unit: Ints) -> Ints:
    """What gathers in lanes do one after the other: rows of tables, or single indices."""
    return np.where(unit >= Gather.ROWS, f["res0_h"], np.maximum(f["res0_w"], 1))


def _share_a_bank(f: _Fields) -> Mask:
    """Whether the result lies in the bank of an operand, or two operands in one."""
    result, first, second = (_bank(f[f"{name}_addr"]) for name in _OPERANDS)
    task = f["tsk_typ"]
    one, other = f["opd0_const"] == 0, (f["opd1_const"] == 0) & (task != Task.REQUANT)
    other &= (task != Task.ARITHMETIC) | (f["tsk_opd_num"] > _ONE_OPERAND)
    return (one & (first == result)) | (other & (second == result)) | (one & other & (first == second))


_OPERANDS = ("res0", "opd0", "opd1")


def _bank(address: Ints) -> Ints:
    return address % CHIP.lmem_size // CHIP.lmem_bank_size


def _matrix(f: _Fields) -> tuple[Ints, Ints]:
    """(rows of the result, length of the sums) of matrix commands (bm1684x-cube.md 7)."""
    columns = (f["opd0_c"] - 1) * f["opd0_w"] + f["opd1_w"]
    vector = f["tsk_typ"] == Task.VECTOR
    transposed = (f["left_tran"] == 1) | vector
    return np.where(transposed, columns, f["opd0_n"]), np.where(transposed, f["opd0_n"], columns)


def moves(columns: Columns, count: int, table: CycleTable) -> Moved:
    """Cycles of `count` transfers and the bytes they move over the global memory bus."""
    f = _Fields(columns, count)
    kind, item = f["cmd_type"], _ITEMS[f["data_format"]]
    source, target = (f[f"{side}_addr_lo"] | f[f"{side}_addr_hi"] << ADDRESS_LOW for side in ("src", "dst"))
    loads, stores = _outside(source) & (f["fill_constant_en"] == 0), _outside(target)
    sizes = [np.where(f["fill_constant_en"] * (1 - f["nchw_copy"]), f[f"dst_{a}"], f[f"src_{a}"]) for a in "nchw"]
    indexed, flat, matrix = np.isin(kind, (Move.GATHER, Move.SCATTER)), kind == Move.GENERAL, kind == Move.MATRIX
    broadcast = ((kind == Move.TENSOR) & (f["special_func"] == Function.BROADCAST)) | flat
    rows = np.maximum(f["src_c"], f["index_c"]) * f["index_h"]
    local = [np.where(f["cmd_short"], f[f"local_{a}"], np.where(loads, f[f"dst_{a}"], f[f"src_{a}"])) for a in "ncw"]
    total = np.prod(sizes, axis=0)
    total = np.select([indexed, flat, matrix], [rows * f["src_w"], f["src_c_str"], np.prod(local, axis=0)], total)
    targets = [np.where(f["nchw_copy"] == 1, size, f[f"dst_{a}"]) for a, size in zip("nchw", sizes)]
    strides = [tuple(f[f"{side}_{a}_str"] for a in "nchw") for side in ("src", "dst")]
    sides = list(zip((sizes, targets), strides))
    source_run, target_run = (run_of((1, 1, *size[2:]), steps) for size, steps in sides)
    between = np.minimum(*(run_of(tuple(size), steps) for size, steps in sides))
    run: Ints = np.select([loads & stores, loads], [between, source_run], target_run)
    run = np.where(indexed, f["src_w"], np.where(f["stride_enable"] == 0, total, run))
    wide = table.wide(np.where(matrix, local[0] * local[1], 1), np.where(matrix, local[2], total) * item, loads)
    strided = table.tensor(total * item, np.maximum(run, 1) * item, loads, stores)
    by_element = (kind == Move.CW_TRANSPOSE) | (matrix & (f["special_func"] == Function.NC_TRANSPOSE))
    cycles = np.select([kind == Move.SYSTEM, matrix | broadcast], [0, wide], strided)
    cycles += by_element * table.transposing(total)
    size = np.where(kind == Move.SYSTEM, 0, total * item)
    return Moved(cycles, source, target, size * (loads & _global(source)), size * (stores & _global(target)))


def _outside(address: Ints) -> Mask:
    within = address - CHIP.lmem_window
    return (within < 0) | (within >= CHIP.lmem_total)


def _global(address: Ints) -> Mask:
    return address >= CHIP.global_base
