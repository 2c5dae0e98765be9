"""Element-wise arithmetic, conversion and comparison: the units AR, CMP and LIN (bm1684x-vector.md 4, 5, 7, 8)."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import Ar, Cmp, Layout, Lin, Precision, Rounding, Task
from bmcompiler.backends.bm1684x.instructions.operands import Command, Operand, shape_fields, stride_fields
from bmcompiler.backends.bm1684x.isa import AR, CMP, LIN
from bmcompiler.chip import Dims
from bmcompiler.instructions.isa import Fields
from bmcompiler.instructions.order import Engine

_SATURATING = {Ar.ADD: Ar.ADD_SATURATING, Ar.SUB: Ar.SUB_SATURATING, Ar.MUL: Ar.MUL_SATURATING}


def _ar(operation: Ar, shape: Dims, result: Operand, sources: tuple[Operand, ...], **more: int) -> Command:
    fields: Fields = {"tsk_typ": Task.ARITHMETIC, "tsk_eu_typ": operation, "tsk_opd_num": len(sources)}
    fields |= shape_fields(shape) | stride_fields("res0", result)
    fields |= {"res0_addr": result.place, "res0_prec": result.precision}
    for name, source in zip(("opd0", "opd1"), sources):
        fields |= stride_fields(name, source)
        fields |= {f"{name}_addr": source.place, f"{name}_prec": source.precision}
        fields |= {f"{name}_sign": source.signed, f"{name}_const": source.constant}
    return Command(Engine.TIU, AR, fields | more)


def binary(operation: Ar, shape: Dims, result: Operand, a: Operand, b: Operand) -> Command:
    """result = a op b without a third operand."""
    return _ar(operation, shape, result, (a, b))


def shift(operation: Ar, shape: Dims, result: Operand, a: Operand, places: Operand, rounding: Rounding) -> Command:
    """Result = a << places, of negative places a >> -places with rounding; SHIFT_LOGICAL sees unsigned integers."""
    return _ar(operation, shape, result, (a, places), opd2_n_str=rounding)


def divide(shape: Dims, result: Operand, a: Operand, b: Operand, iterations: int = 3) -> Command:
    """result = a / b in fp32, by so many (1 to 4) steps towards the reciprocal root of b (bm1684x-vector.md 4.1)."""
    a, b = a._replace(signed=False), b._replace(signed=False)
    return _ar(Ar.DIVIDE, shape, result, (a, b), opd2_n_str=iterations - 1)


def unary(operation: Ar, shape: Dims, result: Operand, a: Operand) -> Command:
    """result = op a; of a constant, `COPY` fills."""
    return _ar(operation, shape, result, (a,))


def cast(shape: Dims, result: Operand, a: Operand, rounding: Rounding) -> Command:
    """Result = a in the type of the result, or rounded to an integral value where both types are one float type."""
    return _ar(Ar.CAST, shape, result, (a,), opd2_n_str=rounding, opd2_sign=result.signed)


def integer(
    operation: Ar,
    shape: Dims,
    result: Operand,
    a: Operand,
    b: Operand,
    shift: int | Operand = 0,
    rounding: Rounding = Rounding.HALF_EVEN,
    saturation: bool = False,
) -> Command:
    """Result = (a op b) shifted: to the left, or with rounding to the right when `shift` < 0; then cut or saturated.

    `operation` is ADD, SUB or MUL, unsaturated MIN or MAX too; any integer widths. A shift that is an operand is a
    compact vector of one byte a channel.
    """
    operation = _SATURATING[operation] if saturation else operation
    if isinstance(shift, Operand):
        by_channel = {"opd2_addr": shift.place, "opd2_prec": shift.precision}
        return _ar(operation, shape, result, (a, b), **by_channel | {"tsk_opd_num": 3, "opd2_n_str": rounding})
    if not shift:
        return _ar(operation, shape, result, (a, b))
    third = {"opd2_const": 1, "opd2_addr": shift & 0xFF, "opd2_prec": Precision.INT8}
    return _ar(operation, shape, result, (a, b), **third | {"tsk_opd_num": 3, "opd2_n_str": rounding})


def where(operation: Ar, shape: Dims, result: Operand, a: Operand, b: Operand, value: int) -> Command:
    """Result = value where a op b, else 0; `operation` is SELECT_GT, SELECT_EQ or SELECT_LT, `value` the bits."""
    third = {"opd2_const": 1, "opd2_addr": value, "opd2_prec": result.precision}
    return _ar(operation, shape, result, (a, b), **third | {"tsk_opd_num": 3})


def mac(shape: Dims, result: Operand, a: Operand, b: Operand) -> Command:
    """Result = a * b + result in floats, the product rounded first."""
    return _ar(Ar.MAC, shape, result, (a, b))


def mac_of_bytes(
    shape: Dims, result: Operand, a: Operand, b: Operand, shifts: tuple[int, int], rounding: Rounding
) -> Command:
    """Result = (result << shifts[0] + a * b) >> shifts[1] of bytes, in 16 bits, rounded and saturated."""
    third = {"opd2_const": 1, "opd2_addr": shifts[1] << 8 | shifts[0], "opd2_prec": Precision.INT8}
    return _ar(Ar.MAC, shape, result, (a, b), **third | {"tsk_opd_num": 3, "opd2_n_str": rounding})


def select(operation: Cmp, shape: Dims, result: Operand, a: Operand, b: Operand, c: Operand, d: Operand) -> Command:
    """Result = a op b ? c : d. Strides of `a` or `b` mean a compact vector of one value per channel."""
    fields: Fields = {"tsk_typ": Task.COMPARE, "tsk_eu_typ": operation, "res0_addr": result.place}
    fields |= shape_fields(shape)
    for name, source in zip(("opd0", "opd1", "opd2", "opd3"), (a, b, c, d)):
        fields |= {f"{name}_addr": source.place, f"{name}_const": source.constant}
    for name, source in (("opd0", a), ("opd1", b)):
        fields[f"{name}_str"] = Layout.ALIGNED if source.strides is None else Layout.FREE
    fields |= {"opd0_prec": a.precision, "opd0_sign": a.signed, "opd2_prec": result.precision}
    return Command(Engine.TIU, CMP, fields)


def select_both(
    operation: Cmp, shape: Dims, result: Operand, other: Operand, a: Operand, b: Operand, c: Operand, d: Operand
) -> Command:
    """result = the larger or smaller one of a and b, other = c where it is a, else d."""
    found = select(operation, shape, result, a, b, c, d)
    return found._replace(fields={**found.fields, "res1_addr": other.place, "opd2_prec": other.precision})


def linear(operation: Lin, shape: Dims, result: Operand, a: Operand, b: Operand, c: Operand | None = None) -> Command:
    """a * b + c, (a + b)**2 or (a - b)**2; b and c are constants or compact vectors of one value a channel."""
    fields: Fields = {"tsk_typ": Task.LINEAR, "tsk_eu_typ": operation, "res0_prec": result.precision}
    fields |= shape_fields(shape) | {"res0_addr": result.place, "opd0_addr": a.place}
    fields |= {"opd1_addr": b.place, "opd1_const": b.constant}
    if c is not None:
        fields |= {"opd2_addr": c.place, "opd2_const": c.constant}
    return Command(Engine.TIU, LIN, fields)
