"""What the kernel libraries of the chips share: C prototypes, arguments of a call, its rules, where it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from bmcompiler.capi.api import Api


@dataclass(frozen=True)
class Parameter:
    """A parameter of a C prototype."""

    type: str
    name: str

    @cached_property
    def base(self) -> str:
        """The type without `const` and `*`."""
        return self.type.replace("const ", "").replace("*", "").strip()

    @cached_property
    def optional(self) -> bool:
        """Whether NULL is allowed: for strides, which then are those of the default layout."""
        return self.base == "dim4" and self.name.endswith("stride")


class Arguments:
    """The arguments of a call by their names in the prototype."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def get(self, name: str) -> Any:
        """An argument, or None where the function has none of that name."""
        return self.__dict__.get(name)


@dataclass(frozen=True)
class Rule:
    """A rule for the arguments: a sentence, which is the error's, and where it is a note of the seed, its words."""

    text: str
    holds: Callable[[Arguments], bool]
    note: str = ""


def parts_of(prototype: str) -> tuple[str, str, tuple[Parameter, ...]]:
    """The type of the value or result, the name and the parameters, without results, of a C prototype."""
    declared = Api(f"{prototype};", {}, lambda *fault: None)  # others check arguments
    ((name, found),) = declared.functions.items()
    returned = found.outs[0].c_type.removesuffix(" *") if found.outs else found.result
    return returned, name, tuple(Parameter(each.c_type, each.name) for each in found.parameters if not each.out)


class Source(NamedTuple):
    """Where a kernel called the library: the function, the file's name and the line; "" and 0 where C called it."""

    function: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.function} at {self.file}:{self.line}" if self.line else self.function


def source_of(function: str, caller: FrameType) -> Source:
    """The call as its kernel has it; a library of C calls through this package and has no line."""
    if caller.f_globals.get("__name__", "").startswith("bmcompiler."):
        return Source(function)
    return Source(function, Path(caller.f_code.co_filename).name, caller.f_lineno)
