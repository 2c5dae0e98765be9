"""Pictures that a net is given as bytes, and what is made of them before the first layer that multiplies."""

from __future__ import annotations

from bmcompiler.codegen.memory import root_of
from bmcompiler.ir import Operation, Value
from bmcompiler.ir.keys import is_weight

_BYTES = "u8"
_OPS = 8
"""Ops that a picture goes through at most: cut, turned, cast, scaled."""


def is_picture(value: Value) -> bool:
    """Whether a value is bytes that the net is given, or made of them alone by ops that multiply at most by element."""
    for _ in range(_OPS):
        value = root_of(value)
        if value.op is None:
            return value.dtype == _BYTES
        given = _given(value.op)
        if len(given) != 1 or value.op.products():
            return False
        value = given[0]
    return False


def reads_picture(op: Operation) -> bool:
    """Whether all that an op is given, beside constants, is one picture."""
    given = _given(op)
    return len(given) == 1 and is_picture(given[0])


def _given(op: Operation) -> list[Value]:
    return [value for value in op.operands if not is_weight(root_of(value))]
