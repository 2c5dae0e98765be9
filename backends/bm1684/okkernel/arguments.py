"""Arguments of calls: from what a user writes to the library's types, with the range that each C type has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import index
from typing import Any

from bmcompiler.backends.bm168x.calls import ArgumentError, Arguments, Parameter, Rule
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.okkernel.rows import WINDOW, Function, within
from bmcompiler.backends.bm1684.okkernel.types import Padding, dim2, dim4, fp32_or_addr_t, x32, x32_or_addr_t
from bmcompiler.errors import UsageError

LOCAL_BYTES = CHIP.lanes * CHIP.lmem_size
_RANGES = {
    "int": (-(1 << 31), (1 << 31) - 1),
    "unsigned int": (0, (1 << 32) - 1),
    "local_addr_t": (0, LOCAL_BYTES - 1),
    "system_addr_t": (CHIP.l2_window, (1 << 40) - 1),
}
_BITS = {"x32": 32, "x16": 16, "x8": 8}
_STRUCTS: dict[str, tuple[type[Any], int]] = {"dim4": (dim4, 4), "dim2": (dim2, 2), "Padding": (Padding, 4)}
_MOST_SIZE = (1 << 16) - 1


def check(function: Function, arguments: Arguments) -> None:
    """Raises UsageError for the first rule of the function that the arguments break."""
    for rule in (*_sizes(function), *function.rules):
        if not rule.holds(arguments):
            values = ", ".join(f"{key} = {_shown(value)}" for key, value in vars(arguments).items())
            raise UsageError(f"{function.name}: {rule.text}; got {values}")


def _sizes(function: Function) -> Iterator[Rule]:
    """The range of each shape of a function."""
    for parameter in function.parameters:
        if parameter.base == "dim4" and not parameter.optional:
            yield within(1, _MOST_SIZE, parameter.name)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return str(tuple(value))
    return hex(value) if isinstance(value, int) and not isinstance(value, bool) and value > 4095 else str(value)


def converted(parameter: Parameter, value: Any) -> Any:
    """An argument as its C type holds it. Raises ArgumentError."""
    base = parameter.base
    if value is None:
        if parameter.optional or parameter.name in WINDOW:
            return None
        raise ArgumentError("must not be NULL")
    if base in _STRUCTS:
        return _struct(parameter, value)
    if base in _RANGES:
        return _integer(base, value)
    return _SIMPLE[base](base, value)


def _whole(value: Any) -> int:
    if isinstance(value, (bool, float)):
        raise ArgumentError(f"must be an integer, got {value!r}")
    try:
        return index(value)
    except TypeError:
        raise ArgumentError(f"must be an integer, got {value!r}") from None


def _integer(base: str, value: Any) -> int:
    low, high = _RANGES[base]
    found = _whole(value)
    if not low <= found <= high:
        raise ArgumentError(f"is a C {base}, from {hex(low)} to {hex(high)}, got {hex(found)}")
    return found


def _struct(parameter: Parameter, value: Any) -> Any:
    kind, count = _STRUCTS[parameter.base]
    if not isinstance(value, (tuple, list)) or len(value) != count:
        raise ArgumentError(f"is a {kind.__name__} of {count} integers, got {value!r}")
    numbers = [_whole(each) for each in value]
    if min(numbers) < 0:
        raise ArgumentError(f"must have no negative numbers, got {tuple(numbers)}")
    return kind(*numbers)


def _bits(base: str, value: Any) -> int:
    if isinstance(value, float):
        raise ArgumentError(f"is an {base}, got {value!r}; write x32(fp32={value!r}), or its bits")
    return x32(_whole(value)) & (1 << _BITS[base]) - 1


def _real(_: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"must be a number, got {value!r}") from None


def _switch(_: str, value: Any) -> bool:
    if value not in (0, 1):
        raise ArgumentError(f"must be true or false, got {value!r}")
    return bool(value)


def _choice(base: str, value: Any) -> Any:
    """A number of the structure's kind, or a local address."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ArgumentError(f"is a pair (is_addr, context), got {value!r}")
    is_addr, context = _switch("bool", value[0]), value[1]
    if base == "fp32_or_addr_t":
        return fp32_or_addr_t(is_addr, _integer("local_addr_t", context) if is_addr else _real("float", context))
    return x32_or_addr_t(is_addr, _integer("local_addr_t", context) if is_addr else _bits("x32", context))


_SIMPLE: dict[str, Callable[[str, Any], Any]] = {**dict.fromkeys(_BITS, _bits), "float": _real, "bool": _switch}
_SIMPLE |= dict.fromkeys(("fp32_or_addr_t", "x32_or_addr_t"), _choice)
