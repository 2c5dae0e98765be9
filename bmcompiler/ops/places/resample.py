"""Values between the grid points of a tensor: resizing by any factor, sampling at given places, regions of interest."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import FLOAT, INTEGER, Floats, Ints, Pair, TensorOp, attr, one_of, operand, tensorop
from bmcompiler.ops.places.index import places
from bmcompiler.ops.shared import need_float, need_length, widened

# result position -> source position: (positions, scale, source length, result length, region of interest)
_Place = Callable[[Array, float, int, int, "tuple[float, float]"], Array]
COORDINATES: dict[str, _Place] = {
    "asymmetric": lambda x, scale, have, want, roi: x / scale,
    "half_pixel": lambda x, scale, have, want, roi: (x + 0.5) / scale - 0.5,
    "pytorch_half_pixel": lambda x, scale, have, want, roi: (x + 0.5) / scale - 0.5 if want > 1 else x * 0.0,
    "half_pixel_symmetric": lambda x, scale, have, want, roi: (
        have / 2 * (1 - want / (scale * have)) + (x + 0.5) / scale - 0.5
    ),
    # the length is the unrounded scale * have, so that the step does not depend on the rounding
    "align_corners": lambda x, scale, have, want, roi: (
        x * (have - 1) / (scale * have - 1) if scale * have != 1 else x * 0.0
    ),
    "tf_crop_and_resize": lambda x, scale, have, want, roi: (
        roi[0] * (have - 1) + x * (roi[1] - roi[0]) * (have - 1) / (want - 1)
        if want > 1
        else x * 0.0 + (roi[0] + roi[1]) / 2 * (have - 1)
    ),
}
ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}
MODES = ("nearest", "linear", "cubic")


def source_positions(
    coordinates: str, scale: float, have: int, want: int, roi: tuple[float, float] = (0.0, 1.0)
) -> np.ndarray:
    """Real source position of every result position along an axis.

    Computed in float32, as others do: where a position falls between two elements depends on it.
    """
    return COORDINATES[coordinates](np.arange(want, dtype=np.float32), np.float32(scale), have, want, roi)


def _keys(distance: np.ndarray, a: float) -> np.ndarray:
    """Cubic convolution kernel of Keys."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def kernel_taps(mode: str, place: np.ndarray, cubic_a: float, shrink: float = 1.0) -> tuple[Array, Array]:
    """Source indices (..., taps), which may lie outside, and their weights, for real positions.

    shrink below 1 widens the kernel by 1 / shrink (antialiasing); weights then are made to sum to 1.
    """
    reach = 2 if mode == "cubic" else 1
    first = int(np.floor(-reach / shrink)) + 1
    base = np.floor(place)
    index = base[..., None] + np.arange(first, reach - first + (reach == 1))
    distance = (index - place[..., None]) * shrink
    weight = _keys(distance, cubic_a) if mode == "cubic" else np.maximum(0, 1 - np.abs(distance))
    if shrink != 1:
        weight = weight / weight.sum(axis=-1, keepdims=True)
    return index.astype(np.int64), weight


@tensorop("resize")
class Resize(TensorOp):
    """Every axis at another length, as ONNX Resize defines it.

    Result position i of an axis is source position coordinates(i), with scale = `scales` of that axis. "nearest" takes
    the element that `rounding` names, "linear" and "cubic" (Keys' kernel, parameter cubic_a) weight 2 and 4 neighbours;
    antialias widens their kernels where scale < 1. Positions outside repeat the edge, or with exclude_outside have no
    weight (the others are scaled up). "tf_crop_and_resize" covers `roi` (all starts, then all ends, as fractions), and
    gives `extrapolation` outside of the source.

    %y = "tensorop.resize"(%x) {mode = "linear", scales = [1.0, 1.0, 2.0, 2.0], sizes = [1, 8, 8, 8]} :
         (tensor<1x8x4x4xf32>) -> tensor<1x8x8x8xf32>

    Any rank; sizes: the result's shape; scales: one per axis. coordinates: a key of `COORDINATES`, rounding: of
    `ROUNDINGS`. Every element type for "nearest" (type and quantization stay), floats otherwise.
    """

    input = operand()
    sizes = attr(Ints)
    scales = attr(Floats)
    mode = attr(str, "nearest")
    coordinates = attr(str, "half_pixel")
    rounding = attr(str, "round_prefer_floor")
    cubic_a = attr(float, -0.75)
    exclude_outside = attr(bool, False)
    antialias = attr(bool, False)
    roi = attr(Floats, ())
    extrapolation = attr(float, 0.0)

    def infer(self) -> TensorType:
        type = self.input.type
        need_length(self, "sizes", self.sizes, type.rank)
        need_length(self, "scales", self.scales, type.rank)
        if any(s <= 0 for s in self.scales) or any(have < 1 or want < 1 for have, want in zip(type.shape, self.sizes)):
            raise self.shape_error(f"{list(type.shape)} cannot become {list(self.sizes)} by {list(self.scales)}")
        return type.with_shape(self.sizes) if self.mode == "nearest" else TensorType(self.sizes, type.dtype)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        (out,) = (x,) if self.mode == "nearest" else widened(x)
        for axis in self.moving():
            out = self.along(out, axis)
        if self.coordinates == "tf_crop_and_resize":
            for axis in self.moving():
                place = self.place(axis)
                outside = (place < 0) | (place > x.shape[axis] - 1)
                out[(slice(None),) * axis + (outside,)] = self.extrapolation
        return out.astype(x.dtype, copy=out is x)

    def moving(self) -> list[int]:
        """Axes that are not copied as they are."""
        crop = self.coordinates == "tf_crop_and_resize"
        return [
            axis
            for axis, (have, want, scale) in enumerate(zip(self.input.shape, self.sizes, self.scales))
            if (have, 1.0) != (want, scale) or (crop and self.region(axis) != (0.0, 1.0))
        ]

    def region(self, axis: int) -> tuple[float, float]:
        """(start, end) of the part of an axis that is resized, as fractions of its length."""
        rank = self.input.type.rank
        return (self.roi[axis], self.roi[rank + axis]) if self.roi else (0.0, 1.0)

    def place(self, axis: int) -> np.ndarray:
        """Real source positions of the result positions of an axis."""
        facts = self.scales[axis], self.input.shape[axis], self.sizes[axis], self.region(axis)
        return source_positions(self.coordinates, *facts)

    def taps(self, axis: int) -> tuple[Array, Array]:
        """Linear and cubic: (result length, taps) source indices inside the axis, and their weights in float64."""
        have = self.input.shape[axis]
        shrink = min(self.scales[axis], 1.0) if self.antialias else 1.0
        index, weight = kernel_taps(self.mode, self.place(axis), self.cubic_a, shrink)
        if self.exclude_outside:
            weight = weight * ((index >= 0) & (index < have))
            weight = weight / weight.sum(axis=-1, keepdims=True)
        return np.clip(index, 0, have - 1), weight

    def along(self, x: np.ndarray, axis: int) -> np.ndarray:
        """`x` resized along one axis."""
        if self.mode == "nearest":
            have = x.shape[axis]
            index = np.clip(ROUNDINGS[self.rounding](self.place(axis)), 0, have - 1).astype(np.int64)
            return np.take(x, index, axis=axis)
        index, weight = self.taps(axis)
        shape = [-1 if i == axis else 1 for i in range(x.ndim)]
        total: Any = 0
        for tap in range(index.shape[1]):
            factor = weight[:, tap].astype(x.dtype).reshape(shape)
            total = total + np.take(x, index[:, tap], axis=axis) * factor
        return total

    def check(self) -> None:
        if self.mode not in MODES or self.coordinates not in COORDINATES or self.rounding not in ROUNDINGS:
            raise self.invalid(f"unknown mode: {self.mode}, {self.coordinates}, {self.rounding}")
        if self.mode != "nearest":
            need_float(self, "the operand", self.input)
        if self.roi and len(self.roi) != 2 * self.input.type.rank:
            raise self.invalid("roi needs a start and an end for every axis")


@tensorop("grid_sample")
class GridSample(TensorOp):
    """Values of each image at the real places that a grid names, from -1 to 1 over each axis, as ONNX defines it.

    input (N, C, D1, ..., Dk), grid (N, O1, ..., Ok, k) with the place along the *last* axis first, result
    (N, C, O1, ..., Ok). With align_corners, -1 and 1 are the centres of the outer elements, else their outer edges.
    padding: "zeros", "border" (the nearest element), "reflection" (at the same edges).

    %y = "tensorop.grid_sample"(%x, %g) {mode = "cubic", padding = "border"} : (tensor<1x8x4x4xf32>,
         tensor<1x6x6x2xf32>) -> tensor<1x8x6x6xf32>
    """

    input = operand()
    grid = operand()
    mode = attr(str, "linear")
    padding = attr(str, "zeros")
    align_corners = attr(bool, False)

    def infer(self) -> TensorType:
        shape, grid = self.input.shape, self.grid.shape
        if len(shape) < 3 or len(grid) != len(shape) or grid[0] != shape[0] or grid[-1] != len(shape) - 2:
            raise self.shape_error(f"a grid of shape {list(grid)} does not fit input {list(shape)}")
        return TensorType((*shape[:2], *grid[1:-1]), self.input.dtype)

    def evaluate(self, x: np.ndarray, grid: np.ndarray) -> np.ndarray:
        sizes = x.shape[2:]
        axes = [self.axis_taps(grid[..., len(sizes) - 1 - i].astype(np.float64), size) for i, size in enumerate(sizes)]
        images = np.arange(x.shape[0]).reshape(-1, *[1] * len(sizes))
        total: Any = 0
        moved = np.moveaxis(x, 1, -1)
        for taps in product(*(range(index.shape[-1]) for index, _ in axes)):
            weight: Any = 1.0
            for (_, factor), tap in zip(axes, taps):
                weight = weight * factor[..., tap]
            places = (images, *(index[..., tap] for (index, _), tap in zip(axes, taps)))
            total = total + moved[places] * weight[..., None]
        return np.ascontiguousarray(np.moveaxis(total, -1, 1)).astype(x.dtype)

    def axis_taps(self, place: np.ndarray, size: int) -> tuple[Array, Array]:
        """Indices inside the axis and weights, (..., taps), for grid values along one axis."""
        place = (place + 1) / 2 * (size - 1) if self.align_corners else ((place + 1) * size - 1) / 2
        low, high = (0.0, size - 1.0) if self.align_corners else (-0.5, size - 0.5)
        if self.mode == "nearest":
            place = np.rint(place)
        if self.padding != "zeros" and self.mode != "cubic":  # which finds each of its elements by itself
            inner = np.clip(place, 0, size - 1) if self.padding == "border" else _reflected(place, low, high)
            place = np.where((place < low) | (place > high), inner, place)
        if self.mode == "nearest":
            index, weight = np.rint(place)[..., None].astype(np.int64), np.ones((*place.shape, 1))
        else:
            index, weight = kernel_taps(self.mode, place, -0.75)
        if self.padding == "zeros":
            weight = weight * ((index >= 0) & (index < size))
        elif self.padding == "reflection":
            index = _reflected(index.astype(np.float64), low, high).astype(np.int64)
        return np.clip(index, 0, size - 1), weight

    def check(self) -> None:
        need_float(self, "grid", self.grid)
        if self.mode != "nearest":
            need_float(self, "the input", self.input)
        if self.mode not in MODES or self.padding not in ("zeros", "border", "reflection"):
            raise self.invalid(f"unknown mode {self.mode} or padding {self.padding}")


def _reflected(place: np.ndarray, low: float, high: float) -> np.ndarray:
    """Positions mirrored at `low` and `high` until they lie between them."""
    span = high - low
    if span <= 0:
        return np.zeros_like(place)
    folded = np.mod(place - low, 2 * span)
    return low + np.minimum(folded, 2 * span - folded)


@tensorop("roi_align")
class RoiAlign(TensorOp):
    """Each region of an image resampled to one size: mean (or maximum) of bilinear samples per cell.

    input (N, C, H, W), rois (R, 4: x1, y1, x2, y2), images (R) integers -> (R, C, size). Corners are multiplied by
    spatial_scale, and shifted by -0.5 with half_pixel, else regions are at least 1 x 1. A cell takes samples x samples
    places, ceil(region / size) of them where samples is 0. method "max" takes the largest weighted neighbour.

    %y = "tensorop.roi_align"(%x, %r, %i) {samples = 2, size = [7, 7], spatial_scale = 0.5} : (tensor<1x8x32x32xf32>,
         tensor<5x4xf32>, tensor<5xi64>) -> tensor<5x8x7x7xf32>

    Raises RuntimeUseError at run time for an image outside -N .. N-1.
    """

    index_operands = (2,)

    input = operand(4, FLOAT)
    rois = operand(2, FLOAT)
    images = operand(1, INTEGER)
    size = attr(Pair)
    samples = attr(int, 0)
    spatial_scale = attr(float, 1.0)
    method = attr(one_of("mean", "max"), "mean")
    half_pixel = attr(bool, True)

    def infer(self) -> TensorType:
        count = self.images.shape[0]
        if self.rois.shape != (count, 4) or min(self.size) < 1 or self.samples < 0:
            raise self.shape_error(f"rois {list(self.rois.shape)} for {count} images, size {list(self.size)}")
        return TensorType((count, self.input.shape[1], *self.size), self.input.dtype)

    def evaluate(self, x: Array, rois: Array, images: Array) -> Array:
        out = np.zeros(self.result.shape, x.dtype)
        for i, (roi, image) in enumerate(zip(rois.astype(np.float64), places(images, len(x)))):
            facts = zip((self.span(roi, axis) for axis in (1, 0)), self.size, x.shape[2:])
            rows, columns = (self.samples_along(*span, cells, size) for span, cells, size in facts)
            out[i] = self.cells(x[image], rows, columns)
        return out

    def span(self, roi: Array, axis: int) -> tuple[float, float]:
        """Where a region starts along an axis (0: x, 1: y), and its extent, in pixels; `roi`: its corners, f64."""
        shift = 0.5 if self.half_pixel else 0.0
        start = float(roi[axis]) * self.spatial_scale - shift
        extent = float(roi[axis + 2]) * self.spatial_scale - shift - start
        return start, extent if self.half_pixel else max(extent, 1.0)

    def samples_along(self, start: float, extent: float, cells: int, size: int) -> tuple[Array, Array]:
        """Indices (cells, samples, 2) and weights of all samples along one axis; no weight outside the image."""
        count = self.samples or max(1, int(np.ceil(extent / cells)))
        steps = (np.arange(cells)[:, None] + (np.arange(count) + 0.5) / count) * (extent / cells)
        place = start + steps
        inside = (place >= -1.0) & (place <= size)
        index, weight = kernel_taps("linear", np.clip(place, 0, size - 1), 0.0)
        return np.clip(index, 0, size - 1), weight * inside[..., None]

    def cells(
        self, image: np.ndarray, rows: tuple[np.ndarray, np.ndarray], columns: tuple[np.ndarray, np.ndarray]
    ) -> np.ndarray:
        """Pooled samples of one region, (channels, cell rows, cell columns)."""
        (y, wy), (x, wx) = rows, columns
        # axes: channel, cell row, sample row, neighbour row, cell column, sample column, neighbour column
        found = image[:, y[..., None, None, None], x]
        parts = found * wy[..., None, None, None] * wx
        if self.method == "max":
            return parts.max(axis=(2, 3, 5, 6))
        return parts.sum(axis=(3, 6)).mean(axis=(2, 4))
