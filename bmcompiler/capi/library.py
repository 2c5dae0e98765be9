"""What makes a C library of a table: the C text around it, and how its C values become Python's and back."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from typing import Any

from bmcompiler.capi.api import Api, Prototype, Variable
from bmcompiler.errors import BMError

Read = Callable[[int], Any]
"""From the 64 bits of an argument (a number, a pointer, the address of a structure) to a Python value."""
Write = Callable[[int, Any], None]
"""Stores a Python value as a C value at an address."""

MOST_VALUES = 16
"""So many arguments C hands over as values, where none is more than a number or a handle."""
MOST_PAIRS = 1024
"""So many pairs a function of `CLibrary.paired` reads; of more it reads none, and is refused."""
INTEGERS: dict[str, Any] = {
    "int": ctypes.c_int32,
    "bmerr_t": ctypes.c_int32,
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "s8": ctypes.c_int8,
    "s16": ctypes.c_int16,
    "bool": ctypes.c_bool,
    "char": ctypes.c_int8,
    "unsigned char": ctypes.c_uint8,
    "unsigned int": ctypes.c_uint32,
    "unsigned long": ctypes.c_uint64,
    "unsigned long long": ctypes.c_uint64,
    "int32_t": ctypes.c_int32,
    "size_t": ctypes.c_size_t,
    "int64_t": ctypes.c_int64,
    "float": ctypes.c_float,
}
"""ctypes of the C types that hold one number."""


@dataclass(frozen=True)
class CLibrary:
    """A library of C functions that call Python's.

    Attributes:
        name: libNAME.so with the header NAME.h.
        preamble: C text before the structures: types and constants.
        numbers: ctypes of types of the library that hold one number, beyond `INTEGERS`.
        by_value: types that are passed by value and are no numbers, beside the structures of the table.
        spelled: C's name of the types that the table has names of its own for.
        returns: C's name of types where they are results, if it is another.
        failures: C expression for what a function returns on failure, by result type; 0 where none is given.
        needs: libraries that a program links with as well.
        functions: the Python functions.
        read, write: by type of the table; numbers and structures are known without.
        special: functions with an answer of their own, called with the arguments' 64 bits and the result's address.
    """

    name: str
    api: Api
    preamble: str
    spelled: Mapping[str, str]
    failures: Mapping[str, str]
    functions: Callable[[str], Callable[..., Any]]
    needs: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    """Names of the header: the first has the text, others include it. NAME.h where none are given."""
    includes: tuple[str, ...] = ()
    """Headers of other libraries that it includes."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    by_value: frozenset[str] = frozenset()
    read: Mapping[str, Read] = field(default_factory=dict)
    write: Mapping[str, Write] = field(default_factory=dict)
    special: Mapping[str, Callable[..., None]] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    """Further C text behind a structure."""
    written: Mapping[str, str] = field(default_factory=dict)
    """C text of structures that C writes in another way, of the same layout."""
    formatted: frozenset[str] = frozenset()
    """Functions whose last parameter is a format, with what C's printf takes behind it."""
    paired: frozenset[str] = frozenset()
    """Functions whose last parameter is, in C, pairs of a pointer and a 64-bit number, counted by the one before."""
    skipped: frozenset[str] = frozenset()
    """Declarations of the table that C does not have."""
    returns: Mapping[str, str] = field(default_factory=dict)
    extras: Callable[[], Mapping[str, str]] = dict
    """Further headers: their texts by their names."""
    unplaced: frozenset[str] | None = None
    """Functions whose calls do not say where they stand (`places`), which programs may declare; None: no call does."""
    sdk: str = ""
    """The vendor's version whose layouts it has, where that is not the usual one."""
    _layouts: dict[str, type[ctypes.Structure]] = field(default_factory=dict, init=False)

    @property
    def registered(self) -> str:
        """The name by which it is found among the C libraries."""
        return f"{self.name}-{self.sdk}" if self.sdk else self.name

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of the header, of which the first has the text."""
        return self.headers or (f"{self.name}.h",)

    @property
    def prototypes(self) -> list[Prototype]:
        """The functions of the library, in the order of their numbers."""
        return [one for name, one in self.api.functions.items() if name not in self.skipped]

    def c_type(self, name: str) -> str:
        """A type as the header has it."""
        return self.spelled.get(name, name)

    def result_type(self, name: str) -> str:
        """The type of a function's result as the header has it."""
        return self.returns.get(name) or self.c_type(name)

    def fields(self, name: str) -> tuple[Variable, ...]:
        """The fields that a structure has in C."""
        return tuple(one for one in self.api.structs[name] if not one.manual)

    def number(self, c_type: str) -> Any:
        """The ctypes of a type that holds one number, or None."""
        return self.numbers.get(c_type) or INTEGERS.get(self.c_type(c_type))

    def layout(self, name: str) -> type[ctypes.Structure]:
        """The ctypes structure of a structure of the table."""
        if name not in self._layouts:
            fields = [(one.name, self._field(one.c_type, one.array)) for one in self.fields(name)]
            self._layouts[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
        return self._layouts[name]

    def _field(self, c_type: str, array: str) -> Any:
        known = self.number(c_type)
        if known is None:
            known = self.layout(c_type) if c_type in self.api.structs else ctypes.c_void_p
        return known * int(array.strip("[]")) if array else known

    def reader(self, c_type: str) -> Read:
        """How an argument of that type is read."""
        if c_type in self.read:
            return self.read[c_type]
        number = self.number(c_type)
        if number is ctypes.c_float:  # by its address
            return lambda address: number.from_address(address).value
        if number is not None:
            return lambda bits: number(bits).value
        name = c_type.removeprefix("const ").rstrip(" *")
        return lambda address: self.structure(name, address) if address else None

    def structure(self, name: str, address: int) -> Any:
        """The Python object of a structure in C memory; `b` of a constant is unsigned where `b_is_signed` is false."""
        raw = self.layout(name).from_address(address)
        values: dict[str, Any] = {}
        for one in self.fields(name):
            if one.c_type in self.api.structs:
                values[one.name] = self.structure(one.c_type, address + getattr(type(raw), one.name).offset)
            else:
                value = getattr(raw, one.name)
                pointer = one.c_type.endswith("*")
                values[one.name] = self.reader(one.c_type)(value or 0) if pointer else value
        if values.get("b_is_signed") is False and values["b"] < 0:
            values["b"] += 1 << 8 * type(raw).b.size
        return self.api.classes[name](**values)

    def writer(self, c_type: str) -> Write:
        """How a result of that type is stored."""
        if c_type in self.write:
            return self.write[c_type]
        number = self.number(c_type)
        if number is not None:
            return lambda address, value: _put(number, address, value)
        return lambda address, value: self.store(c_type, address, value)

    def letters(self, prototype: Prototype) -> str:
        """One of its result (`-` for none) and of each argument, as C hands them over: those of `struct`, `o` a handle.

        "" where something is neither a number nor a handle.
        """
        if prototype.outs or len(prototype.parameters) > MOST_VALUES:
            return ""
        result = "-" if prototype.result == "void" else self._letter(prototype.result, self.write, HANDLES.write)
        given = [not one.array and self._letter(one.c_type, self.read, HANDLES.read) for one in prototype.parameters]
        return "".join(map(str, (result, *given))) if result and all(given) else ""

    def _letter(self, c_type: str, known: Mapping[str, object], of_handles: object) -> str:
        if c_type in known:
            return "o" if known[c_type] == of_handles else ""
        number = self.number(c_type)
        return "" if number is None else str(number._type_)

    def results(self, prototype: Prototype) -> Callable[[Any, int, Any], None]:
        """Stores what a function gave: called with the slots, the address of its value, and its value in Python."""
        places = [(index, one) for index, one in enumerate(prototype.parameters) if one.out]
        outs = [(index, self.writer(one.c_type[:-1].rstrip())) for index, one in places]
        write = None if prototype.result == "void" else self.writer(prototype.result)
        if not outs:
            return lambda slots, result, found: write(result, found) if write is not None else None

        def store(slots: Any, result: int, found: Any) -> None:
            if write is not None:
                write(result, found[0])
            for (index, put), value in zip(outs, found[-len(outs) :]):
                if value is not None:
                    put(slots[index], value)

        return store

    def store(self, name: str, address: int, value: Any) -> None:
        """Fill a structure in C memory from the attributes of an object."""
        raw = self.layout(name).from_address(address)
        for one in self.fields(name):
            if one.c_type in self.api.structs:
                inner, given = address + getattr(type(raw), one.name).offset, getattr(value, one.name)
                size = ctypes.sizeof(self.layout(one.c_type))
                for index, item in enumerate(given if one.array else (given,)):
                    self.store(one.c_type, inner + index * size, item)
            else:
                setattr(raw, one.name, getattr(value, one.name))


def _put(number: Any, address: int, value: Any) -> None:
    """Store a number. Raises BMError for one that no type of C holds."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise BMError(f"{value} is more than {_MOST_BITS} bits hold")
    number.from_address(address).value = value


_MOST_BITS = 64
_FIRST_SWEEP = 4096


class Handles:
    """Objects that C knows by numbers. Numbers are never used twice; 0 is NULL.

    Args:
        first: the first number; tables of one process must not share numbers.
        most: how many objects are kept before the oldest are forgotten; None for all that have not ended.
    """

    def __init__(self, first: int = 0x10, most: int | None = None) -> None:
        self._numbers, self._most, self._lock = count(first, 0x10), most, Lock()
        self._objects: dict[int, Any] = {}
        self._known: dict[int, int] = {}
        self._sweep = _FIRST_SWEEP

    def read(self, number: int) -> Any:
        """The object; None for NULL, something of no library's for a number that stands for nothing."""
        return self._objects.get(number, _UNKNOWN) if number else None

    def by_number(self) -> tuple[dict[int, Any], object, Callable[[Any], int]]:
        """For C: the objects, what a number stands for that none of them has, and what gives an object its number."""
        return self._objects, _UNKNOWN, self.number

    def number(self, value: Any) -> int:
        """The number of an object, always the same one."""
        if value is None:
            return 0
        with self._lock:
            number = self._known.get(id(value))
            if number is None:
                number = next(self._numbers)
                self._known[id(value)], self._objects[number] = number, value
                self._forget()
            return number

    def _forget(self) -> None:
        if self._most is not None:
            if len(self._objects) > self._most:
                self._drop(next(iter(self._objects)))
        elif len(self._objects) > self._sweep:
            for number in [number for number, value in self._objects.items() if value.ended()]:
                self._drop(number)
            self._sweep = max(_FIRST_SWEEP, 2 * len(self._objects))

    def _drop(self, number: int) -> None:
        del self._known[id(self._objects.pop(number))]

    def write(self, address: int, value: Any) -> None:
        """Store the number of an object."""
        ctypes.c_uint64.from_address(address).value = self.number(value)


class _Unknown:
    """What a number that was never given out stands for."""


_UNKNOWN = _Unknown()
HANDLES = Handles()
"""The handles of all libraries of the process."""
