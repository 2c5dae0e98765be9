"""Functions of a C program that Python calls by their names: what `bmcapi_register` was given."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator


class _Entry(ctypes.Structure):
    """One node of the list that C keeps."""


_Entry._fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("next", ctypes.POINTER(_Entry))]
_heads: list[int] = []


def begin(head: int) -> None:
    """The list begins with the pointer at that address."""
    _heads.append(head)


def registered() -> Iterator[tuple[str, int]]:
    """Names and addresses, newest first."""
    for head in _heads:
        node = ctypes.POINTER(_Entry).from_address(head)
        while node:
            yield node[0].name.decode(), node[0].function
            node = node[0].next
