"""Faults as people make them in the calls of a kernel: a few are changed, left out or moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from bmcompiler.errors import BMError

Call = tuple[str, list[Any]]
"""A function of the library and its arguments."""
Other = Callable[[Any, Random], Any]
ODD = (
    0,
    1,
    -1,
    2,
    3,
    15,
    16,
    17,
    63,
    64,
    65,
    255,
    4095,
    65535,
    65536,
    1 << 18,
    (1 << 24) - 64,
    (1 << 31) - 1,
    1 << 40,
)


def mutated(calls: list[Call], random: Random, other: Other) -> list[Call]:
    """A copy with one to three faults; `other` knows what somebody might write in an argument's place."""
    made = [(name, list(arguments)) for name, arguments in calls]
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        random.choice(_FAULTS)(made, random, other)
    return made


def outcome(calls: list[Call], issue: Callable[[list[Call]], Any], launch: Callable[[Any], None]) -> tuple[str, str]:
    """Whether it ran, a call was refused or the launch failed, and what was said about that."""
    try:
        program = issue(calls)
    except BMError as error:
        return "refused", str(error)
    try:
        launch(program)
    except BMError as error:
        return "failed", str(error)
    return "ran", ""


def need_sentences(
    kernels: Iterable[list[Call]], issue: Callable[[list[Call]], Any], launch: Callable[[Any], None], prefix: str
) -> None:
    """Each runs or is refused in one sentence that names a function; a fifth and more of them do either, some fail."""
    found: Counter[str] = Counter()
    for calls in kernels:
        kind, said = outcome(calls, issue, launch)
        found[kind] += 1
        assert "\n" not in said, (calls, said)
        assert kind == "ran" or prefix in said or "parallel state" in said, (calls, said)
    assert min(found["ran"], found["refused"]) > found.total() // 5 and found["failed"], found


def _another_value(calls: list[Call], random: Random, other: Other) -> None:
    _, arguments = random.choice([call for call in calls if call[1]])
    at = random.randrange(len(arguments))
    arguments[at] = other(arguments[at], random)


def _left_out(calls: list[Call], random: Random, other: Other) -> None:
    if len(calls) > 1:
        del calls[random.randrange(len(calls))]


def _twice(calls: list[Call], random: Random, other: Other) -> None:
    name, arguments = random.choice(calls)
    calls.insert(random.randrange(len(calls)), (name, list(arguments)))


def _earlier(calls: list[Call], random: Random, other: Other) -> None:
    one, two = random.randrange(len(calls)), random.randrange(len(calls))
    calls[one], calls[two] = calls[two], calls[one]


def _swapped(calls: list[Call], random: Random, other: Other) -> None:
    _, arguments = random.choice([call for call in calls if len(call[1]) > 1])
    one, two = random.sample(range(len(arguments)), 2)
    arguments[one], arguments[two] = arguments[two], arguments[one]


def _too_few(calls: list[Call], random: Random, other: Other) -> None:
    _, arguments = random.choice([call for call in calls if call[1]])
    arguments.pop()


_FAULTS = (_another_value,) * 8 + (_left_out, _twice, _earlier, _swapped, _too_few)
