"""Upsample, Resize, GridSample and RoiAlign. What only repeats or drops whole rows and columns becomes those ops."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, prod

import numpy as np

from bmcompiler.errors import FileFormatError, ShapeError
from bmcompiler.frontends.onnx.node import Node, axes_of, choice
from bmcompiler.frontends.onnx.ops.layout import slice_axes, to_shape
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.places.resample import COORDINATES, MODES, ROUNDINGS, source_positions

_MAX_LENGTH = 2**20


@onnx_op("Upsample")
def upsample_by_attribute(node: Node, b: Builder) -> Value:
    return _upsample(node, b, node.floats("scales"))


@onnx_op("Upsample", since=9)
def upsample_by_input(node: Node, b: Builder) -> Value:
    return _upsample(node, b, _floats(node, 1) or ())


def _upsample(node: Node, b: Builder, scales: Sequence[float]) -> Value:
    mode = choice("mode", node.string("mode", "nearest"), MODES)
    sizes = _sizes(node.shape(), scales)
    return _resized(b, node.input(0), scales, sizes, mode=mode, coordinates="asymmetric", rounding="floor")


@onnx_op("Resize")
def resize_10(node: Node, b: Builder) -> Value:
    return _upsample(node, b, _floats(node, 1) or ())


@onnx_op("Resize", since=11)
def resize(node: Node, b: Builder) -> Value:
    x, shape = node.input(0), node.shape()
    axes = node.ints("axes", tuple(range(len(shape))))
    axes_of(axes, len(shape))
    axes = tuple(axis % len(shape) for axis in axes)
    scales, sizes = _targets(node, axes)
    coordinates = choice(
        "coordinate_transformation_mode",
        node.string("coordinate_transformation_mode", "half_pixel"),
        (*COORDINATES, "tf_half_pixel_for_nn"),
    )
    attributes = {
        "mode": choice("mode", node.string("mode", "nearest"), MODES),
        # what opset 11 called so is half_pixel without the correction for negative positions
        "coordinates": "half_pixel" if coordinates == "tf_half_pixel_for_nn" else coordinates,
        "rounding": choice("nearest_mode", node.string("nearest_mode", "round_prefer_floor"), ROUNDINGS),
        "cubic_a": node.float("cubic_coeff_a", -0.75),
        "exclude_outside": node.flag("exclude_outside"),
        "antialias": node.flag("antialias"),
        "extrapolation": node.float("extrapolation_value", 0.0),
    }
    if coordinates == "tf_crop_and_resize":
        roi = _floats(node, 1) or ()
        if len(roi) != 2 * len(axes):
            raise ShapeError(f"roi {list(roi)} needs a start and an end for each of {len(axes)} axes")
        starts = _spread(roi[: len(axes)], axes, (0.0,) * len(shape))
        attributes["roi"] = (*starts, *_spread(roi[len(axes) :], axes, (1.0,) * len(shape)))
    elif tuple(sizes) == shape and all(s == 1 for s in scales):
        return x
    return _resized(b, x, scales, sizes, **attributes)


def _targets(node: Node, axes: Sequence[int]) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Scale and result length of every axis."""
    shape = node.shape()
    policy = node.string("keep_aspect_ratio_policy", "stretch")
    scales, sizes = _floats(node, 2), node.constant_ints(3)
    if scales:
        scales = _spread(scales, axes, (1.0,) * len(shape))
        return scales, _sizes(shape, scales)
    if not sizes:
        raise FileFormatError("has neither scales nor sizes")
    wanted = [int(s) for s in _spread(sizes, axes, shape)]
    scales = tuple(want / have if have else 0.0 for want, have in zip(wanted, shape))
    pick = {"stretch": None, "not_larger": min, "not_smaller": max}[
        choice("keep_aspect_ratio_policy", policy, ("stretch", "not_larger", "not_smaller"))
    ]
    if pick is not None:
        ratio = pick(scales[axis] for axis in axes)
        scales = tuple(ratio if axis in axes else 1.0 for axis in range(len(shape)))
        wanted = [floor(d * s + 0.5) for d, s in zip(shape, scales)]
    return scales, tuple(wanted)


def _floats(node: Node, index: int) -> tuple[float, ...] | None:
    if not node.has(index):
        return None
    array = node.constant(index)
    if array.dtype.kind != "f" or array.ndim > 1:
        raise FileFormatError(f"input {index} must be a list of reals, got {array.dtype}{list(array.shape)}")
    return tuple(float(v) for v in array.reshape(-1))


def _spread(values: Sequence[float], axes: Sequence[int], rest: Sequence[float]) -> tuple[float, ...]:
    """`values` at `axes`, `rest` elsewhere."""
    if len(values) != len(axes):
        raise ShapeError(f"{len(values)} scales or sizes for {len(axes)} axes")
    full = list(rest)
    for axis, value in zip(axes, values):
        full[axis] = value
    return tuple(full)


def _sizes(shape: Sequence[int], scales: Sequence[float]) -> tuple[int, ...]:
    if len(scales) != len(shape) or not all(0 < s < _MAX_LENGTH for s in scales):
        raise ShapeError(f"scales {list(scales)} do not fit input {list(shape)}")
    return tuple(floor(d * s) for d, s in zip(shape, scales))


def _resized(b: Builder, x: Value, scales: Sequence[float], sizes: Sequence[int], **attributes: object) -> Value:
    """A resize, or repetition and slices where a nearest-neighbour resize is no more than those."""
    for axis, (have, want) in enumerate(zip(x.shape, sizes)):
        if have != want and not (1 <= want <= _MAX_LENGTH and have >= 1):
            raise ShapeError(f"axis {axis} with {have} elements cannot become {want}")
    mode, coordinates = str(attributes["mode"]), str(attributes["coordinates"])
    if mode == "nearest" and coordinates != "tf_crop_and_resize":
        plan = _repetition(x.shape, scales, sizes, coordinates, str(attributes["rounding"]))
        if plan is not None:
            factors, cuts = plan
            return repeat(b, slice_axes(b, x, cuts), factors)
    return b.resize(x, sizes=sizes, scales=scales, **attributes)


def _repetition(
    shape: Sequence[int], scales: Sequence[float], sizes: Sequence[int], coordinates: str, rounding: str
) -> tuple[list[int], dict[int, tuple[int, int, int]]] | None:
    """Repeat factor per axis, and slices by axis; None when some axis needs neither of them."""
    factors = [1] * len(shape)
    cuts: dict[int, tuple[int, int, int]] = {}
    for axis, (have, want, scale) in enumerate(zip(shape, sizes, scales)):
        if have == want and scale == 1:
            continue
        place = source_positions(coordinates, scale, have, want)
        index = np.clip(ROUNDINGS[rounding](place), 0, have - 1).astype(np.int64)
        if want % have == 0 and np.array_equal(index, np.arange(want) // (want // have)):
            factors[axis] = want // have
            continue
        step = int(index[1] - index[0]) if want > 1 else 1
        if step < 1 or not np.array_equal(index, index[0] + step * np.arange(want)):
            return None
        cuts[axis] = (int(index[0]), int(index[-1]) + 1, step)
    return factors, cuts


def repeat(b: Builder, x: Value, factors: Sequence[int]) -> Value:
    """Each element `factors[axis]` times along every axis."""
    if x.type.rank == 4 and factors[0] == factors[1] == 1:
        return b.upsample(x, scale=(factors[2], factors[3])) if max(factors) > 1 else x
    for axis, factor in enumerate(factors):
        if factor > 1:
            outer, size, inner = prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
            rows = b.upsample(to_shape(b, x, (1, outer, size, inner)), scale=(factor, 1))
            x = to_shape(b, rows, (*x.shape[:axis], size * factor, *x.shape[axis + 1 :]))
    return x


# -- sampling -----------------------------------------------------------------------
_SAMPLE_MODES = {"bilinear": "linear", "bicubic": "cubic", "linear": "linear", "cubic": "cubic", "nearest": "nearest"}
_PADDINGS = ("zeros", "border", "reflection")


@onnx_op("GridSample", since=16)
def grid_sample(node: Node, b: Builder) -> Value:
    mode = choice("mode", node.string("mode", "linear"), _SAMPLE_MODES)
    padding = choice("padding_mode", node.string("padding_mode", "zeros"), _PADDINGS)
    x, grid, corners = node.input(0), node.input(1), node.flag("align_corners")
    return b.grid_sample(x, grid, mode=_SAMPLE_MODES[mode], padding=padding, align_corners=corners)


@onnx_op("RoiAlign", since=10)
def roi_align(node: Node, b: Builder) -> Value:
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    placing = node.string("coordinate_transformation_mode", default)
    method = choice("mode", node.string("mode", "avg"), ("avg", "max"))
    return b.roi_align(
        *(node.input(i) for i in range(3)),
        size=(node.int("output_height", 1), node.int("output_width", 1)),
        samples=node.int("sampling_ratio", 0),
        spatial_scale=node.float("spatial_scale", 1.0),
        method="max" if method == "max" else "mean",
        half_pixel=choice("coordinate_transformation_mode", placing, ("half_pixel", "output_half_pixel"))
        == "half_pixel",
    )
