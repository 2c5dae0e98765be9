"""Trigonometric and hyperbolic functions, erf, sign, tests for NaN and infinity: one tensor, element by element."""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import DTYPES, TensorType
from bmcompiler.numeric.special import erf
from bmcompiler.ops.base import FLOAT, TensorOp, attr, operand, tensorop
from bmcompiler.ops.elements.activation import FloatUnary, NumberUnary


@tensorop("sin")
class Sin(FloatUnary):
    """out = sine of x (radians); any shape, float.

    %y = "tensorop.sin"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    bounds = (-1.0, 1.0)
    function = np.sin


@tensorop("cos")
class Cos(FloatUnary):
    """out = cosine of x (radians); any shape, float.

    %y = "tensorop.cos"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    bounds = (-1.0, 1.0)
    function = np.cos


@tensorop("tan")
class Tan(FloatUnary):
    """out = tangent of x (radians); any shape, float.

    %y = "tensorop.tan"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    function = np.tan


@tensorop("asin")
class Asin(FloatUnary):
    """out = inverse sine of x in radians, NaN outside -1 .. 1; any shape, float.

    %y = "tensorop.asin"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    function = np.arcsin


@tensorop("acos")
class Acos(FloatUnary):
    """out = inverse cosine of x in radians, NaN outside -1 .. 1; any shape, float.

    %y = "tensorop.acos"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    function = np.arccos


@tensorop("atan")
class Atan(FloatUnary):
    """out = inverse tangent of x in radians; any shape, float.

    %y = "tensorop.atan"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    function = np.arctan


@tensorop("sinh")
class Sinh(FloatUnary):
    """out = hyperbolic sine of x; any shape, float.

    %y = "tensorop.sinh"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    function = np.sinh


@tensorop("cosh")
class Cosh(FloatUnary):
    """out = hyperbolic cosine of x; any shape, float.

    %y = "tensorop.cosh"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    function = np.cosh


@tensorop("asinh")
class Asinh(FloatUnary):
    """out = inverse hyperbolic sine of x; any shape, float.

    %y = "tensorop.asinh"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    function = np.arcsinh


@tensorop("acosh")
class Acosh(FloatUnary):
    """out = inverse hyperbolic cosine of x, NaN below 1; any shape, float.

    %y = "tensorop.acosh"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    function = np.arccosh


@tensorop("atanh")
class Atanh(FloatUnary):
    """out = inverse hyperbolic tangent of x, NaN outside -1 .. 1; any shape, float.

    %y = "tensorop.atanh"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    function = np.arctanh


@tensorop("erf")
class Erf(FloatUnary):
    """out = error function of x; any shape, float.

    %y = "tensorop.erf"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    bounds = (-1.0, 1.0)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return erf(x)


@tensorop("sign")
class Sign(NumberUnary):
    """out = -1, 0 or 1, as x is negative, zero or positive; any shape, floats (NaN stays) and integers.

    %y = "tensorop.sign"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    bounds = (-1.0, 1.0)
    idempotent = True
    function = np.sign


class _FloatTest(TensorOp):
    """Base of questions about floats: bool in the shape of the operand."""

    x = operand(elements=FLOAT)
    pointwise = True

    def infer(self) -> TensorType:
        return TensorType(self.x.shape, "bool")


@tensorop("is_nan")
class IsNan(_FloatTest):
    """out = whether x is not a number; any shape, float to bool.

    %y = "tensorop.is_nan"(%x) : (tensor<1x8xf32>) -> tensor<1x8xi1>
    """

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return np.isnan(x)


@tensorop("is_inf")
class IsInf(_FloatTest):
    """out = whether x is infinite, of the signs that `positive` and `negative` admit; any shape, float to bool.

    %y = "tensorop.is_inf"(%x) {negative = false} : (tensor<1x8xf32>) -> tensor<1x8xi1>
    """

    positive = attr(bool, True)
    negative = attr(bool, True)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return np.isinf(x) & np.where(x > 0, self.positive, self.negative)


@tensorop("bit_cast")
class BitCast(TensorOp):
    """The same bits read as another element type of the same width; any shape.

    %y = "tensorop.bit_cast"(%x) {dtype = "i32"} : (tensor<1x8xf32>) -> tensor<1x8xi32>
    """

    pointwise = True
    reads_bits = True
    x = operand()
    dtype = attr(str)

    def infer(self) -> TensorType:
        if self.dtype not in DTYPES:
            raise self.invalid(f"unknown element type '{self.dtype}'; known: {', '.join(DTYPES)}")
        return TensorType(self.x.shape, self.dtype)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x).view(self.type.numpy).reshape(x.shape)

    def check(self) -> None:
        if DTYPES[self.dtype][2] != DTYPES[self.x.dtype][2]:
            raise self.invalid(f"{self.dtype} and {self.x.dtype} differ in width")
