"""Quantization by scale and zero point as ONNX states it: per tensor, per position of an axis, or per block."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.ops.base import TensorOp, attr, operand, tensorop
from bmcompiler.ops.rules import NARROW, need_axis, need_dtype, need_float


class _Linear(TensorOp):
    """Operands, attributes and their rules of both directions."""

    ins = (operand("input"), operand("scale"), operand("zero_point", optional=True))

    def check_parameters(self) -> None:
        """Shapes of scale and zero point. Raises ShapeError."""
        scale = self.scale
        zero = scale if self.zero_point is None else self.zero_point
        if zero.shape != scale.shape and (zero.type.size, scale.type.size) != (1, 1):
            raise self.shape_error(f"zero_point has shape {list(zero.shape)}, scale {list(scale.shape)}")
        if scale.type.size == 1 and not self.block_size:
            return
        shape = list(self.input.shape)
        axis = need_axis(self, self.axis, len(shape))
        if self.block_size < 0:
            raise self.shape_error(f"block_size must not be negative, got {self.block_size}")
        wanted = [shape[axis]]
        if self.block_size:
            wanted = [*shape[:axis], -(-shape[axis] // self.block_size), *shape[axis + 1 :]]
        if list(scale.shape) != wanted:
            raise self.shape_error(f"scale must have shape {wanted} or one element, got {list(scale.shape)}")

    def spread(self, parameter: Any) -> Any:
        """Scale or zero point, shaped to broadcast against the input."""
        if self.block_size:
            repeated = np.repeat(parameter, self.block_size, axis=self.axis)
            return np.take(repeated, range(self.input.shape[self.axis]), axis=self.axis)
        if parameter.size == 1:
            return parameter.reshape(())
        return parameter.reshape([-1 if i == self.axis else 1 for i in range(self.input.type.rank)])


@tensorop("quantize_linear")
class QuantizeLinear(_Linear):
    """out = saturate(round(x / scale) + zero_point), halves to even, division in the element type of the scale.

    %y = "tensorop.quantize_linear"(%x, %s, %z) {dtype = "i8"} : (tensor<1x8x4x4xf32>, tensor<f32>, tensor<i8>)
         -> tensor<1x8x4x4xi8>

    scale: one element, or one per position of `axis`, or with block_size one per that many positions of `axis`
    (then of the input's rank). zero_point: integers of `dtype` (i8, u8, i16, u16) in the shape of scale, 0 when absent.
    """

    attrs = (attr("dtype", str), attr("axis", int, 1), attr("block_size", int, 0))

    def infer(self) -> TensorType:
        self.check_parameters()
        return TensorType(self.input.shape, self.dtype)

    def evaluate(self, x: Any, scale: Any, zero_point: Any = None) -> Any:
        limits = np.iinfo(self.result.type.numpy)
        wide = np.rint(x.astype(scale.dtype, copy=False) / self.spread(scale)).astype(np.float64)
        if zero_point is not None:
            wide = wide + self.spread(zero_point)
        return np.clip(np.nan_to_num(wide), limits.min, limits.max).astype(self.result.type.numpy)

    def check(self) -> None:
        need_float(self, "scale", self.scale)
        need_dtype(self, "the input", self.input, ("f32", "f16", "f64", "i32"))
        need_dtype(self, "the result", self.result, NARROW)
        if self.zero_point is not None:
            need_dtype(self, "zero_point", self.zero_point, (self.dtype,))


@tensorop("dequantize_linear")
class DequantizeLinear(_Linear):
    """out = (x - zero_point) * scale, in the element type of the scale.

    %y = "tensorop.dequantize_linear"(%x, %s, %z) : (tensor<1x8x4x4xi8>, tensor<f32>, tensor<i8>)
         -> tensor<1x8x4x4xf32>

    scale, zero_point, axis, block_size: as in quantize_linear; zero_point has the element type of the input.
    """

    attrs = (attr("axis", int, 1), attr("block_size", int, 0))

    def infer(self) -> TensorType:
        self.check_parameters()
        return TensorType(self.input.shape, self.scale.dtype)

    def evaluate(self, x: Any, scale: Any, zero_point: Any = None) -> Any:
        wide = x.astype(np.int64)
        if zero_point is not None:
            wide = wide - self.spread(zero_point)
        kind = np.float32 if scale.dtype == np.float16 else scale.dtype
        return (wide.astype(kind) * self.spread(scale).astype(kind, copy=False)).astype(scale.dtype, copy=False)

    def check(self) -> None:
        need_float(self, "scale", self.scale)
        need_dtype(self, "the input", self.input, (*NARROW, "i32"))
        if self.zero_point is not None:
            need_dtype(self, "zero_point", self.zero_point, (self.input.dtype,))
