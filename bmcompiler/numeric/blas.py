"""Keep BLAS to one thread: while many small products run, and where work is split over cores here instead.

OpenBLAS splits every product over all cores and its threads wait for each other in a busy loop. For the short products
of tiled networks that gains nothing on an idle machine and costs a factor of 10 to 30 on a loaded one; large products
lose a factor of 3 to 7 there.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from threading import Lock, current_thread
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_LOADED_LIBRARIES = Path("/proc/self/maps")
_WORKERS = "bmcompiler-piece"
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
        _available()
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


@cache
def _available() -> int:
    """Threads BLAS was given at first; asked before this module lowers the count."""
    controls = _controls()
    return 1 if controls is None else controls[0]()


@cache
def _workers(count: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(count, _WORKERS)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.cache_clear)


def in_parallel(pieces: Sequence[Callable[[], None]]) -> None:
    """Run independent pieces of numpy work, on as many threads as BLAS was given, with one BLAS thread each.

    They run one after the other where BLAS has one thread, and where it cannot be told how many to use. So do pieces of
    a piece: workers that wait for others would wait for each other. The results are the same in all cases.
    """
    inside = current_thread().name.startswith(_WORKERS)
    threads = 1 if inside or len(pieces) < 2 else _available()
    if threads < 2:
        for piece in pieces:
            piece()
        return
    with one_blas_thread:
        for done in [_workers(threads).submit(piece) for piece in pieces]:
            done.result()
