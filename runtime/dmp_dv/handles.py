"""Reference counted handles (dv.md 6): create gives 1, release at 0 frees, handles hold references of each other."""

from __future__ import annotations

import itertools
import sys
from threading import RLock
from typing import TypeVar

from bmcompiler.runtime.dmp_dv.messages import report

_OURS = (__name__.rpartition(".")[0], "bmcompiler.capi")

_numbers = itertools.count(0x1000, 0x10)

LOCK = RLock()
"""Guards counters and tables of handles; never held while commands run."""


class Handle:
    """A counter and who uses it. `value` is the number that stands for the handle in C structures."""

    kind = "handle"

    def __init__(self) -> None:
        self.value = next(_numbers)
        self.users = 1
        """References of the caller."""
        self.holders = 0
        """References of other handles and of running commands."""
        self.origin = _caller()

    @property
    def count(self) -> int:
        """The reference counter that C shows."""
        return self.users + self.holders

    @property
    def alive(self) -> bool:
        """Whether anything still refers to it."""
        return self.count > 0

    def ended(self) -> str:
        """Why it cannot be used any more."""
        return "" if self.alive else "has been released"

    def describe(self) -> str:
        """One line for reports of leaks."""
        return f"{self.kind} 0x{self.value:x} with {self.users} reference(s), created at {self.origin}"

    def hold(self) -> None:
        """Take a reference for another handle."""
        with LOCK:
            self.holders += 1

    def drop(self) -> None:
        """Give back a reference taken by `hold`."""
        with LOCK:
            self.holders -= 1
            if not self.count:
                self.free()

    def free(self) -> None:
        """Called once, when the counter reaches 0."""


H = TypeVar("H", bound=Handle)


def usable(handle: H | None, kind: type[H], name: str) -> H | None:
    """The handle if it can be used; otherwise the error message is set."""
    if handle is None:
        report(f"{name} is NULL")
    elif not isinstance(handle, kind):
        report(f"{name} is not a {kind.kind}")
    elif not handle.alive:
        report(f"{name} has been released")
    else:
        return handle
    return None


def release(handle: H | None, kind: type[H], name: str) -> int:
    """The counter after the call; 0 for NULL, which is ignored, and for a handle that was released before."""
    if handle is None:
        return 0
    with LOCK:
        found = usable(handle, kind, name)
        if found is None:
            return 0
        if not found.users:
            report(f"{name} was released by its owner before; what is left belongs to other handles")
            return found.count
        found.users -= 1
        if not found.count:
            found.free()
        return found.count


def retain(handle: H | None, kind: type[H], name: str) -> int:
    """The counter after the call; 0 for NULL, which is ignored, and for a released handle."""
    if handle is None:
        return 0
    with LOCK:
        found = usable(handle, kind, name)
        if found is None:
            return 0
        found.users += 1
        return found.count


def _caller() -> str:
    """File and line outside of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
