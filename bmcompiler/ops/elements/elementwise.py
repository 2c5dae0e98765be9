"""Element by element functions of two tensors, with numpy broadcasting."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.numeric import arith
from bmcompiler.ops.base import NUMBER, TensorOp, attr, operand, tensorop
from bmcompiler.ops.shared import (
    ARITHMETIC,
    Activated,
    activated,
    broadcast_shape,
    holding,
    largest,
    need_activation,
    need_dtype,
    need_same_dtype,
)


class Binary(TensorOp):
    """Base of ops on two tensors `a` and `b` that broadcast to one shape."""

    a = operand()
    b = operand()
    broadcasts = True
    neutral: ClassVar[float | None] = None
    """The number that as `b` gives back `a`, for floats."""
    commutative: ClassVar[bool] = False
    """True where a and b may change places."""
    function: ClassVar[np.ufunc]

    def infer(self) -> TensorType:
        return TensorType(broadcast_shape(self, self.a.shape, self.b.shape), self.a.dtype)

    def evaluate(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self.function(a, b)


class Arithmetic(Binary):
    """Base of add, sub and mul.

    Float form: one float type. Integer form: operands of i8, u8, i16, u16 or i32, mixed at will; the exact result
    is saturated to the element type of the result, which is one of the same five.

    With `wrap`, integers of any one type, modulo 2**bits: what programming languages and ONNX mean.
    """

    wrap = attr(bool, False)
    free_dtype = True
    saturates = True

    def evaluate(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.dtype.kind == "f" or self.wrap:
            return self.function(a, b)
        dtype = holding(largest(a) * largest(b) + largest(a) + largest(b))  # enough for any of the three
        return arith.saturate(self.function(a.astype(dtype), b.astype(dtype)), self.type.dtype)

    def check(self) -> None:
        if self.a.type.is_float or self.wrap:
            need_same_dtype(self, [*self.operands, self.result])
            if self.wrap and not self.a.type.is_integer:
                raise self.invalid(f"wrap belongs to the integer form, the operands are {self.a.dtype}")
            return
        for what, value in (("a", self.a), ("b", self.b), ("the result", self.result)):
            need_dtype(self, what, value, ARITHMETIC)


@tensorop("add")
class Add(Arithmetic, Activated):
    """out = a + b, broadcasting; floats, or integers saturated to the type of the result (bm1880.md 8.2 add).

    %y = "tensorop.add"(%a, %b) : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>

    `activation` ("", "relu" or "relu6") acts on the result as in conv.
    """

    function = np.add
    masks = True
    neutral = 0.0
    commutative = True

    def evaluate(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return activated(self, super().evaluate(a, b))

    def check(self) -> None:
        super().check()
        need_activation(self)

    def keeps_sign(self) -> bool:
        return not self.wrap


@tensorop("sub")
class Sub(Arithmetic):
    """out = a - b, broadcasting; floats, or integers saturated to the type of the result (bm1880.md 8.2 sub).

    %y = "tensorop.sub"(%a, %b) : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
    """

    function = np.subtract
    masks = True
    neutral = 0.0


@tensorop("mul")
class Mul(Arithmetic):
    """out = a * b, broadcasting; floats, or integers saturated to the type of the result (bm1880.md 8.2 mul).

    %y = "tensorop.mul"(%a, %b) : (tensor<1x8x4x4xf32>, tensor<1x8x1x1xf32>) -> tensor<1x8x4x4xf32>
    """

    function = np.multiply
    neutral = 1.0
    commutative = True

    def keeps_sign(self) -> bool:
        return not self.wrap


@tensorop("div")
class Div(Binary):
    """out = a / b, broadcasting; floats, or integers of one type, whose quotient is cut towards zero (0 for b = 0).

    %y = "tensorop.div"(%a, %b) : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    a = operand(elements=NUMBER)
    one_type = True

    neutral = 1.0

    def evaluate(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.dtype.kind == "f":
            return np.divide(a, b)
        quotient = np.floor_divide(a, b)
        inexact = (quotient * b != a) & (b != 0)
        return quotient + (inexact & ((a < 0) != (b < 0))).astype(a.dtype)


@tensorop("mod")
class Mod(Binary):
    """out = the rest of a / b, broadcasting; floats or integers of one type.

    The sign is that of b, with `fmod` that of a (as in C). Integers modulo 0 are 0.

    %y = "tensorop.mod"(%a, %b) {fmod = true} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    a = operand(elements=NUMBER)
    fmod = attr(bool, False)
    one_type = True

    def evaluate(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.fmod(a, b) if self.fmod else np.mod(a, b)


@tensorop("pow")
class Pow(Binary):
    """out = a to the power b, broadcasting; floats and integers mixed at will, the result has the type of a.

    Integers wrap; an integer with a negative or fractional exponent is computed in f64 and cut towards zero.

    %y = "tensorop.pow"(%a, %b) : (tensor<1x8xf32>, tensor<1xf32>) -> tensor<1x8xf32>
    """

    a = operand(elements=NUMBER)
    b = operand(elements=NUMBER)
    steep = True
    neutral = 1.0

    def evaluate(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.dtype == b.dtype and a.dtype.kind == "f":
            return np.power(a, b)
        whole = a.dtype.kind in "iu" and b.dtype.kind in "iu"
        if whole and not (b.dtype.kind == "i" and (b < 0).any()):
            return np.power(a, b.astype(a.dtype))
        return arith.truncate(np.power(a.astype(np.float64), b.astype(np.float64)), a.dtype)


class Extreme(Binary):
    """Base of max and min: any one element type; a quantization that both operands share stays."""

    one_type = True

    selects = True
    commutative = True

    def infer(self) -> TensorType:
        quant = self.a.type.quant if self.a.type.quant == self.b.type.quant else None
        return TensorType(broadcast_shape(self, self.a.shape, self.b.shape), self.a.dtype, quant)


@tensorop("max")
class Max(Extreme):
    """out = the larger of a and b, broadcasting; every element type (integers: bm1880.md 8.2 max).

    %y = "tensorop.max"(%a, %b) : (tensor<1x8xi8>, tensor<1x8xi8>) -> tensor<1x8xi8>
    """

    function = np.maximum


@tensorop("min")
class Min(Extreme):
    """out = the smaller of a and b, broadcasting; every element type (integers: bm1880.md 8.2 min).

    %y = "tensorop.min"(%a, %b) : (tensor<1x8xi8>, tensor<1x8xi8>) -> tensor<1x8xi8>
    """

    function = np.minimum
