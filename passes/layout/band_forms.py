"""How an op on one image is computed on bands of its rows: which rows it reads, and what changes in its attributes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ir.keys import is_weight
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Prelu
from bmcompiler.ops.layers.nn import Conv, Deconv
from bmcompiler.ops.layers.pool import AvgPool, MaxPool, Pool
from bmcompiler.ops.places.shape import Concat, Pad, Upsample

_LEAST_ROWS = 4
"""Images of fewer rows have no work for several bands."""
_SPARE = 0.15
"""Part of the rows of a band that may be spent to make them divisible by higher powers of two."""


@dataclass(frozen=True)
class BandForm:
    """An op on bands.

    Attributes:
        height: rows of the image that results; bands: how many.
        operands: numbers of the operands that are bands; the others stay as they are.
        stride, grow: rows of the operands for `grow` rows of the result are `stride`.
        top, bottom: rows of the neighbouring bands that it reads. fill: what stands outside of the image.
        changes: attributes of the op on bands. below: whether results of the image read `fill` below it.
    """

    height: int
    bands: int
    operands: tuple[int, ...]
    stride: int = 1
    grow: int = 1
    top: int = 0
    bottom: int = 0
    fill: int = 0
    changes: dict[str, Any] = field(default_factory=dict)
    below: bool = False

    def rows(self, known: Value | None) -> int:
        """Rows of a band of the result; `known` is an operand that is bands already."""
        best = best_rows(-(-self.height // self.grow), self.bands) * self.grow
        if known is None:
            return best
        rows, rest = divmod(known.shape[2] * self.grow, self.stride)
        fits = rest == 0 and self.bands * rows >= self.height and rows <= best * (1 + _SPARE)
        return rows if fits else best

    def rows_read(self, rows: int) -> int:
        """Rows of the operands, without those of neighbours, for `rows` of the result."""
        return rows * self.stride // self.grow


def best_rows(height: int, bands: int) -> int:
    """Rows of the bands of an image: few, and halved as often as possible, so that strides keep bands apart."""
    least = -(-height // bands)
    best, step = least, 2
    while step <= least:
        rounded = -(-least // step) * step
        if rounded <= least * (1 + _SPARE):
            best = rounded
        step *= 2
    return best


def band_form(op: TensorOp, bands: int) -> BandForm | None:
    """The form of an op whose result is one image of several rows, None where there is none."""
    if len(op.results) != 1 or op.type.rank != 4 or op.type.shape[0] != 1 or op.type.shape[2] < _LEAST_ROWS:
        return None
    if isinstance(op, Conv):
        return _conv(op, bands)
    if isinstance(op, Deconv):
        return _deconv(op, bands)
    if isinstance(op, (MaxPool, AvgPool)):
        return _pool(op, bands)
    if isinstance(op, Upsample):
        return BandForm(op.type.shape[2], bands, (0,), 1, op.scale[0])
    if isinstance(op, Concat):
        return _concat(op, bands)
    if isinstance(op, Pad):
        return _pad(op, bands)
    if op.broadcasts:
        return _broadcast(op, bands)
    return _pointwise(op, bands) if op.pointwise or isinstance(op, Prelu) else None


def _pointwise(op: TensorOp, bands: int) -> BandForm | None:
    """The first operand is bands; the others are tables."""
    tables = all(map(is_weight, op.operands[1:])) and op.operands[0].shape == op.type.shape
    return BandForm(op.type.shape[2], bands, (0,)) if tables and not is_weight(op.operands[0]) else None


def _broadcast(op: TensorOp, bands: int) -> BandForm | None:
    """Operands of the shape of the result are bands; the others repeat along images and rows."""
    read = tuple(i for i, v in enumerate(op.operands) if v.shape == op.type.shape and not is_weight(v))
    rest = [value for i, value in enumerate(op.operands) if i not in read]
    return BandForm(op.type.shape[2], bands, read) if read and all(map(_repeats, rest)) else None


def _repeats(value: Value) -> bool:
    """Whether broadcasting gives all images and all rows of a result the same."""
    n, _, h, _ = (1,) * (4 - value.type.rank) + value.shape
    return (n, h) == (1, 1)


def _concat(op: Concat, bands: int) -> BandForm | None:
    if op.axis % 4 != 1 or any(map(is_weight, op.operands)):
        return None
    return BandForm(op.type.shape[2], bands, tuple(range(len(op.operands))))


def _pad(op: Pad, bands: int) -> BandForm | None:
    """Channels of one number more."""
    only_channels = op.mode == "constant" and not any((*op.pads[:2], *op.pads[4:]))
    return BandForm(op.type.shape[2], bands, (0,)) if only_channels else None


def _conv(op: Conv, bands: int) -> BandForm | None:
    if not all(map(is_weight, op.operands[1:])):
        return None
    reach = op.dilations[0] * (op.weight.shape[2] - 1)
    fill = op.zero_points[0] if op.zero_points else 0
    return _sliding(op, bands, reach, fill, {"pads": (0, 0, *op.pads[2:])})


def _sliding(op: Conv | Pool, bands: int, reach: int, fill: int, changes: dict[str, Any]) -> BandForm | None:
    """Windows that reach over `reach` rows beyond their first."""
    top, stride = op.pads[0], op.strides[0]
    if top > reach or op.operands[0].shape[2] < _LEAST_ROWS:
        return None
    bottom = max(0, reach + 1 - stride - top)
    below = (op.type.shape[2] - 1) * stride - top + reach >= op.operands[0].shape[2]
    return BandForm(op.type.shape[2], bands, (0,), stride, 1, top, bottom, fill, changes, below)


def _deconv(op: Deconv, bands: int) -> BandForm | None:
    """Of the rows that the bands with their neighbours make, pads cut away what belongs to other bands."""
    top, stride, reach = op.pads[0], op.strides[0], op.dilations[0] * (op.weight.shape[2] - 1)
    height = op.input.shape[2]
    above, below = max(0, (reach - top) // stride), (stride - 1 + top) // stride
    cut = above * stride + top, (below - 1) * stride + reach + 1 - top
    if not all(map(is_weight, op.operands[1:])) or min(cut) < 0 or height < _LEAST_ROWS or op.zero_points:
        return None
    changes = {"pads": (*cut, *op.pads[2:]), "output_pads": (0, op.output_pads[1])}
    outside = (op.type.shape[2] - 1 + top) // stride >= height
    return BandForm(op.type.shape[2], bands, (0,), 1, stride, above, below, 0, changes, outside)


def _pool(op: Pool, bands: int) -> BandForm | None:
    _, _, left, right = op.pads
    if op.ceil_mode:  # what the last windows see beyond the padding becomes padding
        taps = op.taps()[1] * (op.kernel[1] - 1) + 1
        right = max(right, (op.type.shape[3] - 1) * op.strides[1] + taps - op.input.shape[3] - left)
    changes: dict[str, Any] = {"pads": (0, 0, left, right), "ceil_mode": False}
    if isinstance(op, AvgPool):
        changes["count_include_pad"] = True
        fill = 0
    else:
        fill = int(np.iinfo(op.type.numpy).min)
    return _sliding(op, bands, op.taps()[0] * (op.kernel[0] - 1), fill, changes)
