"""Exponential, logarithm and powers (tpukernel.md 6)."""

from __future__ import annotations

import math

from bmcompiler.backends.bm1684x.codes import Gather
from bmcompiler.backends.bm1684x.instructions import special
from bmcompiler.backends.bm1684x.tpukernel import recipes
from bmcompiler.backends.bm1684x.tpukernel.composite import (
    BY_EXP,
    DTYPE,
    SHAPE,
    Call,
    by_exp,
    by_series,
    emitting,
    prototype,
    row,
)
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import floats
from bmcompiler.backends.bm1684x.tpukernel.seed import in_lane_of, row_of_lanes
from bmcompiler.backends.bm1684x.tpukernel.steps import Register, Steps
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, dim4

FP32 = data_type_t.DT_FP32


# -- exponential and logarithm -----------------------------------------------------------------------------------------
def exp(s: Steps, c: Call) -> None:
    """D = e^x."""
    recipes.exp(s, c.x, c.w[0], c.d, c.w[1], c.coeff_addr, c.d)


def expm1(s: Steps, c: Call) -> None:
    """D = e^x - 1."""
    exp(s, c)
    s.sub(c.d, c.d, 1.0)


def _log(s: Steps, c: Call) -> None:
    recipes.log(s, c.x, c.x, c.w[0], c.d, c.coeff_addr, c.d)


def _log1p(s: Steps, c: Call) -> None:
    s.add(c.w[0], c.x, 1.0)
    recipes.log(s, c.w[0], c.w[0], c.w[0], c.d, c.coeff_addr, c.d)


def _logx(s: Steps, c: Call) -> None:
    _log(s, c)
    s.mul(c.d, c.d, 1 / math.log(c.base))


def _pow(s: Steps, c: Call) -> None:
    d, (w0, w1) = c.d, c.w
    recipes.log(s, c.x, c.x, w0, d, c.log_coeff_addr, d)
    s.mul(w0, d, c.registers["src1"])
    recipes.exp(s, w0, w0, d, w1, c.exp_coeff_addr, d)


def _pow_c(s: Steps, c: Call) -> None:
    w0, w1 = c.w
    recipes.log(s, c.x, c.x, w0, w1, c.log_coeff_addr, w1)
    s.mul(w0, w1, c.C)
    recipes.exp(s, w0, w0, c.d, w1, c.exp_coeff_addr, c.d)


def _c_pow(s: Steps, c: Call) -> None:
    w0, w1 = c.w
    s.mul(w0, c.x, math.log(c.C))
    recipes.exp(s, w0, w0, c.d, w1, c.exp_coeff_addr, c.d)


def _exp_by_table(k: Recorder, a: Arguments) -> None:
    registers = [Register(name, getattr(a, f"{name}_addr")) for name in ("dst", "src", "work0", "work1")]
    d, x, w0, w1 = registers
    s = Steps(k, a.shape, FP32, registers)
    recipes.exp_by_table(s, x, w0, w1, d)
    s.taylor(w0, w0, a.coeff_addr, 10)
    row_of_lanes("table", a.table_addr, 192, FP32)
    flat = dim4(a.shape.n, a.shape.c, 1, a.shape.h * a.shape.w)
    table = (in_lane_of(d.address, a.table_addr), 192, True)
    index = (w1.address, flat.w, data_type_t.DT_UINT8.precision)
    k.add(special.by_index(Gather.LANE_FAST, flat, d.address, table, index, FP32.precision))
    s.mul(d, w0, d)


_POSITIVE = Rule("C must be positive", lambda a: a.C > 0)
_BASE = Rule("base must be positive and not 1", lambda a: a.base > 0 and a.base != 1)
_POWERS = ("work0", "work1", "exp_coeff", "log_coeff", "exp_table")
_HALF = floats("dtype")

ROWS = (
    *in_group(
        "Exponential and logarithm",
        by_exp("exp", "e^src", exp),
        by_exp("expm1", "e^src - 1", expm1),
        by_series("log", "ln(src)", _log),
        by_series("log1p", "ln(1 + src)", _log1p),
        by_series("logx", "ln(src) / ln(base)", _logx, ", float base", _BASE),
        row(
            prototype("fp32_pow", *_POWERS, sources="src0 src1"),
            "src0^src1",
            _pow,
        ),
        row(
            prototype("fp32_pow_C", *_POWERS, end=f"float C, {SHAPE}"),
            "src^C",
            _pow_c,
        ),
        row(
            prototype("fp32_C_pow", "work0", "work1", "exp_coeff", "exp_table", end=f"float C, {SHAPE}"),
            "C^src",
            _c_pow,
            _POSITIVE,
        ),
    ),
    *in_group(
        "Exponential and logarithm",
        row(prototype("fp_exp", "work0", "work1", "coeff", end=DTYPE), "e^src", exp, _HALF),
    ),
    *in_group(
        "Exponential and logarithm",
        row(prototype("fp_log", "work", "coeff", end=DTYPE), "ln(src); log(0) of 16 bits is finite", _log, _HALF),
        source=Known.DESCRIBED,
    ),
    *in_group(
        "Exponential and logarithm",
        emitting(prototype("fp32_exp_by_table", *BY_EXP), "e^src by the table of powers, which is read", _exp_by_table),
        source=Known.OWN,
    ),
)
