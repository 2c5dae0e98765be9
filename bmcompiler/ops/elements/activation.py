"""Activations and other functions of one tensor, element by element; softmax."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.numeric import arith
from bmcompiler.numeric.special import logistic
from bmcompiler.ops.base import FLOAT, NUMBER, Axis, TensorOp, attr, operand, tensorop
from bmcompiler.ops.shared import along_axis, need_axis, need_dtype, need_same_dtype, need_shift, plain


class FloatUnary(TensorOp):
    """Base of functions of one float tensor, element by element: the result has the type of the operand.

    An op derived from it needs nothing further to run in int8: quantization makes a table of it.
    """

    input = operand(elements=FLOAT)
    pointwise = True
    function: ClassVar[np.ufunc]
    """The function of numpy arrays, where it needs no attributes."""

    def infer(self) -> TensorType:
        return plain(self.input.type)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return self.function(x)


class NumberUnary(FloatUnary):
    """Base of functions of one tensor of floats or integers; integers wrap where the result does not fit."""

    input = operand(elements=NUMBER)


@tensorop("relu")
class Relu(TensorOp):
    """out = max(x, 0), for floats and integers; any shape, type and quantization stay.

    %y = "tensorop.relu"(%x) : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>

    Integer form: relu of bm1880.md 8.2 (zero point 0).
    """

    homogeneous = True
    input = operand(elements=NUMBER)
    pointwise = True
    bounds = (0.0, math.inf)
    idempotent = True

    def infer(self) -> TensorType:
        return self.operands[0].type

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return np.maximum(x, x.dtype.type(0))

    def keeps_range(self) -> bool:
        return True


@tensorop("clip")
class Clip(FloatUnary):
    """out = min(max(x, min), max); any shape, float. relu6 is min = 0, max = 6.

    %y = "tensorop.clip"(%x) {max = 6.0, min = 0.0} : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    min = attr(float, -float("inf"))
    max = attr(float, float("inf"))
    idempotent = True

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return np.minimum(np.maximum(x, x.dtype.type(self.min)), x.dtype.type(self.max))

    def check(self) -> None:
        if not self.min <= self.max:
            raise self.invalid(f"min {self.min} is above max {self.max}")

    def result_bounds(self) -> tuple[float, float]:
        return self.min, self.max

    def keeps_range(self) -> bool:
        return True

    def is_identity(self) -> bool:
        return (self.min, self.max) == (-math.inf, math.inf)


@tensorop("leaky_relu")
class LeakyRelu(FloatUnary):
    """out = x where x > 0, slope * x elsewhere; any shape, float.

    %y = "tensorop.leaky_relu"(%x) {slope = 0.1} : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    homogeneous = True
    slope = attr(float, 0.01)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return np.where(x > 0, x, x * x.dtype.type(self.slope))

    def keeps_range(self) -> bool:
        return True

    def is_identity(self) -> bool:
        return self.slope == 1


@tensorop("prelu")
class Prelu(TensorOp):
    """out = x where x > 0, slope[c] * x elsewhere, c counting along `axis`; slope [C] or [1].

    %y = "tensorop.prelu"(%x, %s) : (tensor<1x8x4x4xf32>, tensor<8xf32>) -> tensor<1x8x4x4xf32>

    Integer form (bm1880.md 12.1), i8 data and slope, of which one term is 0 everywhere:
    out = sat(round_shift(max(x, 0) * multiplier, rshift)) + sat(round_shift(min(x, 0) * slope[c], slope_rshift)).
    """

    homogeneous = True
    input = operand()
    slope = operand(1)
    axis = attr(Axis, 1)
    multiplier = attr(int, 1)
    rshift = attr(int, 0)
    slope_rshift = attr(int, 0)
    weight_operands = ("slope",)
    follows_axes = True

    def infer(self) -> TensorType:
        axis = need_axis(self, self.axis, self.input.type.rank)
        if self.slope.shape not in ((1,), (self.input.shape[axis],)):
            raise self.shape_error(f"slope must have 1 or {self.input.shape[axis]} values, got {self.slope.shape[0]}")
        return plain(self.input.type)

    def evaluate(self, x: np.ndarray, slope: np.ndarray) -> np.ndarray:
        slopes = along_axis(slope, self.axis, x.ndim)
        if x.dtype.kind == "f":
            return np.where(x > 0, x, x * slopes)
        wide = x.astype(np.int32)
        above = arith.requantize(np.maximum(wide, 0) * self.multiplier, self.rshift, "i8")
        below = arith.requantize(np.minimum(wide, 0) * slopes.astype(np.int32), self.slope_rshift, "i8")
        return above | below

    def check(self) -> None:
        if self.input.type.is_float:
            need_same_dtype(self, [*self.operands, self.result])
            if (self.multiplier, self.rshift, self.slope_rshift) != (1, 0, 0):
                raise self.invalid("multiplier and shifts belong to the integer form, the operand is float")
            return
        for what, value in (("data", self.input), ("slope", self.slope)):
            need_dtype(self, what, value, ("i8",))
        need_shift(self, self.rshift)
        need_shift(self, self.slope_rshift)
        if not 0 <= self.multiplier <= 255:
            raise self.invalid(f"multiplier must be 0 to 255, got {self.multiplier}")

    def keeps_range(self) -> bool:
        return True


@tensorop("elu")
class Elu(FloatUnary):
    """out = x where x > 0, alpha * (exp(x) - 1) elsewhere; any shape, float.

    %y = "tensorop.elu"(%x) {alpha = 0.5} : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    alpha = attr(float, 1.0)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return np.where(x > 0, x, x.dtype.type(self.alpha) * np.expm1(np.minimum(x, x.dtype.type(0))))


@tensorop("sigmoid")
class Sigmoid(FloatUnary):
    """out = 1 / (1 + exp(-x)); any shape, float.

    %y = "tensorop.sigmoid"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    confident = True
    bounds = (0.0, 1.0)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return logistic(x)


@tensorop("tanh")
class Tanh(FloatUnary):
    """out = tanh(x); any shape, float.

    %y = "tensorop.tanh"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    confident = True
    bounds = (-1.0, 1.0)
    function = np.tanh


@tensorop("hard_sigmoid")
class HardSigmoid(FloatUnary):
    """out = min(max(alpha * x + beta, 0), 1); any shape, float.

    %y = "tensorop.hard_sigmoid"(%x) {alpha = 0.25} : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    confident = True
    alpha = attr(float, 0.2)
    beta = attr(float, 0.5)
    bounds = (0.0, 1.0)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        kind = x.dtype.type
        return np.minimum(np.maximum(x * kind(self.alpha) + kind(self.beta), kind(0)), kind(1))


@tensorop("hard_swish")
class HardSwish(FloatUnary):
    """out = x * min(max(x / 6 + 0.5, 0), 1); any shape, float.

    %y = "tensorop.hard_swish"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        kind = x.dtype.type
        return x * np.minimum(np.maximum(x * kind(1 / 6) + kind(0.5), kind(0)), kind(1))


@tensorop("exp")
class Exp(FloatUnary):
    """out = exp(x); any shape, float.

    %y = "tensorop.exp"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    steep = True
    bounds = (0.0, math.inf)
    function = np.exp


@tensorop("log")
class Log(FloatUnary):
    """out = natural logarithm of x, NaN below 0; any shape, float.

    %y = "tensorop.log"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    steep = True
    function = np.log


@tensorop("sqrt")
class Sqrt(FloatUnary):
    """out = square root of x, NaN below 0; any shape, float.

    %y = "tensorop.sqrt"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    steep = True
    bounds = (0.0, math.inf)
    function = np.sqrt


@tensorop("abs")
class Abs(NumberUnary):
    """out = |x|; any shape, floats and integers (the lowest integer of a signed type stays as it is).

    %y = "tensorop.abs"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    bounds = (0.0, math.inf)
    idempotent = True
    function = np.absolute


@tensorop("neg")
class Neg(NumberUnary):
    """out = -x; any shape, floats and integers (modulo 2**bits).

    %y = "tensorop.neg"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return -x


@tensorop("floor")
class Floor(FloatUnary):
    """out = largest whole number that is not above x; any shape, float.

    %y = "tensorop.floor"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    idempotent = True
    function = np.floor


@tensorop("ceil")
class Ceil(FloatUnary):
    """out = smallest whole number that is not below x; any shape, float.

    %y = "tensorop.ceil"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    idempotent = True
    function = np.ceil


@tensorop("round")
class Round(FloatUnary):
    """out = nearest whole number, halves to the even one; any shape, float.

    %y = "tensorop.round"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    idempotent = True
    function = np.rint


@tensorop("softplus")
class Softplus(FloatUnary):
    """out = log(1 + exp(x)); any shape, float.

    %y = "tensorop.softplus"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    bounds = (0.0, math.inf)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return np.logaddexp(x, x.dtype.type(0))


class _SoftmaxBase(FloatUnary):
    """Operand, axis and shape rule of softmax and log_softmax."""

    axis = attr(Axis, -1)
    pointwise = False
    follows_axes = True

    def infer(self) -> TensorType:
        rank = self.input.type.rank
        if not -rank <= self.axis < rank:
            raise self.shape_error(f"axis {self.axis} does not exist in a tensor of {rank} axes")
        return plain(self.input.type)


@tensorop("softmax")
class Softmax(_SoftmaxBase):
    """out = exp(x) / sum of exp(x) along `axis` (negative counts from the last); any shape, float.

    %y = "tensorop.softmax"(%x) {axis = 1} : (tensor<1x10xf32>) -> tensor<1x10xf32>
    """

    confident = True
    bounds = (0.0, 1.0)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        powers = np.exp(x - x.max(axis=self.axis, keepdims=True, initial=-np.inf))
        return powers / powers.sum(axis=self.axis, keepdims=True)


@tensorop("log_softmax")
class LogSoftmax(_SoftmaxBase):
    """out = x - log(sum of exp(x)) along `axis` (negative counts from the last); any shape, float.

    %y = "tensorop.log_softmax"(%x) {axis = 1} : (tensor<1x10xf32>) -> tensor<1x10xf32>
    """

    confident = True

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        shifted = x - x.max(axis=self.axis, keepdims=True, initial=-np.inf)
        return shifted - np.log(np.exp(shifted).sum(axis=self.axis, keepdims=True))
