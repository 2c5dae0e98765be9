"""Trigonometric and hyperbolic functions (tpukernel.md 6)."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import Ar, Rounding
from bmcompiler.backends.bm1684x.tpukernel import recipes
from bmcompiler.backends.bm1684x.tpukernel.composite import DTYPE, Body, Call, by_exp, by_series, prototype, row
from bmcompiler.backends.bm1684x.tpukernel.exponentials import exp
from bmcompiler.backends.bm1684x.tpukernel.rows import Known, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import floats
from bmcompiler.backends.bm1684x.tpukernel.steps import Bits, Steps
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t

FP32 = data_type_t.DT_FP32


# -- trigonometric functions -------------------------------------------------------------------------------------------
def _turns(s: Steps, c: Call) -> None:
    """D = x / (2 pi) without its whole part, w0 = d^2."""
    (w0,) = c.w
    s.mul(w0, c.x, _OF_TURN[s.dtype])
    s.round(c.d, w0, Rounding.HALF_AWAY)
    s.sub(c.d, w0, c.d)
    s.mul(w0, c.d, c.d)


def _sin(s: Steps, c: Call) -> None:
    _turns(s, c)
    s.taylor(c.w[0], c.w[0], c.coeff_addr, 16)
    s.mul(c.d, c.d, c.w[0])


def _cos(s: Steps, c: Call) -> None:
    _turns(s, c)
    s.taylor(c.d, c.w[0], c.coeff_addr, 16)


def _tan(s: Steps, c: Call) -> None:
    s.mul(c.w[0], c.x, _OF_HALF_TURN)
    _tan_of_half_turns(s, c)


def _cot(s: Steps, c: Call) -> None:
    s.mul(c.w[0], c.x, _OF_HALF_TURN)
    s.sub(c.w[0], 0.5, c.w[0])
    _tan_of_half_turns(s, c)


def _tan_of_half_turns(s: Steps, c: Call) -> None:
    """D = tan(pi w0); the source is overwritten."""
    d, x, (w0,) = c.d, c.x, c.w
    s.round(d, w0, Rounding.HALF_EVEN)
    s.sub(x, w0, d)
    s.bitwise(Ar.AND, w0, x, Bits(0x7FFF_FFFF))
    s.sub(d, w0, 0.25)
    s.mul(w0, d, d)
    s.taylor(w0, w0, c.coeff_addr, 16)
    s.mul(d, d, w0)
    s.sub(w0, 1.0, d)
    s.div(d, 2.0, w0)
    s.sub(d, d, 1.0)
    s.bitwise(Ar.AND, x, x, Bits(0x8000_0000))
    s.bitwise(Ar.OR, d, x, d)


def arcsin(s: Steps, c: Call) -> None:
    """D is the arc of the sine x."""
    d, x, (w0,) = c.d, c.x, c.w
    s.mul(d, x, x)
    s.mul(d, d, 0.25)
    s.sub(w0, 0.25, d)
    recipes.sqrt(s, w0, d)
    s.sub(w0, 0.5, d)
    recipes.sqrt(s, w0, d)
    s.taylor(w0, w0, c.coeff_addr, 16)
    s.mul(w0, w0, d)
    s.mul(d, w0, 2.0)
    recipes.sign(s, x, w0)
    s.mul(d, d, w0)


def arccos(s: Steps, c: Call) -> None:
    """D is the arc of the cosine x."""
    arcsin(s, c)
    s.sub(c.d, Bits(0x3FC9_0FDB), c.d)


_OF_TURN = {FP32: Bits(0x3E22_F983), data_type_t.DT_FP16: Bits(0x3118), data_type_t.DT_BFP16: Bits(0x3E23)}
_OF_HALF_TURN = Bits(0x3EA2_F983)


def tanh(s: Steps, c: Call) -> None:
    """D = tanh x."""
    recipes.tanh(s, c.x, c.w, c.d, c.coeff_addr)


def hyperbolic(operation: str) -> Body:
    """D = (e^x op e^-x) / 2."""

    def body(s: Steps, c: Call) -> None:
        exp(s, c)
        s.div(c.w[0], 1.0, c.d)
        getattr(s, operation)(c.d, c.d, c.w[0])
        s.mul(c.d, c.d, 0.5)

    return body


def _arc_hyperbolic(operation: str) -> Body:
    """ln(x + sqrt(x^2 +- 1))."""

    def body(s: Steps, c: Call) -> None:
        d, (w0,) = c.d, c.w
        s.mul(d, c.x, c.x)
        getattr(s, operation)(w0, d, 1.0)
        recipes.sqrt(s, w0, d)
        s.add(d, d, c.x)
        recipes.log(s, d, d, d, w0, c.coeff_addr, d)

    return body


def _arctanh(s: Steps, c: Call) -> None:
    d, (w0,) = c.d, c.w
    s.add(d, c.x, 1.0)
    s.sub(w0, 1.0, c.x)
    s.div(d, d, w0)
    recipes.log(s, d, d, d, w0, c.coeff_addr, d)
    s.mul(d, d, 0.5)


_HALF = floats("dtype")

FP32_ROWS = in_group(
    "Trigonometric and hyperbolic functions",
    by_series("sin", "sin(src)", _sin),
    by_series("cos", "cos(src)", _cos),
    by_series("tan", "tan(src); src is overwritten", _tan),
    by_series("cot", "1 / tan(src); src is overwritten", _cot),
    by_series("arcsin", "arcsin(src)", arcsin),
    by_series("arccos", "arccos(src)", arccos),
    by_exp("sinh", "sinh(src)", hyperbolic("sub")),
    by_exp("cosh", "cosh(src)", hyperbolic("add")),
    by_exp("tanh", "tanh(src)", tanh),
    by_series("arcsinh", "arsinh(src)", _arc_hyperbolic("add")),
    by_series("arccosh", "arcosh(src)", _arc_hyperbolic("sub")),
    by_series("arctanh", "artanh(src)", _arctanh),
)
HALF_ROWS = in_group(
    "Trigonometric and hyperbolic functions",
    row(prototype("fp_sin", "work", "coeff", end=DTYPE), "sin(src)", _sin, _HALF),
    row(prototype("fp_cos", "work", "coeff", end=DTYPE), "cos(src)", _cos, _HALF),
    source=Known.DESCRIBED,
)
ROWS = (*FP32_ROWS, *HALF_ROWS)
