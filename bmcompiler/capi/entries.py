"""Functions of a C program that Python calls by their names: what `bmcapi_register` was given."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator


class _Entry(ctypes.Structure):
    """One node of the list that C keeps."""


_Entry._fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("next", ctypes.POINTER(_Entry))]
_heads: list[int] = []


class _Object(ctypes.Structure):
    """Dl_info of dlfcn.h."""

    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("at", ctypes.c_void_p),
    ]


def begin(head: int) -> None:
    """The list begins with the pointer at that address."""
    _heads.append(head)


def registered() -> Iterator[tuple[str, int]]:
    """Names and addresses, newest first."""
    for head in _heads:
        yield from _listed(head)


def functions_of(file: str) -> dict[str, int]:
    """Names and addresses of what a shared object registers, which is loaded. Raises OSError when it cannot be."""
    library = ctypes.CDLL(file)
    try:
        list_of = library.bmcapi_registered
    except AttributeError:  # it was not linked with a library of ours
        return {}
    list_of.restype = ctypes.c_void_p
    return {name: address for name, address in _listed(list_of()) if _lies_in(address, file)}


def _lies_in(address: int, file: str) -> bool:
    """Whether a function is code of a shared object."""
    found = _Object()
    if not ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(found)):
        return False
    try:
        return os.path.samefile(found.file, file)
    except OSError:  # that of another function, which is gone
        return False


def _listed(head: int) -> Iterator[tuple[str, int]]:
    node = ctypes.POINTER(_Entry).from_address(head)
    while node:
        yield node[0].name.decode(), node[0].function
        node = node[0].next
