"""Arithmetic (AR): element by element, each operand in its own layout (bm1684x-vector.md 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.codes import Ar, Layout, Precision
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.simulator.bm1684x.operands import Operands, Reader
from bmcompiler.runtime.simulator.bm1684x.vector import integers
from bmcompiler.runtime.simulator.bm1684x.vector.access import code, element, kind_of, reader, writer
from bmcompiler.runtime.simulator.bm1684x.vector.convert import converter
from bmcompiler.runtime.simulator.bm1684x.vector.functions import SELECTIONS, ShiftReader, function_of, selection
from bmcompiler.runtime.simulator.bm1684x.vector.kinds import Kind
from bmcompiler.runtime.simulator.plan import Step

_THREE = 3  # operands: the third one counts
_SHIFTS = (Ar.SHIFT_LOGICAL, Ar.SHIFT_ARITHMETIC, Ar.ROTATE)


def arithmetic_step(ops: Operands) -> Step:
    """Step of one command. Raises SimulatorError for operations and types the chip has no arithmetic for."""
    unit = code(Ar, ops, "tsk_eu_typ", "arithmetic operation")
    if unit in _UNARY:
        compute, dtype = _UNARY[unit](ops, _kind(ops, "opd0"), ops.precision("res0"))
    elif unit == Ar.MAC:
        return _multiply_add(ops)
    elif unit in SELECTIONS:
        compute, dtype = _select(ops, unit)
    elif unit in _SHIFTS:
        compute, dtype = _shift(ops, unit)
    else:
        compute, dtype = _binary(ops, unit)
    return writer(ops, "res0", ops.shape("res0"), dtype, compute, ops.layout("res0"))


def _kind(ops: Operands, name: str) -> Kind:
    return kind_of(ops, name)


def _read(ops: Operands, name: str, dtype: np.dtype[Any]) -> Reader:
    return reader(ops, name, ops.shape("res0"), dtype, ops.layout(name))


def _mode(ops: Operands) -> int:
    return ops.fields["opd2_n_str"]


Made = tuple[Reader, np.dtype[Any]]


def _binary(ops: Operands, unit: Ar) -> Made:
    a, b, result = _kind(ops, "opd0"), _kind(ops, "opd1"), ops.precision("res0")
    function = function_of(unit, a, b, result, _mode(ops), _shift_reader(ops))
    x, y = _read(ops, "opd0", a.dtype), _read(ops, "opd1", b.dtype)
    return lambda: function(x(), y()), Kind(result).dtype


def _shift_reader(ops: Operands) -> ShiftReader | None:
    """The shift of integer sums and products: an immediate, or one value per channel."""
    if ops.fields["tsk_opd_num"] != _THREE:
        return None
    if ops.fields["opd2_prec"] != Precision.INT8:
        raise SimulatorError("the shift of integer arithmetic must be an int8")
    byte = np.dtype(np.int8)
    if ops.is_constant("opd2"):
        amount = int(ops.constant("opd2", byte))
        return lambda: amount
    return reader(ops, "opd2", (1, ops.fields["res0_c"], 1, 1), byte, Layout.COMPACT)


def _select(ops: Operands, unit: Ar) -> Made:
    a, b, result = _kind(ops, "opd0"), _kind(ops, "opd1"), Kind(ops.precision("res0"))
    if not ops.is_constant("opd2"):
        raise SimulatorError("the value to choose must be an immediate")
    function = selection(unit, a, b, result.precision, element(ops, "opd2", result.bits))
    x, y = _read(ops, "opd0", a.dtype), _read(ops, "opd1", b.dtype)
    return lambda: function(x(), y()), result.bits


def _shift(ops: Operands, unit: Ar) -> Made:
    """Shifts by a tensor or the low byte of an immediate; results keep their low bits."""
    a, b, result = _kind(ops, "opd0"), _kind(ops, "opd1"), Kind(ops.precision("res0"))
    if a.is_float or b.is_float or result.is_float:
        raise SimulatorError("only integers can be shifted")
    unsigned = unit != Ar.SHIFT_ARITHMETIC
    amount_type = np.dtype(np.int8) if ops.is_constant("opd1") else Kind(b.precision).dtype
    x, amount = _read(ops, "opd0", a.bits if unsigned else a.dtype), _read(ops, "opd1", amount_type)
    if unit == Ar.ROTATE:
        if a.size == 1 or a.precision != result.precision:
            raise SimulatorError("rotations take int16 or int32 and give the same")
        return lambda: integers.rotated(x(), amount()), a.bits
    mode, target = integers.rounding_of(_mode(ops)), result.bits
    return lambda: integers.shifted(x().astype(np.int64), amount(), mode, target, saturating=False), target


def _multiply_add(ops: Operands) -> Step:
    """a * b + old result; with integers bytes onto int16, with shifts of the old value and of the sum."""
    a, b, result = _kind(ops, "opd0"), _kind(ops, "opd1"), ops.precision("res0")
    if a.is_float:
        if not a.precision == b.precision == result:
            raise SimulatorError("operands and result of a multiply-add must be of one precision")
        x, y, kind = _read(ops, "opd0", a.dtype), _read(ops, "opd1", b.dtype), a.floats
        target = ops.result("res0", ops.shape("res0"), a.dtype, ops.layout("res0"))
        return lambda: target.write(kind.add(kind.multiply(x(), y()), target.read()))
    if (a.precision, b.precision, result) != (Precision.INT8, Precision.INT8, Precision.INT16):
        raise SimulatorError("integer multiply-add takes bytes and accumulates in int16")
    if not ops.is_constant("opd2"):
        raise SimulatorError("the shifts of an integer multiply-add must be an immediate")
    x, y, mode = _read(ops, "opd0", a.dtype), _read(ops, "opd1", b.dtype), integers.rounding_of(_mode(ops))
    left, right = (int(value) for value in ops.constant("opd2", np.dtype(np.uint16)).reshape(1).view(np.uint8))
    if left > integers.MOST_LEFT or right > integers.MOST_RIGHT:
        raise SimulatorError("the shifts of an integer multiply-add must be 31 to the left and 63 to the right at most")
    dtype = Kind(result, a.signed or b.signed).dtype
    sums = ops.result("res0", ops.shape("res0"), dtype, ops.layout("res0"))
    return lambda: sums.write(integers.multiplied_onto(x(), y(), sums.read(), left, right, mode, dtype))


def _cast(ops: Operands, a: Kind, result: Precision) -> Made:
    target = Kind(result, ops.signed("opd2"))
    return converter(a, target, _mode(ops), _read(ops, "opd0", a.dtype)), target.dtype


def _copy(ops: Operands, a: Kind, result: Precision) -> Made:
    _same_width(a, result)
    return _read(ops, "opd0", a.bits), a.bits


def _abs(ops: Operands, a: Kind, result: Precision) -> Made:
    """Floats lose their sign bit; the lowest integer stays what it is."""
    _same_width(a, result)
    if a.is_float:
        rest = a.bits.type((1 << (8 * a.size - 1)) - 1)
        return _mapped(_read(ops, "opd0", a.bits), lambda x: x & rest), a.bits
    return _mapped(_read(ops, "opd0", a.dtype), np.abs), a.dtype


def _not(ops: Operands, a: Kind, result: Precision) -> Made:
    _same_width(a, result)
    return _mapped(_read(ops, "opd0", a.bits), np.invert), a.bits


def _count(function: Callable[[Array], Array]) -> Callable[[Operands, Kind, Precision], Made]:
    def make(ops: Operands, a: Kind, result: Precision) -> Made:
        if a.is_float or Kind(result).is_float:
            raise SimulatorError("leading bits are counted in integers")
        return _mapped(_read(ops, "opd0", a.bits), function), Kind(result).dtype

    return make


def _mapped(read: Reader, function: Callable[[Array], Array]) -> Reader:
    return lambda: function(read())


def _same_width(a: Kind, result: Precision) -> None:
    if a.precision != result:
        raise SimulatorError(f"operand and result must be of one precision, got {a} and {result.name.lower()}")


_UNARY: dict[Ar, Callable[[Operands, Kind, Precision], Made]] = {
    Ar.CAST: _cast,
    Ar.COPY: _copy,
    Ar.ABS: _abs,
    Ar.NOT: _not,
    Ar.FIRST_ONE: _count(integers.leading_zeros),
    Ar.FIRST_ZERO: _count(integers.leading_ones),
}
