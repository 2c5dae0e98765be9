"""C functions with buffers whose sizes follow from their other arguments, and strings of C."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from bmcompiler.capi.library import CLibrary
from bmcompiler.errors import BMError

MOST_BYTES = 1 << 32
"""No memory of a device has more, so that no buffer of a call can."""
_UNASKED = 1 << 20  # a buffer up to so long is read without asking whether it is all there
_PAGE, _MS_ASYNC = 4096, 1
_C = ctypes.CDLL(None, use_errno=True)
_C.msync.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

Size = Callable[[dict[str, Any]], int]
"""From the other arguments, by name, to bytes; 0 where these are wrong, so that the function says so."""


def buffered(library: Callable[[], CLibrary], name: str, **sizes: Size) -> Callable[[Any, int], None]:
    """An entry of `CLibrary.special`: memory of the caller, of `sizes` bytes by parameter, as buffers."""
    prepared: list[_Call] = []  # at the first call: the library is known then

    def act(slots: Any, result: int) -> None:
        if not prepared:
            prepared.append(_Call(library(), name, sizes))
        prepared[0](slots, result)

    return act


class _Call:
    """A function with its readers and writers."""

    def __init__(self, library: CLibrary, name: str, sizes: dict[str, Size]) -> None:
        prototype = library.api.functions[name]
        places = list(enumerate(prototype.parameters))
        self._name, self._function, self._store = name, library.functions(name), library.results(prototype)
        self._needed = [(index, one.name) for index, one in places if one.out]
        plain = [(index, one) for index, one in places if one.name not in sizes and not one.out]
        self._plain = [(index, one.name, library.reader(one.c_type)) for index, one in plain]
        buffers = [(index, one) for index, one in places if one.name in sizes]
        self._buffers = [(index, one.name, sizes[one.name], f"{name}: {one.name}") for index, one in buffers]

    def __call__(self, slots: Any, result: int) -> None:
        for index, title in self._needed:
            if not slots[index]:
                raise BMError(f"{self._name}: {title} is NULL")
        values = {}
        for index, title, read in self._plain:
            values[title] = read(slots[index])
        for index, title, size, where in self._buffers:
            values[title] = caller_memory(slots[index], size(values), where)
        self._store(slots, result, self._function(**values))


def caller_memory(address: int, size: int, title: str) -> Any:
    """The bytes at an address of the program, None for NULL.

    Raises BMError, which begins with `title`, when they are more than any device has, or not all in the program's
    memory: the system knows, so that a wrong size does not end the program.
    """
    if not address:
        return None
    if size > MOST_BYTES:
        raise BMError(f"{title} has {size} bytes, no device has more than {MOST_BYTES}")
    first = address // _PAGE * _PAGE
    if size > _UNASKED and _C.msync(first, address + size - first, _MS_ASYNC):
        raise BMError(f"{title} has {size} bytes, which the program does not have there")
    return (ctypes.c_uint8 * max(0, size)).from_address(address)


def text(address: int) -> str | None:
    """The string at an address, None for NULL."""
    return ctypes.string_at(address).decode(errors="surrogateescape") if address else None
