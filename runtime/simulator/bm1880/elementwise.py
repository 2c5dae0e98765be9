"""Tensor arithmetic (TIU task 3): element-wise operations, table lookup and per-channel sums (bm1880.md 8.2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.isa import StrideCode, TensorOp
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arith import saturate
from bmcompiler.numeric.arrays import IntArray
from bmcompiler.runtime.simulator.bm1880.memory import UNSIGNED
from bmcompiler.runtime.simulator.bm1880.operands import Operands, aligned_strides
from bmcompiler.runtime.simulator.plan import Step

_LUT_ENTRIES = 256
_SHIFT_LIMIT = 16


def tensor_step(ops: Operands) -> Step:
    """Step of one task-3 command. Raises SimulatorError for unknown operations and operands of unequal shapes."""
    if ops.fields["tens_lookup"]:
        return _lookup(ops)
    if ops.fields["tens_mdsum"]:
        return _channel_sums(ops)
    maker = _MAKERS.get(ops.fields["tsk_eu_typ"])
    if maker is None:
        raise SimulatorError(f"tensor operation {ops.fields['tsk_eu_typ']} does not exist")
    if ops.shape("opd0") != ops.shape("res0") and not ops.fields["opt_opd0_const"]:
        raise SimulatorError(f"operand shape {ops.shape('opd0')} differs from result shape {ops.shape('res0')}")
    binary = ops.fields["tsk_eu_typ"] != TensorOp.COPY and not ops.fields["opt_opd1_const"]
    if binary and ops.shape("opd1") != ops.shape("res0"):
        raise SimulatorError(f"second operand shape {ops.shape('opd1')} differs from result shape {ops.shape('res0')}")
    return maker(ops)


def _multiply(ops: Operands) -> Step:
    a, b, write, requantize = ops.reader("opd0"), ops.reader("opd1"), ops.result().write, ops.requantizer()
    dtype = _product_dtype(ops)
    return lambda: write(requantize(np.multiply(a(), b(), dtype=dtype, casting="unsafe")))


def _product_dtype(ops: Operands) -> type[np.int16 | np.int32 | np.int64]:
    """Narrowest type that holds every product: 8 x 8 bits fit 16 bits unless both are unsigned."""
    if ops.is_wide("opd0") or ops.is_wide("opd1"):
        return np.int64
    both_unsigned = not (ops.fields["opt_opd0_sign"] or ops.fields["opt_opd1_sign"])
    return np.int32 if both_unsigned else np.int16


def _multiply_add(ops: Operands) -> Step:
    a, b, write, requantize = ops.reader("opd0"), ops.reader("opd1"), ops.result().write, ops.requantizer()
    old = ops.old()
    bits = ops.fields["opt_left_shift"]
    if bits < 15 and not (ops.is_wide("opd0") or ops.is_wide("opd1")):  # the sum fits 32 bits: no wrap to model

        def run() -> None:
            sums = old.read()
            sums <<= bits
            sums += np.multiply(a(), b(), dtype=np.int32, casting="unsafe")
            write(requantize(sums))

        return run
    add_old = ops.add_old(old)
    return lambda: write(requantize(add_old(np.multiply(a(), b(), dtype=np.int64, casting="unsafe"))))


def _sum_maker(function: Callable[..., IntArray]) -> Callable[[Operands], Step]:
    def make(ops: Operands) -> Step:
        a, b, write, requantize = ops.reader("opd0"), ops.reader("opd1"), ops.result().write, ops.requantizer()
        return lambda: write(requantize(function(a(), b(), dtype=np.int32, casting="unsafe")))

    return make


def _extreme_maker(function: Callable[..., IntArray]) -> Callable[[Operands], Step]:
    def make(ops: Operands) -> Step:
        a, b, result = ops.reader("opd0"), ops.reader("opd1"), ops.result()
        narrow = not (ops.is_wide("opd0") or ops.is_wide("opd1") or ops.is_wide("res0"))
        one_sign = ops.dtype("opd0") == ops.dtype("opd1") == ops.dtype("res0")
        value = ops.constant("opd1")
        if narrow and one_sign and not ops.fields["opt_right_shift"] and not ops.fields["opt_relu"]:
            dtype = ops.dtype("res0")
            if value is not None:
                immediate = np.array(value, dtype)
                return lambda: result.write(function(a(), immediate))
            return lambda: result.write(function(a(), b()))
        requantize = ops.requantizer()
        return lambda: result.write(requantize(function(a(), b(), dtype=np.int32, casting="unsafe")))

    return make


def _logic_maker(function: Callable[..., IntArray]) -> Callable[[Operands], Step]:
    def make(ops: Operands) -> Step:
        a, b, write = ops.reader("opd0"), ops.reader("opd1"), ops.result().write
        return lambda: write(function(a(), b()))

    return make


def _shift(ops: Operands) -> Step:
    """Positive amounts shift left and wrap to 16 bits, negative ones shift right with floor (bm1880.md 8.2)."""
    a, b, write = ops.reader("opd0"), ops.reader("opd1"), ops.result().write

    def run() -> None:
        bits = b().astype(np.int32)
        if bits.size and (int(bits.min()) < -_SHIFT_LIMIT or int(bits.max()) > _SHIFT_LIMIT):
            raise SimulatorError(f"shift amounts must be -16..16, found {int(bits.min())}..{int(bits.max())}")
        write((a().astype(np.int32) << np.maximum(bits, 0)) >> np.maximum(-bits, 0))

    return run


def _copy(ops: Operands) -> Step:
    source, target = ops.tensor("opd0", dtype=UNSIGNED), ops.tensor("res0", dtype=UNSIGNED)
    if source.view is not None and target.view is not None:
        return lambda: target.write(source.read())
    return lambda: target.write(source.read().copy())  # piece by piece, and the pieces may overlap the source


def _channel_sums(ops: Operands) -> Step:
    """mdsum: one saturated 8-bit sum per channel; the 16-bit form writes only the low plane, sum mod 256."""
    source = ops.tensor("opd0")
    shape = (1, source.shape[1], 1, 1)
    compact = ops.fields["short_res0_str"] == StrideCode.SPECIAL
    strides = (-(-shape[1] // CHIP.lanes), 1, 1, 1) if compact else None
    target = ops.tensor("res0", shape, strides)
    wide, dtype = ops.is_wide("res0"), ops.result_dtype()

    def run() -> None:
        sums = source.read().sum(axis=(0, 2, 3), dtype=np.int64).reshape(shape)
        target.write((sums & 255).astype(np.uint8) if wide else saturate(sums, dtype))

    return run


def _lookup(ops: Operands) -> Step:
    """lut: every element looks up in the copy of the table that lies in its lane."""
    source, target = ops.tensor("opd0", dtype=UNSIGNED), ops.tensor("res0", dtype=UNSIGNED)
    if source.shape != target.shape:
        raise SimulatorError(f"operand shape {source.shape} differs from result shape {target.shape}")
    shape = (1, CHIP.lanes, 1, _LUT_ENTRIES)
    table = ops.tensor("opd1", shape, aligned_strides(shape), UNSIGNED)
    copies = (ops.place("opd0")[0] - ops.lane + np.arange(source.shape[1])) % CHIP.lanes
    base = (copies * _LUT_ENTRIES).astype(np.intp).reshape(1, -1, 1, 1)

    def run() -> None:
        target.write(table.read().reshape(-1).take(source.read() + base))

    return run


_MAKERS: dict[int, Callable[[Operands], Step]] = {
    TensorOp.MUL: _multiply,
    TensorOp.MAC: _multiply_add,
    TensorOp.ADD: _sum_maker(np.add),
    TensorOp.SUB: _sum_maker(np.subtract),
    TensorOp.MAX: _extreme_maker(np.maximum),
    TensorOp.MIN: _extreme_maker(np.minimum),
    TensorOp.SHIFT: _shift,
    TensorOp.AND: _logic_maker(np.bitwise_and),
    TensorOp.OR: _logic_maker(np.bitwise_or),
    TensorOp.XOR: _logic_maker(np.bitwise_xor),
    TensorOp.COPY: _copy,
}
