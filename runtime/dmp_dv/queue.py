"""Execution queues: one per device type of the process, first in first out (dv.md 6).

All contexts share the block of a type, as all processes do on a board, so ids grow over all of them. A queue has a
thread only while it has work; the interpreter waits for that work before it ends.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread

from bmcompiler.backends.dv.driver.structs import DeviceType
from bmcompiler.errors import BMError

_ABORTED = "the execution was aborted"


class Execution:
    """One scheduled run of a command list."""

    def __init__(self, work: Callable[[], None], done: Callable[[], None]) -> None:
        self.work, self.done = work, done
        self.started = 0.0
        self.failure: str | None = _ABORTED
        """None after success."""

    def run(self) -> None:
        """Execute; keeps the reason of a failure."""
        self.started = time.perf_counter()
        try:
            self.work()
            self.failure = None
        except BMError as error:
            self.failure = str(error)
        except MemoryError:
            self.failure = "the host ran out of memory"
        finally:
            self.done()


class ExecutionQueue:
    """Jobs of one device type. Ids start at 1 and grow by 1."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = Condition()
        self._waiting: deque[Execution] = deque()
        self._issued = self._finished = 0
        self._working = False

    def submit(self, execution: Execution) -> int:
        """Schedule; returns the id at once."""
        with self._changed:
            self._waiting.append(execution)
            self._issued += 1
            if not self._working:
                self._start()
            return self._issued

    def wait(self, number: int) -> bool:
        """Block until execution `number` and all before it have finished; False when it was never scheduled."""
        with self._changed:
            if number > self._issued:
                return False
            self._changed.wait_for(lambda: self._finished >= number)
            return True

    def _start(self) -> None:
        self._working = True
        Thread(target=self._work, name=f"dmp_dv {self._name}").start()

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._working = False
                    return
                execution = self._waiting.popleft()
            finished = False
            try:
                execution.run()
                finished = True
            finally:
                with self._changed:
                    self._finished += 1
                    self._changed.notify_all()
                    if not finished:  # a fault of this program ends the thread, not the queue
                        self._start()


_queues: dict[DeviceType, ExecutionQueue] = {}


def _reset() -> None:
    """Fresh queues; a forked child has none of the threads."""
    for kind in DeviceType:
        _queues[kind] = ExecutionQueue(kind.name)


_reset()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)


def queue_of(kind: DeviceType) -> ExecutionQueue:
    """The queue of a device type."""
    return _queues[kind]
