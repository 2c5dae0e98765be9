"""The Python side of the C libraries: finds a function at its first call, and says why a call was refused."""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from bmcompiler.capi import entries, places
from bmcompiler.capi.api import Prototype
from bmcompiler.capi.library import HANDLES, CLibrary
from bmcompiler.capi.said import hear, refuse, say
from bmcompiler.errors import BMError

_SAY = ctypes.PYFUNCTYPE(None, ctypes.c_char_p)
_Function = tuple[Callable[..., object], str]


class _LastWord(logging.Handler):
    """Keeps the last error of a thread, for the C caller to ask for."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def begin(listed: int, words: int, place: int, own: int) -> tuple[object, ...]:
    """For C: what finds a function, what is done with an exception, the class of refusals, `Handles.by_number`.

    Args:
        listed: where the list of the program's registered functions begins.
        words: the C function that keeps a sentence for its thread.
        place: the one that knows where the thread's call stands.
        own: whether the library started Python. Who did so himself is told by exceptions, and by loggers of his own.
    """
    loud = bool(own) and _loud()
    entries.begin(listed)
    hear(_SAY(words))
    places.begin(place)
    logging.getLogger("bmcompiler").addHandler(_LastWord())
    if loud:
        logging.getLogger("bmcompiler").addHandler(logging.StreamHandler(sys.stderr))
    return find, partial(fail, loud=loud), BMError, *HANDLES.by_number()


def _loud() -> bool:
    """Whether sentences go to stderr, too."""
    return os.environ.get("BMCOMPILER_MESSAGES") != "off"


def fail(error: BaseException, loud: bool) -> None:
    """Say why a call was refused; aloud: on stderr, too."""
    known = isinstance(error, BMError)
    text = str(error) if known else f"{type(error).__name__}: {error}"
    refuse(text)
    if loud:
        print(text if known else f"bmcompiler: fault of the library: {text}", file=sys.stderr)


def find(home: str, number: int) -> _Function:
    """Function `number` of a library, "module:name", as C calls it: see `bound`."""
    module, _, name = home.partition(":")
    try:
        library: CLibrary = getattr(import_module(module), name)
    except Exception as error:  # whatever breaks an import
        raise BMError(f"the library {module} cannot be loaded: {error}") from error
    return bound(library, library.prototypes[number])


def bound(library: CLibrary, prototype: Prototype) -> _Function:
    """A function and the letters of its result and arguments.

    Without letters it is called with all arguments as 64 bits each, and the address of the result: it reads and stores.
    """
    if prototype.name in library.special:
        return library.special[prototype.name], ""
    function, letters = library.functions(prototype.name), library.letters(prototype)
    if letters:
        return function, letters
    store = library.results(prototype)
    given = [(index, library.reader(one.c_type)) for index, one in enumerate(prototype.parameters) if not one.out]
    needed = [(index, one.name) for index, one in enumerate(prototype.parameters) if one.out]

    def act(slots: Any, result: int) -> None:
        for index, name in needed:
            if not slots[index]:
                raise BMError(f"{prototype.name}: {name} is NULL")
        store(slots, result, function(*[read(slots[index]) for index, read in given]))

    return act, ""
