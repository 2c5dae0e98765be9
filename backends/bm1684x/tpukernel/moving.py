"""Between lanes, from static memory, by index, exponents (tpukernel-api.md 7)."""

from __future__ import annotations

from bmcompiler.backends.bm1684x import static_tables
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Trans
from bmcompiler.backends.bm1684x.instructions import special
from bmcompiler.backends.bm1684x.tpukernel.local import aligned, compact, lane_of, line_aligned, place, tensor
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Emit, Function, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import (
    at_least,
    computed,
    different,
    floats,
    lane_zero,
    same_lane,
    within,
)
from bmcompiler.backends.bm1684x.tpukernel.seed import load
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, dim4
from bmcompiler.errors import UsageError

_MOVE = "local_addr_t dst_addr, local_addr_t src_addr, const dim4 *shape, data_type_t dtype"
FP32, FP16, BF16 = data_type_t.DT_FP32, data_type_t.DT_FP16, data_type_t.DT_BFP16


# -- lanes -------------------------------------------------------------------------------------------------------------
def _broadcast(k: Recorder, a: Arguments) -> None:
    one = a.shape._replace(c=1)
    result, source = tensor(a, "dst", a.dtype), tensor(a, "src", a.dtype, one)
    inner = (1, a.shape.w)
    k.add(special.move(Trans.LANE_BROADCAST, a.shape, result.place, source.place, a.dtype.precision, inner))


def _lane_copy(k: Recorder, a: Arguments) -> None:
    result, source = tensor(a, "dst", a.dtype), tensor(a, "src", a.dtype)
    inner = (a.shape.c, a.shape.w)
    k.add(special.move(Trans.LANE_COPY, a.shape, result.place, source.place, a.dtype.precision, inner))


def _transpose(operation: Trans) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        transposed = dim4(a.shape.n, a.shape.w, a.shape.h, a.shape.c)
        place("dst", a.dst_addr, a.shape, a.dtype, layout=line_aligned if operation is Trans.CW else aligned)
        place("src", a.src_addr, transposed, a.dtype)
        inner = (transposed.c, transposed.w)
        k.add(special.move(operation, a.shape, a.dst_addr, a.src_addr, a.dtype.precision, inner))

    return emit


def _check_static(a: Arguments) -> None:
    """The elements are whole and lie in static memory."""
    if a.static_addr % a.dtype.size or a.static_addr + a.len * a.dtype.size > CHIP.static_size:
        size = f"{a.len} elements of {a.dtype.size} bytes"
        raise UsageError(f"{size} at 0x{a.static_addr:x} do not lie in static memory, or are not aligned")


def _from_static(k: Recorder, a: Arguments) -> None:
    _check_static(a)
    place("dst", a.dst_addr, dim4(1, a.npu_num, 1, a.len), a.dtype)
    k.add(special.static_broadcast(a.dst_addr, a.static_addr, a.npu_num, a.len, a.dtype.precision))


def _distribute_static(k: Recorder, a: Arguments) -> None:
    _check_static(a)
    place("dst", a.dst_addr, dim4(1, a.len, 1, 1), a.dtype, layout=compact)
    k.add(special.static_distribute(a.dst_addr, a.static_addr, a.len, a.dtype.precision))


_TABLES = {
    "exp": {FP32: (static_tables.EXP, 10), FP16: (static_tables.EXP_FP16, 7), BF16: (static_tables.EXP_BF16, 7)},
    "log": {FP32: (static_tables.LOG, 16), FP16: (static_tables.LOG_FP16, 8), BF16: (static_tables.LOG_BF16, 8)},
    "sin": {FP32: (static_tables.SIN, 32), FP16: (static_tables.SIN_FP16, 16), BF16: (static_tables.SIN_BF16, 16)},
    "cos": {FP32: (static_tables.COS, 32), FP16: (static_tables.COS_FP16, 16), BF16: (static_tables.COS_BF16, 16)},
    "erf": {FP32: (static_tables.ERF, 10)},
    "tan": {FP32: (static_tables.TAN, 32)},
    "arcsin": {FP32: (static_tables.ARCSIN, 32)},
    "arctan": {FP32: (static_tables.ARCTAN, 32)},
}


def _loader(name: str) -> Function:
    tables = _TABLES[name]
    types = " or ".join(dtype.name for dtype in tables)

    def emit(k: Recorder, a: Arguments) -> None:
        table, words = tables[a.dtype]
        place("coeff", a.coeff_addr, dim4(1, CHIP.lanes, 1, words), a.dtype)
        load(k, a.coeff_addr, table, words)

    known = Rule(f"dtype must be {types}", lambda a: a.dtype in tables)
    prototype = f"void tpu_bdc_load_fp_{name}_coeff(local_addr_t coeff_addr, data_type_t dtype)"
    return Function(prototype, f"coefficients of {name}", emit, (known, lane_zero("coeff")))


# -- exponents ------------------------------------------------------------------------------------
def _exponent(k: Recorder, a: Arguments) -> None:
    result, source = tensor(a, "dst", a.dst_dtype), tensor(a, "src", a.src_dtype)
    k.add(special.exponent(a.shape, result.place, source.place, source.precision, result.precision))


# -- rules -----------------------------------------------------------------------------------------------------------
_FROM_STATIC = "local_addr_t dst_addr, static_addr_t static_addr, "
_LANES_LEFT = Rule(
    "c must be at most the number of lanes from that of dst on", lambda a: a.shape.c <= CHIP.lanes - lane_of(a.dst_addr)
)
_NPUS_LEFT = Rule(
    "npu_num must be at most the number of lanes from that of dst on",
    lambda a: a.npu_num <= CHIP.lanes - lane_of(a.dst_addr),
)
_PAIR = "local_addr_t dst_addr, local_addr_t src_addr, "
_EXPONENTS = Rule(
    "dst_dtype must be src_dtype, or the signed integer of its width",
    lambda a: a.dst_dtype in (a.src_dtype, data_type_t.DT_INT32 if a.src_dtype == FP32 else data_type_t.DT_INT16),
)

LANES = in_group(
    "Between lanes, and from static memory",
    Function(f"void tpu_bdc_npu_bcast({_MOVE})", "src(n, 0, h, w)", _broadcast, (computed("dtype"), _LANES_LEFT)),
    Function(
        f"void tpu_bdc_cw_trans({_MOVE})",
        "src(n, w, h, c); dst has its rows aligned",
        _transpose(Trans.CW),
        (computed("dtype"), lane_zero("src"), different("dst", "src")),
    ),
    Function(
        f"void tpu_bdc_wc_trans({_MOVE})",
        "src(n, w, h, c)",
        _transpose(Trans.WC),
        (computed("dtype"), lane_zero("dst"), different("dst", "src")),
    ),
    _loader("exp"),
)
LOADERS = in_group(
    "Between lanes, and from static memory",
    *(_loader(name) for name in _TABLES if name != "exp"),
    source=Known.DESCRIBED,
)
DRAWN_LANES = in_group(
    "Between lanes, and from static memory",
    Function(f"void tpu_bdc_cpy_cross_npu({_MOVE})", "src", _lane_copy, (computed("dtype"),)),
    Function(
        f"void tpu_bdc_npu_bcast_from_static({_FROM_STATIC}int npu_num, int len, data_type_t dtype)",
        "dst(0, c, 0, w) = static(w)",
        _from_static,
        (computed("dtype"), at_least(1, "npu_num", "len"), _NPUS_LEFT),
    ),
    Function(
        f"void tpu_bdc_npu_distribute_from_static({_FROM_STATIC}int len, data_type_t dtype)",
        "dst(0, c, 0, 0) = static(c), compact",
        _distribute_static,
        (computed("dtype"), within("len", 1, CHIP.lanes)),
    ),
    source=Known.DRAWN,
)
OTHERS = in_group(
    "By index, exponents",
    Function(
        f"void tpu_bdc_fp_exponent_part({_PAIR}const dim4 *shape, data_type_t dst_dtype, data_type_t src_dtype)",
        "the exponent of src, rounded up above a mantissa of 4/3",
        _exponent,
        (floats("src_dtype"), _EXPONENTS, same_lane("dst", "src")),
    ),
)
ROWS = (*LANES, *LOADERS, *DRAWN_LANES, *OTHERS)
