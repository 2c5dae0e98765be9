"""Rules for arguments that many functions have in common."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.tpukernel.local import lane_of
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Rule
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, rounding_mode_t

_FLOATS = (data_type_t.DT_FP32, data_type_t.DT_FP16, data_type_t.DT_BFP16)
_MOST_ROUNDING = rounding_mode_t.RM_UP


def _types(a: Arguments, names: tuple[str, ...]) -> list[data_type_t]:
    return [getattr(a, name) for name in names]


def floats(*names: str) -> Rule:
    """The types are those of floats that commands compute with."""
    text = f"{' and '.join(names)} must be DT_FP32, DT_FP16 or DT_BFP16"
    return Rule(text, lambda a: all(each in _FLOATS for each in _types(a, names)))


def integers(*names: str) -> Rule:
    """The types are integers of 8, 16 or 32 bits."""
    text = f"{', '.join(names)} must be integer types of 8, 16 or 32 bits"
    return Rule(text, lambda a: all(each.is_int and each.computes for each in _types(a, names)))


def computed(*names: str) -> Rule:
    """The types are any that commands know."""
    text = f"{', '.join(names)} must be a type of 8, 16 or 32 bits"
    return Rule(text, lambda a: all(each.computes for each in _types(a, names)))


def single(*names: str) -> Rule:
    """The types are fp32."""
    text = f"{' and '.join(names)} must be DT_FP32"
    return Rule(text, lambda a: all(each == data_type_t.DT_FP32 for each in _types(a, names)))


def same_lane(*names: str, note: str = "") -> Rule:
    """The tensors begin in one lane."""
    return Rule(
        f"{', '.join(names)} must begin in the same lane",
        lambda a: len({lane_of(getattr(a, f"{name}_addr")) for name in names}) == 1,
        note,
    )


def lane_zero(*names: str, note: str = "") -> Rule:
    """The tensors begin in lane 0."""
    return Rule(
        f"{', '.join(names)} must begin in lane 0",
        lambda a: all(lane_of(getattr(a, f"{name}_addr")) == 0 for name in names),
        note,
    )


def different(one: str, other: str) -> Rule:
    """Two tensors begin at different addresses."""
    return Rule(
        f"{one} and {other} must be different tensors",
        lambda a: getattr(a, f"{one}_addr") != getattr(a, f"{other}_addr"),
    )


def at_least(low: int, *names: str, note: str = "") -> Rule:
    """Integers have a least value."""
    return Rule(f"{', '.join(names)} must be at least {low}", lambda a: min(getattr(a, n) for n in names) >= low, note)


def within(name: str, low: int, high: int, note: str = "") -> Rule:
    """An integer lies in a range."""
    return Rule(f"{name} must be in [{low}, {high}]", lambda a: low <= getattr(a, name) <= high, note)


ROUNDS = Rule("rounding_mode 5 and 6 are none of a conversion", lambda a: a.rounding_mode <= _MOST_ROUNDING)
