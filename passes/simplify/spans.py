"""Between which numbers the elements of integer tensors lie, as types, constants and ops on the way say."""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.ops.elements.elementwise import Add, Div, Mod, Mul, Sub
from bmcompiler.ops.elements.integer import Bitwise, Cast
from bmcompiler.ops.elements.logic import BitNot, BitShift, Where
from bmcompiler.ops.layers.reduce import Arg, Reduce
from bmcompiler.ops.places.index import Trilu
from bmcompiler.ops.places.order import Cumulate, TopK

Span = tuple[int, int]
"""The least and the largest number that an element may be."""


class Spans:
    """Spans of the values of a module, each found once."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.found: dict[Value, Span] = {}

    def of(self, value: Value) -> Span:
        """The span of an integer or bool tensor; that of its type where nothing else is known."""
        if value not in self.found:
            low, high = limits(value.dtype)
            span = self._span(value) or (low, high)
            self.found[value] = span if low <= span[0] and span[1] <= high else (low, high)
        return self.found[value]

    def _span(self, value: Value) -> Span | None:
        op = value.op
        if isinstance(op, Weight):
            array = self.module.weights[op.key]
            return (int(array.min()), int(array.max())) if array.size else (0, 0)
        if isinstance(op, (Arg, TopK)) and value is op.results[-1]:
            return 0, op.x.shape[op.axis] - 1
        if not isinstance(op, TensorOp) or not all(x.type.is_integer or x.dtype == "bool" for x in op.operands):
            return None
        if isinstance(op, Cast):
            return self._cast(op)
        spans = [self.of(x) for x in same_type(op)]
        (low, high), (first, last) = spans[0], spans[-1]
        if isinstance(op, Add):
            return low + first, high + last
        if isinstance(op, Sub):
            return low - last, high - first
        if isinstance(op, Mul):
            ends = [a * b for a in (low, high) for b in (first, last)]
            return min(ends), max(ends)
        if isinstance(op, Mod):
            return _of_rests((low, high) if op.fmod else (first, last), max(abs(first), abs(last), 1) - 1)
        if isinstance(op, Div) and first > 0:
            ends = [(1 if a > 0 else -1) * (abs(a) // b) for a in (low, high) for b in (first, last)]
            return min(ends), max(ends)
        if isinstance(op, Div) and min(low, first) >= 0:
            return 0, high
        if isinstance(op, (Reduce, Cumulate)):
            count = op.x.shape[op.axis] if isinstance(op, Cumulate) else prod(op.x.shape[axis] for axis in op.axes)
            return _several(op.method, (low, high), count)
        if isinstance(op, BitNot):
            return -1 - high, -1 - low
        if isinstance(op, Bitwise):
            return _of_bits(spans)
        if isinstance(op, BitShift) and op.direction == "right":
            return min(low, 0), max(high, 0)
        if isinstance(op, Trilu):
            return min(low, 0), max(high, 0)
        if isinstance(op, Where) or op.selects:
            return min(each[0] for each in spans), max(each[1] for each in spans)
        return None

    def _cast(self, op: Cast) -> Span | None:
        """Saturated; where it keeps low bits, of numbers that the type has."""
        low, high = self.of(op.x)
        least, most = limits(op.dtype)
        if op.truncate:
            return (low, high) if least <= low and high <= most else None
        return min(max(low, least), most), min(max(high, least), most)


def same_type(op: TensorOp) -> list[Value]:
    """The operands of an op whose type is that of its result: not conditions, not indices."""
    first = 1 if isinstance(op, Where) else 0
    return [x for i, x in enumerate(op.operands) if i >= first and i not in op.index_operands]


def limits(dtype: str) -> Span:
    """The numbers that an integer type or bool holds."""
    if dtype == "bool":
        return 0, 1
    found = np.iinfo(np.dtype(TensorType((), dtype).numpy))
    return int(found.min), int(found.max)


def _of_rests(signs: Span, most: int) -> Span:
    """signs: of what has the sign of the rest."""
    return -most if signs[0] < 0 else 0, most if signs[1] > 0 else 0


def _of_bits(spans: list[Span]) -> Span:
    """Of bits of numbers that all fit the fewest two's complement bits: no sign comes of numbers without one."""
    low, high = min(each[0] for each in spans), max(each[1] for each in spans)
    most = (1 << max(high.bit_length(), (-low - 1).bit_length() if low < 0 else 0)) - 1
    return (-most - 1 if low < 0 else 0), most


def _several(method: str, span: Span, count: int) -> Span | None:
    """Of at most so many numbers of a span."""
    if method != "sum":
        return span if method in ("max", "min") else None
    return min(0, span[0] * count), max(0, span[1] * count)
