"""Bands: the rows of one image as several images, so that chips that pack images into words have them all to work on.

Band k of an image of H rows has the rows k * R to k * R + R - 1; the last bands may reach below the image. What stands
in rows that are not in the image is not part of the value: these ops never read it, and say what they write there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.ops.base import FLOAT, TensorOp, attr, one_of, operand, tensorop
from bmcompiler.ops.elements.linear_quant import need_single_scale, quantized
from bmcompiler.ops.places.shape import Moving


class _ToBands(TensorOp):
    """Shape rule and meaning of the ops that make bands; subclasses say what the image is."""

    x = operand(4)
    rows = attr(int)
    top = attr(int, 0)
    bottom = attr(int, 0)
    fill = attr(int, 0)

    def band_shape(self, bands: int) -> TensorType:
        """Type of the result."""
        _, channels, _, width = self.x.shape
        if min(self.rows, bands) < 1:
            raise self.shape_error(f"there must be bands and rows, got {bands} bands of {self.rows} rows")
        if min(self.top, self.bottom) < 0:
            raise self.shape_error(f"rows above and below must not be negative, got {self.top} and {self.bottom}")
        return self.operands[0].type.with_shape((bands, channels, self.top + self.rows + self.bottom, width))

    def cut(self, image: np.ndarray, bands: int) -> np.ndarray:
        """The bands of an image (1, C, H, W)."""
        _, channels, height, width = image.shape
        rows = self.top + bands * self.rows + self.bottom
        framed: Any = np.full((channels, rows, width), self.fill, image.dtype)
        framed[:, self.top : self.top + height] = image[0, :, : rows - self.top]
        size = self.top + self.rows + self.bottom
        return np.stack([framed[:, k * self.rows : k * self.rows + size] for k in range(bands)])

    def check(self) -> None:
        low, high = (-(2**63), 2**64) if self.type.is_float else _limits(self.type)
        if not low <= self.fill <= high:
            raise self.invalid(f"fill {self.fill} is no {self.type.dtype}")


def _limits(type: TensorType) -> tuple[int, int]:
    if type.dtype == "bool":
        return 0, 1
    limits = np.iinfo(type.numpy)
    return int(limits.min), int(limits.max)


@tensorop("to_bands")
class ToBands(_ToBands):
    """An image as bands of rows, with the rows above and below that belong to their neighbours.

    out[k,c,j,x] = in[0, c, k*rows + j - top, x]; `fill` where that row is not in the image.

    %y = "tensorop.to_bands"(%x) {bands = 4, bottom = 1, rows = 2, top = 1} : (tensor<1x8x7x5xi8>) -> tensor<4x8x4x5xi8>

    x (1, C, H, W), out (bands, C, top + rows + bottom, W). Bands may leave out the last rows of the image. Every
    element type; quantization stays.
    """

    bands = attr(int)

    def infer(self) -> TensorType:
        _need_one_image(self)
        return self.band_shape(self.bands)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return self.cut(x, self.bands)


@tensorop("quantize_bands")
class QuantizeBands(_ToBands):
    """The bands of an image of reals, as integers by the quantization of the result type, which must be given (`out=`).

    out = to_bands(quantize(in, rounding), bands, rows, top, bottom, fill)

    %y = "tensorop.quantize_bands"(%x) {bands = 4, bottom = 1, rows = 2, top = 1} : (tensor<1x8x7x5xf32>)
         -> tensor<4x8x4x5xi8, {scale = 0.0078125}>

    rounding "even" or "away". `stride`: rows by which the windows step that read the result, which changes no value:
    so many rows lie together in local memory.
    """

    x = operand(4, FLOAT)
    bands = attr(int)
    rounding = attr(one_of("away", "even"), "even")
    stride = attr(int, 1)
    free_dtype = True

    def infer(self) -> TensorType:
        _need_one_image(self)
        shape = self.band_shape(self.bands).shape
        return TensorType(shape, "i8", self.results[0].type.quant if self.results else None)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return self.cut(quantized(x, self.rounding, self.type), self.bands)

    def check(self) -> None:
        super().check()
        if self.stride < 1:
            raise self.invalid(f"the stride must be positive, got {self.stride}")
        need_single_scale(self)


@tensorop("regroup_bands")
class RegroupBands(_ToBands):
    """Bands of other rows of the same image: more rows each, or also those of their neighbours.

    out = to_bands(from_bands(in, height), bands, rows, top, bottom, fill) with as many bands as the operand has.

    %y = "tensorop.regroup_bands"(%x) {bottom = 1, height = 7, rows = 2, top = 1} : (tensor<4x8x2x5xi8>)
         -> tensor<4x8x4x5xi8>

    x (bands, C, R, W) with bands * R >= height; out (bands, C, top + rows + bottom, W). Every element type;
    quantization stays.
    """

    height = attr(int)

    def infer(self) -> TensorType:
        _need_height(self)
        return self.band_shape(self.x.shape[0])

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return self.cut(_joined(x, self.height), len(x))


@tensorop("from_bands")
class FromBands(Moving):
    """The image that bands of rows are parts of.

    out[0,c,y,x] = in[y // R, c, y % R, x]

    %y = "tensorop.from_bands"(%x) {height = 7} : (tensor<4x8x2x5xi8>) -> tensor<1x8x7x5xi8>

    x (bands, C, R, W) with bands * R >= height, out (1, C, height, W). Every element type; quantization stays.
    """

    x = operand(4)
    height = attr(int)

    def infer(self) -> TensorType:
        _need_height(self)
        _, channels, _, width = self.x.shape
        return self.operands[0].type.with_shape((1, channels, self.height, width))

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return _joined(x, self.height)


def _need_one_image(op: ToBands | QuantizeBands) -> None:
    """Raise ShapeError unless the operand is one image."""
    if op.x.shape[0] != 1:
        raise op.shape_error(f"one image is cut into bands, got {op.x.shape[0]}")


def _need_height(op: RegroupBands | FromBands) -> None:
    """Raise ShapeError unless the bands of the operand hold `height` rows."""
    bands, _, rows, _ = op.operands[0].shape
    if not 1 <= op.height <= bands * rows:
        raise op.shape_error(f"{bands} bands of {rows} rows do not hold an image of {op.height} rows")


def _joined(x: np.ndarray, height: int) -> np.ndarray:
    bands, channels, rows, width = x.shape
    image = x.transpose(1, 0, 2, 3).reshape(1, channels, bands * rows, width)
    return np.ascontiguousarray(image[:, :, :height])
