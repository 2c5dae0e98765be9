"""Tests that take too long to be asked about a fault are broken off when something is recorded of all."""

from __future__ import annotations

import signal
from collections.abc import Generator
from types import FrameType

import pytest

LONGEST = 5.0
"""Seconds of processor time after which a test is not recorded: of what one fault is asked it would take too much."""


def _too_long(number: int, frame: FrameType | None) -> None:
    pytest.skip("takes too long")  # which hypothesis lets through, as it does no failure


class Limited:
    """A plugin in whose runs no test takes longer than `LONGEST`."""

    def __init__(self) -> None:
        signal.signal(signal.SIGPROF, _too_long)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_pyfunc_call(self) -> Generator[None, None, None]:
        """Only the test itself is broken off: what it is given, others may be given, too."""
        signal.setitimer(signal.ITIMER_PROF, LONGEST)
        yield
        signal.setitimer(signal.ITIMER_PROF, 0)
