"""The parts of composites: exponential, logarithm, root and their like, as the library computes them (tpukernel.md 6).

Every step is rounded to the type of the registers. Names of registers follow the facts: P, Q, R are what a part may
overwrite.
"""

from __future__ import annotations

from typing import NamedTuple

from bmcompiler.backends.bm1684x.codes import Ar, Cmp, Rounding
from bmcompiler.backends.bm1684x.tpukernel.steps import Bits, Register, Source, Steps
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t

FP32, FP16, BF16 = data_type_t.DT_FP32, data_type_t.DT_FP16, data_type_t.DT_BFP16
INT8, INT16, INT32 = data_type_t.DT_INT8, data_type_t.DT_INT16, data_type_t.DT_INT32
LN_2 = Bits(0x3F31_7218)
_INFINITY, _MINUS_ZERO = Bits(0x7F80_0000), Bits(0x8000_0000)


class ExpNumbers(NamedTuple):
    """Constants of the exponential in one type; `fields` holds exponents, `shift` puts them where they belong."""

    low: int
    high: int
    log2_e: int
    ln_2: int
    whole: data_type_t
    limit: int
    shift: int
    fields: data_type_t
    terms: int


EXP = {
    FP32: ExpNumbers(0xFA83_1265, 0x7A83_1265, 0x3FB8_AA3B, 0x3F31_7218, INT16, 127, 23, INT32, 10),
    FP16: ExpNumbers(0xF98B, 0x798B, 0x3DC5, 0x398C, INT8, 15, 10, INT16, 7),
    BF16: ExpNumbers(0xFF7F, 0x7F7F, 0x3FB9, 0x3F31, INT16, 127, 7, INT16, 7),
}


def exp(s: Steps, x: Register, p: Register, q: Register, r: Register, series: int, out: Register) -> None:
    """Out = e^x = 2^n e^(x - n ln 2) with n = floor(x / ln 2), within what the exponent holds."""
    c = EXP[s.dtype]
    s.max(p, x, Bits(c.low))
    s.min(q, p, Bits(c.high))
    s.mul(r, q, Bits(c.log2_e))
    s.round(p, r, Rounding.DOWN)
    s.mul(r, p, Bits(c.ln_2))
    s.sub(r, q, r)
    s.cast(q, p, (s.dtype, c.whole), Rounding.HALF_AWAY)
    s.min(p, q, Bits(c.limit), c.whole)
    s.max(q, p, Bits(-c.limit), c.whole)
    s.shifted(Ar.ADD, p, q, Bits(c.limit), (c.whole, INT16, c.fields), c.shift)
    s.taylor(q, r, series, c.terms)
    s.mul(out, q, p)


def exp_by_table(s: Steps, x: Register, p: Register, q: Register, out: Register) -> None:
    """P = x - k, q = k + 103 as bytes: the parts of e^x = e^k e^(x - k), k the whole number next to x, -103 to 88.

    Not of the measured library, which never reads the table of powers.
    """
    s.max(p, x, -103.0)
    s.round(q, p, Rounding.HALF_EVEN)
    s.min(q, q, 88.0)
    s.sub(p, p, q)
    s.add(out, q, 103.0)
    s.cast(q, out, (s.dtype, data_type_t.DT_UINT8), Rounding.HALF_EVEN)


class LogNumbers(NamedTuple):
    """Constants of the logarithm in one type.

    `minus_infinity` is the low half of the fp32 number also in 16 bits, where it is 0: log(0) begins at 0 there.
    """

    least: int
    fields: data_type_t
    top: int
    shift: int
    bias: int
    terms: int
    minus_infinity: int
    infinity: int
    ln_2: int


LOG = {
    FP32: LogNumbers(0x0080_0000, INT32, 254, 23, 127, 16, 0xFF80_0000, 0x7F80_0000, 0x3F31_7218),
    FP16: LogNumbers(0x0400, INT16, 30, 10, 15, 8, 0xFF80_0000, 0x7C00, 0x398C),
    BF16: LogNumbers(0x0080, INT16, 254, 7, 127, 8, 0xFF80_0000, 0x7F80, 0x3F31),
}


def log(s: Steps, z: Register, tested: Register, p: Register, q: Register, series: int, out: Register) -> None:
    """Out = ln z = n ln 2 + ln(z / 2^n), 2^n the power of two next to z; `tested` is asked for 0 and infinity.

    The last sum is q + p, and p + q where the result is p's.
    """
    c = LOG[s.dtype]
    s.max(p, z, Bits(c.least))
    s.exponent(q, p, c.fields)
    s.shifted(Ar.SUB, q, Bits(c.top), q, (c.fields,) * 3, c.shift)
    s.mul(q, p, q)
    s.sub(q, q, 1.0)
    s.taylor(q, q, series, c.terms)
    s.select(Cmp.SELECT_EQ, q, tested, 0.0, Bits(c.minus_infinity), q)
    s.select(Cmp.SELECT_EQ, q, tested, Bits(c.infinity), Bits(c.infinity), q)
    s.exponent(p, p, c.fields)
    s.shifted(Ar.SUB, p, p, Bits(c.bias), (c.fields,) * 3)
    s.cast(p, p, (c.fields, s.dtype), Rounding.TO_ZERO)
    s.mul(p, p, Bits(c.ln_2))
    s.add(out, q, p)


def rsqrt(s: Steps, x: Register, to: Register, iterations: int = 3) -> None:
    """To = 1 / sqrt(x), 0 where that is infinite."""
    s.rsqrt(to, x, iterations)
    s.select(Cmp.SELECT_EQ, to, to, _INFINITY, Bits(0), to, words=True)


def sqrt(s: Steps, x: Register, to: Register, iterations: int = 3) -> None:
    """The root of x as x times its reciprocal root, in `to`; of both zeros 0 * x."""
    rsqrt(s, x, to, iterations)
    s.select(Cmp.SELECT_EQ, to, x, 0.0, 0.0, to)
    s.select(Cmp.SELECT_EQ, to, x, _MINUS_ZERO, 0.0, to)
    s.mul(to, to, x)


def sign(s: Steps, x: Register, to: Register) -> None:
    """To = 1 or -1, 0 of +0."""
    s.select(Cmp.SELECT_GT, to, x, 0.0, 1.0, -1.0)
    s.select(Cmp.SELECT_EQ, to, x, 0.0, 0.0, to)


def sigmoid(s: Steps, minus_x: Register, work: tuple[Register, ...], to: Register, series: int) -> None:
    """To = 1 / (1 + e^-x); `minus_x` is the first work register."""
    first, second = work
    exp(s, minus_x, first, to, second, series, to)
    s.add(second, to, 1.0)
    s.div(to, 1.0, second)


def tanh(s: Steps, x: Source, work: tuple[Register, ...], to: Register, series: int) -> None:
    """To = 1 - 2 / (1 + e^2x), e^2x limited."""
    first, second = work
    s.add(to, x, x)
    s.min(to, to, 100.0)
    exp(s, to, to, first, second, series, to)
    s.add(first, to, 1.0)
    s.div(second, 2.0, first)
    s.sub(to, 1.0, second)


def erf(s: Steps, x: Register, work: tuple[Register, ...], to: Register, exp_series: int, erf_series: int) -> None:
    """To = (1 - t e^(series(t) - x^2)), t = 1 / (1 + abs(x) / 2), with the sign of x."""
    w0, w1, w2 = work
    s.abs(to, x)
    s.mul(w2, to, 0.5)
    s.add(to, w2, 1.0)
    s.div(w2, 1.0, to)
    s.taylor(to, w2, erf_series, 10)
    s.mul(w1, x, x)
    s.sub(w0, to, w1)
    exp(s, w0, w0, to, w1, exp_series, to)
    s.mul(w0, to, w2)
    s.sub(w2, 1.0, w0)
    sign(s, x, w0)
    s.mul(to, w2, w0)
