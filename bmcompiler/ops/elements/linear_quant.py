"""The ways between reals and integers: by the quantization of a type, and by operands as ONNX states it.

ONNX gives scale and zero point per tensor, per position of an axis, or per block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.numeric import arith, quant_modes
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import FLOAT, Axis, TensorOp, attr, one_of, operand, optional_operand, tensorop
from bmcompiler.ops.shared import NARROW, along_axis, need_axis, need_dtype, need_float


@tensorop("quantize")
class Quantize(TensorOp):
    """Reals to integers; scale s and zero point from the quantization of the result type, which must be given (`out=`).

    %y = "tensorop.quantize"(%x) : (tensor<1x8xf32>) -> tensor<1x8xi8, {scale = 0.0078125}>
    %y = "tensorop.quantize"(%x) {rounding = "away"} : (tensor<1x8xf32>) -> tensor<1x8xui8, {scale = 0.25}>

    rounding "up" (bm1880.md 11.2): i8 = saturate(floor(x / s + 0.5)) in float64, no zero point. "away" (bm1684.md 4.3):
    i8, u8, i16 or u16 = saturate(round half away from zero(fl(x * fl(1 / s))) + zero point) in float32, where s must be
    a normal float32 number; NaN becomes the lowest value. "even": the same, halves rounded to the even integer. The
    latter two take a scale for each position of an axis, too.
    """

    x = operand(elements=FLOAT)
    rounding = attr(one_of("up", "away", "even"), "up")
    pointwise = True
    free_dtype = True

    def infer(self) -> TensorType:
        return TensorType(self.x.shape, "i8", self.results[0].type.quant if self.results else None)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        quant: Any = self.type.quant
        if self.rounding == "up":
            return arith.quantize_real(x, quant.threshold)
        return quantized(x, self.rounding, self.type)

    def check(self) -> None:
        if self.rounding == "up":
            need_dtype(self, "the result", self.result, ("i8",))
            _need_scale(self, "the result", self.type)
            if self.type.quant.scales:  # type: ignore[union-attr]
                raise self.invalid("a scale for each position of an axis takes the rounding 'away' or 'even'")
            return
        need_single_scale(self)


@tensorop("dequantize")
class Dequantize(TensorOp):
    """Integers to f32: out = (x - zero point) * scale, rounded once; both from the quantization of the operand type.

    %y = "tensorop.dequantize"(%x) : (tensor<1x8xi8, {scale = 0.0078125}>) -> tensor<1x8xf32>

    For a scale that is a float32 number this is fl(float(x - zero point) * scale), the product of a chip that computes
    in float32 (bm1684.md 4.3). A threshold is 128 * scale (bm1880.md 11.2).
    """

    x = operand(elements=NARROW)
    pointwise = True

    def infer(self) -> TensorType:
        return TensorType(self.x.shape, "f32")

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        quant: Any = self.x.type.quant
        return quant_modes.dequantize(x, _scale(self.x.type), quant.zero_point)

    def check(self) -> None:
        _need_scale(self, "the operand", self.x.type, zero_point=True)


def quantized(x: np.ndarray, rounding: str, type: TensorType) -> np.ndarray:
    """Reals as integers of a type, by the rounding "even" or "away" of quantize."""
    quant: Any = type.quant
    way = quant_modes.quantize_even if rounding == "even" else quant_modes.quantize_away
    return way(x, _scale(type), type.dtype, quant.zero_point)


def need_single_scale(op: TensorOp) -> None:
    """Raise VerifyError unless the result is small integers with a scale that is a float32 number."""
    need_dtype(op, "the result", op.result, NARROW)
    _need_scale(op, "the result", op.type, zero_point=True)
    quant: Any = op.type.quant
    if not all(map(quant_modes.is_single, quant.scales or [quant.scale])):
        raise op.invalid(f"the scale must be a normal float32 number, got {op.type}")


def _scale(type: TensorType) -> np.ndarray:
    """The scale of a type, or its scales shaped to broadcast along their axis."""
    quant: Any = type.quant
    return along_axis(np.array(quant.scales), quant.axis, type.rank) if quant.scales else quant.scale


def _need_scale(op: TensorOp, what: str, type: TensorType, *, zero_point: bool = False) -> None:
    """Raise VerifyError unless `type` has a positive scale and no zero point, or one that its element type holds."""
    quant = type.quant
    if quant is None or not min(quant.scales, default=quant.scale) > 0 or (quant.zero_point and not zero_point):
        more = "" if zero_point else " and zero point 0"
        raise op.invalid(f"{what} needs a quantization with a positive scale{more}, got {type}")
    limits = np.iinfo(type.numpy)
    if not limits.min <= quant.zero_point <= limits.max:
        raise op.invalid(f"the zero point of {what} must fit {type.dtype}, got {quant.zero_point}")


class LinearQuant(TensorOp):
    """Operands, attributes and their rules of both directions."""

    input = operand()
    scale = operand()
    zero_point = optional_operand()
    axis = attr(Axis, 1)
    block_size = attr(int, 0)

    @property
    def in_blocks(self) -> bool:
        """Whether it is of a matrix with several scales along an axis, as weights of few bits have them."""
        return self.block_size > 0 and self.input.type.rank == 2

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

    def spread(self, parameter: np.ndarray) -> np.ndarray:
        """Scale or zero point, shaped to broadcast against the input."""
        if self.block_size:
            repeated = np.repeat(parameter, self.block_size, axis=self.axis)
            return np.take(repeated, range(self.input.shape[self.axis]), axis=self.axis)
        if parameter.size == 1:
            return parameter.reshape(())
        return parameter.reshape([-1 if i == self.axis else 1 for i in range(self.input.type.rank)])


@tensorop("quantize_linear")
class QuantizeLinear(LinearQuant):
    """out = saturate(round(x / scale) + zero_point), halves to even, division in the element type of the scale.

    %y = "tensorop.quantize_linear"(%x, %s, %z) {dtype = "i8"} : (tensor<1x8x4x4xf32>, tensor<f32>, tensor<i8>)
         -> tensor<1x8x4x4xi8>

    scale: one element, or one per position of `axis`, or with block_size one per that many positions of `axis`
    (then of the input's rank). zero_point: integers of `dtype` (i8, u8, i16, u16) in the shape of scale, 0 when absent.
    """

    dtype = attr(str)

    def infer(self) -> TensorType:
        self.check_parameters()
        return TensorType(self.input.shape, self.dtype)

    def evaluate(self, x: Array, scale: Array, zero_point: np.ndarray | None = None) -> Array:
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
class DequantizeLinear(LinearQuant):
    """out = (x - zero_point) * scale, in the element type of the scale.

    %y = "tensorop.dequantize_linear"(%x, %s, %z) : (tensor<1x8x4x4xi8>, tensor<f32>, tensor<i8>)
         -> tensor<1x8x4x4xf32>

    scale, zero_point, axis, block_size: as in quantize_linear; zero_point has the element type of the input.
    """

    def infer(self) -> TensorType:
        self.check_parameters()
        return TensorType(self.input.shape, self.scale.dtype)

    def evaluate(self, x: Array, scale: Array, zero_point: np.ndarray | None = None) -> Array:
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
