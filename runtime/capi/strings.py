"""Strings of C."""

from __future__ import annotations

import ctypes


def text(address: int) -> str | None:
    """The string at an address, None for NULL."""
    return ctypes.string_at(address).decode(errors="surrogateescape") if address else None
