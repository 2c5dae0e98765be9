"""Repeated and resized feature maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from bmcompiler.backends.lanes.kernels.base import DeviceKernel, LocalKernel, dims4, is_activation, item_bytes
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.backends.lanes.kernels.moves.layout import SelectKernel
from bmcompiler.backends.lanes.kernels.moves.local_copies import repeat_pixels
from bmcompiler.backends.lanes.kernels.moves.selected_tiles import TiledSelectKernel
from bmcompiler.backends.lanes.kernels.sums.interpolate import InterpolateKernel
from bmcompiler.codegen.tiling import Axis, Box, TileWork
from bmcompiler.ops.places.resample import Resize
from bmcompiler.ops.places.shape import Upsample


class RepeatKernel(SelectKernel[Upsample]):
    """One copy inside global memory; repetitions are axes with source stride 0."""

    ops = (Upsample,)

    def maps(self, op: Upsample) -> Sequence[np.ndarray]:
        n, c, h, w = (np.arange(size) for size in op.x.shape)
        return n, c, h.repeat(op.scale[0]), w.repeat(op.scale[1])


class LocalRepeatKernel(LocalKernel[Upsample]):
    """Tiles of whole blocks of equal pixels, a few copies for each image: global memory would move single elements."""

    ops = (Upsample,)

    def grid(self, op: Upsample) -> tuple[Axis, ...]:
        images, channels, *axes = self.machine.elementwise_grid(dims4(op.result), item_bytes(op.x))
        rows, columns = (replace(a, step=f, most=f * max(1, a.most // f)) for a, f in zip(axes, op.scale))
        return images, channels, rows, columns

    def work(self, op: Upsample, box: Box) -> TileWork:
        return repeat_pixels(self.machine, op, box)


class UpsampleKernel(FormsKernel[Upsample]):
    """upsample: in tiles in local memory, or by a copy inside global memory where that takes no longer."""

    ops = (Upsample,)
    kinds: ClassVar[tuple[type[DeviceKernel[Any]], ...]] = (LocalRepeatKernel, RepeatKernel)

    def form(self, op: Upsample) -> DeviceKernel[Any]:
        local, copied = self.forms
        taken = local.estimate(op) if self._in_lanes(op) else None
        return local if taken is not None and taken < self._in_global(op) else copied

    def whole(self, op: Upsample) -> TileWork | None:
        return self.forms[0].whole(op) if self._in_lanes(op) else None

    def boxed(self, op: Upsample, box: Box) -> TileWork | None:
        return self.forms[0].boxed(op, box) if self._in_lanes(op) else None

    def _in_lanes(self, op: Upsample) -> bool:
        """Not constants, nor elements of eight bytes."""
        return item_bytes(op.x) in (1, 2, 4) and is_activation(op.x) and max(op.scale) <= self.chip.most_size

    def _in_global(self, op: Upsample) -> int:
        """Cycles of the copy, whose runs are rows, or single elements."""
        (n, c, h, w), item, cycles = dims4(op.result), item_bytes(op.result), self.machine.cycles
        runs, run = (n * c * h, w) if op.scale[1] == 1 else (n * c * h * w, 1)
        return cycles.global_copy(runs, run * item)


class NearestKernel(TiledSelectKernel[Resize]):
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
