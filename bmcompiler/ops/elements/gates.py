"""Activations of newer networks, element by element, and hardmax; floats."""

from __future__ import annotations

import math

import numpy as np

from bmcompiler.numeric.special import erf, logistic
from bmcompiler.ops.base import Axis, attr, one_of, tensorop
from bmcompiler.ops.elements.activation import FloatUnary
from bmcompiler.ops.shared import need_axis, widened


def _expm1_below(x: np.ndarray) -> np.ndarray:
    """exp(x) - 1 for negative x, 0 elsewhere, without overflow."""
    return np.expm1(np.minimum(x, x.dtype.type(0)))


@tensorop("gelu")
class Gelu(FloatUnary):
    """out = x * P(normal variable <= x) = x / 2 * (1 + erf(x / sqrt(2))); any shape, float.

    approximate "tanh" is x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))), "none" the exact form
    (Hendrycks and Gimpel, arXiv 1606.08415).

    %y = "tensorop.gelu"(%x) {approximate = "tanh"} : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    approximate = attr(one_of("none", "tanh"), "none")

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        kind = x.dtype.type
        if self.approximate == "tanh":
            inner = np.tanh(kind(math.sqrt(2 / math.pi)) * (x + kind(0.044715) * x * x * x))
        else:
            inner = erf(x * kind(math.sqrt(0.5)))
        return kind(0.5) * x * (kind(1) + inner)


@tensorop("mish")
class Mish(FloatUnary):
    """out = x * tanh(log(1 + exp(x))); any shape, float.

    %y = "tensorop.mish"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        (wide,) = widened(x)
        grown = np.exp(np.minimum(wide, wide.dtype.type(20)))  # tanh(log(1 + e)) = e(e + 2) / (e(e + 2) + 2)
        grown = grown * (grown + 2)
        return (wide * (grown / (grown + 2))).astype(x.dtype, copy=False)


@tensorop("swish")
class Swish(FloatUnary):
    """out = x / (1 + exp(-alpha * x)); alpha 1 is also called SiLU; any shape, float.

    %y = "tensorop.swish"(%x) {alpha = 1.5} : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    alpha = attr(float, 1.0)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return x * logistic(x * x.dtype.type(self.alpha))


@tensorop("selu")
class Selu(FloatUnary):
    """out = gamma * x where x > 0, gamma * alpha * (exp(x) - 1) elsewhere; any shape, float.

    %y = "tensorop.selu"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>

    The defaults keep mean 0 and variance 1 (Klambauer et al., arXiv 1706.02515).
    """

    alpha = attr(float, 1.6732631921768188)
    gamma = attr(float, 1.0507010221481323)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        kind = x.dtype.type
        return kind(self.gamma) * np.where(x > 0, x, kind(self.alpha) * _expm1_below(x))


@tensorop("celu")
class Celu(FloatUnary):
    """out = x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere, alpha not 0; any shape, float.

    %y = "tensorop.celu"(%x) {alpha = 2.0} : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    alpha = attr(float, 1.0)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        alpha = x.dtype.type(self.alpha)
        return np.maximum(x, x.dtype.type(0)) + np.minimum(alpha * np.expm1(np.minimum(x / alpha, 80)), 0).astype(
            x.dtype
        )

    def check(self) -> None:
        if self.alpha == 0:
            raise self.invalid("alpha must not be 0")


@tensorop("softsign")
class Softsign(FloatUnary):
    """out = x / (1 + |x|); any shape, float.

    %y = "tensorop.softsign"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    bounds = (-1.0, 1.0)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return x / (x.dtype.type(1) + np.abs(x))


@tensorop("thresholded_relu")
class ThresholdedRelu(FloatUnary):
    """out = x where x > alpha, 0 elsewhere; any shape, float.

    %y = "tensorop.thresholded_relu"(%x) {alpha = 2.0} : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    alpha = attr(float, 1.0)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        kind = x.dtype.type
        return np.where(x > kind(self.alpha), x, kind(0))


@tensorop("threshold")
class Threshold(FloatUnary):
    """out = 1 where x > threshold, 0 elsewhere and for NaN; any shape, float.

    %y = "tensorop.threshold"(%x) {threshold = 0.5} : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    threshold = attr(float, 0.0)
    bounds = (0.0, 1.0)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return (x > x.dtype.type(self.threshold)).astype(x.dtype)


@tensorop("shrink")
class Shrink(FloatUnary):
    """out = x + bias where x < -threshold, x - bias where x > threshold, 0 between; any shape, float.

    %y = "tensorop.shrink"(%x) {bias = 0.5, threshold = 1.0} : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    threshold = attr(float, 0.5)
    bias = attr(float, 0.0)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        kind = x.dtype.type
        limit, bias = kind(self.threshold), kind(self.bias)
        return np.where(x < -limit, x + bias, np.where(x > limit, x - bias, kind(0)))


@tensorop("hardmax")
class Hardmax(FloatUnary):
    """out = 1 at the first largest element along `axis` (0 .. rank-1), 0 elsewhere; any shape, float.

    %y = "tensorop.hardmax"(%x) {axis = 1} : (tensor<1x10xf32>) -> tensor<1x10xf32>
    """

    picks = True
    axis = attr(Axis)
    pointwise = False
    bounds = (0.0, 1.0)
    follows_axes = True

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        out = np.zeros_like(x)
        np.put_along_axis(out, x.argmax(axis=self.axis, keepdims=True), 1, axis=self.axis)
        return out

    def check(self) -> None:
        if self.input.shape[need_axis(self, self.axis, self.input.type.rank)] == 0:
            raise self.invalid(f"axis {self.axis} is empty")
