"""Arguments of calls: from what a user writes to the library's types, with the range that each C type has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import partial
from operator import index
from typing import Any

from bmcompiler.backends.bm168x.calls import ArgumentError
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Function, Parameter, Rule
from bmcompiler.backends.bm1684x.tpukernel.types import (
    data_type_t,
    dim2,
    dim4,
    padding_t,
    rounding_mode_t,
    scalar_t,
    variable_t,
    variable_type_t,
)
from bmcompiler.errors import UsageError

_ADDRESS_END = 1 << 40
_INTEGERS = {
    "int": (-(1 << 31), (1 << 31) - 1),
    "char": (-128, 127),
    "unsigned char": (0, 255),
    "unsigned int": (0, (1 << 32) - 1),
    "unsigned long long": (0, (1 << 64) - 1),
}
_ADDRESSES = {
    "local_addr_t": (0, CHIP.lmem_total - 1),
    "static_addr_t": (0, CHIP.static_size - 1),
    "system_addr_t": (CHIP.l2_window, _ADDRESS_END - 1),
    "global_addr_t": (CHIP.global_base, _ADDRESS_END - 1),
    "addr_t": (0, _ADDRESS_END - 1),
}
_ENUMS: dict[str, type[IntEnum]] = {"data_type_t": data_type_t, "rounding_mode_t": rounding_mode_t}
_STRUCTS: dict[str, tuple[type[Any], int]] = {"dim4": (dim4, 4), "dim2": (dim2, 2), "padding_t": (padding_t, 4)}
_MOST_SIZE = (1 << 16) - 1


def check(function: Function, arguments: Arguments) -> None:
    """Raises UsageError for the first rule of the function that the arguments break."""
    for rule in (*_sizes(function), *function.rules):
        if not _holds(rule, arguments):
            note = f' (note of the reference: "{rule.note}")' if rule.note else ""
            values = ", ".join(f"{key} = {_shown(value)}" for key, value in vars(arguments).items())
            raise UsageError(f"{function.name}: {rule.text}{note}; got {values}")


def _holds(rule: Rule, arguments: Arguments) -> bool:
    """Whether a rule holds; types that have no size keep none."""
    try:
        return rule.holds(arguments)
    except UsageError:
        return False


def _sizes(function: Function) -> Iterator[Rule]:
    """The range of each shape of a function."""
    for parameter in function.parameters:
        if parameter.base == "dim4" and not parameter.optional:
            name = parameter.name
            text = f"n, c, h and w of {name} must be in [1, {_MOST_SIZE}]"
            yield Rule(text, partial(_in_range, name), function.shape_note)


def _in_range(name: str, a: Arguments) -> bool:
    return all(1 <= size <= _MOST_SIZE for size in getattr(a, name))


def _shown(value: Any) -> str:
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, tuple):
        return str(tuple(value))
    return hex(value) if isinstance(value, int) and not isinstance(value, bool) and value > 4095 else str(value)


def converted(parameter: Parameter, value: Any) -> Any:
    """An argument as its C type holds it. Raises ArgumentError."""
    base = parameter.base
    if value is None:
        if parameter.optional or base == "void":
            return None
        raise ArgumentError("must not be NULL")
    if base in _STRUCTS:
        return _struct(parameter, value)
    if base in _ENUMS:
        return _member(_ENUMS[base], value)
    return _SIMPLE[base](base, value) if base in _SIMPLE else value


def _whole(value: Any) -> int:
    if isinstance(value, (bool, float)):
        raise ArgumentError(f"must be an integer, got {value!r}")
    try:
        return index(value)
    except TypeError:
        raise ArgumentError(f"must be an integer, got {value!r}") from None


def _integer(base: str, value: Any) -> int:
    low, high = _INTEGERS[base]
    found = _whole(value)
    if not low <= found <= high:
        raise ArgumentError(f"is a C {base}, from {low} to {high}, got {found}")
    return found


def _address(base: str, value: Any) -> int:
    low, high = _ADDRESSES[base]
    found = _whole(value)
    if not low <= found <= high:
        raise ArgumentError(f"is a {base}, from 0x{low:x} to 0x{high:x}, got {hex(found)}")
    return found


def _member(kind: type[IntEnum], value: Any) -> IntEnum:
    try:
        return kind(_whole(value))
    except ValueError:
        raise ArgumentError(f"is no {kind.__name__}: {value!r}; it has {', '.join(m.name for m in kind)}") from None


def _struct(parameter: Parameter, value: Any) -> Any:
    kind, count = _STRUCTS[parameter.base]
    if not isinstance(value, (tuple, list)) or len(value) != count:
        raise ArgumentError(f"is a {kind.__name__} of {count} integers, got {value!r}")
    numbers = [_whole(each) for each in value]
    if parameter.optional and min(numbers) < 0:
        raise ArgumentError(f"must have no negative strides, got {tuple(numbers)}")
    return kind(*numbers)


def _scalar(_: str, value: Any) -> scalar_t:
    if isinstance(value, float):
        raise ArgumentError(
            f"is a scalar_t, got {value!r}; write scalar_t(f32={value!r}), or its bits in the tensor's type"
        )
    return value if isinstance(value, scalar_t) else scalar_t(_whole(value))


def _real(_: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"must be a number, got {value!r}") from None


def _switch(_: str, value: Any) -> bool:
    if value not in (0, 1):
        raise ArgumentError(f"must be true or false, got {value!r}")
    return bool(value)


def _variable(_: str, value: Any) -> variable_t:
    if not isinstance(value, tuple) or len(value) != 2:
        raise ArgumentError(f"is a variable_t(type, address or bits), got {value!r}")
    kind = variable_type_t(_member(variable_type_t, value[0]))
    place = _scalar("", value[1]) if kind is variable_type_t.SCALAR else _address("local_addr_t", value[1])
    return variable_t(kind, place)


_SIMPLE: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(_INTEGERS, _integer),
    **dict.fromkeys(_ADDRESSES, _address),
    "scalar_t": _scalar,
    "float": _real,
    "bool": _switch,
    "variable_t": _variable,
}
