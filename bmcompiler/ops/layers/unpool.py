"""Where the maxima of pooling windows lie, and putting values back there (SegNet)."""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.errors import RuntimeUseError
from bmcompiler.ir import TensorType
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import FLOAT, Pair, TensorOp, attr, operand, tensorop
from bmcompiler.ops.layers.pool import MaxWindows


@tensorop("max_pool_mask")
class MaxPoolMask(MaxWindows):
    """Position (i32) of each window's largest value in its plane, y * W + x; of equal values the first.

    input (N, C, H, W); windows as in max_pool.

    %y = "tensorop.max_pool_mask"(%x) {kernel = [2, 2], strides = [2, 2]} : (tensor<1x8x4x4xf32>) ->
         tensor<1x8x2x2xi32>
    """

    selects = False

    def infer(self) -> TensorType:
        return TensorType(self.infer_shape(), "i32")

    def evaluate(self, x: Array) -> Array:
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        padded = self.padded(x, lowest)
        shape = self.infer_shape()
        best, at = np.full(shape, lowest, x.dtype), np.full(shape, -1, np.int32)
        for tap in np.ndindex(*self.kernel):
            (top, y), (left, across) = (self._places(i, tap[i]) for i in (0, 1))
            part = padded[:, :, top, left]
            inside = ((y >= 0) & (y < x.shape[2]))[:, None] & (across >= 0) & (across < x.shape[3])
            better = (part > best) | ((at < 0) & inside)
            np.copyto(best, part, where=better)
            np.copyto(at, y[:, None] * x.shape[3] + across, where=better, casting="unsafe")
        return at

    def _places(self, i: int, tap: int) -> tuple[slice, Array]:
        """Where tap number `tap` of all windows along axis 2 + i lies: in the padded input, and in the input."""
        start, stride = tap * self.taps()[i], self.strides[i]
        steps = np.arange(self.infer_shape()[2 + i]) * stride
        return slice(start, start + int(steps[-1]) + 1, stride), steps + start - self.pads[2 * i]

    def is_identity(self) -> bool:
        return False


@tensorop("max_unpool")
class MaxUnpool(TensorOp):
    """Planes of `size` that hold each value at its position and 0 elsewhere; of values at one position the last stays.

    input (N, C, H, W), mask (N, C, H, W) of positions y * width + x in the result; whole numbers of any element type.
    Evaluation raises RuntimeUseError for a position outside of the plane.

    %y = "tensorop.max_unpool"(%x, %m) {size = [4, 4]} : (tensor<1x8x2x2xf32>, tensor<1x8x2x2xi32>) ->
         tensor<1x8x4x4xf32>
    """

    input = operand(4, FLOAT)
    mask = operand(4)
    size = attr(Pair)

    def infer(self) -> TensorType:
        if self.input.shape != self.mask.shape:
            raise self.shape_error(f"mask {list(self.mask.shape)} must have the shape {list(self.input.shape)}")
        if min(self.size) < 1:
            raise self.shape_error(f"size {list(self.size)} must be positive")
        return TensorType((*self.input.shape[:2], *self.size), self.input.dtype)

    def evaluate(self, x: np.ndarray, mask: np.ndarray) -> np.ndarray:
        planes, size = prod(x.shape[:2]), prod(self.size)
        at = mask.astype(np.int64).reshape(planes, -1)
        if at.size and not 0 <= at.min() <= at.max() < size:
            raise RuntimeUseError(f"a position of the mask lies outside of the {size} elements of a plane")
        out = np.zeros((planes, size), x.dtype)
        np.put_along_axis(out, at, x.reshape(planes, -1), axis=1)
        return out.reshape(*x.shape[:2], *self.size)
