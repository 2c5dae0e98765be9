"""Special functions (SFU): series, exponents, reciprocal square roots (bm1684x-vector.md 6)."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Precision, Sfu
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric import floats, fp32
from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.simulator.bm1684x.operands import Operands, Work, check_work
from bmcompiler.runtime.simulator.bm1684x.vector.access import code, writer
from bmcompiler.runtime.simulator.bm1684x.vector.functions import iterations
from bmcompiler.runtime.simulator.bm1684x.vector.kinds import Kind
from bmcompiler.runtime.simulator.memory import Shape
from bmcompiler.runtime.simulator.plan import Step

_ROUND_UP = {Precision.FP32: 0x555554, Precision.FP16: 0x2AA, Precision.BF16: 0x54}  # from mantissas of 4/3 on


def special_step(ops: Operands) -> Step:
    """Step of one command. Raises SimulatorError for functions and types that do not exist."""
    unit = code(Sfu, ops, "tsk_eu_typ", "special function")
    kind, result = Kind(ops.precision("opd0")), Kind(ops.precision("res0"))
    if not kind.is_float:
        raise SimulatorError(f"special functions work on floats, not on {kind}")
    if unit == Sfu.NORMALIZE:
        return _normalize(ops, kind, result)
    if kind != result:
        raise SimulatorError("operand and result of a special function must be of one precision")
    return _rsqrt(ops, kind) if unit == Sfu.RSQRT else _series(ops, kind)


def _series(ops: Operands, kind: Kind) -> Step:
    """Every lane that holds data has coefficients of its own at the same place, whatever lane their address names."""
    terms, shape = ops.fields["opd1_n"], ops.shape("res0")
    if terms < 2:
        raise SimulatorError(f"a series needs two terms at least, got {terms}")
    check_work(Work.TERMS, *shape, terms)
    source, (start, _) = ops.tensor("opd0", shape, kind.dtype), ops.place("opd0")
    own: Shape = (1, min(shape[1], CHIP.lanes), 1, terms)
    coefficients = ops.memories.local.tensor(start, ops.place("opd1")[1], own, (0, 0, 0, kind.size), kind.dtype)

    def compute() -> Array:
        return series(source.read(), np.ascontiguousarray(coefficients.read()[0, :, 0]), kind.floats)

    return writer(ops, "res0", shape, kind.dtype, compute)


def series(x: Array, coefficients: Array, arithmetic: floats.FloatType) -> Array:
    """c0 + c1*x + ... of (N, C, H, W), channel c with the coefficients [c mod 64] of (lanes, terms)."""
    bits = coefficients.view(f"u{coefficients.itemsize}")
    if (bits == bits[0]).all():
        return arithmetic.horner(x, coefficients[0])
    channels = coefficients[np.arange(x.shape[1]) % CHIP.lanes]
    return arithmetic.horner(x, channels.T[:, None, :, None, None])


def _rsqrt(ops: Operands, kind: Kind) -> Step:
    if kind.precision != Precision.FP32:
        raise SimulatorError("reciprocal square roots exist in fp32 only")
    shape, rounds = ops.shape("res0"), iterations(ops.fields["opd2_n_str"])
    source = ops.tensor("opd0", shape, kind.dtype)
    return writer(ops, "res0", shape, kind.dtype, lambda: fp32.rsqrt(source.read(), rounds))


def _normalize(ops: Operands, kind: Kind, result: Kind) -> Step:
    """The exponent as an integer of the same width, or the power of two as a float."""
    if result != kind and (result.is_float or result.size != kind.size):
        raise SimulatorError(f"the exponent of {kind} must become an integer of the same width, or {kind}")
    shape = ops.shape("res0")
    source = ops.tensor("opd0", shape, kind.bits)
    find = power_of_two if result.is_float else biased_exponent
    return writer(ops, "res0", shape, kind.bits, lambda: find(source.read(), kind))


def biased_exponent(bits: Array, kind: Kind) -> Array:
    """Exponent of the bits of floats, of the next power of two for positive mantissas from 4/3 on (6.2)."""
    sign = kind.bits.type(1 << (8 * kind.size - 1))
    negative = bits >= sign
    rounded = np.where(negative, bits & ~sign, bits + kind.bits.type(_ROUND_UP[kind.precision]))
    return rounded >> kind.bits.type(kind.floats.mantissa)


def power_of_two(bits: Array, kind: Kind) -> Array:
    """sign | exponent << mantissa, with the exponent of `biased_exponent` cut off to its bits."""
    sign = kind.bits.type(1 << (8 * kind.size - 1))
    exponent = biased_exponent(bits, kind) << kind.bits.type(kind.floats.mantissa)
    return (bits & sign) | (exponent & ~sign)
