"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler import arith
from bmcompiler.ir import TensorType
from bmcompiler.ops.base import Ints, Locality, TensorOp, attr, operand, tensorop
from bmcompiler.ops.rules import ARITHMETIC, need_axis, need_dtype, need_same_dtype

# name -> function of (array, axes tuple); numpy's own keyword does the rest
_FLOAT_METHODS: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
    "l1": lambda x, **axes: np.sum(np.abs(x), **axes),
    "l2": lambda x, **axes: np.sqrt(np.sum(np.square(x), **axes)),
    "sum_square": lambda x, **axes: np.sum(np.square(x), **axes),
}
_INTEGER_METHODS = ("sum", "max", "min")


@tensorop("reduce")
class Reduce(TensorOp):
    """Reduction along `axes` (each 0 .. rank-1, none twice); without keepdims those axes vanish.

    method: sum, mean, max, min, prod, l1 (sum |x|), l2 (sqrt of the sum of squares), sum_square.

    %y = "tensorop.reduce"(%x) {axes = [2, 3], method = "mean"} : (tensor<1x8x4x4xf32>) -> tensor<1x8x1x1xf32>

    Integer form: max and min keep type and quantization; sum is exact, then saturated to the type of the result
    (bm1880.md 8.2 mdsum).
    """

    ins = (operand("x"),)
    attrs = (attr("method", str), attr("axes", Ints), attr("keepdims", bool, True))
    locality = Locality.LIMITED
    free_dtype = True

    def is_local(self) -> bool:
        """Float reductions only (bmlang.md 5)."""
        return self.operands[0].type.is_float

    def infer(self) -> TensorType:
        if self.method not in _FLOAT_METHODS:
            raise self.invalid(f"unknown method '{self.method}'; known: {', '.join(_FLOAT_METHODS)}")
        shape, axes = list(self.x.shape), self.axes
        if not axes or len(set(axes)) != len(axes):
            raise self.shape_error(f"axes must be one or more different axes, got {list(axes)}")
        for axis in axes:
            if shape[need_axis(self, axis, len(shape))] == 0 and self.method in ("max", "min", "mean"):
                raise self.shape_error(f"{self.method} along the empty axis {axis}")
        kept = [1 if i in axes else d for i, d in enumerate(shape) if self.keepdims or i not in axes]
        quant = self.x.type.quant if self.method in ("max", "min") else None
        return TensorType(tuple(kept), self.x.dtype, quant)

    def evaluate(self, x: Any) -> Any:
        how = {"axis": self.axes, "keepdims": self.keepdims}
        if x.dtype.kind in "iu" and self.method == "sum":
            return arith.saturate(np.sum(x, dtype=np.int64, **how), self.type.dtype)
        return np.asarray(_FLOAT_METHODS[self.method](x, **how), dtype=x.dtype)

    def check(self) -> None:
        if self.x.type.is_float or self.method in ("max", "min"):
            need_same_dtype(self, [self.x, self.result])
            return
        if self.method not in _INTEGER_METHODS:
            raise self.invalid(f"{self.method} needs a float operand, got {self.x.dtype}")
        need_dtype(self, "the operand", self.x, ARITHMETIC)
        need_dtype(self, "the result", self.result, ARITHMETIC)


@tensorop("arg")
class Arg(TensorOp):
    """Index (i32) of the largest or smallest value along `axis`; of equal values the first. method: max, min.

    %y = "tensorop.arg"(%x) {axis = 1, method = "max"} : (tensor<1x10xf32>) -> tensor<1x1xi32>
    """

    ins = (operand("x"),)
    attrs = (attr("method", str), attr("axis", int), attr("keepdims", bool, True))
    locality = Locality.LIMITED

    def is_local(self) -> bool:
        """Along height or width only: channels lie in different lanes (bmlang.md 5)."""
        return bool(self.axis > 1)

    def infer(self) -> TensorType:
        if self.method not in ("max", "min"):
            raise self.invalid(f"unknown method '{self.method}'; known: max, min")
        shape = list(self.x.shape)
        if shape[need_axis(self, self.axis, len(shape))] == 0:
            raise self.shape_error(f"axis {self.axis} is empty")
        shape[self.axis : self.axis + 1] = [1] if self.keepdims else []
        return TensorType(tuple(shape), "i32")

    def evaluate(self, x: Any) -> Any:
        find = np.argmax if self.method == "max" else np.argmin
        return np.asarray(find(x, axis=self.axis, keepdims=self.keepdims)).astype(np.int32)
