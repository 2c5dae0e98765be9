"""The execution queue when work fails."""

from __future__ import annotations

import threading

import pytest

from bmcompiler.errors import SimulatorError
from bmcompiler.runtime.dmp_dv.queue import Execution, ExecutionQueue


def nothing() -> None:
    return


def failing_with(error: Exception) -> Execution:
    def work() -> None:
        raise error

    return Execution(work, nothing)


def test_reported_failures_keep_their_reason() -> None:
    queue = ExecutionQueue("test")
    good, bad, short = (
        Execution(nothing, nothing),
        failing_with(SimulatorError("no such byte")),
        failing_with(MemoryError()),
    )
    assert [queue.submit(each) for each in (good, bad, short)] == [1, 2, 3]
    assert queue.wait(3)
    assert (good.failure, bad.failure, short.failure) == (None, "no such byte", "the host ran out of memory")
    assert not queue.wait(4)


def test_a_fault_does_not_stop_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[type] = []
    monkeypatch.setattr(threading, "excepthook", lambda fault: seen.append(fault.exc_type))
    queue = ExecutionQueue("test")
    done: list[int] = []
    fault = failing_with(ValueError("a fault of the program"))
    for each in (fault, Execution(lambda: done.append(1), nothing), fault, Execution(lambda: done.append(2), nothing)):
        last = queue.submit(each)
    assert queue.wait(last)
    assert done == [1, 2] and seen == [ValueError] * 2 and fault.failure == "the execution was aborted"
