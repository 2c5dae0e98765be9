"""Calls of the kernel library with drawn arguments: most as they could be meant, one or two of them at a limit."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from bmcompiler.backends.bm1684x.tpukernel.rows import Function, Parameter
from bmcompiler.tpukernel import GLOBAL_MEM_START, LOCAL_MEM_SIZE, TABLE

FAR_BYTES = 1 << 20
"""Of global memory that calls reach."""
Draw = Callable[[random.Random], Any]
Arguments = dict[str, Any]


def one_of(*values: Any) -> Draw:
    return lambda rng: rng.choice(values)


def some(count: int, each: Draw) -> Draw:
    return lambda rng: tuple(each(rng) for _ in range(count))


def far(rng: random.Random) -> int:
    return GLOBAL_MEM_START + 64 * rng.randrange(FAR_BYTES // 128) + rng.choice((0, 0, 0, 4, 2, 1))


def near(rng: random.Random) -> int:
    return (rng.randrange(60) << 12) + rng.choice((0, 0, 0, 0, 0, 64, 128, 4))


def shape(rng: random.Random) -> tuple[int, ...]:
    channels = rng.choice((1, 3, 16, 63, 64, 65, 70))
    return rng.choice((1, 1, 2, 3)), channels, rng.randint(1, 5), rng.choice((1, 2, 7, 16, 33))


SPECIAL = (
    0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0x7E00, 0x3F80, 0xC2FF, 0x4F80,
    0x80000000, 0x7FFFFFFF, 0xFFFFFFFF, 0x3F800000, 0xBF800000, 0x3F000000, 0xBF000000, 0x3FC00000, 0xC0200000,
    0x42FF0000, 0x43000000, 0xC3008000, 0x477FE000, 0x477FEFFF, 0x477FF000, 0x38800000, 0x33000000, 0x33000001,
    0x33800000, 0x3F808000, 0x3F818000, 0x4EFFFFFF, 0x4F000000, 0xCF000000, 0x4F7FFFFF, 0x4F800000, 0x7F7FFFFF,
    0x7F800000, 0xFF800000, 0x7FC00000, 0x00000003, 0x007FFFFF, 0x00800000, 0x4B7FFFFF, 0x4B800001,
    0x01000001, 0x01000003, 0x0000FF7F, 0x00007F80,
)  # fmt: skip
"""Bits that are limits, ties, infinite or no numbers of some type."""
INTEGERS = 0, 1, 6, 7, 8, 9
TYPES: dict[str, Draw] = {
    "system_addr_t": far,
    "global_addr_t": far,
    "local_addr_t": near,
    "addr_t": lambda rng: rng.choice((far, near))(rng),
    "static_addr_t": lambda rng: 64 * rng.randrange(200),
    "dim4": shape,
    "dim2": some(2, one_of(1, 2, 3)),
    "padding_t": some(4, one_of(0, 1, 2)),
    "data_type_t": one_of(5, 5, 5, 3, 11, *INTEGERS),
    "rounding_mode_t": one_of(*range(7)),
    "scalar_t": one_of(*SPECIAL),
    "float": one_of(1.0, 0.5, -1.0, 2.0, 0.1, 0.0, 1e-3, 100.0),
    "bool": one_of(False, True),
    "char": one_of(0, 1, 3, -3, 127, -128),
    "int": one_of(0, 1, 2, 3, 5, 10, 63, 64, 65, 100),
    "unsigned int": one_of(0, 1, 10, 100),
    "unsigned char": one_of(0, 1, 7, 31, 32),
    "unsigned long long": one_of(0, 1, 4096, (1 << 64) - 1),
    "variable_t": lambda rng: (kind := rng.randrange(3), rng.choice(SPECIAL) if kind == 1 else near(rng)),
}
_ENDS = (-1, 0, 1, 127, 128, 255, 256, 4095, 4096, 65535, 65536, (1 << 31) - 1, 1 << 31, -(1 << 31), -(1 << 31) - 1)
_FAR = (1 << 32) - 1, 1 << 32, (1 << 40) - 1, 1 << 40, (1 << 64) - 1, 1 << 64
_STATIC, _L2, _LOCAL_END = (1 << 14) - 1, 0x10000000, 64 * LOCAL_MEM_SIZE
LIMITS: dict[str, Draw] = {
    "system_addr_t": one_of(*_FAR, _L2, _L2 - 1, GLOBAL_MEM_START, GLOBAL_MEM_START - 1),
    "global_addr_t": one_of(*_FAR, GLOBAL_MEM_START, GLOBAL_MEM_START - 1),
    "local_addr_t": one_of(
        *_ENDS[:10], LOCAL_MEM_SIZE, LOCAL_MEM_SIZE - 64, 63 * LOCAL_MEM_SIZE, _LOCAL_END - 64, _LOCAL_END
    ),
    "static_addr_t": one_of(*_ENDS, _STATIC - 63, _STATIC - 3, _STATIC, _STATIC + 1),
    "dim4": lambda rng: _changed(rng, shape(rng), (0, -1, 1, 4095, 65535, 65536)),
    "dim2": some(2, one_of(0, 1, 15, 16, 255, 256, -1)),
    "padding_t": some(4, one_of(0, 15, 16, -1)),
    "data_type_t": one_of(*range(18), 47, -1),
    "rounding_mode_t": one_of(4, 5, 6, 7, -1),
    "scalar_t": one_of(*_ENDS, *_FAR, 0.5),
    "float": one_of(float("inf"), float("-inf"), float("nan"), 3e38, -0.0, 1e-40, "1"),
    "bool": one_of(2, -1, 1, 0),
    "variable_t": lambda rng: (rng.choice((-1, 0, 1, 2, 3)), rng.choice((*_ENDS, *_FAR[:2]))),
    **dict.fromkeys(("char", "int", "unsigned char", "unsigned int"), one_of(*_ENDS)),
}  # fmt: skip


def _changed(rng: random.Random, values: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    at = rng.randrange(len(values))
    return (*values[:at], rng.choice(others), *values[at + 1 :])


def strides(rng: random.Random, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Default ones; or without gaps, sometimes with one between rows, or repeated along an axis."""
    if rng.random() < 0.5:
        return None
    _, c, h, w = sizes
    row = w + rng.choice((0, 0, 3))
    made = (c * h * row, h * row, row, 1)
    return _changed(rng, made, (0, 1, 2, 128, 129)) if rng.random() < 0.3 else made


def drawn(rng: random.Random, name: str) -> Arguments:
    """The arguments of a call by name: tensors apart in one lane, series in lane 0, one shape, mostly one type."""
    function = TABLE[name]
    kind = rng.choice(INTEGERS) if "_int" in name else TYPES["data_type_t"](rng)
    sizes, lane = shape(rng), rng.choice((0, 0, 7, 63))
    found = {each.name: _plain(rng, each, sizes, kind, lane) for each in function.parameters}
    for each in rng.sample(function.parameters, min(len(function.parameters), rng.choice((0, 0, 0, 1, 1, 2)))):
        found[each.name] = LIMITS.get(each.base, TYPES[each.base])(rng)
    return found


def _plain(rng: random.Random, each: Parameter, sizes: tuple[int, ...], kind: int, lane: int) -> Any:
    if each.optional:
        return strides(rng, sizes)
    if each.base == "dim4":
        return sizes if rng.random() < 0.8 else (sizes[0], sizes[1], sizes[3], sizes[2])
    if each.base == "data_type_t" and rng.random() < 0.7:
        return kind
    if each.base == "local_addr_t" and not each.name.removesuffix("_addr").endswith(("coeff", "table")):
        return lane * LOCAL_MEM_SIZE + near(rng)
    return TYPES[each.base](rng)


ISSUING = [row.name for row in TABLE.values() if row.returns == "void" and row.parameters]


def group_of(function: Function) -> str:
    """The heading of a function as the name of a file."""
    return "_".join("".join(each if each.isalnum() else " " for each in function.group.lower()).split())
