"""A library's C declarations as one table; the checks of its Python functions come from it.

    API = Api('''
        typedef struct { u32 chip_version; maybe u8 *cmdbuf; u32 cmdbuf_size; } bmk1880_info_t;
        void bmk1880_tl_free(void *ctx, tensor_lmem *tlp);
    ''', kinds, on_fault)

    @API.checked
    def bmk1880_tl_free(ctx, tlp): ...

The text is C but for three words before a parameter or field: `out` is a result (in Python a return value), `maybe` may
be NULL, `manual` is a field of the manual that the headers, and so C, do not have. `u32 h/row` is a field with two
names. Methods are declared as in C++: `void TensorShape::add_dim(int value);`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

from bmcompiler.capi.kinds import Check, Endable, Fault, Kind, handle, integers, nullable, struct

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type[Any])
E = TypeVar("E", bound=type[Endable])

_STRUCT = re.compile(r"typedef struct \{(.*?)\} (\w+);", re.S)
_FUNCTION = re.compile(r"([\w \*]+?[ \*])(\w+(?:::\w+)?)\(([^()]*)\);")
_VARIABLE = re.compile(r"(?:(out|maybe|manual) )?(.*?)(\w+)(?:/(\w+))?(\[\w*\])?$")


@dataclass(frozen=True)
class Variable:
    """A parameter or field: its C type, whether it is a result, may be NULL, is of the manual only, its second name."""

    name: str
    c_type: str
    out: bool = False
    maybe: bool = False
    alias: str = ""
    array: str = ""
    manual: bool = False


@dataclass(frozen=True)
class Prototype:
    """A function: the type of its result, its parameters in C order."""

    name: str
    result: str
    parameters: tuple[Variable, ...]

    @property
    def outs(self) -> tuple[Variable, ...]:
        """Parameters that are results."""
        return tuple(one for one in self.parameters if one.out)


OnFault = Callable[[Prototype, str, Fault], Any]
"""Called with the function, the parameter's name and its fault; returns what the function returns then, or raises."""


def declared(module: str, file: str) -> str:
    """The declarations in a file beside the module that lies at `module`."""
    return Path(module).with_name(file).read_text(encoding="utf-8")


class Api:
    """The declarations of a library.

    Args:
        text: structures and functions.
        kinds: by C type; `checked`, `struct` and `handle` say the rest.
        on_fault: what a refused call does.
    """

    def __init__(self, text: str, kinds: Mapping[str, Kind], on_fault: OnFault) -> None:
        text = re.sub(r"/\*.*?\*/|\s+", " ", text, flags=re.S)
        self.structs = {name: tuple(_variables(fields, ";")) for fields, name in _STRUCT.findall(text)}
        functions = (
            Prototype(name, _spelled(result), tuple(_variables(parameters, ",")))
            for result, name, parameters in _FUNCTION.findall(_STRUCT.sub("", text))
        )
        self.functions = {one.name: one for one in functions}
        self._kinds, self._on_fault = dict(kinds), on_fault
        self.classes: dict[str, type[Any]] = {}
        """The Python classes of structures, by the structures' names."""

    def without(self, name: str, *fields: str) -> Api:
        """A table like this one, of which one structure lacks fields; functions and classes are the same objects."""
        found = copy(self)
        found.structs = self.structs | {name: tuple(one for one in self.structs[name] if one.name not in fields)}
        return found

    def struct(self, cls: C, name: str = "") -> C:
        """A class decorator: the class is the structure of that name, or of its own; properties are not checked."""
        name = name or getattr(cls, "c_name", cls.__name__)
        given = [one for one in self.structs[name] if not isinstance(getattr(cls, one.name, None), property)]
        fields = {one.name: self.kind(one) for one in given}
        self.classes[name] = cls
        for c_type in (name, f"const {name}", f"{name} *", f"const {name} *"):
            self._kinds[c_type] = struct(c_type, cls, fields)
        return cls

    def handle(self, c_type: str) -> Callable[[E], E]:
        """A class decorator: the class stands for the handles of that C type."""

        def decorate(cls: E) -> E:
            self._kinds[c_type] = handle(c_type, cls)
            return cls

        return decorate

    def add(self, kind: Kind) -> None:
        """One more kind, for its C type."""
        self._kinds[kind.c_type] = kind

    def kind(self, variable: Variable) -> Kind:
        """The kind of a parameter or field."""
        kind = self._kinds[variable.c_type]
        if variable.array:
            kind = integers(f"{variable.c_type}{variable.array}", kind)
        return nullable(kind) if variable.maybe else kind

    def checked(self, function: F) -> F:
        """A decorator: the function is called only with arguments that the table takes."""
        owner, _, method = function.__qualname__.rpartition(".")
        prototype = self.functions[f"{owner}::{owner if method == '__init__' else method}" if owner else method]
        names = [name for name in signature(function).parameters if name != "self"]
        known = {one.name: one for one in prototype.parameters if not one.out}
        names = [name for name in names if name in known]
        if names != list(known):
            raise TypeError(f"{prototype.name} has the parameters {names}, the table has {list(known)}")
        skipped, on_fault = int(bool(owner)), self._on_fault
        checks: dict[str, Check] = {}

        @wraps(function)
        def call(*values: Any, **named: Any) -> Any:
            if not checks:  # kinds of classes are known after the modules that define them
                checks.update({name: self.kind(known[name]).check for name in names})
            for (name, check), value in zip(checks.items(), values[skipped:] if skipped else values):
                fault = check(value)
                if fault is not None:
                    return on_fault(prototype, name, fault)
            if not named:
                return function(*values)
            for name, value in named.items():
                fault = checks[name](value) if name in checks else None
                if fault is not None:
                    return on_fault(prototype, name, fault)
            return function(*values, **named)

        return call  # type: ignore[return-value]


def _variables(text: str, separator: str) -> list[Variable]:
    """Parameters, or fields: `u8 kh, kw` are two."""
    found: list[Variable] = []
    for part in filter(None, (part.strip() for part in text.split(separator))):
        for number, piece in enumerate(part.split(",")):
            match = None if piece == "void" else _VARIABLE.fullmatch(piece.strip())
            if match is not None:
                word, c_type, name, alias, array = match.groups()
                one = Variable(
                    name, _spelled(c_type), word == "out", word == "maybe", alias or "", array or "", word == "manual"
                )
                found.append(replace(found[-1], name=name) if number else one)
    return found


def _spelled(c_type: str) -> str:
    """One way to write a type: `const char *`."""
    stars = c_type.count("*")
    return " ".join(c_type.replace("*", " ").split()) + (" " + "*" * stars if stars else "")
