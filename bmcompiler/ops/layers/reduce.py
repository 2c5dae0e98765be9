"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.numeric import arith
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import Axes, Axis, TensorOp, attr, operand, tensorop
from bmcompiler.ops.shared import ARITHMETIC, need_axis, need_dtype, need_number, need_same_dtype


def _log_sum_exp(x: Array, **axes: Any) -> Array:
    """log(sum(exp(x))), shifted by the maximum so that nothing overflows."""
    top = np.max(x, axis=axes["axis"], keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, x.dtype.type(0))
    total = np.log(np.sum(np.exp(x - top), **axes))
    return total + top.reshape(np.shape(total))


def _mean(x: Array, **axes: Any) -> Array:
    """The mean; of integers the exact sum divided and cut towards zero."""
    if x.dtype.kind == "f":
        return np.mean(x, **axes)
    total = np.sum(x, dtype=np.uint64 if x.dtype.kind == "u" else np.int64, **axes)
    count = max(x.size // max(total.size, 1), 1)
    return np.sign(total) * (np.abs(total) // total.dtype.type(count))


def _real(function: Callable[..., Array]) -> Callable[..., Array]:
    """For integers, the function of float64 values, cut towards zero."""

    def apply(x: Array, **axes: Any) -> Array:
        return function(x if x.dtype.kind == "f" else x.astype(np.float64), **axes)

    return apply


# name -> function of (array, axes tuple); numpy's own keyword does the rest
_METHODS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, **axes: np.sum(x, dtype=x.dtype, **axes),
    "mean": _mean,
    "max": lambda x, **axes: np.max(x, initial=_limits(x)[0], **axes),
    "min": lambda x, **axes: np.min(x, initial=_limits(x)[1], **axes),
    "prod": lambda x, **axes: np.prod(x, dtype=x.dtype, **axes),
    "l1": lambda x, **axes: np.sum(np.abs(x), dtype=x.dtype, **axes),
    "l2": _real(lambda x, **axes: np.sqrt(np.sum(np.square(x), **axes))),
    "sum_square": lambda x, **axes: np.sum(np.square(x), dtype=x.dtype, **axes),
    "log_sum": _real(lambda x, **axes: np.log(np.sum(x, **axes))),
    "log_sum_exp": _real(_log_sum_exp),
}
_INTEGER_METHODS = ("sum", "max", "min")


def _limits(x: np.ndarray) -> tuple[float, float]:
    """The lowest and the highest value of an array's type."""
    if x.dtype.kind == "f":
        return x.dtype.type(-np.inf), x.dtype.type(np.inf)
    if x.dtype.kind == "b":
        return False, True
    return np.iinfo(x.dtype).min, np.iinfo(x.dtype).max


@tensorop("reduce")
class Reduce(TensorOp):
    """Reduction along `axes` (each 0 .. rank-1, none twice); without keepdims those axes vanish.

    method: sum, mean, max, min, prod, l1 (sum |x|), l2 (sqrt of the sum of squares), sum_square, log_sum (logarithm of
    the sum), log_sum_exp (logarithm of the sum of exp(x)). Along an empty axis: the neutral element, mean NaN.

    %y = "tensorop.reduce"(%x) {axes = [2, 3], method = "mean"} : (tensor<1x8x4x4xf32>) -> tensor<1x8x1x1xf32>

    Integer form: max and min keep type and quantization; sum is exact, then saturated to the type of the result
    (bm1880.md 8.2 mdsum). With `wrap`, every method on integers of any type: sums modulo 2**bits, fractions cut off.
    """

    x = operand()
    method = attr(str)
    axes = attr(Axes)
    keepdims = attr(bool, True)
    wrap = attr(bool, False)
    free_dtype = True
    follows_axes = True
    saturates = True

    def infer(self) -> TensorType:
        if self.method not in _METHODS:
            raise self.invalid(f"unknown method '{self.method}'; known: {', '.join(_METHODS)}")
        shape, axes = list(self.x.shape), self.axes
        if not axes or len(set(axes)) != len(axes):
            raise self.shape_error(f"axes must be one or more different axes, got {list(axes)}")
        for axis in axes:
            need_axis(self, axis, len(shape))
        kept = [1 if i in axes else d for i, d in enumerate(shape) if self.keepdims or i not in axes]
        quant = self.x.type.quant if self.method in ("max", "min") else None
        return TensorType(tuple(kept), self.x.dtype, quant)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        how: dict[str, Any] = {"axis": self.axes, "keepdims": self.keepdims}
        if x.dtype.kind in "iu" and self.method == "sum" and not self.wrap:
            return arith.saturate(np.sum(x, dtype=np.int64, **how), self.type.dtype)
        return arith.truncate(np.asarray(_METHODS[self.method](x, **how)), x.dtype)

    def check(self) -> None:
        if self.x.type.is_float or self.method in ("max", "min"):
            need_same_dtype(self, [self.x, self.result])
            return
        if self.wrap:
            need_number(self, "the operand", self.x)
            need_same_dtype(self, [self.x, self.result])
            return
        if self.method not in _INTEGER_METHODS:
            raise self.invalid(f"{self.method} needs a float operand, got {self.x.dtype}")
        need_dtype(self, "the operand", self.x, ARITHMETIC)
        need_dtype(self, "the result", self.result, ARITHMETIC)


@tensorop("arg")
class Arg(TensorOp):
    """Index (i32) of the largest or smallest value along `axis`; of equal values the first, or the `last`.

    method: max, min.

    %y = "tensorop.arg"(%x) {axis = 1, method = "max"} : (tensor<1x10xf32>) -> tensor<1x1xi32>
    """

    picks = True
    x = operand()
    method = attr(str)
    axis = attr(Axis)
    keepdims = attr(bool, True)
    last = attr(bool, False)
    follows_axes = True

    def infer(self) -> TensorType:
        if self.method not in ("max", "min"):
            raise self.invalid(f"unknown method '{self.method}'; known: max, min")
        shape = list(self.x.shape)
        if shape[need_axis(self, self.axis, len(shape))] == 0:
            raise self.shape_error(f"axis {self.axis} is empty")
        shape[self.axis : self.axis + 1] = [1] if self.keepdims else []
        return TensorType(tuple(shape), "i32")

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        find = np.argmax if self.method == "max" else np.argmin
        found = np.asarray(find(np.flip(x, self.axis) if self.last else x, axis=self.axis, keepdims=self.keepdims))
        return (x.shape[self.axis] - 1 - found if self.last else found).astype(np.int32)
