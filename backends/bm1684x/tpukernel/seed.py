"""The 13 special functions of the reference as commands (tpukernel.md 4); its notes are rules that quote them."""

from __future__ import annotations

from typing import NamedTuple

from bmcompiler.backends.bm1684x import static_tables
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Ar, Gather, Precision
from bmcompiler.backends.bm1684x.instructions import arithmetic, special
from bmcompiler.backends.bm1684x.instructions.operands import Operand, constant
from bmcompiler.backends.bm1684x.static_tables import StaticTable
from bmcompiler.backends.bm1684x.tpukernel.local import compact, disjoint, lane_of, place, tensor
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder, Release
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Function, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import at_least, computed, floats, lane_zero, same_lane, within
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, dim4
from bmcompiler.chip import align_up

INT32, FP32 = data_type_t.DT_INT32, data_type_t.DT_FP32
_SIGNED = Precision.INT32
_MOST = (1 << 16) - 1
_ALIGNED = "64-byte aligned layout"


# -- series and tables -------------------------------------------------------------------------------------------------
def row_of_lanes(name: str, address: int, words: int, dtype: data_type_t) -> None:
    """Check a tensor [1, lanes, 1, words] of coefficients, aligned. Raises UsageError."""
    place(name, address, dim4(1, CHIP.lanes, 1, words), dtype)


def in_lane_of(source: int, row: int) -> int:
    """The address of a row of coefficients as a command has it whose source begins at `source`."""
    return row + lane_of(source) * CHIP.lmem_size


def _taylor(k: Recorder, a: Arguments) -> None:
    result, source = tensor(a, "dst", a.dtype), tensor(a, "src", a.dtype)
    row_of_lanes("coeff", a.coeff_addr, a.num, a.dtype)
    series = in_lane_of(source.place, a.coeff_addr)
    k.add(special.taylor(a.shape, result.place, source.place, series, a.num, a.dtype.precision))


def _lookup(k: Recorder, a: Arguments) -> None:
    result, source = tensor(a, "dst", a.dst_dtype), tensor(a, "src", a.src_dtype)
    row_of_lanes("table", a.table_addr, a.len, a.dst_dtype)
    flat = (a.shape.n, a.shape.c, 1, a.shape.h * a.shape.w)
    table = (in_lane_of(source.place, a.table_addr), a.len, True)
    index = (source.place, a.shape.h * a.shape.w, a.src_dtype.precision)
    places = ((a.dst_addr, a.shape, a.dst_dtype), (a.src_addr, a.shape, a.src_dtype))
    apart = disjoint((*places, (a.table_addr, dim4(1, CHIP.lanes, 1, a.len), a.dst_dtype)))
    unit = Gather.LANE if apart else Gather.LANE_FAST
    k.add(special.by_index(unit, flat, result.place, table, index, a.dst_dtype.precision))


# -- arithmetic sequences ----------------------------------------------------------------------------------------------
_COMPACT = dim4(1, 1, 1, 1)


def _word(address: int, strides: dim4 | None = None) -> Operand:
    return Operand(address, _SIGNED, True, strides)


def _by(value: int) -> Operand:
    return constant(value, _SIGNED)


def _scaled(k: Recorder, shape: dim4, operand: Operand, start: int, step: int) -> None:
    """Turn 0, 1, 2... into start, start + step...; what changes nothing is left out."""
    if step != 1:
        k.add(arithmetic.binary(Ar.MUL, shape, operand, operand, _by(step)))
    if start:
        k.add(arithmetic.binary(Ar.ADD, shape, operand, operand, _by(start)))


def _along_w(k: Recorder, address: int, lanes: int, start: int, step: int, count: int) -> None:
    """The sequence in every of so many lanes: what static memory has of it, then doubled."""
    serial, filled = static_tables.SERIAL, min(count, static_tables.SERIAL.words)
    place("dst", address, dim4(1, lanes, 1, count), INT32)
    k.add(special.static_broadcast(address, serial.offset, lanes, filled, serial.precision))
    while filled < count:
        more = min(filled, count - filled)
        target = _word(address + filled * INT32.size)
        k.add(arithmetic.binary(Ar.ADD, dim4(1, lanes, 1, more), target, _word(address), _by(filled)))
        filled += more
    _scaled(k, dim4(1, lanes, 1, count), _word(address), start, step)


def _over_lanes(k: Recorder, name: str, address: int, start: int, step: int, count: int) -> None:
    """One element of the sequence in each lane, then in the next word of each lane."""
    serial = static_tables.SERIAL
    place(name, address, dim4(1, count, 1, 1), INT32, layout=compact)
    k.add(special.static_distribute(address, serial.offset, min(count, CHIP.lanes), serial.precision))
    first = _word(address, _COMPACT)
    for block in range(CHIP.lanes, count, CHIP.lanes):
        target = _word(address + block // CHIP.lanes * INT32.size, _COMPACT)
        shape = dim4(1, min(CHIP.lanes, count - block), 1, 1)
        k.add(arithmetic.binary(Ar.ADD, shape, target, first, _by(block)))
    _scaled(k, dim4(1, count, 1, 1), first, start, step)


def _general(k: Recorder, a: Arguments) -> None:
    lanes = min(a.npu_num, CHIP.lanes)
    place("dst", a.dst_addr, dim4(1, a.npu_num, 1, a.num), INT32)
    _along_w(k, a.dst_addr, lanes, a.start, a.step, a.num)
    _over_lanes(k, "buffer", a.buffer_addr, 0, a.step * a.num, lanes)
    shape, first = dim4(1, lanes, 1, a.num), _word(a.dst_addr)
    offsets = _word(a.buffer_addr, dim4(1, 1, 0, 0))
    k.add(arithmetic.integer(Ar.ADD, shape, first, offsets, first, saturation=True))
    row = align_up(a.num * INT32.size, CHIP.alignment)
    for begin in range(CHIP.lanes, a.npu_num, CHIP.lanes):
        target = _word(a.dst_addr + begin // CHIP.lanes * row)
        shape = dim4(1, min(CHIP.lanes, a.npu_num - begin), 1, a.num)
        k.add(arithmetic.integer(Ar.ADD, shape, target, first, _by(a.step * a.num * begin), saturation=True))


# -- loaders -----------------------------------------------------------------------------------------------------------
class Loaded(NamedTuple):
    """What a loader writes: a table of static memory, and so many words of it by release; 0 is no command."""

    table: StaticTable
    seed: int
    measured: int


_LOADED = {
    "exp_coeff": Loaded(static_tables.EXP, 32, 10),
    "exp_table": Loaded(static_tables.EXP_TABLE, 192, 0),
    "log_coeff": Loaded(static_tables.LOG, 32, 16),
    "erf_coeff": Loaded(static_tables.ERF, 10, 10),
    "sin_coeff": Loaded(static_tables.SIN, 32, 32),
    "cos_coeff": Loaded(static_tables.COS, 32, 32),
    "tan_coeff": Loaded(static_tables.TAN, 32, 32),
    "arcsin_coeff": Loaded(static_tables.ARCSIN, 32, 32),
}
_FORMULAS = {
    "exp_coeff": "1 / i!",
    "exp_table": "exp(i - 103)",
    "log_coeff": "0, then (-1)^(i+1) / i",
    "erf_coeff": "ln(erfc(x) / t) + x^2 = sum of coeff(i) t^i, t = 1 / (1 + abs(x) / 2)",
    "sin_coeff": "(-1)^i (2 pi)^(2i+1) / (2i+1)!",
    "cos_coeff": "(-1)^i (2 pi)^(2i) / (2i)!",
    "tan_coeff": "T(i) pi^(2i+1), tan(x) = sum of T(i) x^(2i+1)",
    "arcsin_coeff": "C(2i, i) / (4^i (2i+1))",
}


def load(k: Recorder, address: int, table: StaticTable, words: int) -> None:
    """The first words of a table of static memory, to all lanes."""
    if words:
        k.add(special.static_broadcast(address, table.offset, CHIP.lanes, words, table.precision))


def _loader(name: str) -> Function:
    what, loaded = name.split("_")[1], _LOADED[name]
    parameter = f"{what}_addr"
    note = f"{what} 从 NPU 0 开始,shape 是 [1, NPU_NUM, 1, {loaded.seed}],{_ALIGNED}"

    def emit(k: Recorder, a: Arguments) -> None:
        load(k, getattr(a, parameter), loaded.table, loaded.seed if k.release is Release.SEED else loaded.measured)

    fits = Rule(
        f"{what} of [1, 64, 1, {loaded.seed}] must begin at a multiple of 64 bytes and fit into lane 0",
        lambda a: _fits(getattr(a, parameter), loaded.seed * FP32.size),
        note,
    )
    prototype = f"void tpu_bdc_load_fp32_{name}(local_addr_t {parameter})"
    return Function(prototype, f"{what}(0, c, 0, i) = {_FORMULAS[name]}", emit, (lane_zero(what, note=note), fits))


def _fits(address: int, size: int) -> bool:
    return address % CHIP.alignment == 0 and address % CHIP.lmem_size + size <= CHIP.lmem_size


# -- notes of the reference --------------------------------------------------------------------------------------------
_PAIR = f"dst 和 src 从同一个 NPU 开始,都是 {_ALIGNED}"


def _on_a_step(*names: str, note: str) -> Rule:
    return Rule(
        f"{' and '.join(names)} must begin at a multiple of 64 bytes",
        lambda a: all(getattr(a, f"{name}_addr") % CHIP.alignment == 0 for name in names),
        note,
    )


_COEFF = f"coeff 从 NPU 0 开始,shape 是 [1, NPU_NUM, 1, num],{_ALIGNED}"
_TABLE = f"table 从 NPU 0 开始,shape 是 [1, NPU_NUM, 1, len],{_ALIGNED}"
_SEQUENCE = f"dst 的 shape 是 [1, npu_num, 1, num],{_ALIGNED},元素的数据类型是 INT32"
_GENERAL = f"dst 的 shape 是 [1, npu_num, 1, num], {_ALIGNED},元素的数据类型是 INT32"
_BOTH_IN_ZERO = "要求 dst 和 buffer 从 NPU 0 开始"
_FIRST_LANES = "如果 dst 从 NPU X 开始,X 的取值范围是 [0, NPU_NUM - 1],则 npu_num 小于等于 NPU_NUM - X"
_BUFFER = "buffer 的 shape 是[1, NPU_NUM, 1, 1], compact layout,元素的数据类型是 INT32"
_INDEX = "src_dtype 的有效取值是 DT_UINT16 和 DT_UINT8"
_SIZES = "shape->n、shape->c、shape->h、shape->w 的取值范围是 [1, 65535]"
_AREA = f"{_SIZES}, shape->h * shape->w 小于等于 65535"


def _compact_place(name: str, note: str) -> Rule:
    return Rule(f"{name} must begin at a multiple of 4 bytes", lambda a: getattr(a, f"{name}_addr") % 4 == 0, note)


def _positive(*names: str) -> tuple[Rule, ...]:
    return tuple(at_least(1, name, note=f"{name} 大于 0") for name in names)


ROWS = in_group(
    "Special functions of the reference",
    Function(
        "void tpu_bdc_fp_taylor(local_addr_t dst_addr, local_addr_t src_addr, local_addr_t coeff_addr, "
        "const dim4 *shape, int num, data_type_t dtype)",
        "sum of coeff(0, c mod 64, 0, i) * src^i, i < num",
        _taylor,
        (
            floats("dtype"),
            same_lane("dst", "src", note=_PAIR),
            _on_a_step("dst", "src", note=_PAIR),
            lane_zero("coeff", note=_COEFF),
            _on_a_step("coeff", note=_COEFF),
            at_least(2, "num", note="num 大于等于 2"),
            within("num", 2, _MOST),
        ),
        shape_note=_SIZES,
    ),
    Function(
        "void tpu_bdc_table_lookup(local_addr_t dst_addr, local_addr_t src_addr, local_addr_t table_addr, "
        "const dim4 *shape, int len, data_type_t dst_dtype, data_type_t src_dtype)",
        "table(0, c mod 64, 0, src)",
        _lookup,
        (
            computed("dst_dtype"),
            Rule(
                "src_dtype must be DT_UINT16 or DT_UINT8",
                lambda a: a.src_dtype in (data_type_t.DT_UINT16, data_type_t.DT_UINT8),
                _INDEX,
            ),
            same_lane("dst", "src", note=_PAIR),
            _on_a_step("dst", "src", note=_PAIR),
            lane_zero("table", note=_TABLE),
            _on_a_step("table", note=_TABLE),
            Rule(f"h * w must be at most {_MOST}", lambda a: a.shape.h * a.shape.w <= _MOST, _AREA),
            within("len", 1, _MOST),
        ),
        shape_note=_AREA,
    ),
    Function(
        "void tpu_bdc_arithmetic_sequence_bcast(local_addr_t dst_addr, int npu_num, int start, int step, int num)",
        "dst(0, c, 0, w) = start + step * w",
        lambda k, a: _along_w(k, a.dst_addr, a.npu_num, a.start, a.step, a.num),
        (
            _on_a_step("dst", note=_SEQUENCE),
            at_least(1, "npu_num"),
            Rule(
                "npu_num must be at most the number of lanes from that of dst on",
                lambda a: a.npu_num <= CHIP.lanes - lane_of(a.dst_addr),
                _FIRST_LANES,
            ),
            *_positive("num"),
            within("num", 1, _MOST),
        ),
    ),
    Function(
        "void tpu_bdc_arithmetic_sequence_distribute(local_addr_t dst_addr, int start, int step, int num)",
        "dst(0, c, 0, 0) = start + step * c",
        lambda k, a: _over_lanes(k, "dst", a.dst_addr, a.start, a.step, a.num),
        (
            lane_zero("dst", note="dst 从 NPU 0 开始,compact layout"),
            _compact_place("dst", "dst 从 NPU 0 开始,compact layout"),
            *_positive("num"),
            within("num", 1, _MOST),
        ),
    ),
    Function(
        "void tpu_bdc_arithmetic_sequence_general(local_addr_t dst_addr, local_addr_t buffer_addr, int npu_num, "
        "int start, int step, int num)",
        "dst(0, c, 0, w) = start + step * (num * c + w)",
        _general,
        (
            _on_a_step("dst", note=_GENERAL),
            lane_zero("dst", "buffer", note=_BOTH_IN_ZERO),
            _compact_place("buffer", _BUFFER),
            *_positive("npu_num", "num"),
            within("num", 1, _MOST),
            within("npu_num", 1, _MOST),
        ),
    ),
    *(_loader(name) for name in _LOADED),
    source=Known.REFERENCE,
)
