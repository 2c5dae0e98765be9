"""Local memory of a chip just switched on: the word 0xDEADBEEF everywhere, as the vendor's models have it.

Every device begins with tens of megabytes of it, of which most programs touch few. So all begin as copies of one file
that the system copies page by page where they are written. Where temporary files find no room, each is filled.
"""

from __future__ import annotations

import mmap
import tempfile
from functools import cache
from typing import IO

import numpy as np

from bmcompiler.numeric.arrays import Bytes
from bmcompiler.runtime.simulator.memory import LaneMemory

_UNINITIALISED = 0xDEADBEEF


def switched_on(lanes: int, lane_size: int) -> LaneMemory:
    """Local memory that nothing wrote."""
    return LaneMemory(lanes, lane_size, _copy)


def _copy(size: int) -> Bytes:
    file = _pattern(size)  # held open until it is mapped: of two threads that make it at once, the cache keeps one file
    if file is None:
        return np.frombuffer(bytearray(_filled(size)), np.uint8)
    return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY), np.uint8)


@cache
def _pattern(size: int) -> IO[bytes] | None:
    """A file of `size` bytes without a name, open as long as the process lives; None where it finds no room."""
    try:
        file: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        if file.write(_filled(size)) >= size:
            return file
        file.close()
    except OSError:
        pass
    return None


def _filled(size: int) -> bytes:
    return np.full(-(-size // 4), _UNINITIALISED, "<u4").tobytes()
