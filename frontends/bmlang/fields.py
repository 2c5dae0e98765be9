"""Arguments in the form that their kind has: numbers, lists, enumerations, and the fields of parameter structs.

Each function gives the value in its own form (an int, a tuple...), or None for anything that is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, TypeVar, get_type_hints

import ml_dtypes
import numpy as np

from bmcompiler.errors import ShapeError, UsageError

_E = TypeVar("_E", bound=IntEnum)
_SHOWN = 100
MOST_AXES = 8
"""Axes of a tensor (bmlang.md 4.9)."""
MOST_ELEMENTS = (1 << 31) - 1
"""Elements of a tensor."""
_REALS = (int, float, np.integer, np.floating, ml_dtypes.bfloat16)
_LOWEST, _HIGHEST = -(1 << 31), (1 << 31) - 1


def shown(value: object) -> str:
    """A value as messages show it: one line, cut where it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def whole(value: object) -> int | None:
    """A whole number of 32 bits."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        return None
    return int(value) if _LOWEST <= value <= _HIGHEST else None


def count(value: object) -> int | None:
    """A whole number of 32 bits that is not negative."""
    number = whole(value)
    return number if number is not None and number >= 0 else None


def real(value: object) -> float | None:
    """A number as float, None for anything else (bool is no number) and for integers too large."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, _REALS):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def flag(value: object) -> bool | None:
    """True or False, also as 1 or 0."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    return bool(value) if isinstance(value, int) and value in (0, 1) else None


def text(value: object) -> str | None:
    """A text that is not empty."""
    return value if isinstance(value, str) and value else None


def listed(each: Callable[[object], Any], value: object) -> tuple[Any, ...] | None:
    """A list of what `each` takes; numpy arrays of one axis are lists, too."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = list(value)
    if not isinstance(value, (list, tuple, range)):
        return None
    found = tuple(map(each, value))
    return None if any(one is None for one in found) else found


def wholes(value: object) -> tuple[int, ...] | None:
    """A list of whole numbers of 32 bits."""
    return listed(whole, value)


def member(kind: type[_E], value: object) -> _E | None:
    """A member of an enumeration, which may be given by its number."""
    if isinstance(value, kind):
        return value
    if isinstance(value, IntEnum):  # of another enumeration
        return None
    number = whole(value)
    return kind(number) if number in tuple(kind) else None


def need_size(shape: Sequence[int], axes: int = MOST_AXES) -> None:
    """Raise ShapeError for a shape of too many axes or elements."""
    if len(shape) > axes:
        raise ShapeError(f"a tensor has at most {axes} axes, got {len(shape)}: {shown(list(shape))}")
    if math.prod(shape) > MOST_ELEMENTS:
        raise ShapeError(f"a tensor has at most {MOST_ELEMENTS} elements, got {shown(list(shape))}")


# -- parameter structs -------------------------------------------------------------------------------------------------
_FORMS: dict[Any, tuple[Callable[[Any], Any], str]] = {
    int: (whole, "a whole number of 32 bits"),
    int | None: (lambda value: value if value is None else count(value), "a whole number from 0 on, or None"),
    float: (real, "a number"),
    bool: (flag, "True or False"),
    str: (text, "a text"),
    tuple[int, ...]: (wholes, "a list of whole numbers of 32 bits"),
    tuple[float, ...]: (lambda value: listed(real, value), "a list of numbers"),
    tuple[tuple[int, ...], ...]: (lambda value: listed(lambda one: listed(count, one), value), "a list of shapes"),
}


@dataclass(frozen=True)
class Struct:
    """A parameter struct: its fields are checked, and lists and numbers of enumerations become what they stand for."""

    _kinds: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        cls._kinds = {name: kind for name, kind in get_type_hints(cls).items() if name != "_kinds"}

    def __post_init__(self) -> None:
        """Raises UsageError for a field that is not what it must be."""
        for name, kind in self._kinds.items():
            value = getattr(self, name)
            if isinstance(kind, type) and issubclass(kind, IntEnum):
                found, what = member(kind, value), f"a {kind.__name__}"
            else:
                take, what = _FORMS[kind]
                found = take(value)
            if found is None and not (value is None and kind == int | None):
                raise UsageError(f"{type(self).__name__} needs {name} to be {what}, got {shown(value)}")
            object.__setattr__(self, name, found)
