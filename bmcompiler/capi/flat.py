"""Structures of numbers in C's memory, read and written at once: what programs hand over in every call."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from struct import Struct
from typing import Any


class Flat:
    """A structure as one row of numbers: those of inner structures and arrays stand where these do."""

    def __init__(self, layout: type[ctypes.Structure]) -> None:
        self.size = ctypes.sizeof(layout)
        self._row = Struct("=" + "".join(_codes(layout)))

    def read(self, address: int) -> tuple[Any, ...]:
        """The numbers at an address."""
        return self._row.unpack(ctypes.string_at(address, self.size))

    def write(self, address: int, *numbers: Any) -> None:
        """Store all numbers; what lies between fields becomes 0."""
        ctypes.memmove(address, self._row.pack(*numbers), self.size)


def _codes(layout: Any) -> Iterator[str]:
    """Codes of `struct`, with the bytes that C leaves between fields."""
    if issubclass(layout, ctypes.Array):
        for _ in range(layout._length_):
            yield from _codes(layout._type_)
    elif issubclass(layout, ctypes.Structure):
        end = 0
        for name, kind in layout._fields_:
            begin = getattr(layout, name).offset
            yield "x" * (begin - end)
            yield from _codes(kind)
            end = begin + ctypes.sizeof(kind)
        yield "x" * (ctypes.sizeof(layout) - end)
    else:
        yield _BY_BYTES[ctypes.sizeof(layout)][layout(-1).value > 0]


_BY_BYTES = {1: "bB", 2: "hH", 4: "iI", 8: "qQ"}
