"""Keep BLAS to one thread while many small products run.

OpenBLAS splits every product over all cores and its threads wait for each other in a busy loop. For the short products
of tiled networks that gains nothing on an idle machine and costs a factor of 10 to 30 on a loaded one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock
from types import TracebackType

_LOADED_LIBRARIES = Path("/proc/self/maps")
_NAMES = [f"{prefix}openblas_%s_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", "_64", "")]


@cache
def _controls() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Functions that read and set the thread count of the loaded OpenBLAS; None when there is none."""
    if not _LOADED_LIBRARIES.exists():
        return None
    lines = _LOADED_LIBRARIES.read_text(errors="replace").splitlines()
    for path in sorted({line.split()[-1] for line in lines if "openblas" in line}):
        library = ctypes.CDLL(path)
        for name in _NAMES:
            if hasattr(library, name % "set"):
                return getattr(library, name % "get"), getattr(library, name % "set")
    return None


class _OneBlasThread:
    """Context manager; may be nested and entered by several threads. The last one to leave restores the count."""

    def __init__(self) -> None:
        self._lock, self._users, self._before = Lock(), 0, 1

    def __enter__(self) -> None:
        controls = _controls()
        if controls is None:
            return
        get, put = controls
        with self._lock:
            if not self._users:
                self._before = get()
                if self._before > 1:
                    put(1)
            self._users += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        controls = _controls()
        if controls is None:
            return
        with self._lock:
            self._users -= 1
            if not self._users and self._before > 1:
                controls[1](self._before)


one_blas_thread = _OneBlasThread()
