"""Pooling (bmlang.md 4.9). Means of integers are exact, halves rounded away from zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bmcompiler.frontends.bmlang.emit import Emit
from bmcompiler.frontends.bmlang.meanings.registry import Call, meaning
from bmcompiler.frontends.bmlang.numbers import largest
from bmcompiler.frontends.bmlang.types import PoolParam, PoolType
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array

FEW = 1 << 12
"""Elements of 8 bits whose mean, as a quotient of float32 numbers, is never rounded to a half that it is not."""


@dataclass(frozen=True)
class Side:
    """The windows along one axis.

    Attributes:
        before, after: padding that the caller asks for. count: windows.
    """

    size: int
    kernel: int
    stride: int
    before: int
    after: int
    count: int

    @property
    def end(self) -> int:
        """Padding behind the axis that the windows reach; more than `after` where the number was rounded up."""
        return max((self.count - 1) * self.stride + self.kernel - self.size - self.before, 0)

    @property
    def plain(self) -> bool:
        """Whether the pooling ops have this: no window begins in the padding behind it, or has only padding."""
        return max(self.before, self.after) < self.kernel and (self.count - 1) * self.stride < self.size + self.before

    def counts(self, padding: bool) -> Array:
        """Elements of each window, with or without padding."""
        starts = np.arange(self.count) * self.stride
        low, high = (0, self.size + self.before + self.after) if padding else (self.before, self.before + self.size)
        return np.minimum(starts + self.kernel, high) - np.maximum(starts, low)


def _side(c: Call, size: int, kernel: int, stride: int, before: int, offset: int) -> Side:
    p, after = c["pool_param"], before + offset
    span = size + before + after - kernel
    if min(kernel, stride) < 1 or min(before, after) < 0 or span < 0:
        raise c.wrong(f"a window of {kernel} with stride {stride} and pads {before}, {after} does not fit {size}")
    count = -(-span // stride) + 1 if p.is_ceil_mode else span // stride + 1
    if p.ensure_pool_image and (count - 1) * stride >= size + before:
        count -= 1
    return Side(size, kernel, stride, before, after, count)


@meaning("pool")
def pool(e: Emit, c: Call) -> Value:
    """The largest value or the mean of each window."""
    x, p = c["tensor_i"], c["pool_param"]
    if x.type.rank != 4:
        raise c.wrong(f"tensor_i needs 4 axes, got {list(x.shape)}")
    if p.pooling_type == PoolType.UNKNOWN:
        raise c.wrong("pooling_type must be MAX or AVE")
    sides = _sides(c, x, p)
    if p.pooling_type == PoolType.MAX:
        return _largest(e, x, sides, p.is_ceil_mode)
    if all(side.plain for side in sides):
        if x.type.is_float:
            return e.op("avg_pool", x, **_window(sides, p.is_ceil_mode), count_include_pad=p.is_ave_count_zero_pad)
        sizes = {int(n) for n in np.outer(*(side.counts(p.is_ave_count_zero_pad) for side in sides)).ravel()}
        if len(sizes) == 1 and (size := sizes.pop()) == sides[0].kernel * sides[1].kernel <= FEW:
            return _bytes(e, x, _window(sides, p.is_ceil_mode), size)
    return _quotient(e, c, x, sides)


def _sides(c: Call, x: Value, p: PoolParam) -> tuple[Side, Side]:
    _, _, height, width = x.shape
    if p.is_global_pooling:
        return Side(height, height, 1, 0, 0, 1), Side(width, width, 1, 0, 0, 1)
    return (
        _side(c, height, p.kernel_h, p.stride_h, p.pad_h, p.pad_h_offset),
        _side(c, width, p.kernel_w, p.stride_w, p.pad_w, p.pad_w_offset),
    )


def _window(sides: tuple[Side, Side], ceil: bool) -> dict[str, Any]:
    """Attributes of the pooling ops."""
    down, across = sides
    return {
        "kernel": (down.kernel, across.kernel),
        "strides": (down.stride, across.stride),
        "pads": (down.before, down.after, across.before, across.after),
        "ceil_mode": ceil,
    }


def _padded(e: Emit, x: Value, sides: tuple[Side, Side], value: float) -> Value:
    """The map with all the padding that windows reach."""
    pads = (0, 0, 0, 0, sides[0].before, sides[0].end, sides[1].before, sides[1].end)
    return e.op("pad", x, pads=pads, value=value) if any(pads) else x


def _largest(e: Emit, x: Value, sides: tuple[Side, Side], ceil: bool) -> Value:
    """Padding never wins; a window of nothing else has the lowest value of the type."""
    if all(side.plain for side in sides):
        window = _window(sides, ceil)
    else:
        lowest = -largest(x.type.numpy) if x.type.is_float else float(np.iinfo(x.type.numpy).min)
        x = _padded(e, x, sides, lowest)
        window = {**_window(sides, False), "pads": (0, 0, 0, 0)}
    return e.op("max_pool", x, **window)


def _bytes(e: Emit, x: Value, window: dict[str, Any], size: int) -> Value:
    """The mean of bytes in windows of one size, all padding counted."""
    return e.op("avg_pool", x, **window, count_include_pad=True, scale=reciprocal(size))


def reciprocal(count: int) -> float:
    """A float32 number just not below 1 / count: its product with a sum that is a half is one, or just beyond it."""
    near = np.float32(1) / np.float32(count)
    return float(near if float(near) * count >= 1 else np.nextafter(near, np.float32(1)))


def _quotient(e: Emit, c: Call, x: Value, sides: tuple[Side, Side]) -> Value:
    """Sums by a convolution with ones, divided by the size of each window."""
    padding = c["pool_param"].is_ave_count_zero_pad
    counts = np.outer(*(side.counts(padding) for side in sides))
    if counts.min() < 1 and not padding:
        raise c.wrong("a window without image data has no mean; set ensure_pool_image or count the padding")
    channels = x.shape[1]
    kernel = (sides[0].kernel, sides[1].kernel)
    real = _padded(e, e.cast(x, "f32"), sides, 0.0)
    ones = e.const(np.ones((channels, 1, *kernel), np.float32))
    sums = e.op("conv", real, ones, group=channels, strides=(sides[0].stride, sides[1].stride))
    sizes = e.const(np.maximum(counts, 1).astype(np.float32).reshape(1, 1, *counts.shape))
    return e.cast(e.op("div", sums, sizes), x.dtype)
