"""Element-wise operators: arithmetic, comparisons, shifts, functions, conversion, bits (bmlang.md 2, 4.2 to 4.5)."""

from __future__ import annotations

from typing import Any

from bmcompiler.frontends.bmlang.emit import Emit
from bmcompiler.frontends.bmlang.meanings.registry import Call, meaning
from bmcompiler.frontends.bmlang.types import ActiveType
from bmcompiler.ir import Value

_PLAIN = {
    "adds": "add",
    "subs": "sub",
    "rsubs": "sub",
    "muls": "mul",
    "divs": "div",
    "maxs": "max",
    "mins": "min",
}
_SHIFTS = {"muls_shift": "mul_shift", "adds_shift": "add_shift", "subs_shift": "sub_shift", "rsubs_shift": "sub_shift"}
_ONE_TYPE = ("div", "max", "min")
"""Ops whose result has the type of the operands; others saturate to the type of the result."""
_MAX_SHIFT = 31


def operands(e: Emit, c: Call) -> list[Value]:
    """The two operands in the vendor's order, a scalar as a constant."""
    given = [c[parameter.name] for parameter in c.row.typed]
    like = next(x for x in given if isinstance(x, Value))
    return [x if isinstance(x, Value) else e.full(x.value, x.dtype.ir, like) for x in given]


def binary(e: Emit, name: str, a: Value, b: Value, out: str) -> Value:
    """a NAME b in the result type `out`: I32 by way of floats (bmlang.md 4, `I32*`), integers exact and saturated."""
    if a.dtype == "i32":
        real = e.op(name, e.cast(a, "f32"), e.cast(b, "f32"))
        return e.cast(real, "i32")
    return e.op(name, a, b) if name in _ONE_TYPE else e.op(name, a, b, result=out)


@meaning("mul", "div", "add", "sub", "max", "min", *_PLAIN)
def arithmetic(e: Emit, c: Call) -> Value:
    """Two tensors, or a tensor and a scalar."""
    a, b = operands(e, c)
    return binary(e, _PLAIN.get(c.name, c.name), a, b, c.out)


@meaning("mul_shift", "add_shift", "sub_shift", *_SHIFTS)
def shifted(e: Emit, c: Call) -> Value:
    """saturate(round_shift(a OP b, shift)), exact in between."""
    if c["shift"] > _MAX_SHIFT:
        raise c.wrong(f"shift must be 0 to {_MAX_SHIFT}, got {c['shift']}")
    a, b = operands(e, c)
    return e.op(_SHIFTS.get(c.name, c.name), a, b, rshift=c["shift"], result=c.out)


@meaning("clamp")
def clamp(e: Emit, c: Call) -> Value:
    """min(max(x, min), max)."""
    x, low, high = c["tensor_i"], c["min"].value, c["max"].value
    if low > high:
        raise c.wrong(f"min {low} is above max {high}")
    if c.out == "i32":
        return e.cast(e.op("clip", e.cast(x, "f32"), min=float(low), max=float(high)), "i32")
    if x.type.is_float:
        return e.op("clip", x, min=float(low), max=float(high))
    return e.op("mins", e.op("maxs", x, value=low), value=high)


@meaning("cast")
def cast(e: Emit, c: Call) -> Value:
    """Saturating; reals round to the nearest, halves away from zero."""
    return e.op("cast", c["tensor_i"], dtype=c.out)


@meaning("copy")
def copy(e: Emit, c: Call) -> Value:
    """The same elements."""
    return e.reshape(c["tensor_i"], c["tensor_i"].shape)


@meaning("ceil", "floor", "sin", "cos")
def function(e: Emit, c: Call) -> Value:
    """A function of the same name."""
    return e.op(c.name, c["tensor_i"])


_FUNCTIONS = {
    ActiveType.ACTIVE_TANH: "tanh",
    ActiveType.ACTIVE_SIGMOID: "sigmoid",
    ActiveType.ACTIVE_RELU: "relu",
    ActiveType.ACTIVE_EXP: "exp",
    ActiveType.ACTIVE_ELU: "elu",
    ActiveType.ACTIVE_SQRT: "sqrt",
    ActiveType.ACTIVE_ABSVAL: "abs",
    ActiveType.ACTIVE_LN: "log",
}


@meaning("active")
def active(e: Emit, c: Call) -> Value:
    """A function of each element; of integers RELU and ABSVAL, whose results saturate."""
    x, kind = c["tensor_i"], c["active_type"]
    if kind == ActiveType.UNKNOWN_ACTIVE_TYPE:
        raise c.wrong("active_type must name a function")
    if x.type.is_integer:
        return e.cast(e.op("relu", x), c.out) if kind == ActiveType.ACTIVE_RELU else _size(e, x, c.out)
    if kind == ActiveType.ACTIVE_SQUARE:
        return e.op("mul", x, x)
    if kind == ActiveType.ACTIVE_RSQRT:
        root = e.op("sqrt", e.cast(x, "f32"))
        return e.cast(e.op("div", e.full(1.0, "f32", x), root), c.out)
    return e.op(_FUNCTIONS[kind], x)


def _size(e: Emit, x: Value, out: str) -> Value:
    """|x| saturated: exactly the larger one of x and -x, both saturated to an unsigned type that holds it."""
    if x.dtype.startswith("u"):
        return e.cast(x, out)
    unsigned = "u8" if x.dtype == "i8" else "u16"
    negative = e.op("sub", e.full(0, x.dtype, x), x, result=unsigned)
    return e.cast(e.op("max", e.cast(x, unsigned), negative), out)


# -- bits --------------------------------------------------------------------------------------------------------------
@meaning("bit_and", "bit_ands", "bit_or", "bit_ors", "bit_xor", "bit_xors")
def bits(e: Emit, c: Call) -> Value:
    """Logic, bit by bit."""
    a, b = operands(e, c)
    return e.op(c.name.removesuffix("s"), a, b)


@meaning("arith_lshift", "arith_lshifts", "arith_rshift", "arith_rshifts")
def arith_shift(e: Emit, c: Call) -> Value:
    """Bits moved without rounding; counts below zero move the other way."""
    x, places = operands(e, c)
    direction = "left" if "lshift" in c.name else "right"
    return e.op("arith_shift", x, places, direction=direction)


@meaning("round_rshift")
def round_rshift(e: Emit, c: Call) -> Value:
    """saturate(rrs(x, n)), n = 0 for counts below zero."""
    x = c["tensor_i"]
    return e.op("round_rshift_by", x, c["tensor_num"], result=c.out)


@meaning("round_rshifts")
def round_rshifts(e: Emit, c: Call) -> Value:
    """The same with one count."""
    x, places = c["tensor_i"], _count(c["tensor_num"].value)
    return e.op("round_rshift", x, rshift=places, result=c.out)


def _count(places: Any) -> int:
    """A count of places as the op has it; from 31 on every result is the same for elements of 16 bits."""
    return min(max(int(places), 0), _MAX_SHIFT)


_METHODS = {"gt": "greater", "ge": "greater_equal", "lt": "less", "le": "less_equal", "eq": "equal"}


@meaning(*(name + s for name in (*_METHODS, "ne") for s in ("", "s")))
def compare(e: Emit, c: Call) -> Value:
    """A relation; "ne" is the opposite of "eq", so that NaN differs from everything."""
    a, b = operands(e, c)
    name = c.name.removesuffix("s")
    flags = e.op("compare", a, b, method=_METHODS.get(name, "equal"))
    return e.cast(e.op("bit_not", flags) if name == "ne" else flags, c.out)
