"""The sentence that the last call of a C program left, of its thread."""

from __future__ import annotations

from threading import local

_said = local()


def say(text: str) -> None:
    """Make `text` the sentence of the calling thread, "" for none."""
    _said.text = text


def said() -> str:
    """The sentence of the calling thread."""
    text: str = getattr(_said, "text", "")
    return text
