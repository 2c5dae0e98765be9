"""C functions with buffers whose sizes follow from their other arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from bmcompiler.capi.library import CLibrary

Size = Callable[[dict[str, Any]], int]
"""From the other arguments, by name, to bytes; 0 where these are wrong, so that the function says so."""


def buffered(library: Callable[[], CLibrary], name: str, **sizes: Size) -> Callable[[Any, int], None]:
    """An entry of `CLibrary.special`: memory of the caller, of `sizes` bytes by parameter, as buffers.

    The function has no other results than its value.
    """

    def act(slots: Any, result: int) -> None:
        own = library()
        prototype = own.api.functions[name]
        given = {one.name: (slots[index], one) for index, one in enumerate(prototype.parameters)}
        values = {title: own.reader(one.c_type)(bits) for title, (bits, one) in given.items() if title not in sizes}
        for title, size in sizes.items():
            address = given[title][0]
            values[title] = (ctypes.c_uint8 * max(0, size(values))).from_address(address) if address else None
        found = own.functions(name)(*(values[one.name] for one in prototype.parameters))
        if prototype.result != "void":
            own.writer(prototype.result)(result, found)

    return act
