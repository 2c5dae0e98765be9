"""The conversions of the scheme "shift" of ops on bytes that mean themselves, and on floats where the others are such.

Comparisons, choices, logic and casts. A bool is a byte of 0 or 1; a function of one byte is a table, whatever both are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bmcompiler.ir import Block, Operation, TensorType, Value
from bmcompiler.ir.types import numpy_dtype
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops import find_op
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.integer import BitAnd, BitOr, Bitwise, BitXor, Cast
from bmcompiler.ops.elements.linear_quant import DequantizeLinear, LinearQuant, QuantizeLinear
from bmcompiler.ops.elements.logic import BitNot, Compare, Where
from bmcompiler.ops.places.shape import Concat, Moving, Pad
from bmcompiler.passes.quantization.base import Conversions, NoInt8Form, Scaling, is_constant
from bmcompiler.passes.quantization.conversions.shape import concat, pad, same_op
from bmcompiler.passes.quantization.formulas import I8, rescaling
from bmcompiler.passes.quantization.shift.formats import OF_BYTES, threshold_of
from bmcompiler.passes.quantization.shift.lowering import ShiftLowering
from bmcompiler.passes.rewriting import declared

BYTES = ("i8", "u8", "bool")
_KNOWN = ("f32", *BYTES)
_MOVED = ("f32", "i8", "bool")
"""Types whose moves are integer forms; those of u8, pictures, are left as they are (`Shifts.note_float`)."""
_FAR = 4.0
"""Ranges of a tensor that a constant beside it may be away from 0: two of seven bits are lost then."""
_CODES = np.arange(256).astype(np.uint8)
PLAIN = Conversions()
"""Those of this module."""


@PLAIN.converts(Cast, scaling=Scaling.FREE, elements=_KNOWN)
def cast(op: Cast, low: ShiftLowering) -> Value:
    """A table; bytes without a sign, each a number of its own, are scaled: products of the two have a sign."""
    if (op.x.dtype, op.dtype) != ("u8", "f32"):
        return by_bytes(op, low)
    wanted = low.wanted(op.result)
    multiplier, shift = rescaling(OF_BYTES / wanted, I8)
    return low.emit("muls_shift", [low.real(op.x)], {"multiplier": multiplier, "rshift": shift}, wanted)


@PLAIN.converts(QuantizeLinear, DequantizeLinear, scaling=Scaling.FREE, elements=("f32", "i8", "u8"))
def stepped(op: LinearQuant, low: ShiftLowering) -> Value:
    """With one scale a table."""
    if op.scale.type.size > 1:
        raise NoInt8Form("it has more than one scale")
    return by_bytes(op, low)


@PLAIN.converts(BitNot, scaling=Scaling.FREE, elements=BYTES)
def inverted(op: BitNot, low: ShiftLowering) -> Value:
    """A table."""
    return by_bytes(op, low)


@PLAIN.converts(BitAnd, BitOr, BitXor, scaling=Scaling.FREE, elements=BYTES)
def bits(op: Bitwise, low: ShiftLowering) -> Value:
    """The same op, on operands of one shape."""
    return low.emit(op.opname, [_whole(low, low.real(value), op.type.shape) for value in op.operands])


@PLAIN.converts(Compare, scaling=Scaling.FREE, elements=_KNOWN)
def compared(op: Compare, low: ShiftLowering) -> Value:
    """With a number a table; of two tensors a table of their difference, which saturates, or of different bits.

    Two tensors of floats may differ in bits that bytes do not have; a number is a bound, of which few are that close.
    """
    numbers = [value for value in op.operands if low.constant(value) is not None and value.type.size == 1]
    if op.operands[0].type.is_float and (op.method == "equal" or not numbers):
        raise NoInt8Form("eight bits do not tell values apart that are nearly alike")
    if numbers:
        other = next((i for i, value in enumerate(op.operands) if value not in numbers), 0)
        return _whole(low, by_bytes(op, low, other), op.type.shape)
    a, b = (_whole(low, low.real(value), op.type.shape) for value in op.operands)
    signs = np.sign(_CODES.view(np.int8).astype(np.int16))
    if op.method == "equal":
        difference = low.emit("bit_xor", [a, b])
    else:
        a, b = (_signed(low, value) for value in (a, b))
        difference = low.emit("mac_shift", [a, b], {"multipliers": (1, -1), "rshift": 0})
    truth = find_op(op.opname)([_loose((256,), "i16")] * 2, op.attributes).evaluate(signs, np.zeros_like(signs))
    return low.emit("lut", [difference, low.weight(truth, None)])


def _choice_scaling(op: Operation) -> Scaling:
    return Scaling.FREE if any(map(is_constant, op.operands)) else Scaling.JOINS


@PLAIN.converts(Where, scaling=_choice_scaling, elements=_KNOWN)
def chosen(op: Where, low: ShiftLowering) -> Value:
    """Of two numbers a table; of two tensors b, with the bits changed in which a differs, where the condition holds."""
    numbers = [low.constant(value) for value in (op.a, op.b)]
    wanted = low.wanted(op.result) if op.type.is_float else None
    kept = op.condition.shape == op.type.shape and low.constant(op.condition) is None
    if kept and all(number is not None and number.size == 1 for number in numbers):
        yes, no = (_integers(low, number, wanted).reshape(()) for number in numbers if number is not None)
        table = _table(low, np.where(_CODES != 0, yes, no), wanted)
        return low.emit("lut", [low.real(op.condition), table], {}, wanted)
    _refuse_far(op, low)
    a, b = (_chosen_from(op, low, value, wanted) for value in (op.a, op.b))
    if all(number is not None for number in numbers):
        different = low.weight(_array(low, a) ^ _array(low, b), None)
    else:
        different = low.emit("bit_xor", [a, b])
    changed = low.emit("bit_and", [different, _mask(op, low, a.dtype)])
    return low.emit("bit_xor", [changed, b], {}, wanted)


def _refuse_far(op: Where, low: ShiftLowering) -> None:
    """A mask of -10000 beside logits of 10 leaves them no step."""
    for value, other in ((op.a, op.b), (op.b, op.a)):
        array = low.constant(value)
        if not op.type.is_float or array is None or not array.size or low.constant(other) is not None:
            continue
        if not np.abs(array).max() <= _FAR * threshold_of(low.request(other)):
            raise NoInt8Form("a constant of it is so large that eight bits leave nothing of the other values")


def _chosen_from(op: Where, low: ShiftLowering, value: Value, wanted: float | None) -> Value:
    """An operand in the shape and format of the result, in bytes that are no more than bits."""
    array = low.constant(value)
    if array is not None:
        return low.weight(np.broadcast_to(_integers(low, array, wanted), op.type.shape), value)
    x = low.real(value) if wanted is None else low.request(value, wanted)
    return _whole(low, x, op.type.shape)


def _mask(op: Where, low: ShiftLowering, dtype: str) -> Value:
    """All bits where the condition holds."""
    kind = numpy_dtype(dtype)
    every = np.asarray(True) if dtype == "bool" else np.asarray(255, np.uint8).astype(kind)
    array = low.constant(op.condition)
    if array is not None:
        return low.weight(np.where(np.broadcast_to(array, op.type.shape), every, kind.type(0)), op.condition)
    table = low.weight(np.where(_CODES != 0, every, kind.type(0)), None)
    return _whole(low, low.emit("lut", [low.real(op.condition), table]), op.type.shape)


def _integers(low: ShiftLowering, array: Array, wanted: float | None) -> Array:
    if wanted is None:
        return array
    if np.isnan(array).any():
        raise NoInt8Form("it reads a constant with NaN")
    return low.integers(array, wanted)


def _array(low: ShiftLowering, value: Value) -> Array:
    """The integers of a new constant."""
    return low.module.weights[value.op.attributes["key"]] if value.op is not None else np.zeros(0)


def moved(op: TensorOp, low: ShiftLowering) -> Sequence[Value]:
    """Moves of bytes are the same op on them."""
    if op.results[0].dtype == "f32":
        return same_op(op, low)
    return low.emit_all(op.opname, [low.real(op.operands[0])], declared(op))


@PLAIN.converts(Concat, scaling=Scaling.JOINS, elements=_MOVED)
def joined(op: Concat, low: ShiftLowering) -> Value:
    """The same op."""
    if op.type.is_float:
        return concat(op, low)
    return low.emit("concat", [low.real(value) for value in op.operands], declared(op))


@PLAIN.converts(Pad, scaling=Scaling.KEEPS, elements=_MOVED)
def padded(op: Pad, low: ShiftLowering) -> Value:
    """The same op."""
    return pad(op, low) if op.type.is_float else low.emit("pad", [low.real(op.x)], declared(op))


PLAIN.converts(Moving, scaling=Scaling.KEEPS, elements=_MOVED)(moved)


def by_bytes(op: TensorOp, low: ShiftLowering, data: int = 0) -> Value:
    """The op itself, evaluated on all 256 bytes that operand `data` can be; other operands are scalars."""
    value = op.operands[data]
    x = low.given(value)
    meant = low.meanings(threshold_of(x)) if value.type.is_float else _meant(value.dtype)
    arguments = [
        meant.reshape(1, 1, 1, 256) if i == data else low.need_constant(v, "second operand")
        for i, v in enumerate(op.operands)
    ]
    probe = find_op(op.opname)([_loose(a.shape, v.dtype) for a, v in zip(arguments, op.operands)], op.attributes)
    with np.errstate(all="ignore"):
        results = np.asarray(probe.evaluate(*arguments)).reshape(256)
    wanted = low.wanted(op.result) if op.type.is_float else None
    if wanted is not None:
        results = low.integers(np.nan_to_num(results, nan=0.0), wanted)
    return low.emit("lut", [x, _table(low, results, wanted)], {}, wanted)


def _table(low: ShiftLowering, entries: Array, wanted: float | None) -> Value:
    return low.weight(entries, None) if wanted is None else low.constant_in(entries, None, wanted)


def _meant(dtype: str) -> Array:
    """What the 256 bytes are in a type of bytes."""
    return _CODES != 0 if dtype == "bool" else _CODES.view(numpy_dtype(dtype))


def _signed(low: ShiftLowering, x: Value) -> Value:
    """Bytes in the same order as numbers with a sign."""
    if x.dtype == "i8":
        return x
    table = (_CODES ^ 0x80 if x.dtype == "u8" else _CODES & 1).view(np.int8)
    if is_constant(x):
        return low.weight(table[_array(low, x).astype(np.uint8)], x)
    return low.emit("lut", [x, low.weight(table, None)])


def _whole(low: ShiftLowering, x: Value, shape: tuple[int, ...]) -> Value:
    """A value repeated to a shape that it broadcasts to; a constant is spread at compile time."""
    if x.shape == shape:
        return x
    if is_constant(x):
        spread = low.weight(np.broadcast_to(_array(low, x), shape), x)
        spread.type = x.type if x.shape == shape else TensorType(shape, x.dtype, x.type.quant)
        return spread
    aligned = (1,) * (len(shape) - len(x.shape)) + x.shape
    if aligned != x.shape:
        x = low.emit("reshape", [x], {"shape": aligned})
    if aligned == shape:
        return x
    return low.emit("tile", [x], {"reps": tuple(whole // part for whole, part in zip(shape, aligned))})


def _loose(shape: Sequence[int], dtype: str) -> Value:
    """A value outside any function, to evaluate an op on."""
    return Value(TensorType(tuple(shape), dtype), Block(), 0)
