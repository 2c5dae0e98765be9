"""Functions of two operands, element by element, that arithmetic (AR) and vector (VC) commands share (4, 8).

`function_of` answers with a pure function of two arrays as memory has them, or refuses the operation for these types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.codes import Ar, Precision
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric import floats, fp32
from bmcompiler.numeric.arrays import Mask
from bmcompiler.numeric.floats import Stored
from bmcompiler.runtime.simulator.bm1684x.operands import dtype_of
from bmcompiler.runtime.simulator.bm1684x.vector.integers import Shift, exact, high_product, rounding_of, shifted
from bmcompiler.runtime.simulator.bm1684x.vector.kinds import Kind

Function = Callable[[Stored, Stored], Stored]
ShiftReader = Callable[[], Shift]

_FLOAT: dict[Ar, Callable[[floats.FloatType], Function]] = {
    Ar.ADD: lambda kind: kind.add,
    Ar.SUB: lambda kind: kind.subtract,
    Ar.MUL: lambda kind: kind.multiply,
    Ar.ABS_DIFFERENCE: lambda kind: kind.distance,
}
_EXACT: dict[Ar, tuple[np.ufunc, bool]] = {
    Ar.ADD: (np.add, False),
    Ar.SUB: (np.subtract, False),
    Ar.MUL: (np.multiply, False),
    Ar.ADD_SATURATING: (np.add, True),
    Ar.SUB_SATURATING: (np.subtract, True),
    Ar.MUL_SATURATING: (np.multiply, True),
}
_BITWISE: dict[Ar, np.ufunc] = {Ar.AND: np.bitwise_and, Ar.OR: np.bitwise_or, Ar.XOR: np.bitwise_xor}
_COMPARISONS = {Ar.SELECT_GT: "greater", Ar.SELECT_EQ: "equal", Ar.SELECT_LT: "less"}
_EXTREMES = {Ar.MAX: np.maximum, Ar.MIN: np.minimum}
_MOST_ITERATIONS = 8
SELECTIONS = tuple(_COMPARISONS)
"""Operations that need a value to choose."""


def function_of(unit: Ar, a: Kind, b: Kind, result: Precision, mode: int, shift: ShiftReader | None = None) -> Function:
    """The function of an operation without a value to choose.

    Args:
        unit: the operation. a, b: kinds of the operands; `result`: precision of the result.
        mode: code of the rounding of integer operations; iterations - 1 of a division.
        shift: gives the shift of integer sums and products; None: no shift.
    Raises SimulatorError for types that the chip has no such operation for.
    """
    if unit in _BITWISE:
        return _bitwise(unit, a, b, result)
    if unit in _EXTREMES:
        return _extreme(unit, a, b, result)
    if unit == Ar.DIVIDE:
        return _division(a, b, result, mode)
    if a.is_float or b.is_float:
        if unit not in _FLOAT:
            raise SimulatorError(f"operation {unit.name} does not exist for floats")
        _same("operands and result of float arithmetic", a.precision, b.precision, result)
        return _FLOAT[unit](a.floats)
    mode = rounding_of(mode)
    if unit in _EXACT:
        return _exact(unit, a, b, result, mode, shift)
    if unit == Ar.MUL_HIGH:
        _same("operands and result of a high product", a.precision, b.precision, result)
        if not (a.signed and b.signed):
            raise SimulatorError("high products of unsigned integers have no known result")
        return lambda x, y: high_product(x, y, mode)
    raise SimulatorError(f"operation {unit.name} does not exist for integers")


def _same(what: str, *precisions: Precision) -> None:
    if len(set(precisions)) != 1:
        names = ", ".join(precision.name.lower() for precision in precisions)
        raise SimulatorError(f"{what} must be of one precision, got {names}")


def integer_result(unit: Ar, a: Kind, b: Kind, result: Precision) -> np.dtype[Any]:
    """Type of integer sums and products: signed when an operand is, differences always (4.2)."""
    if Kind(result).is_float:
        raise SimulatorError(f"integer arithmetic has no {result.name.lower()} result")
    return dtype_of(result, a.signed or b.signed or unit in (Ar.SUB, Ar.SUB_SATURATING))


def _exact(unit: Ar, a: Kind, b: Kind, result: Precision, mode: int, shift: ShiftReader | None) -> Function:
    operation, saturating = _EXACT[unit]
    target = integer_result(unit, a, b, result)
    amount: ShiftReader = shift or (lambda: 0)
    return lambda x, y: shifted(exact(operation, x, y), amount(), mode, target, saturating=saturating)


def _bitwise(unit: Ar, a: Kind, b: Kind, result: Precision) -> Function:
    _same("operands and result of bit operations", a.precision, b.precision, result)
    if a.is_float:
        raise SimulatorError(f"bit operation {unit.name} takes integer precisions, also for the bits of floats")
    operation = _BITWISE[unit]
    return lambda x, y: operation(x.view(a.bits), y.view(a.bits))


def _extreme(unit: Ar, a: Kind, b: Kind, result: Precision) -> Function:
    _same("operands and result of maximum and minimum", a.precision, b.precision, result)
    if a.is_float:
        return a.floats.maximum if unit == Ar.MAX else a.floats.minimum
    if a.signed != b.signed:
        raise SimulatorError("operands of maximum and minimum must have the same sign bit")
    return _EXTREMES[unit]


def _division(a: Kind, b: Kind, result: Precision, mode: int) -> Function:
    _same("operands and result of a division", a.precision, b.precision, result)
    if a.precision != Precision.FP32:
        raise SimulatorError("only fp32 can be divided")
    rounds = iterations(mode)
    return lambda x, y: fp32.divide(x, y, rounds)


def iterations(field: int) -> int:
    """Newton steps of roots and divisions. Raises SimulatorError for more than short forms can say."""
    if field >= _MOST_ITERATIONS:
        raise SimulatorError(f"{field + 1} iterations are more than the {_MOST_ITERATIONS} with a known result")
    return field + 1


def comparison(name: str, kind: Kind) -> Callable[[Stored, Stored], Mask]:
    """greater, equal or less of two operands of one precision; see `FloatType` for floats."""
    if kind.is_float:
        found: Callable[[Stored, Stored], Mask] = getattr(kind.floats, name)
        return found
    return {"greater": np.greater, "equal": np.equal, "less": np.less}[name]


def selection(unit: Ar, a: Kind, b: Kind, result: Precision, value: Stored) -> Function:
    """a op b ? value : 0. `value`: bits of the result's width. Raises SimulatorError for types that do not fit."""
    _same("operands of a comparison", a.precision, b.precision)
    if Kind(result).size > a.size:
        raise SimulatorError("the result of a comparison must not be wider than its operands")
    holds = comparison(_COMPARISONS[unit], a)
    nothing = value.dtype.type(0)
    return lambda x, y: np.where(holds(x, y), value, nothing)
