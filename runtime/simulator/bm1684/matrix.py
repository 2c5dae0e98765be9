"""Matrix product (task 2) and outer operations of two vectors (task 14) (bm1684.md 4.5, 6.3, 6.10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.chip import aligned_strides
from bmcompiler.backends.bm1684.isa import Eu, Precision
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric import fp32
from bmcompiler.numeric.arith import matmul
from bmcompiler.numeric.arrays import Array, IntArray
from bmcompiler.numeric.ordered import ordered_product
from bmcompiler.runtime.simulator.bm1684.operands import FP32, Operands, Reader, integer_dtype
from bmcompiler.runtime.simulator.memory import Tensor
from bmcompiler.runtime.simulator.plan import Step

_Outer = Callable[[Array, Array], Array]
_OUTER: dict[int, _Outer] = {
    Eu.MUL: fp32.multiply,
    Eu.ADD: fp32.add,
    Eu.SUB: fp32.subtract,
    Eu.MAX: fp32.maximum,
    Eu.MIN: fp32.minimum,
    Eu.DIVIDE: fp32.divide,
}


class _Matrix:
    """`rows` x `columns` elements in sections of `width` columns, section s in lane s (bm1684.md 4.5)."""

    def __init__(self, ops: Operands, name: str, rows: int, sections: int, width: int, dtype: np.dtype[Any]) -> None:
        shape = (rows, sections, 1, width)
        steps = tuple(dtype.itemsize * step for step in aligned_strides(shape, ops.lane(name), dtype.itemsize))
        self.tensor: Tensor = ops.tensor(name, shape, steps, dtype)  # type: ignore[arg-type]
        self.rows, self.columns = rows, sections * width

    def read(self) -> Array:
        return self.tensor.read().reshape(self.rows, self.columns)

    def write(self, values: Array) -> None:
        self.tensor.write(values.reshape(self.tensor.shape))


def _left(ops: Operands, dtype: np.dtype[Any]) -> tuple[Reader, int, int]:
    """Reader of the left matrix as (M, K), and these sizes."""
    f = ops.fields
    columns = (f["opd0_c"] - 1) * f["opd0_w"] + f["opd1_w"]
    rows, transposed = f["opd0_n"], f["opt_left_tran"]
    if ops.is_constant("opd0"):
        filled = np.broadcast_to(ops.constant("opd0", dtype), (rows, columns))
        return (lambda: filled.T if transposed else filled), *((columns, rows) if transposed else (rows, columns))
    stored = _Matrix(ops, "opd0", rows, f["opd0_c"], f["opd0_w"], dtype)
    if transposed:
        return (lambda: stored.read()[:, :columns].T), columns, rows
    return (lambda: stored.read()[:, :columns]), rows, columns


def matrix_step(ops: Operands) -> Step:
    """Step of a matrix product. Raises SimulatorError for types it has no arithmetic for."""
    if ops.fields["tsk_eu_typ"] != Eu.MUL:
        raise SimulatorError(f"operation {ops.fields['tsk_eu_typ']} does not exist for matrices")
    if ops.is_float("res0") and ops.is_float("opd0"):
        return _float_product(ops)
    if ops.precision("res0") not in (Precision.INT8, Precision.INT16):
        raise SimulatorError("an int8 matrix product gives int8 or int16")
    return _integer_product(ops)


def _result(ops: Operands, name: str, rows: int, dtype: np.dtype[Any]) -> _Matrix:
    """A matrix with the columns of the result: the result, the right matrix, the bias."""
    return _Matrix(ops, name, rows, ops.fields["res0_c"], ops.fields["res0_w"], dtype)


def _float_product(ops: Operands) -> Step:
    left, rows, depth = _left(ops, FP32)
    right, result = _result(ops, "opd1", depth, FP32), _result(ops, "res0", rows, FP32)
    bias = _result(ops, "opd2", 1, FP32) if ops.fields["tsk_opd_num"] == 3 else None
    accumulate, fast = ops.fields["opt_res_add"], ops.fast

    def run() -> None:
        a, b = left(), right.read()
        sums = a @ b if fast else ordered_product(np.ascontiguousarray(a.T), b, 2)
        if bias:
            sums = fp32.add(sums, bias.read())
        result.write(fp32.add(sums, result.read()) if accumulate else sums)

    return run


def _integer_product(ops: Operands) -> Step:
    f = ops.fields
    types = [integer_dtype(Precision.INT8, f[f"opt_{name}_sign"]) for name in ("opd0", "opd1")]
    left, rows, depth = _left(ops, types[0])
    right = _result(ops, "opd1", depth, types[1])
    result = _result(ops, "res0", rows, integer_dtype(ops.precision("res0"), 1))
    has_bias = f["tsk_opd_num"] == 3
    bias = _result(ops, "opd2", 1, integer_dtype(Precision.INT16, f["opt_opd2_sign"])) if has_bias else None
    old = None
    if f["opt_res_add"]:
        old = _result(ops, "res0", rows, integer_dtype(Precision.INT16, f["res_add_sign"]))
    requantize = ops.requantizer(ops.unsigned_result("opd0", "opd1", *(["opd2"] if bias else [])))

    def run() -> None:
        sums: IntArray = matmul(np.ascontiguousarray(left()), right.read()).astype(np.int64)
        if bias:
            sums = sums + bias.read()
        if old:
            sums = sums + (old.read().astype(np.int64) << f["opt_left_shift"])
        result.write(requantize(sums))

    return run


def vector_step(ops: Operands) -> Step:
    """Step of Y[i][j] = L[i] op R[j]. Raises SimulatorError for unknown operations."""
    f = ops.fields
    unit = f["tsk_eu_typ"]
    function = _OUTER.get(unit)
    if function is None:
        raise SimulatorError(f"operation {unit} does not exist for vectors")
    left, _, length = _left(ops, FP32)
    right, result = _result(ops, "opd1", 1, FP32), _result(ops, "res0", length, FP32)
    return lambda: result.write(function(left()[:1].T, right.read()))
