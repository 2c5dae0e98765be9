"""The Python side of the C libraries: one function that they call with the numbers of a library and a function."""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from bmcompiler.capi.api import Prototype
from bmcompiler.capi.entries import begin
from bmcompiler.capi.library import CLibrary
from bmcompiler.capi.said import refuse, said, say
from bmcompiler.errors import BMError
from bmcompiler.plugins.registry import lookup

MESSAGE_BYTES = 512
_Slots = Callable[[Any, int], None]
_CALL = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_uint64), ctypes.c_void_p, ctypes.c_void_p
)
_OPEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)

_libraries: list[list[_Slots]] = []
_numbers: dict[str, int] = {}


class _LastWord(logging.Handler):
    """Keeps the last error of a thread, for the C caller to ask for."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def addresses(entries: int) -> tuple[int, int]:
    """The functions that C calls: one opens a library by its name, one calls a function.

    Args:
        entries: where the list of the program's registered functions begins.
    """
    begin(entries)
    logging.getLogger("bmcompiler").addHandler(_LastWord())
    if _loud():
        logging.getLogger("bmcompiler").addHandler(logging.StreamHandler(sys.stderr))
    opening, calling = (ctypes.cast(one, ctypes.c_void_p).value or 0 for one in _CALLBACKS)
    return opening, calling


def _loud() -> bool:
    """Whether sentences go to stderr, too."""
    return os.environ.get("BMCOMPILER_MESSAGES") != "off"


def _print(text: object) -> None:
    if _loud():
        print(text, file=sys.stderr)


def _open(name: bytes) -> int:
    """The number of a library; -1 when it cannot be had."""
    try:
        title = name.decode()
        if title not in _numbers:
            library: CLibrary = lookup("bmcompiler.c_libraries", title, "C library")
            _libraries.append([bound(library, one) for one in library.prototypes])
            _numbers[title] = len(_libraries) - 1
        return _numbers[title]
    except Exception as error:
        _print(f"bmcompiler: {error}")
        return -1


def _call(library: int, function: int, slots: Any, result: int, message: int) -> int:
    """0 after the function has run and stored its results; 1 with a sentence when it has not."""
    say("")
    code = 0
    try:
        _libraries[library][function](slots, result)
    except BMError as error:
        code = 1
        refuse(str(error))
        _print(error)
    except Exception as error:
        code = 1
        refuse(f"{type(error).__name__}: {error}")
        _print(f"bmcompiler: fault of the library: {said()}")
    if said():
        text = said().encode(errors="backslashreplace")[: MESSAGE_BYTES - 1] + b"\0"
        ctypes.memmove(message, text, len(text))
    return code


_CALLBACKS = (_OPEN(_open), _CALL(_call))


def bound(library: CLibrary, prototype: Prototype) -> _Slots:
    """A function that reads arguments from slots, calls Python's, and stores results."""
    if prototype.name in library.special:
        return library.special[prototype.name]
    function, store = library.functions(prototype.name), library.results(prototype)
    given = [(index, library.reader(one.c_type)) for index, one in enumerate(prototype.parameters) if not one.out]
    needed = [(index, one.name) for index, one in enumerate(prototype.parameters) if one.out]

    def act(slots: Any, result: int) -> None:
        for index, name in needed:
            if not slots[index]:
                raise BMError(f"{prototype.name}: {name} is NULL")
        store(slots, result, function(*[read(slots[index]) for index, read in given]))

    return act
