"""Weights and vectors per channel in global memory, in the order in which lanes hold them.

Channel c lies in lane c mod 64, so that a lane holds every 64th channel, one after the other. Channels of few bytes are
stored lane by lane: then each lane is loaded as one run, and not as many short ones (bm1684-timing.md 5.6).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.build import Build, compact_bytes
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.codegen.tiling import Buffer, Runs
from bmcompiler.ir import Value

_SHORT = 128
"""Bytes of a channel from which a lane's channels are long enough as runs of their own."""


def channel_buffer(
    constant: Value,
    layout: str,
    pack: Callable[[Build], Callable[[np.ndarray], np.ndarray]],
    dims: tuple[int, int],
    item: int,
    channels: tuple[int, int],
) -> Buffer:
    """Channels [c0, c1) of a packed constant, compact in local memory.

    Args:
        layout, pack: see `Coefficients.place`; `pack` gets the build and packs all channels, which are the first axis.
        dims: (rows, columns) of elements of a channel. item: bytes of an element.
    """
    (c0, c1), row = channels, dims[0] * dims[1] * item
    shape = (1, c1 - c0, *dims)
    if c1 - c0 <= CHIP.lanes or row >= _SHORT:

        def load(build: Build, address: int) -> None:
            offset = build.coefficients.place(constant, layout, pack(build))
            build.load_compact(build.coefficient(offset + c0 * row), shape, item, address)

        return Buffer(compact_bytes(shape, item), "c", row * (c1 - c0), load, True, runs=Runs(1, c1 - c0))

    each = -(-(c1 - c0) // CHIP.lanes)
    of_lanes = (1, CHIP.lanes, each, dims[0] * dims[1])

    def load_lanes(build: Build, address: int) -> None:
        def packed(*constants: Any) -> np.ndarray:
            return by_lanes(pack(build)(*constants), row, c0, c1)

        offset = build.coefficients.place(constant, f"{layout} by lanes {c0} {c1}", packed)
        build.load_compact(build.coefficient(offset), of_lanes, item, address)

    nbytes = compact_bytes(of_lanes, item) * CHIP.lanes
    return Buffer(compact_bytes(of_lanes, item), "c", nbytes, load_lanes, True, runs=Runs(1, CHIP.lanes))


def by_lanes(packed: np.ndarray, row: int, c0: int, c1: int) -> np.ndarray:
    """Channels [c0, c1) of `row` bytes each as (lanes, channels of a lane, row) bytes, zeros where there are none."""
    raw = np.frombuffer(np.ascontiguousarray(packed).tobytes(), np.uint8).reshape(-1, row)[c0:c1]
    padded = np.pad(raw, [(0, -len(raw) % CHIP.lanes), (0, 0)])
    return np.ascontiguousarray(padded.reshape(-1, CHIP.lanes, row).swapaxes(0, 1))
