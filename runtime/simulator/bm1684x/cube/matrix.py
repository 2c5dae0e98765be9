"""Matrix products (task 2; bm1684x-cube.md 7, 8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Layout, Matrix, Precision, Rounding
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arith import matmul
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.ordered import two_sums
from bmcompiler.runtime.simulator.bm1684x.cube.conv import HALF_TYPES, fast_product, group_sizes, half_sums
from bmcompiler.runtime.simulator.bm1684x.cube.integers import requantized, result_type, signed_by, wrapped
from bmcompiler.runtime.simulator.bm1684x.operands import (
    FP32,
    Operands,
    Reader,
    Result,
    check_work,
    dtype_of,
    products_of,
)
from bmcompiler.runtime.simulator.bm1684x.vector.integers import rounding_of, shifted
from bmcompiler.runtime.simulator.plan import Step

_SHIFT_AT, _SHIFT_MASK = 8, 31


def matrix_step(ops: Operands) -> Step:
    """Step of a matrix product. Raises SimulatorError for types it has no arithmetic for."""
    unit, precision = ops.fields["tsk_eu_typ"], ops.precision("opd0")
    maker = _MAKERS.get((unit in _REQUANTIZING, unit >= Matrix.NN, precision))
    if unit not in list(Matrix) or maker is None:
        raise SimulatorError(f"a matrix product of {precision.name.lower()} with operation {unit} has no known result")
    return maker(ops)


_REQUANTIZING = (Matrix.REQUANT, Matrix.REQUANT_RELU)


# -- matrices in sections of columns (section 7) -----------------------------------------------------------------------
class _Left:
    """The left matrix as (M, K)."""

    def __init__(self, ops: Operands, dtype: np.dtype[Any]) -> None:
        f = ops.fields
        columns = (f["opd0_c"] - 1) * f["opd0_w"] + f["opd1_w"]
        if not f["opd0_c"] or not 0 < f["opd1_w"] <= f["opd0_w"]:
            sections = f"{f['opd0_c']} sections of {f['opd0_w']} columns, the last one of {f['opd1_w']}"
            raise SimulatorError(f"the left matrix cannot have {sections}")
        self._transposed, self._columns = bool(f["left_tran"]), columns
        self.rows, self.depth = (columns, f["opd0_n"]) if self._transposed else (f["opd0_n"], columns)
        shape = (f["opd0_n"], f["opd0_c"], 1, f["opd0_w"])
        check_work(products_of(ops.precision("opd0")), self.rows, self.depth, f["res0_c"], f["res0_w"])
        self._read = ops.reader("opd0", shape, dtype)

    def read(self) -> Array:
        stored = self._read()
        flat = stored.reshape(len(stored), -1)[:, : self._columns]
        return flat.T if self._transposed else flat


def _sections(ops: Operands, name: str, rows: int, dtype: np.dtype[Any]) -> Reader:
    """Reader of a matrix with the columns of the result, as (rows, columns)."""
    shape = (rows, ops.fields["res0_c"], 1, ops.fields["res0_w"])
    read = ops.reader(name, shape, dtype)
    return lambda: read().reshape(rows, -1)


def _result(ops: Operands, rows: int, dtype: np.dtype[Any]) -> Result:
    return ops.result("res0", (rows, ops.fields["res0_c"], 1, ops.fields["res0_w"]), dtype)


def _store(result: Result, matrix: Array) -> None:
    result.write(matrix.reshape(result.shape))


def _single(ops: Operands) -> Step:
    result_type(ops, True, Precision.FP32)
    left = _Left(ops, FP32)
    right, result = _sections(ops, "opd1", left.depth, FP32), _result(ops, left.rows, FP32)
    bias, accumulates = _sections(ops, "opd2", 1, FP32), ops.fields["res_add"]
    product = fast_product if ops.fast else two_sums

    def run() -> None:
        old = result.read().reshape(left.rows, -1) if accumulates else None
        _store(result, product(left.read().T, right(), bias(), old))

    return run


def _operands(ops: Operands, precision: Precision) -> tuple[_Left, Reader]:
    types = [dtype_of(precision, ops.signed(name)) for name in ("opd0", "opd1")]
    left = _Left(ops, types[0])
    return left, _sections(ops, "opd1", left.depth, types[1])


def _wrapping(ops: Operands) -> Step:
    """int8 and int16: sums that wrap, as int32."""
    if ops.fields["res_add"]:
        raise SimulatorError("an integer matrix product that adds to its result has no known result")
    dtype = result_type(ops, True, Precision.INT32)
    left, right = _operands(ops, ops.precision("opd0"))
    result = _result(ops, left.rows, dtype)
    return lambda: _store(result, wrapped(matmul(left.read(), right()), True))


def _long(ops: Operands) -> Step:
    """int32: 64-bit sums, shifted by an amount per column and saturated."""
    signed = signed_by(ops, "opd0", "opd1")
    if ops.fields["res_add"]:
        raise SimulatorError("an integer matrix product that adds to its result has no known result")
    dtype = result_type(ops, signed, Precision.INT32)
    left, right = _operands(ops, Precision.INT32)
    amounts = _sections(ops, "opd2", 1, dtype_of(Precision.INT8, ops.signed("opd2")))
    result, mode = _result(ops, left.rows, dtype), rounding_of(ops.fields["opd2_n_str"])

    def run() -> None:
        sums = matmul(left.read(), right())
        _store(result, shifted(sums, amounts(), mode, dtype, saturating=True))

    return run


def _requantizing(ops: Operands) -> Step:
    """int8: bias and old int16 results added, shifted, saturated to 16 bits at most."""
    f, relu = ops.fields, ops.fields["tsk_eu_typ"] == Matrix.REQUANT_RELU
    signed, shift = signed_by(ops, "opd0", "opd1", "opd2"), f["opd3_addr"] >> _SHIFT_AT & _SHIFT_MASK
    earlier = f["opd3_addr"] & _SHIFT_MASK  # places that what was there is shifted by to the left
    left, right = _operands(ops, Precision.INT8)
    bias = _sections(ops, "opd2", 1, dtype_of(Precision.INT16, ops.signed("opd2")))
    old = _sections(ops, "res0", left.rows, dtype_of(Precision.INT16, signed)) if f["res_add"] else None
    result = _result(ops, left.rows, result_type(ops, signed and not relu))
    narrow = dtype_of(min(ops.precision("res0"), Precision.INT16), signed and not relu)

    def run() -> None:
        sums = matmul(left.read(), right()).astype(np.int64) + bias()
        if old:
            sums = sums + (old().astype(np.int64) << earlier)
        _store(result, requantized(sums, shift, Rounding.HALF_UP, narrow, relu))

    return run


# -- matrices with a row per lane (section 8) --------------------------------------------------------------------------
class _Rows:
    """The product L R of a command: both operands by rows, transposed as the operation wants them."""

    def __init__(self, ops: Operands, types: tuple[np.dtype[Any], np.dtype[Any]]) -> None:
        f, self._unit = ops.fields, ops.fields["tsk_eu_typ"]
        self.rows, self.columns, second = f["res0_c"], f["res0_w"], (f["opd1_c"], f["opd1_w"])
        self.depth = second[0] if self._unit == Matrix.NN else second[1]
        check_work(products_of(ops.precision("opd0")), self.rows, self.columns, self.depth)
        first = (self.depth, self.columns) if self._unit == Matrix.TT else (self.rows, self.depth)
        shapes: dict[int, tuple[int, int]] = {
            Matrix.NN: (self.depth, self.columns),
            Matrix.NT: (self.columns, self.depth),
            Matrix.TT: (self.rows, self.depth),
        }
        wanted = shapes[self._unit]
        if second != wanted:
            raise SimulatorError(f"operand 1 of this matrix product must have {wanted} rows and columns, not {second}")
        self._read = [
            ops.reader(name, (1, size[0], 1, size[1]), dtype)
            for name, size, dtype in zip(("opd0", "opd1"), (first, second), types)
        ]

    def read(self) -> tuple[Array, Array]:
        """(rows, K) and (K, columns); the second of the stored operands is the first factor of TT."""
        one, other = (read()[0, :, 0] for read in self._read)
        if self._unit == Matrix.TT:
            return other, one
        return one, other if self._unit == Matrix.NN else other.T


def _lane_result(ops: Operands, dtype: np.dtype[Any]) -> Result:
    return ops.result("res0", (1, ops.fields["res0_c"], 1, ops.fields["res0_w"]), dtype)


def _lane_integers(ops: Operands) -> Step:
    dtype = result_type(ops, True, Precision.INT32)
    types = [dtype_of(Precision.INT8, ops.signed(name)) for name in ("opd0", "opd1")]
    factors, zeros = _Rows(ops, (types[0], types[1])), _zero_points(ops, types[1])
    result, accumulates = _lane_result(ops, dtype), ops.fields["res_add"]
    shifted_first = ops.fields["tsk_eu_typ"] == Matrix.TT

    def run() -> None:
        left, right = factors.read()
        zero = zeros()
        if zero.any() and shifted_first:
            left = left.astype(np.int16) - zero.reshape(-1, 1)
        elif zero.any():
            right = right.astype(np.int16) - zero.reshape(1, -1)
        sums = wrapped(matmul(left, right), True)
        _store(result, sums + result.read().reshape(sums.shape) if accumulates else sums)

    return run


def _zero_points(ops: Operands, dtype: np.dtype[Any]) -> Reader:
    """Zero points of operand 1: a constant, or one per column of the result, or (TT) one per row."""
    f = ops.fields
    if ops.is_constant("opd2"):
        value = ops.constant("opd2", dtype)
        return lambda: value
    if f["tsk_eu_typ"] == Matrix.TT:
        return ops.tensor("opd2", (1, f["res0_c"], 1, 1), dtype, Layout.COMPACT).read
    if f["tsk_eu_typ"] == Matrix.NN:
        return ops.tensor("opd2", (1, 1, 1, f["res0_w"]), dtype).read
    lanes, columns = min(f["res0_w"], CHIP.lanes), np.arange(f["res0_w"])
    # every lane holds all of them, and column j is read from the j-th lane on
    copies = ops.tensor("opd2", (1, lanes, 1, f["res0_w"]), dtype, (0, 0, 0, 1))
    return lambda: copies.read()[0, columns % CHIP.lanes, 0, columns]


def _lane_halves(ops: Operands) -> Step:
    precision = ops.precision("opd0")
    half, item = HALF_TYPES[precision], ops.dtype("opd0")
    result_type(ops, True, Precision.FP32, precision)
    factors, result = _Rows(ops, (item, item)), _lane_result(ops, ops.dtype("res0"))
    shape = (1, ops.fields["res0_c"], 1, ops.fields["res0_w"])
    old = ops.tensor("res0", shape, FP32) if ops.fields["res_add"] else None
    sums = half_sums(ops, half, group_sizes(factors.depth, 1))

    def run() -> None:
        left, right = (half.widen(one) for one in factors.read())
        start = old.read()[0, :, 0] if old else np.zeros((1, 1), np.float32)
        _store(result, sums(left.T, right, start))

    return run


_MAKERS = {
    (False, False, Precision.FP32): _single,
    (False, False, Precision.INT8): _wrapping,
    (False, False, Precision.INT16): _wrapping,
    (False, False, Precision.INT32): _long,
    (True, False, Precision.INT8): _requantizing,
    (False, True, Precision.INT8): _lane_integers,
    (False, True, Precision.FP16): _lane_halves,
    (False, True, Precision.BF16): _lane_halves,
}
"""By requantizing operation, operand with a row per lane, precision."""
