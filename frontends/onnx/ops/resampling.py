"""Upsample and Resize, where they repeat or drop whole rows and columns (nearest neighbour)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, prod

import numpy as np

from bmcompiler.builder import Builder
from bmcompiler.errors import FileFormatError, ShapeError, UnsupportedError
from bmcompiler.frontends.onnx.node import Node, axes_of, choice
from bmcompiler.frontends.onnx.ops.layout import slice_axes, to_shape
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value

_MAX_LENGTH = 2**20

# how a result position x_out maps to a source position: (x_out, scale, input length, result length) -> real
_COORDINATES: dict[str, Callable[[np.ndarray, float, int, int], np.ndarray]] = {
    "asymmetric": lambda x, scale, have, want: x / scale,
    "half_pixel": lambda x, scale, have, want: (x + 0.5) / scale - 0.5,
    "pytorch_half_pixel": lambda x, scale, have, want: (x + 0.5) / scale - 0.5 if want > 1 else x * 0.0,
    "half_pixel_symmetric": lambda x, scale, have, want: (
        have / 2 * (1 - want / (scale * have)) + (x + 0.5) / scale - 0.5
    ),
    "align_corners": lambda x, scale, have, want: x * (have - 1) / (want - 1) if want > 1 else x * 0.0,
}
_ROUNDINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


@onnx_op("Upsample")
def upsample_by_attribute(node: Node, b: Builder) -> Value:
    return _upsample(node, b, node.floats("scales"))


@onnx_op("Upsample", since=9)
def upsample_by_input(node: Node, b: Builder) -> Value:
    return _upsample(node, b, _floats(node, 1) or ())


def _upsample(node: Node, b: Builder, scales: Sequence[float]) -> Value:
    choice("mode", node.string("mode", "nearest"), ("nearest",))
    return _nearest(b, node.input(0), scales, _sizes(node.shape(), scales), coordinates="asymmetric", rounding="floor")


@onnx_op("Resize")
def resize_10(node: Node, b: Builder) -> Value:
    return _upsample(node, b, _floats(node, 1) or ())


@onnx_op("Resize", since=11)
def resize(node: Node, b: Builder) -> Value:
    x, shape = node.input(0), node.shape()
    node.ignore("cubic_coeff_a", "exclude_outside", "extrapolation_value", "antialias")
    mode = node.string("mode", "nearest")
    coordinates = node.string("coordinate_transformation_mode", "half_pixel")
    rounding = choice("nearest_mode", node.string("nearest_mode", "round_prefer_floor"), _ROUNDINGS)
    axes = node.ints("axes", tuple(range(len(shape))))
    axes_of(axes, len(shape))
    policy = node.string("keep_aspect_ratio_policy", "stretch")
    scales, sizes = _floats(node, 2), node.constant_ints(3)
    if scales:
        scales = _spread(scales, axes, (1.0,) * len(shape))
        sizes = _sizes(shape, scales)
    elif sizes:
        choice("keep_aspect_ratio_policy", policy, ("stretch",))
        sizes = tuple(int(s) for s in _spread(sizes, axes, shape))
        scales = tuple(want / have if have else 0.0 for want, have in zip(sizes, shape))
    else:
        raise FileFormatError("has neither scales nor sizes")
    if tuple(sizes) == shape and all(s == 1 for s in scales):
        return x
    choice("mode", mode, ("nearest",))
    choice("coordinate_transformation_mode", coordinates, _COORDINATES)
    return _nearest(b, x, scales, sizes, coordinates=coordinates, rounding=rounding)


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


def _nearest(
    b: Builder, x: Value, scales: Sequence[float], sizes: Sequence[int], *, coordinates: str, rounding: str
) -> Value:
    """Axis by axis: source index of every result index, which must be a plain repetition or a slice."""
    factors = [1] * x.type.rank
    cuts: dict[int, tuple[int, int, int]] = {}
    for axis, (have, want, scale) in enumerate(zip(x.shape, sizes, scales)):
        if have == want and scale == 1:
            continue
        if not 1 <= want <= _MAX_LENGTH or have < 1:
            raise ShapeError(f"axis {axis} with {have} elements cannot become {want}")
        place = _COORDINATES[coordinates](np.arange(want, dtype=np.float64), scale, have, want)
        index = np.clip(_ROUNDINGS[rounding](place), 0, have - 1).astype(np.int64)
        if want % have == 0 and np.array_equal(index, np.arange(want) // (want // have)):
            factors[axis] = want // have
            continue
        step = int(index[1] - index[0]) if want > 1 else 1
        if step < 1 or not np.array_equal(index, index[0] + step * np.arange(want)):
            raise UnsupportedError(
                f"axis {axis} goes from {have} to {want} elements ({coordinates}, {rounding}), which neither repeats "
                "each element equally often nor takes every n-th"
            )
        cuts[axis] = (int(index[0]), int(index[-1]) + 1, step)
    return repeat(b, slice_axes(b, x, cuts), factors)


def repeat(b: Builder, x: Value, factors: Sequence[int]) -> Value:
    """Each element `factors[axis]` times along every axis."""
    if x.type.rank == 4 and factors[0] == factors[1] == 1:
        out: Value = b.upsample(x, scale=(factors[2], factors[3])) if max(factors) > 1 else x
        return out
    for axis, factor in enumerate(factors):
        if factor > 1:
            outer, size, inner = prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
            rows = b.upsample(to_shape(b, x, (1, outer, size, inner)), scale=(factor, 1))
            x = to_shape(b, rows, (*x.shape[:axis], size * factor, *x.shape[axis + 1 :]))
    return x
