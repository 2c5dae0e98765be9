"""C pointers in Python form: any object with a buffer, and cells for `size_t *`."""

from __future__ import annotations

import ctypes
from collections.abc import MutableSequence
from typing import Any

import numpy as np

from bmcompiler.numeric.arrays import Bytes

Buffer = Any
"""bytes, bytearray, memoryview, ctypes structure or array, numpy array or record."""
SizeCell = Any
"""A `size_t *`: ctypes.c_size_t, a list or a numpy array with one element."""


def readable(data: Buffer | None) -> Bytes | None:
    """The bytes of a buffer; None for NULL and for objects without a contiguous buffer."""
    if data is None:
        return None
    try:
        return np.frombuffer(data, np.uint8) if memoryview(data).nbytes else np.empty(0, np.uint8)
    except (TypeError, ValueError, BufferError):
        return None


def writable(data: Buffer | None) -> Bytes | None:
    """As `readable`, for a buffer that can be written to."""
    found = readable(data)
    return found if found is not None and found.flags.writeable else None


def get_size(cell: SizeCell) -> int:
    """Value of a `size_t *`."""
    return int(cell.value if isinstance(cell, ctypes.c_size_t) else cell[0])


def set_size(cell: SizeCell, value: int) -> None:
    """Store to a `size_t *`."""
    if isinstance(cell, ctypes.c_size_t):
        cell.value = value
    else:
        cell[0] = value


def is_cell(cell: object) -> bool:
    """Whether `get_size` and `set_size` can be used: it holds one number from 0 on and can be written to."""
    if isinstance(cell, ctypes.c_size_t):
        return True
    if not isinstance(cell, (MutableSequence, np.ndarray)) or len(cell) != 1:
        return False
    if isinstance(cell, np.ndarray) and not cell.flags.writeable:
        return False
    return isinstance(cell[0], (int, np.integer)) and 0 <= int(cell[0]) < 1 << 64
