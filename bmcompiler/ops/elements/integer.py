"""Integer ops with their requantization spelled out, and casts.

round_shift(x, s) = floor((x + 2**(s-1)) / 2**s), x for s = 0 (bm1880.md 8.1); sums and products are exact before it;
the result saturates to its element type. All values are raw integers: only `quantize` and `dequantize`
(`ops.linear_quant`) look at the quantizations of types.
"""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.ir.types import DTYPES, numpy_dtype
from bmcompiler.numeric import arith
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import INTEGER, Axis, Ints, TensorOp, attr, operand, tensorop, variadic_operand
from bmcompiler.ops.elements.elementwise import Binary
from bmcompiler.ops.shared import (
    ARITHMETIC,
    BYTES,
    broadcast_shape,
    holding,
    largest,
    need_axis,
    need_dtype,
    need_shift,
    plain,
)

_I32 = range(-(1 << 31), 1 << 31)


class _Shifted(TensorOp):
    """Base of ops that end in saturate(round_shift(value, rshift)) to a result type of the caller's choice."""

    rshift = attr(int, 0)
    free_dtype = True

    def infer(self) -> TensorType:
        return TensorType(broadcast_shape(self, *(v.shape for v in self.operands)), self.operands[0].dtype)

    def requantize(self, exact: np.ndarray) -> np.ndarray:
        return arith.requantize(exact, self.rshift, self.type.dtype)

    def check(self) -> None:
        for index, value in enumerate(self.operands):
            need_dtype(self, f"operand {index}", value, ARITHMETIC)
        need_dtype(self, "the result", self.result, ARITHMETIC)
        need_shift(self, self.rshift)


@tensorop("muls_shift")
class MulsShift(_Shifted):
    """out = saturate(round_shift(x * multiplier, rshift)); any shape (bm1880.md 8.2 mul_const).

    %y = "tensorop.muls_shift"(%x) {multiplier = 77, rshift = 7} : (tensor<1x8xi8>) -> tensor<1x8xi8>
    """

    pointwise = True
    x = operand()
    multiplier = attr(int)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return self.requantize(x.astype(holding(largest(x) * abs(self.multiplier))) * self.multiplier)

    def check(self) -> None:
        super().check()
        _need_i32(self, "multiplier", self.multiplier)


@tensorop("adds_shift")
class AddsShift(_Shifted):
    """out = saturate(round_shift(x + value, rshift)); any shape (bm1880.md 8.2 add_const).

    %y = "tensorop.adds_shift"(%x) {rshift = 1, value = 3} : (tensor<1x8xi8>) -> tensor<1x8xi8>
    """

    pointwise = True
    x = operand()
    value = attr(int)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return self.requantize(x.astype(holding(largest(x) + abs(self.value))) + self.value)

    def check(self) -> None:
        super().check()
        _need_i32(self, "value", self.value)


@tensorop("round_rshift")
class RoundRshift(_Shifted):
    """out = saturate(round_shift(x, rshift)); any shape.

    %y = "tensorop.round_rshift"(%x) {rshift = 4} : (tensor<1x8xi16>) -> tensor<1x8xi8>
    """

    pointwise = True
    x = operand()
    rshift = attr(int)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return self.requantize(x.astype(holding(largest(x))))


class _ShiftedBinary(_Shifted):
    a = operand()
    b = operand()
    broadcasts = True


@tensorop("mul_shift")
class MulShift(_ShiftedBinary):
    """out = saturate(round_shift(a * b, rshift)), broadcasting (bm1880.md 8.2 mul).

    %y = "tensorop.mul_shift"(%a, %b) {rshift = 7} : (tensor<1x8xi8>, tensor<1x8xi8>) -> tensor<1x8xi8>
    """

    def evaluate(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self.requantize(a.astype(holding(largest(a) * largest(b))) * b)


@tensorop("add_shift")
class AddShift(_ShiftedBinary):
    """out = saturate(round_shift(a + b, rshift)), broadcasting (bmlang.md 4.2).

    %y = "tensorop.add_shift"(%a, %b) {rshift = 1} : (tensor<1x8xi8>, tensor<1x8xi8>) -> tensor<1x8xi8>
    """

    def evaluate(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self.requantize(a.astype(holding(largest(a) + largest(b))) + b)


@tensorop("sub_shift")
class SubShift(_ShiftedBinary):
    """out = saturate(round_shift(a - b, rshift)), broadcasting (bmlang.md 4.2).

    %y = "tensorop.sub_shift"(%a, %b) {rshift = 1} : (tensor<1x8xi8>, tensor<1x8xi8>) -> tensor<1x8xi8>
    """

    def evaluate(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self.requantize(a.astype(holding(largest(a) + largest(b))) - b)


class WeightedSum(_Shifted):
    """Base of sums of operands of one shape, each times an integer."""

    x = variadic_operand()
    multipliers = attr(Ints)
    broadcasts = True

    def infer(self) -> TensorType:
        shapes = {v.shape for v in self.operands}
        if len(shapes) != 1 or len(self.multipliers) != len(self.operands):
            texts = ", ".join(str(list(shape)) for shape in sorted(shapes)) or "no operands"
            count = len(self.multipliers)
            raise self.shape_error(
                f"needs operands of one shape, as many as multipliers; got {texts} and {count} multipliers"
            )
        return plain(self.operands[0].type)

    def total(self, arrays: tuple[Array, ...], value: int = 0) -> np.ndarray:
        """The sum and a value, before the shift."""
        terms = list(zip(arrays, self.multipliers))
        dtype = holding(sum(largest(array) * abs(multiplier) for array, multiplier in terms) + abs(value))
        total = np.full(arrays[0].shape, value, dtype)
        for array, multiplier in terms:
            total += array.astype(dtype) * multiplier
        return total

    def check(self) -> None:
        super().check()
        for multiplier in self.multipliers:
            _need_i32(self, "a multiplier", multiplier)


@tensorop("mac_shift")
class MacShift(WeightedSum):
    """out = saturate(round_shift(sum_i multipliers[i] * x_i, rshift)); all operands of one shape.

    %y = "tensorop.mac_shift"(%a, %b) {multipliers = [77, 127], rshift = 7} : (tensor<1x8xi8>, tensor<1x8xi8>)
         -> tensor<1x8xi8>

    Source: the mul_const and mac_const chain of bm1880.md 8.2.
    """

    def evaluate(self, *arrays: np.ndarray) -> np.ndarray:
        return self.requantize(self.total(arrays))


@tensorop("affine_sum")
class AffineSum(WeightedSum):
    """out = saturate(round_shift(sum_i multipliers[i] * x_i + value, rshift)); all operands of one shape.

    %y = "tensorop.affine_sum"(%a, %b) {multipliers = [77, 127], rshift = 7, value = -80} : (tensor<1x8xi8>,
         tensor<1x8xi8>) -> tensor<1x8xi8>

    `value` is what zero points z of operands and result make: (z << rshift) - sum_i multipliers[i] * z_i.
    """

    value = attr(int)

    def evaluate(self, *arrays: np.ndarray) -> np.ndarray:
        return self.requantize(self.total(arrays, self.value))

    def check(self) -> None:
        super().check()
        _need_i32(self, "value", self.value)


@tensorop("lut")
class Lut(TensorOp):
    """out = table[x & 255]: each byte, read as unsigned, picks one of 256 table entries (bm1880.md 8.2 lut).

    %y = "tensorop.lut"(%x, %t) : (tensor<1x8xi8>, tensor<256xi8>) -> tensor<1x8xi8>
    """

    x = operand(elements=(*BYTES, "bool"))
    table = operand(1)
    pointwise = True
    weight_operands = ("table",)

    def infer(self) -> TensorType:
        if self.table.shape != (256,):
            raise self.shape_error(f"the table must have 256 entries, got {self.table.shape[0]}")
        return TensorType(self.x.shape, self.table.dtype, self.table.type.quant)

    def evaluate(self, x: np.ndarray, table: np.ndarray) -> np.ndarray:
        return table[x.view(np.uint8)]


@tensorop("lut_softmax")
class LutSoftmax(TensorOp):
    """out = p / sum of p along `axis`, p = table[x & 255]: softmax of bytes by a table of what e to each of them is.

    %y = "tensorop.lut_softmax"(%x, %t) {axis = 1} : (tensor<1x8xi8>, tensor<256xf32>) -> tensor<1x8xf32>
    """

    x = operand(elements=BYTES)
    table = operand(1, ("f32",))
    axis = attr(Axis, 1)
    weight_operands = ("table",)

    def infer(self) -> TensorType:
        if self.table.shape != (256,):
            raise self.shape_error(f"the table must have 256 entries, got {self.table.shape[0]}")
        need_axis(self, self.axis, self.x.type.rank)
        return TensorType(self.x.shape, "f32")

    def evaluate(self, x: np.ndarray, table: np.ndarray) -> np.ndarray:
        powers = table[x.view(np.uint8)]
        return powers / powers.sum(axis=self.axis, keepdims=True)


class _WithScalar(TensorOp):
    """Base of mins and maxs: integers of any type against one value of that type; quantization stays."""

    x = operand(elements=ARITHMETIC)
    value = attr(int)
    pointwise = True

    def infer(self) -> TensorType:
        return self.operands[0].type

    def check(self) -> None:
        limits = np.iinfo(self.x.type.numpy)
        if not limits.min <= self.value <= limits.max:
            raise self.invalid(f"value {self.value} does not fit {self.x.dtype}")


@tensorop("mins")
class Mins(_WithScalar):
    """out = min(x, value); integers, any shape (bm1880.md 8.2 min_const).

    %y = "tensorop.mins"(%x) {value = 0} : (tensor<1x8xi8>) -> tensor<1x8xi8>
    """

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return np.minimum(x, x.dtype.type(self.value))


@tensorop("maxs")
class Maxs(_WithScalar):
    """out = max(x, value); integers, any shape (bm1880.md 8.2 max_const).

    %y = "tensorop.maxs"(%x) {value = 0} : (tensor<1x8xi8>) -> tensor<1x8xi8>
    """

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return np.maximum(x, x.dtype.type(self.value))


class Bitwise(Binary):
    """Base of and, or, xor: each bit of a result is made of the same bit of both operands."""

    a = operand(elements=(*INTEGER, "bool"))
    one_type = True
    commutative = True


@tensorop("bit_and")
class BitAnd(Bitwise):
    """out = a & b bit by bit, broadcasting; one integer type or bool (bm1880.md 8.2 and).

    %y = "tensorop.bit_and"(%a, %b) : (tensor<1x8xi8>, tensor<1x8xi8>) -> tensor<1x8xi8>
    """

    function = np.bitwise_and


@tensorop("bit_or")
class BitOr(Bitwise):
    """out = a | b bit by bit, broadcasting; one integer type or bool (bm1880.md 8.2 or).

    %y = "tensorop.bit_or"(%a, %b) : (tensor<1x8xi8>, tensor<1x8xi8>) -> tensor<1x8xi8>
    """

    function = np.bitwise_or


@tensorop("bit_xor")
class BitXor(Bitwise):
    """out = a ^ b bit by bit, broadcasting; one integer type or bool (bm1880.md 8.2 xor).

    %y = "tensorop.bit_xor"(%a, %b) : (tensor<1x8xi8>, tensor<1x8xi8>) -> tensor<1x8xi8>
    """

    function = np.bitwise_xor


@tensorop("cast")
class Cast(TensorOp):
    """Another element type; any shape. To an integer it saturates, and reals round to the nearest, halves away from 0.

    %y = "tensorop.cast"(%x) {dtype = "i8"} : (tensor<1x8xf32>) -> tensor<1x8xi8>

    NaN becomes 0; bool is "not zero". Source: bmlang.md 4.2. With `truncate`, reals are cut towards zero and integers
    keep their low bits: what programming languages and ONNX mean.
    """

    x = operand()
    dtype = attr(str)
    truncate = attr(bool, False)
    pointwise = True

    def infer(self) -> TensorType:
        if self.dtype not in DTYPES:
            raise self.invalid(f"unknown element type '{self.dtype}'; known: {', '.join(DTYPES)}")
        return TensorType(self.x.shape, self.dtype)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        target = numpy_dtype(self.dtype)
        if self.truncate:
            return arith.truncate(x, target)
        if target.kind not in "iu" or x.dtype.kind == "b":
            return x.astype(target)
        limits = np.iinfo(target)
        if x.dtype.kind in "iu":
            have = np.iinfo(x.dtype)
            low, high = max(limits.min, have.min), min(limits.max, have.max)
            return np.clip(x, x.dtype.type(low), x.dtype.type(high)).astype(target)
        wide = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
        whole = np.trunc(wide)
        rounded = whole + np.copysign(np.abs(np.where(np.isinf(wide), 0, wide - whole)) >= 0.5, wide)
        top = float(limits.max)  # 2**63 or 2**64 for the widest types, whose largest value no float is
        inside = np.clip(rounded, limits.min, np.nextafter(top + 1, 0)).astype(target)
        return np.where(rounded >= top, target.type(limits.max), inside)

    def is_identity(self) -> bool:
        return True


def _need_i32(op: TensorOp, what: str, value: int) -> None:
    if value not in _I32:
        raise op.invalid(f"{what} must fit 32 bits, got {value}")
