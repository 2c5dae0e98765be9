"""Repeated and resized feature maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from bmcompiler.backends.lanes.kernels.base import DeviceKernel, dims4, is_activation, item_bytes
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.backends.lanes.kernels.interpolate import InterpolateKernel
from bmcompiler.backends.lanes.kernels.layout import SelectKernel
from bmcompiler.backends.lanes.kernels.local_copies import repeat_pixels
from bmcompiler.codegen.tiling import TileWork
from bmcompiler.ops.resample import Resize
from bmcompiler.ops.shape import Upsample

_MOST_COPIES = 32
"""Commands of one op in local memory."""


class UpsampleKernel(SelectKernel[Upsample]):
    """upsample: one copy; repetitions are axes with source stride 0. In local memory some for each image."""

    ops = (Upsample,)

    def maps(self, op: Upsample) -> Sequence[np.ndarray]:
        n, c, h, w = (np.arange(size) for size in op.x.shape)
        return n, c, h.repeat(op.scale[0]), w.repeat(op.scale[1])

    def whole(self, op: Upsample) -> TileWork | None:
        copies = self.chip.words_of(dims4(op.x), item_bytes(op.x))[0] * op.scale[1]
        known = item_bytes(op.x) in (1, 2, 4) and is_activation(op.x) and self.chip.fits_fields(op.type.shape)
        return repeat_pixels(self.machine, op) if known and copies <= _MOST_COPIES else None


class NearestKernel(SelectKernel[Resize]):
    """resize to the nearest elements: a copy per evenly spaced run of them on every axis."""

    def maps(self, op: Resize) -> Sequence[np.ndarray]:
        found = [np.arange(size) for size in op.input.shape]
        for axis in op.moving():
            shape = [-1 if i == axis else 1 for i in range(op.type.rank)]
            index = op.along(found[axis].reshape(shape), axis).ravel()
            place = op.place(axis)
            cropped = op.coordinates == "tf_crop_and_resize"
            outside = cropped & ((place < 0) | (place > op.input.shape[axis] - 1))
            found[axis] = np.where(outside, -1, index)
        return found

    def filling(self, op: Resize) -> float:
        return float(op.extrapolation)


class ResizeKernel(FormsKernel[Resize]):
    """resize: a copy for the nearest elements (and where nothing moves), else weighted sums."""

    ops = (Resize,)
    kinds: ClassVar[tuple[type[DeviceKernel[Any]], ...]] = (NearestKernel, InterpolateKernel)

    def form(self, op: Resize) -> DeviceKernel[Any]:
        return self.forms[0 if op.mode == "nearest" or not op.moving() else 1]
