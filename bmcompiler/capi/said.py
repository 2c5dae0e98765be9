"""The sentence that the last call of a C program left, of its thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import local

_hearers: list[Callable[[bytes], object]] = []
_calls = local()


def hear(hearer: Callable[[bytes], object]) -> None:
    """Have `hearer` keep what is said, for the thread that it is called in."""
    _hearers.append(hearer)


def say(text: str) -> None:
    """Make `text` the sentence of the calling thread, "" for none; a C library forgets it at the next call."""
    for hearer in _hearers:
        hearer(text.encode(errors="backslashreplace"))


def refuse(text: str) -> None:
    """`say` it, of a call that is refused."""
    say(text)
    getattr(_calls, "refused", []).append(text)


@contextmanager
def refusals() -> Iterator[list[str]]:
    """Inside, a function of the program runs: the sentences of calls that it makes and that are refused."""
    before = getattr(_calls, "refused", [])
    _calls.refused = []
    try:
        yield _calls.refused
    finally:
        _calls.refused = before
