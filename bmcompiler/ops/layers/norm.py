"""Per-channel scaling and normalisation."""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.numeric import arith
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import FLOAT, Axes, Axis, TensorOp, attr, operand, optional_operand, tensorop
from bmcompiler.ops.shared import along_axis, check_products, holding, largest, need_axis, plain, widened


def _need_vectors(op: TensorOp, axis: int) -> None:
    """Every operand after the first is a vector with one value per position of `axis`."""
    count = op.operands[0].shape[axis]
    for spec, value in zip(op.ins[1:], op.operands[1:]):
        if value.shape != (count,):
            raise op.shape_error(f"{spec.name} must have shape [{count}], got {list(value.shape)}")


@tensorop("scale")
class Scale(TensorOp):
    """out = x * weight[c] + bias[c], c counting along `axis`; weight (C), bias (C).

    %y = "tensorop.scale"(%x, %w, %b) : (tensor<1x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<1x8x4x4xf32>

    Integer form (bm1880.md 8.2 depthwise, 1x1): i8 or u8 data and weight, i16 or i32 bias, exact sum, then
    saturate(round_shift(sum, rshift)) to the element type of the result.
    """

    input = operand()
    weight = operand(1)
    bias = optional_operand(1)
    axis = attr(Axis, 1)
    rshift = attr(int, 0)
    free_dtype = True
    weight_operands = ("weight", "bias")
    affine = True
    follows_axes = True
    saturates = True

    def infer(self) -> TensorType:
        _need_vectors(self, need_axis(self, self.axis, self.input.type.rank))
        return plain(self.input.type)

    def evaluate(self, x: Array, weight: Array, bias: np.ndarray | None = None) -> Array:
        factor = along_axis(weight, self.axis, x.ndim)
        if x.dtype.kind == "f":
            out = x * factor
            return out if bias is None else out + along_axis(bias, self.axis, x.ndim)
        magnitude = largest(x) * largest(weight) + (0 if bias is None else largest(bias))
        total = x.astype(holding(magnitude)) * factor
        if bias is not None:
            total += along_axis(bias, self.axis, x.ndim)
        return arith.requantize(total, self.rshift, self.type.dtype)

    def check(self) -> None:
        check_products(self, self.rshift)


@tensorop("batch_norm")
class BatchNorm(TensorOp):
    """out = (x - mean[c]) * gamma[c] / sqrt(variance[c] + epsilon) + beta[c], c counting along axis 1; float.

    %y = "tensorop.batch_norm"(%x, %g, %b, %m, %v) {epsilon = 0.001} : (tensor<1x8x4x4xf32>, tensor<8xf32>,
         tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<1x8x4x4xf32>
    """

    input = operand(elements=FLOAT)
    gamma = operand(1)
    beta = operand(1)
    mean = operand(1)
    variance = operand(1)
    epsilon = attr(float, 1e-5)
    one_type = True
    weight_operands = ("gamma", "beta", "mean", "variance")
    affine = True

    def infer(self) -> TensorType:
        _need_vectors(self, need_axis(self, 1, self.input.type.rank))
        return plain(self.input.type)

    def evaluate(
        self, x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray, variance: np.ndarray
    ) -> np.ndarray:
        factor = gamma / np.sqrt(variance + variance.dtype.type(self.epsilon))
        out = x - along_axis(mean, 1, x.ndim)
        out *= along_axis(factor, 1, x.ndim)
        out += along_axis(beta, 1, x.ndim)
        return out


@tensorop("lrn")
class Lrn(TensorOp):
    """Local response normalisation across channels, as ONNX defines it; (N, C, ...), float.

    out[c] = x[c] / (k + alpha / size * sum x[j]**2) ** beta, j from c - floor((size-1)/2) to c + ceil((size-1)/2),
    channels outside the tensor counting as 0.

    %y = "tensorop.lrn"(%x) {alpha = 0.0001, beta = 0.75, size = 5} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
    """

    input = operand(elements=FLOAT)
    size = attr(int)
    alpha = attr(float, 1e-4)
    beta = attr(float, 0.75)
    k = attr(float, 1.0)

    def infer(self) -> TensorType:
        need_axis(self, 1, self.input.type.rank)
        if self.size < 1:
            raise self.shape_error(f"size must be at least 1, got {self.size}")
        return plain(self.input.type)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        kind = x.dtype.type
        channels, squares = x.shape[1], np.square(x)
        total = np.zeros_like(x)
        before = (self.size - 1) // 2
        for offset in range(max(-before, 1 - channels), min(self.size - 1 - before, channels - 1) + 1):
            low, high = max(0, -offset), min(channels, channels - offset)
            total[:, low:high] += squares[:, low + offset : high + offset]
        return x / (kind(self.k) + kind(self.alpha / self.size) * total) ** kind(self.beta)


class _OverAxes(TensorOp):
    """Operand, axes and shape rule of normalisations by statistics of their own input."""

    input = operand(elements=FLOAT)
    axes = attr(Axes)
    follows_axes = True

    def infer(self) -> TensorType:
        axes = self.axes
        if not axes or len(set(axes)) != len(axes):
            raise self.shape_error(f"axes must be one or more different axes, got {list(axes)}")
        for axis in axes:
            need_axis(self, axis, self.input.type.rank)
        return plain(self.input.type)


@tensorop("l2_normalize")
class L2Normalize(_OverAxes):
    """out = x / sqrt(sum of x**2 over `axes` + epsilon); any shape, float (Normalize of the SSD branch).

    %y = "tensorop.l2_normalize"(%x) {axes = [1], epsilon = 1e-10} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
    """

    epsilon = attr(float, 0.0)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        (wide,) = widened(x)
        total = np.sum(np.square(wide), axis=self.axes, keepdims=True)
        return (wide / np.sqrt(total + total.dtype.type(self.epsilon))).astype(x.dtype, copy=False)


@tensorop("mean_variance_norm")
class MeanVarianceNorm(_OverAxes):
    """out = (x - mean) / (sqrt(variance) + epsilon), both statistics over `axes`; any shape, float (Caffe's MVN).

    variance is the mean of (x - mean)**2; without normalize_variance out = x - mean.

    %y = "tensorop.mean_variance_norm"(%x) {axes = [2, 3], epsilon = 1e-9} : (tensor<1x8x4x4xf32>)
         -> tensor<1x8x4x4xf32>
    """

    normalize_variance = attr(bool, True)
    epsilon = attr(float, 0.0)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        (wide,) = widened(x)
        out = wide - wide.mean(axis=self.axes, keepdims=True)
        if self.normalize_variance:
            spread = np.sqrt(np.mean(np.square(out), axis=self.axes, keepdims=True))
            out = out / (spread + spread.dtype.type(self.epsilon))
        return out.astype(x.dtype, copy=False)


class LastAxesNorm(TensorOp):
    """Operands and shape rule of normalisations over the axes from `axis` on; factors have the shape of those axes."""

    input = operand(elements=FLOAT)
    axis = attr(Axis)
    epsilon = attr(float, 1e-5)
    one_type = True

    def infer(self) -> TensorType:
        axis = need_axis(self, self.axis, self.input.type.rank)
        for spec, value in zip(self.ins[1:], self.operands[1:]):
            if value.shape != self.input.shape[axis:]:
                wanted = list(self.input.shape[axis:])
                raise self.shape_error(f"{spec.name} must have shape {wanted}, got {list(value.shape)}")
        return plain(self.input.type)

    def axes(self) -> tuple[int, ...]:
        """The axes that the statistics run over."""
        return tuple(range(self.axis, self.input.type.rank))


@tensorop("layer_norm")
class LayerNorm(LastAxesNorm):
    """out = (x - mean) / sqrt(variance + epsilon) * gamma + beta, statistics over the axes from `axis` on; float.

    variance is the mean of (x - mean)**2 (Ba et al., arXiv 1607.06450); beta needs gamma.

    %y = "tensorop.layer_norm"(%x, %g, %b) {axis = 1, epsilon = 1e-6} : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>)
         -> tensor<3x4xf32>
    """

    gamma = optional_operand()
    beta = optional_operand()
    weight_operands = ("gamma", "beta")

    def evaluate(self, x: Array, gamma: np.ndarray | None = None, beta: np.ndarray | None = None) -> Array:
        (wide,) = widened(x)
        centred = wide - wide.mean(axis=self.axes(), keepdims=True)
        variance = np.mean(np.square(centred), axis=self.axes(), keepdims=True)
        out = centred / np.sqrt(variance + variance.dtype.type(self.epsilon))
        out = out if gamma is None else out * gamma
        return (out if beta is None else out + beta).astype(x.dtype, copy=False)


@tensorop("rms_norm")
class RmsNorm(LastAxesNorm):
    """out = x / sqrt(mean of x**2 + epsilon) * gamma, the mean over the axes from `axis` to the last; float.

    (Zhang and Sennrich, arXiv 1910.07467)

    %y = "tensorop.rms_norm"(%x, %g) {axis = 1} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    """

    gamma = optional_operand()
    weight_operands = ("gamma",)

    def evaluate(self, x: Array, gamma: np.ndarray | None = None) -> Array:
        (wide,) = widened(x)
        squares = np.mean(np.square(wide), axis=self.axes(), keepdims=True)
        out = wide / np.sqrt(squares + squares.dtype.type(self.epsilon))
        return (out if gamma is None else out * gamma).astype(x.dtype, copy=False)
