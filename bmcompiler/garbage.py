"""Python looks for cycles of dead objects more seldom while something is compiled.

A network of thousands of ops is hundreds of thousands of objects that all live on; Python's own threshold has them
searched again and again, a fifth of the time that a chain of 2,000 layers takes.
"""

from __future__ import annotations

import gc
from threading import Lock
from types import TracebackType

OBJECTS = 50_000
"""New objects after which cycles are looked for; Python's own is 700."""


class _Seldom:
    """Context manager; may be nested and entered by several threads. The last one to leave restores the threshold."""

    def __init__(self) -> None:
        self._lock, self._users, self._before = Lock(), 0, gc.get_threshold()

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._before = gc.get_threshold()
                if 0 < self._before[0] < OBJECTS:  # 0: the caller wants none to be looked for
                    gc.set_threshold(OBJECTS, *self._before[1:])
            self._users += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                gc.set_threshold(*self._before)


seldom_collected = _Seldom()
