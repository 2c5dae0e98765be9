"""Numbers at the edge of what a function takes, just inside and just outside, with calls that are right otherwise."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from tpukernel_golden import cases

from bmcompiler.backends.bm1684x.tpukernel.local import _NARROW, _WIDE, place
from bmcompiler.errors import UsageError
from bmcompiler.tpukernel import DT_FP32, FUNCTIONS, TABLE, dim4, recording

TINY = 1e-30
EDGES: list[tuple[str, str, list[float], list[float], str]] = [
    ("tpu_bdc_fp32_pow_C", "C", [TINY], [], ""),
    ("tpu_bdc_fp32_C_pow", "C", [TINY, 2.0], [0.0, -1.0], "C must be positive"),
    ("tpu_bdc_fp32_logx", "base", [TINY, 0.5, 2.0], [0.0, 1.0, -2.0], "base must be positive and not 1"),
]
"""Function, parameter, what it takes, what it refuses, what the refusal says."""


@pytest.mark.parametrize(("name", "parameter", "taken", "refused", "words"), EDGES)
def test_edges(name: str, parameter: str, taken: list[float], refused: list[float], words: str) -> None:
    given = next(call[1] for case in cases() for call in case.calls if call[0] == name)
    at = [each.split()[-1] for each in TABLE[name].declared.rstrip(")").split(",")].index(parameter)
    for value in taken:
        with recording() as recorder:
            FUNCTIONS[name](*given[:at], value, *given[at + 1 :])
        assert recorder.commands
    for value in refused:
        with recording(), pytest.raises(UsageError, match=words):
            FUNCTIONS[name](*given[:at], value, *given[at + 1 :])


RULES = {rule.text: rule for row in TABLE.values() for rule in row.rules}
BOUNDS = re.compile(r"([\w, ]+) must be (at least (\d+)|in \[(-?\d+), (\d+)\])")
BOUNDED = {text: found for text in RULES if (found := BOUNDS.fullmatch(text))}
MANY = {"stride": 2, "dilation": 2, "padding": 4}
"""Parameters of several numbers."""


def beyond(name: str, inside: int, outside: int) -> list[Any]:
    """Values of a parameter of which one number is outside."""
    if name not in MANY:
        return [outside]
    return [tuple(outside if each == at else inside for each in range(MANY[name])) for at in range(MANY[name])]


@pytest.mark.parametrize("text", sorted(BOUNDED))
def test_a_rule_holds_up_to_its_bounds(text: str) -> None:
    found, names = BOUNDED[text], BOUNDED[text][1].split(", ")
    low = int(found[3] or found[4])
    bounds = [(low, low - 1)] + ([(int(found[5]), int(found[5]) + 1)] if found[5] else [])
    for inside, outside in bounds:
        good = {name: (inside,) * MANY[name] if name in MANY else inside for name in names}
        assert RULES[text].holds(SimpleNamespace(**good))
        for name in names:
            for value in beyond(name, inside, outside):
                assert not RULES[text].holds(SimpleNamespace(**{**good, name: value}))


def test_the_largest_plane_is_taken() -> None:
    limits = {text: int(text.rsplit(maxsplit=1)[1]) for text in RULES if text.startswith("h * w must be at most")}
    assert limits
    for text, most in limits.items():
        for h, w in ((1, most), (most, 1), (5, most // 5)):
            assert RULES[text].holds(SimpleNamespace(shape=dim4(1, 1, h, w)))
        for h, w in ((1, most + 1), (2, most // 2 + 1)):
            assert not RULES[text].holds(SimpleNamespace(shape=dim4(1, 1, h, w)))


def test_a_recording_ends_with_its_block() -> None:
    name, given = (
        "tpu_bdc_fp32_C_pow",
        next(c[1] for case in cases() for c in case.calls if c[0] == "tpu_bdc_fp32_C_pow"),
    )
    with recording() as outer:
        with recording() as inner:
            FUNCTIONS[name](*given)
        assert inner.commands and not outer.commands
        FUNCTIONS[name](*given)
    assert len(outer.commands) == len(inner.commands)
    with pytest.raises(UsageError):
        FUNCTIONS[name](*given)
    with pytest.raises(ZeroDivisionError), recording():
        raise ZeroDivisionError
    with pytest.raises(UsageError):
        FUNCTIONS[name](*given)


@pytest.mark.parametrize("axis", range(4))
def test_every_stride_has_its_limit(axis: int) -> None:
    most = [_NARROW, _NARROW, _WIDE, _WIDE]

    def placed(step: int) -> Any:
        steps = dim4(*(step if each == axis else 1 for each in range(4)))
        return place("x", 0, dim4(1, 1, 1, 1), DT_FP32, steps)

    assert placed(most[axis])[axis] == most[axis]
    with pytest.raises(UsageError, match="n and c strides go up to"):
        placed(most[axis] + 1)
