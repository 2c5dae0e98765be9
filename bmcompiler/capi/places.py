"""Where the calls of a C program stand in its files: headers say it before each call, for its thread."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

_OF_THREAD = ctypes.PYFUNCTYPE(ctypes.c_void_p)
_asked: list[Callable[[], int]] = []


class _Place(ctypes.Structure):
    """bmcapi_place."""

    _fields_ = [("file", ctypes.c_char_p), ("line", ctypes.c_int)]


def begin(of_thread: int) -> None:
    """The C function at that address gives the calling thread's place."""
    _asked.append(_OF_THREAD(of_thread))


def place() -> tuple[str, int]:
    """The file's name and the line of the thread's call; "" and 0 where no C program said them."""
    for asked in _asked:
        found = _Place.from_address(asked())
        if found.line:
            return os.path.basename(found.file).decode(errors="replace"), found.line
    return "", 0
