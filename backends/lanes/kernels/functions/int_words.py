"""Integer arithmetic with one element per word: in fp32, which is exact up to 2**24, or modulo 2**32 in words."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from bmcompiler.backends.lanes.kernels.functions.elementwise import ElementwiseKernel
from bmcompiler.backends.lanes.recipes import Recorder, Register, integers
from bmcompiler.backends.lanes.recipes.rounding import int_difference
from bmcompiler.backends.lanes.recipes.words import as_float, as_int
from bmcompiler.ir.types import DTYPES
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Relu
from bmcompiler.ops.elements.elementwise import Add, Max, Min, Mul, Sub
from bmcompiler.ops.elements.integer import AddShift, AddsShift, MacShift, MulShift, MulsShift, RoundRshift, SubShift
from bmcompiler.ops.shared import ARITHMETIC
from bmcompiler.target import rule

Span = tuple[int, int]
_EXACT = 1 << 24
_SUMS = (Add, AddShift, AddsShift, RoundRshift, Sub, SubShift, MacShift, MulsShift)
_PRODUCTS = (Mul, MulShift)
_MODULAR: dict[type[TensorOp], Callable[..., Register]] = {
    Add: integers.plus,
    Sub: integers.minus,
    Mul: integers.times,
}


class IntWordsKernel(ElementwiseKernel[TensorOp]):
    """Weighted sums and products with a rounding shift and saturation, or modulo the range of the type.

    Relu, max and min of integers of one type.
    """

    ops: tuple[type[TensorOp], ...] = (*_SUMS, *_PRODUCTS, Max, Min, Relu)

    @rule("Integers must be i8, u8, i16, u16 or i32")
    def known_types(self, op: TensorOp) -> bool:
        return all(v.dtype in ARITHMETIC for v in (*op.operands, op.result))

    @rule("Sums and products must be exact in fp32, at most 2**24 before the shift, or of i32 that may wrap")
    def exact(self, op: TensorOp) -> bool:
        if isinstance(op, Relu) or _of_words(op):
            return True
        if isinstance(op, (Max, Min)):
            return len({v.dtype for v in (*op.operands, op.result)}) == 1
        return isinstance(op, self.ops) and _largest_sum(op) - _half(op) <= _EXACT

    def evaluate(self, op: TensorOp, *arrays: Array) -> Array:
        """Exact, so what the op says."""
        return op.evaluate(*arrays)

    def recipe(self, op: TensorOp) -> tuple[Any, ...]:
        dtypes = tuple(v.dtype for v in op.operands)
        if isinstance(op, Relu):
            return _relu, dtypes[0]
        if _of_words(op):
            return (_MODULAR[type(op)],)
        if isinstance(op, (Max, Min)):
            return _extreme, isinstance(op, Max), dtypes[0]
        bounds = None if op.attributes.get("wrap") else _bounds(op)
        weights = None if isinstance(op, _PRODUCTS) else _weights(op)
        return _combine, dtypes, weights, op.attributes.get("value", 0), _shift(op), _largest_sum(op), bounds


def _of_words(op: TensorOp) -> bool:
    """Whether it is arithmetic of i32 modulo 2**32."""
    plain = bool(op.attributes.get("wrap")) and not op.attributes.get("activation")
    return plain and op.results[0].dtype == "i32" and type(op) in _MODULAR


def _weights(op: TensorOp) -> tuple[int, ...]:
    """Factors of the operands of a sum."""
    if isinstance(op, MacShift):
        return tuple(op.multipliers)
    if isinstance(op, MulsShift):
        return (op.multiplier,)
    return (1, -1 if isinstance(op, (Sub, SubShift)) else 1)[: len(op.operands)]


def _shift(op: TensorOp) -> int:
    return int(op.attributes.get("rshift", 0))


def _limits(dtype: str) -> Span:
    info = np.iinfo(DTYPES[dtype][1])
    return int(info.min), int(info.max)


def _largest_sum(op: TensorOp) -> int:
    """What no partial sum exceeds in magnitude, up to the sum with the half that rounds it."""
    spans = [_limits(v.dtype) for v in op.operands]
    if isinstance(op, _PRODUCTS):
        sizes = [max(abs(x * y) for x, y in product(*spans))]
    else:
        sizes = [abs(weight) * max(map(abs, span)) for weight, span in zip(_weights(op), spans)]
    return sum(sizes) + abs(op.attributes.get("value", 0)) + _half(op)


def _half(op: TensorOp) -> int:
    """What rounds, before the shift."""
    return (1 << _shift(op)) >> 1


def _bounds(op: TensorOp) -> Span:
    """Values before the shift that give the lowest and the highest result."""
    low, high = _limits(op.type.dtype)
    low = 0 if op.attributes.get("activation") else low
    shift = _shift(op)
    return low << shift, (high + 1 << shift) - 1


def _combine(m: Recorder, *rest: Any) -> Register:
    """The low bits of the result; `weights` None is the product."""
    *registers, dtypes, weights, value, shift, largest, bounds = rest
    values = [as_float(m, x, dtype) for x, dtype in zip(registers, dtypes)]
    total = m.mul(*values) if weights is None else _weighted(m, values, weights)
    if largest > _EXACT:
        return _halved(m, m.add(total, value) if value else total, shift, bounds)
    more = value + ((1 << shift) >> 1)
    if more:
        total = m.add(total, more)
    if bounds is not None:
        if -largest < bounds[0]:
            total = m.max(total, bounds[0])
        if bounds[1] < largest:
            total = m.min(total, bounds[1])
    whole = m.to_int(total)
    return m.shift(whole, -shift, arithmetic=True) if shift else whole


def _halved(m: Recorder, total: Register, shift: int, bounds: Span | None) -> Register:
    """((total >> shift - 1) + 1) >> 1, where adding the half first would not be exact."""
    twice = m.add(as_float(m, m.shift(m.to_int(total), 1 - shift, arithmetic=True), "i32"), 1)
    if bounds is not None:
        low, high = (bound >> shift for bound in bounds)
        twice = m.min(m.max(twice, 2 * low), 2 * high + 1)
    return m.shift(m.to_int(twice), -1, arithmetic=True)


def _extreme(m: Recorder, a: Register, b: Register, largest: bool, dtype: str) -> Register:
    """Words are chosen as they are, by the sign of their difference; what is narrower is exact in fp32."""
    if dtype != "i32":
        return m.to_int((m.max if largest else m.min)(as_float(m, a, dtype), as_float(m, b, dtype)))
    return m.choose(int_difference(m, a, b), 0.0, *((a, b) if largest else (b, a)))


def _weighted(m: Recorder, values: list[Register], weights: tuple[int, ...]) -> Register:
    first, *others = [x if weight == 1 else m.mul(x, weight) for x, weight in zip(values, weights)]
    for term in others:
        first = m.add(first, term)
    return first


def _relu(m: Recorder, x: Register, dtype: str) -> Register:
    """x without the bits of negative numbers."""
    value = as_int(m, x, dtype)
    return m.and_(value, m.xor(m.shift(value, -31, arithmetic=True), 0xFFFF_FFFF))
