"""Bilinear resizing of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.ops.base import Pair, TensorOp, attr, operand, tensorop
from bmcompiler.ops.rules import need_float, widened


@tensorop("interp")
class Interp(TensorOp):
    """Bilinear resizing in which the corner pixels of both images meet (Interp of the DeepLab branch); float.

    out[n,c,y,x] mixes the four pixels around (y * (H - 1) / (OH - 1), x * (W - 1) / (OW - 1)) by their distances; an
    axis of one result element takes the first pixel. size = (OH, OW).

    %y = "tensorop.interp"(%x) {size = [7, 7]} : (tensor<1x8x4x4xf32>) -> tensor<1x8x7x7xf32>
    """

    ins = (operand("input", 4),)
    attrs = (attr("size", Pair),)

    def infer(self) -> TensorType:
        if min(self.size) < 1 or 0 in self.input.shape[2:]:
            raise self.shape_error(f"cannot resize {list(self.input.shape)} to {list(self.size)}")
        return TensorType((*self.input.shape[:2], *self.size), self.input.dtype)

    def evaluate(self, x: Any) -> Any:
        (wide,) = widened(x)
        for axis, count in zip((2, 3), self.size):
            wide = _along(wide, axis, count)
        return wide.astype(x.dtype, copy=False)

    def check(self) -> None:
        need_float(self, "the operand", self.input)


def _along(x: Any, axis: int, count: int) -> Any:
    size = x.shape[axis]
    at = np.arange(count) * ((size - 1) / (count - 1) if count > 1 else 0.0)
    low = np.minimum(at.astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    share = (at - low).astype(x.dtype).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return x.take(low, axis=axis) * (1 - share) + x.take(high, axis=axis) * share
