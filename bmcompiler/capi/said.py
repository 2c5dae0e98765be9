"""The sentence that the last call of a C program left, of its thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

_said = local()


def say(text: str) -> None:
    """Make `text` the sentence of the calling thread, "" for none."""
    _said.text = text


def said() -> str:
    """The sentence of the calling thread."""
    text: str = getattr(_said, "text", "")
    return text


def refuse(text: str) -> None:
    """`say` it, of a call that is refused."""
    say(text)
    getattr(_said, "refused", []).append(text)


@contextmanager
def refusals() -> Iterator[list[str]]:
    """Inside, a function of the program runs: the sentences of calls that it makes and that are refused."""
    before = getattr(_said, "refused", [])
    _said.refused = []
    try:
        yield _said.refused
    finally:
        _said.refused = before
