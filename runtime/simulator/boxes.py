"""Tensors in lane memory and elsewhere as the boxes that the race check compares; common to all chips."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bmcompiler.numeric.arrays import Array, Ints, Mask
from bmcompiler.runtime.simulator.races import Accesses

Four = tuple[Ints, Ints, Ints, Ints]
"""Shape or strides (n, c, h, w), one entry per command."""

LOCAL = 0
"""Number of local memory among the spaces."""


@dataclass(frozen=True)
class Use:
    """Commands that use a tensor (their numbers, and which of them do), and whether they write it."""

    command: Ints
    mask: Mask
    write: bool | Mask = False


class Boxes:
    """Accesses as they are found; `result` brings them into program order.

    Args:
        lanes, lane_size: local memory. Channel c of a tensor at lane L lies in lane (L + c) mod lanes, and
            (L + c) div lanes channel strides further (bm1880.md 2.2, bm1684.md 4).
        spaces: see `Accesses`; the first one is local memory.
    """

    def __init__(self, lanes: int, lane_size: int, spaces: tuple[str, ...]) -> None:
        self.lanes, self.lane_size, self.spaces = lanes, lane_size, spaces
        self._parts: list[dict[str, Array]] = []

    def local(self, use: Use, place: tuple[Ints, Ints], shape: Four, strides: Four, item: int | Ints = 1) -> None:
        """Tensors at `place` (lane, offset), of elements of `item` bytes, as up to three boxes of lanes.

        They are: the channels up to the last lane of the first group, the whole groups, and the rest.
        """
        n, c, h, w = shape
        group, lane = place[0] // self.lanes, place[0] % self.lanes
        offset = place[1] + group * strides[1]
        head: Ints = np.where(lane > 0, np.minimum(c, self.lanes - lane), 0)
        whole, tail = (c - head) // self.lanes, (c - head) % self.lanes
        begun = (head > 0).astype(np.int64)
        one = np.ones_like(c)
        pieces = (
            (lane, head, offset, one),
            (one * 0, self.lanes * (whole > 0), offset + begun * strides[1], whole),
            (one * 0, tail, offset + (begun + whole) * strides[1], one),
        )
        for row, rows, start, groups in pieces:
            some = replace(use, mask=use.mask & (rows > 0))
            steps = (one * self.lane_size, *strides, one)
            self._add(some, one * LOCAL, (row, start), (rows, n, groups, h, w, one * item), steps)

    def remote(
        self, use: Use, space: int | Ints, address: Ints, shape: Four, strides: Four, item: int | Ints = 1
    ) -> None:
        """Tensors in memory without lanes, number `space`."""
        one = np.ones_like(address)
        self._add(use, one * space, (one * 0, address), (one, *shape, one * item), (one, *strides, one))

    def _add(
        self, use: Use, space: Ints, place: tuple[Ints, Ints], dims: tuple[Ints, ...], steps: tuple[Ints, ...]
    ) -> None:
        """Boxes at `place` (row, byte) whose first axis counts rows; negative strides lead below that byte."""
        sizes = np.stack(dims, 1)
        mask = use.mask & (sizes > 0).all(1)
        if not mask.any():
            return
        size, signed = sizes[mask], np.stack(steps, 1)[mask]
        stride = np.abs(signed)
        row = place[0][mask]
        low = place[1][mask] + ((size - 1) * np.minimum(signed, 0)).sum(1)
        self._parts.append(
            {
                "command": use.command[mask],
                "space": space[mask],
                "write": np.broadcast_to(use.write, mask.shape)[mask],
                "row_lo": row,
                "row_hi": row + size[:, 0],
                "lo": low,
                "hi": low + ((size - 1) * stride)[:, 1:].sum(1) + 1,
                "start": low + row * self.lane_size,
                "dims": size,
                "strides": stride,
            }
        )

    def result(self) -> Accesses:
        """All accesses, sorted by command."""
        if not self._parts:
            flat, boxes = np.zeros(0, np.int64), np.zeros((0, 6), np.int64)
            return Accesses(flat, flat, flat != 0, flat, flat, flat, flat, flat, boxes, boxes, self.spaces)
        columns = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
        order = np.argsort(columns["command"], kind="stable")
        return Accesses(**{name: column[order] for name, column in columns.items()}, spaces=self.spaces)
