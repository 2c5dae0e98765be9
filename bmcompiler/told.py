"""What everybody is told of an option, once and beside its field: help of the commands, docstrings, checks of values.

limit: int | None = told(None, "Only the first N samples.", metavar="N", least=1, unset="all")
"""

from __future__ import annotations

import json
import math
import os
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from numbers import Real
from typing import Any, TypeVar

from bmcompiler.errors import UsageError
from bmcompiler.spelling import spelled
from bmcompiler.text import is_broken

T = TypeVar("T")
C = TypeVar("C", bound=type)
_WIDTH = 112


@dataclass(frozen=True)
class Told:
    """An option, as people meet it.

    Attributes:
        name: of the field. default: of the field. type: of the field, as it is written.
        text: a sentence; {name} stands for another option. python: what more functions take or give.
        unset: what holds where nothing is given, where the default does not say it.
        metavar: the value's name in help texts. written: whether it names a file or folder to write.
        choices: all values. least: the smallest. above: what it must exceed. bare: where it is given without a value.
    """

    text: str
    python: str = ""
    unset: str = ""
    metavar: str | None = None
    written: bool = False
    choices: tuple[str | int, ...] = ()
    least: int | None = None
    above: int | None = None
    bare: str | None = None
    name: str = ""
    default: Any = None
    type: str = ""

    def sentence(self, *, python: bool = True) -> str:
        """The text for one of the two worlds."""
        words = ", ".join(each for each in self.choices if isinstance(each, str))
        more = (self.python, words and f"One of {words}.", self.unset and f"Default: {self.unset}.")
        text = " ".join(filter(None, (self.text, *more))) if python else self.text
        return re.sub(r"{(\w+)}", lambda found: spelled(found[1]), text)

    def taken(self, value: Any) -> Any:
        """The value, a choice in capitals as it is declared. Raises UsageError for one that no target takes."""
        word = value.lower() if isinstance(value, str) and self.choices else value
        self._check(word if word in self.choices else value)
        return word if word in self.choices else value

    def _check(self, value: Any) -> None:
        if value is None:
            return
        if self.choices and value not in self.choices:
            *first, last = map(str, self.choices)
            raise UsageError(f"{spelled(self.name)} must be {', '.join(first)} or {last}, got {value!r}")
        if isinstance(value, str) and not self.type.startswith("Path_") and is_broken(value):
            raise UsageError(f"{spelled(self.name)} is not in UTF-8")
        number = _number(value)
        if self.least is not None and not self.least <= number < math.inf:
            raise UsageError(f"{spelled(self.name)} must be a finite number, {self.least} or more, got {value!r}")
        if self.above is not None and not self.above < number < math.inf:
            raise UsageError(f"{spelled(self.name)} must be a finite number above {self.above}, got {value!r}")


def _number(value: Any) -> float:
    """What a value is beside its bounds: an integer that no float holds is infinite."""
    try:
        return float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        return math.inf


def told(default: T, text: str, **more: Any) -> T:
    """The field of an option: its default, and what `Told` has."""
    found: T = field(default=default, metadata={"told": Told(text, default=default, **more)})
    return found


def all_told(options: type) -> Iterator[Told]:
    """The options that a dataclass declares: those by position, then its bases' first."""
    for each in sorted(fields(options), key=lambda each: bool(each.kw_only)):
        if "told" in each.metadata:
            yield replace(each.metadata["told"], name=each.name, type=str(each.type))


def said(options: Any) -> dict[str, str]:
    """What was said other than the defaults, in words; not what only Python can hold, such as arrays and functions."""
    found: dict[str, str] = {}
    for each in all_told(type(options)):
        value = getattr(options, each.name)
        if is_dataclass(value) and any(all_told(type(value))):
            found |= said(value)
        elif (words := _words(value)) and words != _words(each.default):
            found["images" if each.name == "path" else each.name] = words
    return found


def _words(value: Any) -> str:
    """A value as a command takes it; nothing for None and for what no words say."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, str | os.PathLike):
        return os.fspath(value)
    if isinstance(value, int | float):
        return str(value) if isinstance(value, int) else f"{value:.12g}"
    if isinstance(value, list | tuple):
        plain = all(isinstance(each, str | int | float) for each in value)
        return ",".join(map(_words, value)) if plain else json.dumps(value, separators=(",", ":"), default=str)
    if is_dataclass(value):
        pairs = ((each.name, getattr(value, each.name), each.default) for each in fields(value))
        return ",".join(f"{name}={_words(found)}" for name, found, default in pairs if _words(found) != _words(default))
    return ""


def arguments(options: Any) -> str:
    """A line or more for each, as docstrings have them."""
    lines = (f"{each.name}: {each.sentence()}" for each in all_told(options))
    return "\n".join(textwrap.fill(line, _WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 12) for line in lines)


def documented(options: C) -> C:
    """Give a class of options a docstring that says what each means."""
    options.__doc__ = f"{options.__doc__}\n\n    Attributes:\n{arguments(options)}\n    "
    return options
