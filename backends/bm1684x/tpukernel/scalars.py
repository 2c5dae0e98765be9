"""Conversion of scalars, as the library does it on its own processor (tpukernel-api.md 3)."""

from __future__ import annotations

import math
from fractions import Fraction

from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Function, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import computed, floats, integers
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, rounding_mode_t, scalar_t

# exponent bits, mantissa bits
_FORMS = {data_type_t.DT_FP32: (8, 23), data_type_t.DT_FP16: (5, 10), data_type_t.DT_BFP16: (8, 7)}
_FP32, _BF16 = data_type_t.DT_FP32, data_type_t.DT_BFP16
_TINY = Fraction(2) ** -126
_RM = rounding_mode_t


def scalar_cast(bits: int, to: data_type_t, of: data_type_t, rounding: rounding_mode_t) -> int:
    """The bits of a number in another type: rounded, integers saturated, of a NaN 0 or a NaN.

    Floats are rounded by modes 0 to 4; the bits above the width of `of` are ignored, those of the result are 0. What is
    too large for FP16 becomes infinite, but of words only where the mode does not round towards 0.
    """
    bits &= (1 << of.bits) - 1
    if to == of:
        return bits
    if of is _BF16 and to is _FP32:
        return bits << 16
    value = _float_value(bits, of) if of.is_float else _integer_value(bits, of)
    if not to.is_float:
        return _saturated(value, to, rounding)
    if of.is_float and of is not data_type_t.DT_FP16 and -_TINY < value < _TINY:
        value = 0.0
    negative = bits >> of.bits - 1 == 1 if of.is_float else value < 0
    return _float_bits(value, to, rounding, negative, stops=of.is_int and of.bits == 32)


def _integer_value(bits: int, dtype: data_type_t) -> Fraction:
    low = bits & (1 << dtype.bits) - 1
    return Fraction(low - (1 << dtype.bits) if dtype.signed and low >> dtype.bits - 1 else low)


def _float_value(bits: int, dtype: data_type_t) -> Fraction | float:
    """Exact; NaN and infinities as floats."""
    exponents, mantissas = _FORMS[dtype]
    bits &= (1 << dtype.bits) - 1
    sign, exponent = -1 if bits >> dtype.bits - 1 else 1, bits >> mantissas & (1 << exponents) - 1
    mantissa = bits & (1 << mantissas) - 1
    bias = (1 << exponents - 1) - 1
    if exponent == (1 << exponents) - 1:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * mantissa * Fraction(2) ** (1 - bias - mantissas)
    return sign * (mantissa + (1 << mantissas)) * Fraction(2) ** (exponent - bias - mantissas)


def rounded(value: Fraction, rounding: rounding_mode_t) -> int:
    """A whole number next to `value`."""
    low = math.floor(value)
    rest = value - low
    if not rest or rounding is _RM.RM_DOWN or (rounding is _RM.RM_TOWARDS_ZERO and low >= 0):
        return low
    if rounding in (_RM.RM_UP, _RM.RM_TOWARDS_ZERO):
        return low + 1
    if rest != Fraction(1, 2):
        return low + round(rest)
    ties = {
        _RM.RM_HALF_TO_EVEN: low + (low & 1),
        _RM.RM_HALF_AWAY_FROM_ZERO: low + (low >= 0),
        _RM.RM_HALF_UP: low + 1,
        _RM.RM_HALF_DOWN: low,
    }
    return ties[rounding]


def _float_bits(
    value: Fraction | float, to: data_type_t, rounding: rounding_mode_t, negative: bool, stops: bool
) -> int:
    """The bits of a number whose sign is known; with `stops` what is rounded towards 0 stays finite."""
    exponents, mantissas = _FORMS[to]
    infinity, sign = ((1 << exponents) - 1) << mantissas, negative << exponents + mantissas
    if isinstance(value, float) and not math.isfinite(value):
        return sign | ((1 << exponents + mantissas) - 1 if math.isnan(value) else infinity)
    size, bias = abs(Fraction(value)), (1 << exponents - 1) - 1
    step = Fraction(2) ** (max(_exponent(size), 1 - bias) - mantissas)
    whole = abs(rounded(-size / step if negative else size / step, rounding)) * step
    if whole >= Fraction(2) ** (bias + 1):
        inwards = (_RM.RM_TOWARDS_ZERO, _RM.RM_UP if negative else _RM.RM_DOWN)
        return sign | (infinity - 1 if stops and rounding in inwards else infinity)
    exponent = max(_exponent(whole), 1 - bias)
    steps = int(whole / Fraction(2) ** (exponent - mantissas))
    return sign | (exponent + bias - 1 << mantissas) + steps


def _exponent(size: Fraction) -> int:
    """Of the largest power of two that is not above `size`; of 0 the least."""
    if not size:
        return -(1 << 30)
    found = size.numerator.bit_length() - size.denominator.bit_length()
    return found - (size < Fraction(2) ** found)


def _saturated(value: Fraction | float, to: data_type_t, rounding: rounding_mode_t) -> int:
    low, high = (-(1 << to.bits - 1), (1 << to.bits - 1) - 1) if to.signed else (0, (1 << to.bits) - 1)
    if isinstance(value, float):
        found = 0 if math.isnan(value) or not value else high if value > 0 else low
    else:
        found = min(max(rounded(value, rounding), low), high)
    return found & (1 << to.bits) - 1


# -- functions ---------------------------------------------------------------------------------------------------------
def _cast(k: Recorder, a: Arguments) -> scalar_t:
    mode = a.get("rounding_mode")
    return scalar_t(scalar_cast(a.src, a.dst_dtype, a.src_dtype, _RM.RM_HALF_TO_EVEN if mode is None else mode))


_SOURCE = "scalar_t src, data_type_t dst_dtype, data_type_t src_dtype"
_MODE = f"{_SOURCE}, rounding_mode_t rounding_mode"
_ROUNDS = Rule(
    "rounding_mode of a conversion from or to a float is 0 to 4",
    lambda a: a.rounding_mode <= _RM.RM_UP or not (a.src_dtype.is_float or a.dst_dtype.is_float),
)
_HALVES = {data_type_t.DT_FP16, data_type_t.DT_BFP16}
_OVER_FP32 = Rule(
    "DT_FP16 and DT_BFP16 are not converted into each other; go by way of DT_FP32",
    lambda a: {a.dst_dtype, a.src_dtype} != _HALVES,
)
RECORDED = in_group(
    "Scalars",
    Function(
        f"scalar_t tpu_cast({_MODE})",
        "src in another type, saturated",
        _cast,
        (computed("dst_dtype", "src_dtype"), _ROUNDS, _OVER_FP32),
    ),
    Function(
        f"scalar_t tpu_fp_cast({_MODE})",
        "a float in another float type",
        _cast,
        (floats("dst_dtype", "src_dtype"), _ROUNDS, _OVER_FP32),
    ),
    Function(
        f"scalar_t tpu_fp_to_int_cast({_MODE})",
        "a float as an integer, saturated",
        _cast,
        (integers("dst_dtype"), floats("src_dtype"), _ROUNDS),
    ),
)
DESCRIBED = in_group(
    "Scalars",
    Function(
        f"scalar_t tpu_int_to_fp_cast({_MODE})",
        "an integer as a float",
        _cast,
        (floats("dst_dtype"), integers("src_dtype"), _ROUNDS),
    ),
    Function(
        f"scalar_t tpu_int_cast({_SOURCE})",
        "an integer in another type, saturated",
        _cast,
        (integers("dst_dtype", "src_dtype"),),
    ),
    source=Known.DESCRIBED,
)
ROWS = (*RECORDED, *DESCRIBED)
