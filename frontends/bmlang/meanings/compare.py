"""Comparisons: 1 or 0 in the type of the operands (bmlang.md 4.3)."""

from __future__ import annotations

from bmcompiler.frontends.bmlang.emit import Emit
from bmcompiler.frontends.bmlang.meanings.elements import operands
from bmcompiler.frontends.bmlang.meanings.registry import Call, meaning
from bmcompiler.ir import Value

_METHODS = {"gt": "greater", "ge": "greater_equal", "lt": "less", "le": "less_equal", "eq": "equal"}


@meaning(*(name + s for name in (*_METHODS, "ne") for s in ("", "s")))
def compare(e: Emit, c: Call) -> Value:
    """A relation; "ne" is the opposite of "eq", so that NaN differs from everything."""
    a, b = operands(e, c)
    name = c.name.removesuffix("s")
    flags = e.op("compare", a, b, method=_METHODS.get(name, "equal"))
    return e.cast(e.op("bit_not", flags) if name == "ne" else flags, c.out)
