"""Signals that wait while workers are started.

Python runs what modules registered around `fork`, and an exception that a signal raises there is printed and
forgotten: Ctrl-C would change nothing, and a worker whose number was not noted yet would never be told to end.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_HELD = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def held_signals() -> Iterator[None]:
    """SIGINT and SIGTERM that arrive in the block are dealt with at its end; they end a process forked in it at once.

    Only the main thread runs handlers and may set them: in others there is nothing to hold.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    leader, arrived = os.getpid(), list[int]()

    def note(number: int, frame: FrameType | None) -> None:
        if os.getpid() != leader:
            os._exit(128 + number)
        arrived.append(number)

    before = {number: signal.getsignal(number) for number in _HELD}
    handled = {number: handler for number, handler in before.items() if callable(handler)}  # what is ignored stays so
    try:
        for number in handled:
            signal.signal(number, note)
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
        for late in arrived:
            signal.raise_signal(late)
