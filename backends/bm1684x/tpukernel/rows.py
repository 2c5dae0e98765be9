"""How a function of the library is declared: its C prototype, its rules and what it emits, in one row.

The prototype is the declaration: names, C types and order of the parameters are read from it. Python functions, checks
of arguments, the manual's page and a C header follow from the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from bmcompiler.backends.bm168x.calls import Arguments, Declared, Parameter, Rule, parts_of

if TYPE_CHECKING:
    from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder

__all__ = ["Arguments", "Emit", "Function", "Known", "Parameter", "Rule", "in_group", "parts_of"]


class Known(str, Enum):
    """Where the behaviour of a function is known from."""

    REFERENCE = "reference"  # notes of the reference, and recorded commands
    RECORDED = "recorded"  # commands, or values, that the vendor's library gave
    DRAWN = "drawn"  # commands and memory of calls with drawn arguments that the vendor's library made
    DESCRIBED = "described"  # the hardware facts describe what the vendor's library does
    DERIVED = "derived"  # the form of recorded functions, with another operation or direction
    OWN = "own"  # no function of the vendor's library


Emit = Callable[["Recorder", Arguments], Any]


@dataclass(frozen=True)
class Function(Declared):
    """One function of the library.

    Attributes:
        declared: the prototype as in C, with the word `out` before a pointer to a result.
        formula: what it computes, in a line. emit: adds its commands and returns its value.
        rules: for the arguments, beyond what their types say.
        group: the heading under which the manual has it. source: where its behaviour is known from.
        shape_note: what the reference says of the sizes of shapes, in its words.
    """

    formula: str
    emit: Emit
    rules: tuple[Rule, ...] = ()
    group: str = ""
    source: Known = Known.RECORDED
    shape_note: str = ""


def in_group(group: str, *rows: Function, source: Known = Known.RECORDED) -> tuple[Function, ...]:
    """The rows under one heading of the manual."""
    named = (row if row.source is not Known.RECORDED else replace(row, source=source) for row in rows)
    return tuple(replace(row, group=group) for row in named)
