"""How a function of okkernel is declared: its C prototype, its rules and what it emits, in one row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bmcompiler.backends.bm168x.calls import Arguments, Declared, Rule

if TYPE_CHECKING:
    from bmcompiler.backends.bm1684.okkernel.recorder import Recorder

Emit = Callable[["Recorder", Arguments], Any]
WINDOW = ("padding", "stride", "dilation")
"""Parameters of windows that may be NULL: nothing around the image, steps of 1."""


@dataclass(frozen=True)
class Function(Declared):
    """One function of the library.

    Attributes:
        declared: the prototype as in C, with the word `out` before a pointer to a result.
        formula: what it computes, in a line. emit: adds its commands and returns its value.
        rules: for the arguments, beyond what their types say. group: the heading under which the manual has it.
    """

    formula: str
    emit: Emit
    rules: tuple[Rule, ...] = ()
    group: str = ""


def in_group(group: str, *rows: Function) -> tuple[Function, ...]:
    """The rows under one heading of the manual."""
    return tuple(replace(row, group=group) for row in rows)


def within(low: int, high: int, *names: str) -> Rule:
    """Integers, or all sizes of structures, lie in a range; those that are NULL do."""

    def holds(a: Arguments) -> bool:
        given = [getattr(a, name) for name in names]
        sizes = [size for one in given if one is not None for size in (one if isinstance(one, tuple) else (one,))]
        return all(low <= size <= high for size in sizes)

    return Rule(f"{', '.join(names)} must be in [{low}, {high}]", holds)
