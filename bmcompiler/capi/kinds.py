"""Kinds of arguments: what a C type takes, and the reason why a value is none of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import index
from typing import Any, NamedTuple, Protocol


class Fault(NamedTuple):
    """Why an argument is refused: `reason` continues its name and `part`, the field or element that is wrong.

    `ended`: it is a handle whose object is gone.
    """

    reason: str
    ended: bool = False
    part: str = ""

    def of(self, name: str) -> str:
        """The sentence about the argument of that name."""
        return f"{name}{self.part} {self.reason}"


Check = Callable[[Any], Fault | None]
"""None for a value that the kind takes."""

NULL = Fault("is NULL")


@dataclass(frozen=True)
class Kind:
    """A C type and the values it takes; of integers the lowest and highest."""

    c_type: str
    check: Check
    bounds: tuple[int, int] | None = None


class Endable(Protocol):
    """Objects behind handles."""

    def ended(self) -> str:
        """Why the handle cannot be used any more ("was freed"), or an empty string."""
        ...


def integer(c_type: str, low: int, high: int) -> Kind:
    """Integers from `low` to `high`, of Python or numpy."""

    def check(value: Any) -> Fault | None:
        if type(value) is not int:
            if value is None:
                return NULL
            try:
                value = index(value)
            except TypeError:
                return Fault(f"is {shown(value)}, not an integer")
        return None if low <= value <= high else Fault(f"is {value}, must be {low}..{high}")

    return Kind(c_type, check, (low, high))


def unsigned(c_type: str, bits: int) -> Kind:
    """Unsigned integers of that many bits."""
    return integer(c_type, 0, (1 << bits) - 1)


def signed(c_type: str, bits: int) -> Kind:
    """Signed integers of that many bits."""
    return integer(c_type, -(1 << bits - 1), (1 << bits - 1) - 1)


def boolean(c_type: str = "bool") -> Kind:
    """True and False, and integers as in C."""

    def check(value: Any) -> Fault | None:
        if type(value) is bool or isinstance(value, int) or type(value).__name__ in ("bool", "bool_"):
            return None
        return NULL if value is None else Fault(f"is {shown(value)}, neither true nor false")

    return Kind(c_type, check)


def real(c_type: str = "float") -> Kind:
    """Numbers that `float` takes."""

    def check(value: Any) -> Fault | None:
        if value is None:
            return NULL
        ok = isinstance(value, (int, float)) or (hasattr(value, "__float__") and not getattr(value, "shape", ()))
        return None if ok else Fault(f"is {shown(value)}, not a number")

    return Kind(c_type, check)


def handle(c_type: str, cls: type[Endable]) -> Kind:
    """Objects of a class that have not ended."""
    what = c_type.rstrip(" *")

    def check(value: Any) -> Fault | None:
        if not isinstance(value, cls):
            return NULL if value is None else Fault(f"is {shown(value)}, not a {what}")
        reason = value.ended()
        return Fault(reason, ended=True) if reason else None

    return Kind(c_type, check)


def instance(c_type: str, cls: type[Any] | tuple[type[Any], ...], what: str) -> Kind:
    """Objects of these classes."""

    def check(value: Any) -> Fault | None:
        if isinstance(value, cls):
            return None
        return NULL if value is None else Fault(f"is {shown(value)}, not {what}")

    return Kind(c_type, check)


def object_or_class(c_type: str, cls: type[Any]) -> Kind:
    """Objects of a class, and classes derived from it."""

    def check(value: Any) -> Fault | None:
        if isinstance(value, cls) or (isinstance(value, type) and issubclass(value, cls)):
            return None
        return NULL if value is None else Fault(f"is {shown(value)}, not a {cls.__name__}")

    return Kind(c_type, check)


def struct(c_type: str, cls: type[Any], fields: Mapping[str, Kind]) -> Kind:
    """Objects of a class whose fields are of the given kinds; the first that is not is named."""
    what, checks = (
        c_type.removeprefix("const ").rstrip(" *"),
        tuple((name, kind.check) for name, kind in fields.items()),
    )

    def check(value: Any) -> Fault | None:
        if not isinstance(value, cls):
            return NULL if value is None else Fault(f"is {shown(value)}, not a {what}")
        for name, of_field in checks:
            fault = of_field(getattr(value, name))
            if fault is not None:
                return fault._replace(part=f".{name}{fault.part}")
        return None

    return Kind(c_type, check)


def buffer(c_type: str) -> Kind:
    """Objects with a buffer: bytes, arrays, structures of ctypes. Their size is for the function to check."""

    def check(value: Any) -> Fault | None:
        if value is None:
            return NULL
        try:
            memoryview(value).release()
        except (TypeError, ValueError, BufferError):
            return Fault(f"is {shown(value)}, not a buffer")
        return None

    return Kind(c_type, check)


def integers(c_type: str, each: Kind) -> Kind:
    """Sequences of integers."""

    def check(value: Any) -> Fault | None:
        if value is None:
            return NULL
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__"):
            return Fault(f"is {shown(value)}, not a sequence of integers")
        for number, item in enumerate(value):
            fault = each.check(item)
            if fault is not None:
                return fault._replace(part=f"[{number}]")
        return None

    return Kind(c_type, check)


def path(c_type: str = "const char *") -> Kind:
    """Names of files: str, bytes or a path in Python, `const char *` in C."""

    def check(value: Any) -> Fault | None:
        if value is None:
            return NULL
        if not isinstance(value, (str, os.PathLike)):
            return Fault(f"is {shown(value)}, not a file name")
        return Fault("has a zero byte") if "\0" in str(value) else None

    return Kind(c_type, check)


def text(c_type: str = "const char *") -> Kind:
    """Strings: str in Python, `const char *` ended by a zero in C."""
    return instance(c_type, str, "a string")


def name(c_type: str) -> Kind:
    """Strings that name something: not empty, and UTF-8 in C."""

    def check(value: Any) -> Fault | None:
        if not isinstance(value, str):
            return NULL if value is None else Fault(f"is {shown(value)}, not a string")
        if not value:
            return Fault("is empty")
        return Fault(f"is {shown(value)}, not UTF-8") if any("\ud800" <= one <= "\udfff" for one in value) else None

    return Kind(c_type, check)


def anything(c_type: str) -> Kind:
    """What a function does not look at."""
    return Kind(c_type, lambda value: None)


def nullable(kind: Kind) -> Kind:
    """The same, or NULL."""
    inner = kind.check
    return replace(kind, check=lambda value: None if value is None else inner(value))


def shown(value: Any) -> str:
    """A value in a message, short."""
    if isinstance(value, (int, float, str)):
        form = repr(value)
        return form if len(form) <= 40 else f"{form[:37]}..."
    return f"class {value.__name__}" if isinstance(value, type) else f"an object of class {type(value).__name__}"
