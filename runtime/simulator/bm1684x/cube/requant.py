"""Requantization and dequantization (task 4; bm1684x-cube.md 9)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.codes import Precision, Requant
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.fp32 import add, multiply
from bmcompiler.runtime.simulator.bm1684x.cube.integers import result_type
from bmcompiler.runtime.simulator.bm1684x.operands import FP32, Operands, Reader, StepMaker, dtype_of
from bmcompiler.runtime.simulator.bm1684x.vector.convert import checked, convert
from bmcompiler.runtime.simulator.bm1684x.vector.integers import rounding_of, saturated, shifted
from bmcompiler.runtime.simulator.bm1684x.vector.kinds import Kind
from bmcompiler.runtime.simulator.plan import Step

_WORD = np.dtype(np.int32)
_SECOND_MODE = 3  # bits of the first rounding mode
_HIGH = 16


def requant_step(ops: Operands) -> Step:
    """Step of a requantization. Raises SimulatorError for types it has no arithmetic for."""
    unit = ops.fields["tsk_eu_typ"]
    maker = _MAKERS.get(unit)
    if maker is None:
        raise SimulatorError(f"operation {unit} does not exist for requantization")
    precision = ops.precision("opd0")
    wide = unit in (Requant.RQ0, Requant.RQ1)
    if precision not in ((Precision.INT16, Precision.INT32) if wide else (Precision.INT8, Precision.INT16)):
        raise SimulatorError(f"operation {unit} does not work on {precision.name.lower()}")
    return maker(ops)


def _input(ops: Operands) -> tuple[Reader, Kind]:
    precision = ops.precision("opd0")
    kind = Kind(precision, ops.signed("opd0") or precision == Precision.INT32)
    return ops.tensor("opd0", ops.shape("res0"), kind.dtype).read, kind


def _words(ops: Operands, count: int) -> Reader:
    """Reader of `count` words per channel as int32 (1, C, 1, count)."""
    return ops.tensor("opd1", (1, ops.fields["res0_c"], 1, count), _WORD).read


def _low(words: Array, dtype: np.dtype[Any]) -> Array:
    """The low bytes of words as another type."""
    return np.ascontiguousarray(words).view(dtype)[..., :1]


def _immediates(*values: Array) -> Reader:
    parts = tuple(value.reshape(1, 1, 1, 1) for value in values)
    return lambda: parts  # type: ignore[return-value]


def _high_half(ops: Operands, name: str, dtype: np.dtype[Any]) -> Array:
    return np.array([ops.fields[f"{name}_addr"] >> _HIGH], np.uint16).view(dtype).reshape(())


def _narrow(ops: Operands) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """(type of a result in memory, type it is saturated to, of 16 bits at most)."""
    signed = ops.signed("opd2")
    return result_type(ops, signed), dtype_of(min(ops.precision("res0"), Precision.INT16), signed)


def _rq0(ops: Operands) -> Step:
    """Integers times a float scale, plus a float offset, rounded."""
    f = ops.fields
    read, kind = _input(ops)
    stored, _ = _narrow(ops)
    whole = Kind(min(ops.precision("res0"), Precision.INT16), ops.signed("opd2"))
    modes = rounding_of(f["opd2_n_str"]), f["opd2_n_str"] >> _SECOND_MODE & 7
    checked(Kind(Precision.FP32), whole, modes[1])
    if ops.is_constant("opd1"):
        parameters = _immediates(*(ops.constant(name, FP32) for name in ("opd1", "opd2")))
    else:
        words = _words(ops, 2)

        def parameters() -> Any:
            return np.split(np.ascontiguousarray(words()).view(FP32), 2, axis=3)

    result = ops.result("res0", ops.shape("res0"), stored)

    def run() -> None:
        scale, offset = parameters()
        real = add(multiply(convert(read(), kind, Kind(Precision.FP32), modes[0]), scale), offset)
        result.write(convert(real, Kind(Precision.FP32), whole, modes[1]))

    return run


def _rq1(ops: Operands) -> Step:
    """Integers times an integer, shifted, plus a zero point."""
    read, _ = _input(ops)
    stored, narrow = _narrow(ops)
    zero_type, byte = dtype_of(Precision.INT16, ops.signed("opd2")), np.dtype(np.int8)
    if ops.is_constant("opd1"):
        zero = _high_half(ops, "opd2", zero_type)
        parameters = _immediates(ops.constant("opd1", _WORD), ops.constant("opd2", byte), zero)
    else:
        words = _words(ops, 3)

        def parameters() -> Any:
            factor, shift, zero = np.split(words(), 3, axis=3)
            return factor, _low(shift, byte), _low(zero, zero_type)

    result, mode = ops.result("res0", ops.shape("res0"), stored), rounding_of(ops.fields["opd2_n_str"])

    def run() -> None:
        factor, shift, zero = parameters()
        # saturating to 32 bits on the way changes nothing: the result has 16 at most, as has the zero point
        product = shifted(read().astype(np.int64) * factor, shift, mode, _WORD, saturating=True)
        result.write(saturated(product.astype(np.int64) + zero, narrow))

    return run


def _dq0(ops: Operands) -> Step:
    """(Integer - zero point) as float times a scale."""
    read, kind = _input(ops)
    result_type(ops, True, Precision.FP32, Precision.INT32)
    zero_type = dtype_of(Precision.INT16, kind.signed)
    if ops.is_constant("opd1"):
        parameters = _immediates(ops.constant("opd1", zero_type), ops.constant("opd2", FP32))
    else:
        words = _words(ops, 2)

        def parameters() -> Any:
            zero, scale = np.split(words(), 2, axis=3)
            return _low(zero, zero_type), _low(scale, FP32)

    result = ops.result("res0", ops.shape("res0"), FP32)

    def run() -> None:
        zero, scale = parameters()
        result.write(multiply((read().astype(np.int32) - zero).astype(np.float32), scale))

    return run


def _dq1(ops: Operands) -> Step:
    """(Integer - zero point) times an integer, shifted."""
    read, kind = _input(ops)
    precision = ops.precision("res0")
    dtype = result_type(ops, ops.signed("opd2") or precision == Precision.INT32)
    zero_type, byte = dtype_of(Precision.INT16, kind.signed), np.dtype(np.int8)
    if ops.is_constant("opd1"):
        shift = _high_half(ops, "opd1", np.dtype(np.uint16)).astype(np.int8)
        parameters = _immediates(ops.constant("opd1", zero_type), ops.constant("opd2", _WORD), shift)
    else:
        words = _words(ops, 3)

        def parameters() -> Any:
            zero, factor, shift = np.split(words(), 3, axis=3)
            return _low(zero, zero_type), factor, _low(shift, byte)

    result, mode = ops.result("res0", ops.shape("res0"), dtype), rounding_of(ops.fields["opd2_n_str"])

    def run() -> None:
        zero, factor, shift = parameters()
        product = (read().astype(np.int64) - zero) * factor
        result.write(shifted(product, shift, mode, dtype, saturating=True))

    return run


_MAKERS: dict[int, StepMaker] = {Requant.RQ0: _rq0, Requant.RQ1: _rq1, Requant.DQ0: _dq0, Requant.DQ1: _dq1}
