"""Ops that move elements and compute nothing: every element type, and the quantization stays."""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import (
    Axis,
    Ints,
    Pair,
    PerAxis,
    PerAxisPairs,
    TensorOp,
    attr,
    operand,
    tensorop,
    variadic_operand,
)
from bmcompiler.ops.shared import need_axis, need_length

_PAD_MODES = ("constant", "reflect", "edge", "symmetric")


class Moving(TensorOp):
    """Base of ops that only move elements, from places in the operands that shapes and attributes decide.

    An op derived from it that reads one tensor needs nothing further for int8: it is the same op on integers.
    """

    moves_only = True
    selects = True


@tensorop("reshape")
class Reshape(Moving):
    """The same elements in row-major order under another shape (every dimension given).

    %y = "tensorop.reshape"(%x) {shape = [1, 128]} : (tensor<1x8x4x4xf32>) -> tensor<1x128xf32>
    """

    x = operand()
    shape = attr(Ints)

    def infer(self) -> TensorType:
        if min(self.shape, default=0) < 0 or prod(self.shape) != self.x.type.size:
            raise self.shape_error(f"{list(self.x.shape)} cannot become {list(self.shape)}")
        return self.operands[0].type.with_shape(self.shape)

    def evaluate(self, x: Array) -> Array:
        return x.reshape(self.shape)

    def is_identity(self) -> bool:
        return True


@tensorop("permute")
class Permute(Moving):
    """out axis i is x axis order[i].

    %y = "tensorop.permute"(%x) {order = [0, 2, 3, 1]} : (tensor<1x8x4x4xf32>) -> tensor<1x4x4x8xf32>
    """

    x = operand()
    order = attr(Ints)

    def infer(self) -> TensorType:
        if sorted(self.order) != list(range(self.x.type.rank)):
            raise self.shape_error(f"order {list(self.order)} is no order of {self.x.type.rank} axes")
        return self.operands[0].type.with_shape(tuple(self.x.shape[i] for i in self.order))

    def evaluate(self, x: Array) -> Array:
        return np.ascontiguousarray(x.transpose(self.order))

    def is_identity(self) -> bool:
        return self.order == tuple(range(len(self.order)))


@tensorop("concat")
class Concat(Moving):
    """The operands one after the other along `axis`; all other dimensions equal, one element type.

    %y = "tensorop.concat"(%a, %b) {axis = 1} : (tensor<1x8x4x4xf32>, tensor<1x4x4x4xf32>) -> tensor<1x12x4x4xf32>
    """

    x = variadic_operand()
    axis = attr(Axis)
    one_type = True
    follows_axes = True

    def infer(self) -> TensorType:
        if not self.x:
            raise self.shape_error("takes at least one operand")
        first = self.x[0].type
        axis = need_axis(self, self.axis, first.rank)
        around = (first.shape[:axis], first.shape[axis + 1 :])
        for value in self.x:
            if value.type.rank != first.rank or (value.shape[:axis], value.shape[axis + 1 :]) != around:
                shapes = ", ".join(str(list(v.shape)) for v in self.x)
                raise self.shape_error(f"operands {shapes} differ outside axis {axis}")
        total = sum(value.shape[axis] for value in self.x)
        quant = first.quant if all(v.type.quant == first.quant for v in self.x) else None
        return TensorType((*around[0], total, *around[1]), first.dtype, quant)

    def evaluate(self, *arrays: np.ndarray) -> np.ndarray:
        return np.concatenate(arrays, axis=self.axis)

    def is_identity(self) -> bool:
        return len(self.operands) == 1


@tensorop("split")
class Split(Moving):
    """Consecutive pieces along `axis`, of the given sizes; one result per piece.

    %a, %b = "tensorop.split"(%x) {axis = 1, sizes = [2, 6]} : (tensor<1x8xf32>) -> (tensor<1x2xf32>, tensor<1x6xf32>)
    """

    x = operand()
    axis = attr(Axis)
    sizes = attr(Ints)
    follows_axes = True

    def infer(self) -> list[TensorType]:
        type = self.x.type
        axis = need_axis(self, self.axis, type.rank)
        if not self.sizes or min(self.sizes) < 0 or sum(self.sizes) != type.shape[axis]:
            raise self.shape_error(f"sizes {list(self.sizes)} do not add up to the {type.shape[axis]} of axis {axis}")
        return [type.with_shape((*type.shape[:axis], size, *type.shape[axis + 1 :])) for size in self.sizes]

    def evaluate(self, x: Array) -> tuple[Array, ...]:
        return tuple(np.split(x, np.cumsum(self.sizes[:-1]), axis=self.axis))

    def is_identity(self) -> bool:
        return len(self.results) == 1


@tensorop("slice")
class Slice(Moving):
    """Every steps[i]-th element of axis i from starts[i] up to and without ends[i]; one entry per axis.

    Normal form only: 0 <= start <= end <= dim for a positive step (start = end takes nothing); dim > start > end >= -1
    for a negative one, where end -1 means that element 0 is included.

    %y = "tensorop.slice"(%x) {ends = [1, 8], starts = [0, 2], steps = [1, 2]} : (tensor<1x8xf32>) -> tensor<1x3xf32>
    """

    x = operand()
    starts = attr(PerAxis)
    ends = attr(PerAxis)
    steps = attr(PerAxis)
    follows_axes = True

    def infer(self) -> TensorType:
        for name, items in (("starts", self.starts), ("ends", self.ends), ("steps", self.steps)):
            need_length(self, name, items, self.x.type.rank)
        shape = []
        for axis, (dim, start, end, step) in enumerate(zip(self.x.shape, self.starts, self.ends, self.steps)):
            if not (0 <= start <= end <= dim if step > 0 else step < 0 and dim > start > end >= -1):
                raise self.shape_error(f"{start}:{end}:{step} is no range of axis {axis} with {dim} elements")
            shape.append(len(range(start, end, step)))
        return self.operands[0].type.with_shape(tuple(shape))

    def evaluate(self, x: Array) -> Array:
        ranges = zip(self.starts, self.ends, self.steps)
        return x[tuple(slice(start, None if end < 0 else end, step) for start, end, step in ranges)]

    def is_identity(self) -> bool:
        return all(step == 1 for step in self.steps)


@tensorop("pad")
class Pad(TensorOp):
    """Elements added before and after each axis; pads = before, after of axis 0, before, after of axis 1, ...

    mode: constant (`value`; for integers its whole part), reflect (mirror without the border element), edge (border
    repeated), symmetric (mirror with the border element).

    %y = "tensorop.pad"(%x) {pads = [0, 0, 1, 1]} : (tensor<1x8xf32>) -> tensor<1x10xf32>
    """

    x = operand()
    pads = attr(PerAxisPairs)
    mode = attr(str, "constant")
    value = attr(float, 0.0)
    follows_axes = True

    def infer(self) -> TensorType:
        if self.mode not in _PAD_MODES:
            raise self.invalid(f"unknown mode '{self.mode}'; known: {', '.join(_PAD_MODES)}")
        need_length(self, "pads (two values each)", self.pads[::2], self.x.type.rank)
        shape = []
        for axis, dim in enumerate(self.x.shape):
            widths = self.pads[2 * axis : 2 * axis + 2]
            most = {"reflect": dim - 1, "symmetric": dim}.get(self.mode)
            if len(widths) != 2 or min(widths) < 0 or (most is not None and max(widths) > max(most, 0)):
                raise self.shape_error(
                    f"axis {axis} with {dim} elements cannot be padded by {list(widths)} ({self.mode})"
                )
            if self.mode == "edge" and not dim and any(widths):
                raise self.shape_error(f"axis {axis} is empty: no edge to repeat")
            shape.append(dim + sum(widths))
        return self.operands[0].type.with_shape(tuple(shape))

    def evaluate(self, x: Array) -> Array:
        widths = list(zip(self.pads[::2], self.pads[1::2]))
        if self.mode != "constant":
            return np.pad(x, widths, mode=self.mode)  # type: ignore[call-overload]  # `check` knows the modes
        shape = [before + d + after for (before, after), d in zip(widths, x.shape)]
        out = np.full(shape, self.value if x.dtype.kind == "f" else int(self.value), x.dtype)
        out[tuple(slice(before, before + d) for (before, _), d in zip(widths, x.shape))] = x
        return out

    def check(self) -> None:
        if self.x.type.is_float:
            return
        whole = np.iinfo(self.x.type.numpy) if self.x.type.is_integer else None
        limits = (0, 1) if whole is None else (whole.min, whole.max)
        if not limits[0] <= self.value <= limits[1]:
            raise self.invalid(f"value {self.value} does not fit {self.x.dtype}")

    def keeps_sign(self) -> bool:
        return not self.value < 0

    def keeps_range(self) -> bool:
        return True

    def is_identity(self) -> bool:
        return not any(self.pads)


@tensorop("upsample")
class Upsample(Moving):
    """Each element repeated scale[0] times down and scale[1] times across: out[n,c,y,x] = in[n,c,y/sh,x/sw].

    %y = "tensorop.upsample"(%x) {scale = [2, 2]} : (tensor<1x8x4x4xf32>) -> tensor<1x8x8x8xf32>
    """

    homogeneous = True
    x = operand(4)
    scale = attr(Pair)

    def infer(self) -> TensorType:
        if min(self.scale) < 1:
            raise self.shape_error(f"scale must be at least 1, got {list(self.scale)}")
        n, c, h, w = self.x.shape
        return self.operands[0].type.with_shape((n, c, h * self.scale[0], w * self.scale[1]))

    def evaluate(self, x: Array) -> Array:
        return x.repeat(self.scale[0], axis=2).repeat(self.scale[1], axis=3)

    def is_identity(self) -> bool:
        return True


@tensorop("interleave")
class Interleave(Moving):
    """The phases of a feature map, which lie side by side as channels, pixel by pixel.

    out[n, c, y*sh + i, x*sw + j] = in[n, (i*sw + j)*P + c, y, x] for the first `channels` of the P channels of a phase.

    %y = "tensorop.interleave"(%x) {channels = 8, scale = [2, 2]} : (tensor<1x32x4x4xf32>) -> tensor<1x8x8x8xf32>

    x (N, sh*sw*P, H, W), out (N, channels, H*sh, W*sw), channels <= P.
    """

    x = operand(4)
    scale = attr(Pair)
    channels = attr(int)

    def infer(self) -> TensorType:
        if min(self.scale) < 1:
            raise self.shape_error(f"scale must be at least 1, got {list(self.scale)}")
        (n, total, h, w), phases = self.x.shape, self.scale[0] * self.scale[1]
        if total % phases or not 0 < self.channels <= total // phases:
            raise self.shape_error(f"{total} channels are not {phases} phases of at least {self.channels}")
        return self.operands[0].type.with_shape((n, self.channels, h * self.scale[0], w * self.scale[1]))

    def evaluate(self, x: Array) -> Array:
        (n, total, h, w), (sh, sw) = x.shape, self.scale
        phases = x.reshape(n, sh, sw, total // (sh * sw), h, w)[:, :, :, : self.channels]
        return phases.transpose(0, 3, 4, 1, 5, 2).reshape(n, self.channels, h * sh, w * sw)


@tensorop("tile")
class Tile(Moving):
    """The whole tensor repeated reps[i] times along axis i.

    %y = "tensorop.tile"(%x) {reps = [1, 2]} : (tensor<1x8xf32>) -> tensor<1x16xf32>
    """

    x = operand()
    reps = attr(PerAxis)
    follows_axes = True

    def infer(self) -> TensorType:
        need_length(self, "reps", self.reps, self.x.type.rank)
        if min(self.reps, default=1) < 1:
            raise self.shape_error(f"reps must be at least 1, got {list(self.reps)}")
        return self.operands[0].type.with_shape(tuple(d * r for d, r in zip(self.x.shape, self.reps)))

    def evaluate(self, x: Array) -> Array:
        return np.tile(x, self.reps)

    def is_identity(self) -> bool:
        return True
