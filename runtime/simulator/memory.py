"""Local and global memory of a simulated chip, and tensors in them as numpy views; common to all chips.

Views are made once, when a plan is compiled, and every one is checked against the bounds of its memory there; running a
plan cannot reach any other byte.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from math import prod
from threading import Lock
from typing import Any

import numpy as np

from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arrays import Bytes, IntArray

Shape = tuple[int, int, int, int]

UNSIGNED = np.dtype(np.uint8)
SIGNED = np.dtype(np.int8)

# Largest tensor of one command whose elements overlap: strides of 0 make any number of few bytes.
MAX_ELEMENTS = 1 << 26

# Lanes an exact power of two apart would compete for the same cache sets of the host.
_PITCH_EXTRA = 192


class Tensor:
    """A 4-D tensor in either memory: pieces that together cover the channels.

    A piece is (channels, view): `view` has shape (N, C, H, W), or (N, groups, lanes, H, W) where the channels wrap past
    the last lane (bm1880.md 2.2).
    """

    def __init__(self, shape: Shape, dtype: np.dtype[Any], pieces: list[tuple[slice, IntArray]]) -> None:
        self.shape, self.dtype, self.pieces = shape, dtype, pieces
        only = pieces[0][1] if len(pieces) == 1 else None
        self.view: IntArray | None = only if only is not None and only.ndim == 4 else None

    def read(self) -> IntArray:
        """The elements as (N, C, H, W); a view where memory allows, so do not write to it."""
        if self.view is not None:
            return self.view
        dense = np.empty(self.shape, self.dtype)
        for part, piece in self.split(dense):
            part[...] = piece
        return dense

    def write(self, values: IntArray) -> None:
        """Store values of the same shape; integers keep the low bits that fit the dtype."""
        if self.view is not None:
            self.view[...] = values
            return
        for part, piece in self.split(values):
            piece[...] = part

    def split(self, array: IntArray) -> list[tuple[IntArray, IntArray]]:
        """Pairs of views (part of `array`, piece of this tensor) of equal shapes; `array` is (N, C, H, W)."""
        return [(array[:, channels].reshape(piece.shape), piece) for channels, piece in self.pieces]


def _zeros(size: int) -> Bytes:
    return np.zeros(size, np.uint8)


class LaneMemory:
    """`lanes` lanes of `lane_size` bytes. `bytes[lane, offset]` is one byte.

    `new` gives that many bytes of memory to begin with, zeros by default; a multiple of 4 of them lie between lanes.
    """

    def __init__(self, lanes: int, lane_size: int, new: Callable[[int], Bytes] = _zeros) -> None:
        self.lanes, self.lane_size = lanes, lane_size
        self._pitch = lane_size + _PITCH_EXTRA
        self._store = new(lanes * self._pitch).reshape(lanes, self._pitch)
        self.bytes: Bytes = self._store[:, :lane_size]

    def tensor(self, lane: int, offset: int, shape: Shape, strides: Shape, dtype: np.dtype[Any] = UNSIGNED) -> Tensor:
        """Tensor whose channel 0 is in `lane` at byte `offset`, with strides (n, c, h, w) in bytes.

        Channel c lies in lane (lane + c) mod lanes, floor((lane + c) / lanes) channel strides further (bm1880.md 2.2,
        bm1684.md 4). `lane` may be outside the lanes: the rule then continues. Strides of h and w may be negative.
        Raises SimulatorError when an element is outside a lane.
        """
        _check_shape(shape)
        n, channels, height, width = shape
        rows = (lane // self.lanes * strides[1], (lane + channels - 1) // self.lanes * strides[1])
        reach = [(size - 1) * stride for size, stride in zip((n, height, width), (strides[0], *strides[2:]))]
        low = offset + min(rows) + sum(min(0, step) for step in reach)
        end = offset + max(rows) + sum(max(0, step) for step in reach) + dtype.itemsize
        if low < 0 or end > self.lane_size:
            raise SimulatorError(
                f"local tensor {shape} at lane {lane} offset {offset} with strides {strides} covers bytes "
                f"{low} to {end} of a lane of {self.lane_size} bytes"
            )
        pieces: list[tuple[slice, IntArray]] = []
        done = 0
        while done < channels:
            group, start = divmod(lane + done, self.lanes)
            at = start * self._pitch + offset + group * strides[1]
            whole = (channels - done) // self.lanes
            if start == 0 and whole > 1:
                count, lanes = whole * self.lanes, (whole, self.lanes)
                steps = (strides[0], strides[1], self._pitch, strides[2], strides[3])
                view: IntArray = np.ndarray((n, *lanes, height, width), dtype, self._store, at, steps)
            else:
                count = min(self.lanes - start, channels - done)
                view = np.ndarray(
                    (n, count, height, width), dtype, self._store, at, (strides[0], self._pitch, *strides[2:])
                )
            pieces.append((slice(done, done + count), view))
            done += count
        return Tensor(shape, dtype, pieces)


class GlobalMemory:
    """The part of the 40-bit global space that is backed by arrays, each mapped at its device address.

    A tensor must lie inside one mapped array: two neighbouring allocations are never one object. Threads may map and
    look up at the same time: changes replace the whole table.
    """

    def __init__(self) -> None:
        self._areas: tuple[list[int], list[Bytes]] = ([], [])
        self._lock = Lock()

    def map(self, base: int, array: Bytes) -> None:
        """Back the addresses from `base` by `array` (1-D, contiguous). Raises SimulatorError on overlap.

        A read-only array makes commands that write there an error.
        """
        with self._lock:
            bases, arrays = self._areas
            at = bisect_right(bases, base)
            before = at and bases[at - 1] + arrays[at - 1].size > base
            after = at < len(bases) and base + array.size > bases[at]
            if array.size and (before or after):
                raise SimulatorError(f"global memory at 0x{base:x} is mapped already")
            if array.size:
                self._areas = ([*bases[:at], base, *bases[at:]], [*arrays[:at], array, *arrays[at:]])

    def unmap(self, base: int) -> None:
        """Forget the array mapped at `base`, if there is one."""
        with self._lock:
            bases, arrays = self._areas
            if base in bases:
                at = bases.index(base)
                self._areas = (bases[:at] + bases[at + 1 :], arrays[:at] + arrays[at + 1 :])

    def region(self, address: int) -> tuple[Bytes, int]:
        """The array that backs `address` and the offset in it. Raises SimulatorError when nothing is mapped there."""
        bases, arrays = self._areas
        at = bisect_right(bases, address) - 1
        if at < 0 or address >= bases[at] + arrays[at].size:
            raise SimulatorError(f"global address 0x{address:x} is outside the memory of the program")
        return arrays[at], address - bases[at]

    def area(self, base: int) -> Bytes:
        """The rest of the array that backs `base`; empty when nothing is mapped there."""
        bases, arrays = self._areas
        at = bisect_right(bases, base) - 1
        return arrays[at][base - bases[at] :] if at >= 0 else np.empty(0, np.uint8)

    def tensor(self, address: int, shape: Shape, strides: Shape, dtype: np.dtype[Any] = UNSIGNED) -> Tensor:
        """Elements from `address`; strides (n, c, h, w) in bytes. Raises SimulatorError outside the memory."""
        array, at = self.region(address)
        end = at + sum((size - 1) * stride for size, stride in zip(shape, strides)) + dtype.itemsize
        _check_shape(shape, (end - at) // dtype.itemsize)
        if end > array.size:
            raise SimulatorError(
                f"global tensor {shape} at 0x{address:x} with strides {strides} ends {end - array.size} bytes "
                "after the memory of the program"
            )
        view = np.ndarray(shape, dtype, array, at, strides)
        return Tensor(shape, dtype, [(slice(0, shape[1]), view)])


def _check_shape(shape: Shape, apart: int = 0) -> None:
    """apart: elements for which a tensor has room."""
    if min(shape) < 1:
        raise SimulatorError(f"tensor shape {shape} has an empty dimension")
    if prod(shape) > max(MAX_ELEMENTS, apart):
        raise SimulatorError(f"tensor shape {shape} has more than {MAX_ELEMENTS} elements")
