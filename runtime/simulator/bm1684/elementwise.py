"""Tensor arithmetic (task 3): element by element on fp32, int8, int16 and 32-bit words (bm1684.md 6.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.chip import aligned_strides
from bmcompiler.backends.bm1684.isa import Eu, Precision, StrideCode
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric import fp32
from bmcompiler.numeric.arith import requantize
from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.simulator.bm1684.operands import (
    FP32,
    WORD,
    Operands,
    Packed,
    Reader,
    integer_dtype,
    register_strides,
)
from bmcompiler.runtime.simulator.memory import Shape
from bmcompiler.runtime.simulator.plan import Step

_Function = Callable[[Array, Array], Array]
_FLOAT: dict[int, _Function] = {
    Eu.MUL: fp32.multiply,
    Eu.ADD: fp32.add,
    Eu.SUB: fp32.subtract,
    Eu.MAX: fp32.maximum,
    Eu.MIN: fp32.minimum,
    Eu.DIVIDE: fp32.divide,
}
_BITS: dict[int, _Function] = {Eu.AND: np.bitwise_and, Eu.OR: np.bitwise_or, Eu.XOR: np.bitwise_xor}
_SUMS: dict[int, _Function] = {Eu.ADD: np.add, Eu.SUB: np.subtract}
_EXTREMES: dict[int, _Function] = {Eu.MAX: np.maximum, Eu.MIN: np.minimum}
_WORDS = (Precision.FP32, Precision.INT32)
_MAX_SHIFT = 31


def tensor_step(ops: Operands) -> Step:
    """Step of one task-3 command. Raises SimulatorError for operations and types the chip has no arithmetic for."""
    unit = ops.fields["tsk_eu_typ"]
    if unit == Eu.COPY:
        return _copy(ops)
    if unit in _BITS:
        return _bitwise(ops, _BITS[unit])
    if unit == Eu.SHIFT:
        return _shift(ops)
    if unit in (Eu.SELECT_GT, Eu.SELECT_EQ):
        return _select(ops)
    if ops.precision("res0") in _WORDS:
        return _float(ops)
    return _integer(ops)


def _result(ops: Operands, dtype: np.dtype[Any]) -> Packed:
    return ops.packed("res0", ops.size("res0"), dtype)


def _read(ops: Operands, name: str, dtype: np.dtype[Any]) -> Reader:
    """Reader of an operand as `dtype`: an immediate, a broadcast first image, or a tensor of the result's shape."""
    if ops.is_constant(name):
        value = ops.constant(name, dtype)
        return lambda: value
    shape = ops.size("res0")
    slots = 4 // dtype.itemsize
    groups = (-(-shape[0] // slots), *shape[1:])
    words = _strides(ops, name, groups)
    if slots == 1 or not ops.fields.get(f"{name}_neq1"):
        return ops.packed(name, shape, dtype, words).read
    # One image: the first part of each word serves all images of the word.
    steps = tuple(4 * stride for stride in words)
    tensor = ops.tensor(name, groups, steps, dtype)  # type: ignore[arg-type]
    return lambda: np.repeat(tensor.read(), slots, axis=0)[: shape[0]]


def _strides(ops: Operands, name: str, groups: Shape) -> Shape:
    """Strides in words; with the default layout a zero register of opd1 broadcasts the axis of words."""
    if name != "opd1" or ops.fields["short_opd1_str"] != StrideCode.ALIGNED or ops.precision(name) not in _WORDS:
        return ops.word_strides(name, groups)
    # A zero register of n, h or w: the operand has one element there, and the layout of that smaller shape.
    registers = register_strides(ops.fields, name)
    kept = [axis == 1 or register != 0 for axis, register in enumerate(registers)]
    n, c, h, w = (size if keep else 1 for size, keep in zip(groups, kept))
    words = aligned_strides((n, c, h, w), ops.lane(name))
    n, c, h, w = (word if keep else 0 for word, keep in zip(words, kept))
    return (n, c, h, w)


def _float(ops: Operands) -> Step:
    unit = ops.fields["tsk_eu_typ"]
    a, b, result = _read(ops, "opd0", FP32), _read(ops, "opd1", FP32), _result(ops, FP32)
    if unit == Eu.MAC:
        return lambda: result.write(fp32.add(fp32.multiply(a(), b()), result.read()))
    function = _FLOAT.get(unit)
    if function is None:
        raise SimulatorError(f"operation {unit} does not exist for fp32 tensors")
    return lambda: result.write(_full(function(a(), b()), result.shape))


def _full(values: Array, shape: Shape) -> Array:
    """Both operands may be immediates."""
    return values if values.shape == shape else np.broadcast_to(values, shape)


def _integer(ops: Operands) -> Step:
    """int8 and int16, in any mix for sums; the result has its own precision and saturates."""
    f = ops.fields
    unit = f["tsk_eu_typ"]
    types = [ops.dtype("opd0"), ops.dtype("opd1")]
    if any(kind.itemsize > 2 for kind in types):
        raise SimulatorError("an int8 or int16 result needs int8 or int16 operands")
    a, b = _read(ops, "opd0", types[0]), _read(ops, "opd1", types[1])
    signed = int(types[0].kind == "i" or types[1].kind == "i")
    if unit == Eu.MAC:
        return _multiply_add(ops, a, b, signed)
    if unit == Eu.SUB:
        signed = 1
    target = integer_dtype(ops.precision("res0"), signed)
    result, bits = _result(ops, target), f["opt_right_shift"]
    kind = f"{target.kind}{8 * target.itemsize}"
    function = _SUMS.get(unit)
    if unit in _EXTREMES:
        if types[0] != types[1]:
            raise SimulatorError("maximum and minimum need operands of one precision and sign")
        function, bits = _EXTREMES[unit], 0
    if unit == Eu.MUL:
        _bytes_only(types)
        function = np.multiply
    if function is None:
        raise SimulatorError(f"operation {unit} does not exist for integer tensors")
    compute = function

    def run() -> None:
        values = compute(a().astype(np.int32), b().astype(np.int32))
        result.write(_full(requantize(values, bits, kind), result.shape))

    return run


def _bytes_only(types: list[np.dtype[Any]]) -> None:
    if any(kind.itemsize != 1 for kind in types):
        raise SimulatorError("products need 8-bit operands")


def _multiply_add(ops: Operands, a: Reader, b: Reader, signed: int) -> Step:
    """a * b + (old << left shift) in 32 bits; the old value is signed when a or b is."""
    f = ops.fields
    _bytes_only([ops.dtype("opd0"), ops.dtype("opd1")])
    if ops.precision("res0") != Precision.INT16:
        raise SimulatorError("integer multiply-add accumulates in int16")
    target = integer_dtype(Precision.INT16, signed)
    result = _result(ops, target)
    left, right, kind = f["opt_left_shift"], f["opt_right_shift"], f"{target.kind}16"

    def run() -> None:
        sums = a().astype(np.int64) * b() + (result.read().astype(np.int64) << left)
        result.write(requantize(sums.astype(np.int32), right, kind))

    return run


def _one_width(ops: Operands, *names: str) -> np.dtype[Any]:
    kinds = {(WORD if ops.precision(name) in _WORDS else integer_dtype(ops.precision(name), 1)) for name in names}
    if len(kinds) != 1:
        raise SimulatorError("operations on bits need operands of one width")
    return kinds.pop()


def _copy(ops: Operands) -> Step:
    kind = _one_width(ops, "res0", "opd0")
    source, result = _read(ops, "opd0", kind), _result(ops, kind)
    return lambda: result.write(_full(source().copy(), result.shape))


def _bitwise(ops: Operands, function: _Function) -> Step:
    kind = _one_width(ops, "res0", "opd0", "opd1")
    a, b, result = _read(ops, "opd0", kind), _read(ops, "opd1", kind), _result(ops, kind)
    return lambda: result.write(_full(function(a(), b()), result.shape))


def _shift(ops: Operands) -> Step:
    """Negative amounts shift right, positive ones left and wrap (bm1684.md 6.4).

    Amounts for words have 6 signed bits, of which -32 shifts nothing; those for halfwords have 8.
    """
    kind = _one_width(ops, "res0", "opd0", "opd1")
    if kind.itemsize == 1:
        raise SimulatorError("8-bit shifts mix neighbouring bytes: shift 32-bit words and mask instead")
    a, b, result = _read(ops, "opd0", kind), _read(ops, "opd1", kind), _result(ops, kind)
    arithmetic = ops.fields["opt_shift_typ"]
    unsigned = np.dtype(f"u{kind.itemsize}")
    sign = 32 if kind == WORD else 128  # weight of the top bit of an amount

    def run() -> None:
        amount = np.asarray(b()).astype(np.int32)
        amount = ((amount & (2 * sign - 1)) ^ sign) - sign
        count = np.abs(amount) & _MAX_SHIFT if kind == WORD else np.minimum(np.abs(amount), _MAX_SHIFT)
        value = a()
        right = value.astype(np.int32) >> count if arithmetic else value.view(unsigned).astype(np.uint32) >> count
        left = value.astype(np.int32) << count
        result.write(_full(np.where(amount < 0, right, left), result.shape))

    return run


def _select(ops: Operands) -> Step:
    """a > b, or equal bits, gives the immediate of opd2, else 0."""
    if ops.precision("res0") not in _WORDS or ops.precision("opd0") not in _WORDS:
        raise SimulatorError("selection works on 32-bit data only")
    equal = ops.fields["tsk_eu_typ"] == Eu.SELECT_EQ
    kind = WORD if equal else FP32
    a, b, result = _read(ops, "opd0", kind), _read(ops, "opd1", kind), _result(ops, WORD)
    chosen, other = ops.constant("opd2", WORD), np.int32(0)
    if equal:
        return lambda: result.write(_full(np.where(a() == b(), chosen, other), result.shape))
    return lambda: result.write(_full(np.where(fp32.flush(a()) > fp32.flush(b()), chosen, other), result.shape))
