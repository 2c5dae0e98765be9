"""Comparison and choice."""

from __future__ import annotations

from collections.abc import Callable

from bmcompiler.backends.lanes.recipes.recorder import Number, Recorder, Register

TRUE = 1
"""What a comparison gives: the integer that is stored as a byte."""


def greater(m: Recorder, a: Number, b: Number) -> Register:
    """a > b as 1 or 0."""
    return m.greater(a, b, TRUE)


def less(m: Recorder, a: Number, b: Number) -> Register:
    """a < b as 1 or 0."""
    return m.greater(b, a, TRUE)


def equal(m: Recorder, a: Register, b: Number) -> Register:
    """a = b as 1 or 0: NaN is equal to nothing, and adding 0 makes both zeros one."""
    same = m.same_bits(m.add(a, 0.0), m.add(b, 0.0), TRUE)
    return m.and_(same, _ordered(m, a))


def greater_equal(m: Recorder, a: Register, b: Number) -> Register:
    """a >= b as 1 or 0."""
    return m.or_(greater(m, a, b), equal(m, a, b))


def less_equal(m: Recorder, a: Register, b: Number) -> Register:
    """a <= b as 1 or 0."""
    return m.or_(less(m, a, b), equal(m, a, b))


def _ordered(m: Recorder, a: Register) -> Register:
    """1 unless a is NaN, which alone is not above -1 in magnitude."""
    return m.greater(m.abs(a), -1.0, TRUE)


def is_nan(m: Recorder, x: Register) -> Register:
    """1 where x is NaN."""
    return m.xor(_ordered(m, x), TRUE)


def is_inf(m: Recorder, x: Register, positive: bool, negative: bool) -> Register:
    """1 where x is infinite with one of the signs asked for."""
    tests = [
        m.same_bits(x, bits, TRUE) for bits, wanted in ((0x7F80_0000, positive), (0xFF80_0000, negative)) if wanted
    ]
    if not tests:
        return m.copy(0.0)
    return tests[0] if len(tests) == 1 else m.or_(*tests)


def where(m: Recorder, condition: Register, a: Number, b: Number) -> Register:
    """condition ? a : b, the condition being 0.0 or more."""
    return m.choose(condition, 0.0, a, b)


COMPARISONS: dict[str, Callable[[Recorder, Register, Register], Register]] = {
    "equal": equal,
    "less": less,
    "less_equal": less_equal,
    "greater": greater,
    "greater_equal": greater_equal,
}
