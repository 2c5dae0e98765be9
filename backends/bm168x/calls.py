"""What the kernel libraries of the chips share: C prototypes, arguments of a call, its rules, where it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from bmcompiler.capi.api import Api
from bmcompiler.errors import UsageError


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


@dataclass(frozen=True)
class Declared:
    """A function as its C prototype, in which `(out ` marks a result, declares it."""

    declared: str

    @cached_property
    def _parts(self) -> tuple[str, str, tuple[Parameter, ...]]:
        return parts_of(self.declared)

    @cached_property
    def prototype(self) -> str:
        """As in C."""
        return self.declared.replace("(out ", "(")

    @property
    def name(self) -> str:
        """With the prefix of the library."""
        return self._parts[1]

    @property
    def returns(self) -> str:
        """The C type of its value, or of what it stores at a pointer."""
        return self._parts[0]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of the C prototype, in order, without results."""
        return self._parts[2]


class ArgumentError(UsageError):
    """An argument that its C type cannot hold; the message lacks the function and the parameter."""


def bound(
    function: Declared, given: Sequence[Any], named: Mapping[str, Any], converted: Callable[[Parameter, Any], Any]
) -> Arguments:
    """The arguments of a call by name. Raises UsageError that names function and parameter.

    converted: an argument as its parameter has it; raises ArgumentError.
    """
    parameters = function.parameters
    if len(given) > len(parameters):
        raise UsageError(f"{function.name} takes {len(parameters)} arguments, got {len(given)}")
    values = dict(zip((parameter.name for parameter in parameters), given))
    for name, value in named.items():
        if name not in {parameter.name for parameter in parameters}:
            raise UsageError(f"{function.name} has no parameter '{name}': {function.prototype}")
        if name in values:
            raise UsageError(f"{function.name} got '{name}' twice")
        values[name] = value
    found = {}
    for parameter in parameters:
        if parameter.name not in values:
            raise UsageError(f"{function.name} needs '{parameter.name}': {function.prototype}")
        try:
            found[parameter.name] = converted(parameter, values[parameter.name])
        except ArgumentError as error:
            raise UsageError(f"{function.name}: {parameter.name} {error.reason}") from None
    return Arguments(found)


class MissingFunction:
    """A function that the vendor has and a library does not offer; calls raise UsageError with the reason."""

    def __init__(self, name: str, reason: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.reason = reason
        self.__doc__ = f"Not offered: {reason}."

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise UsageError(f"{self.__name__} is not offered: {self.reason}")


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
