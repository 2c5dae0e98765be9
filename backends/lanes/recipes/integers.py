"""Arithmetic of 32-bit integers modulo 2**32, and what is left of a division: exact for all of them.

Chips that do not add words as integers add their halves as floats, which hold them exactly; products are those of
halves with bytes, of 24 bits.
"""

from __future__ import annotations

from collections.abc import Callable

from bmcompiler.backends.lanes.recipes.recorder import Recorder, Register
from bmcompiler.backends.lanes.recipes.rounding import int_to_float, narrow_to_float

_LOW = 0xFFFF
_ALL = 0xFFFF_FFFF


def plus(m: Recorder, a: Register, b: Register) -> Register:
    """a + b."""
    return m.add_words(a, b) if m.word_sums else _by_halves(m, a, b, m.add)


def minus(m: Recorder, a: Register, b: Register) -> Register:
    """a - b."""
    return m.sub_words(a, b) if m.word_sums else _by_halves(m, a, b, m.sub)


def times(m: Recorder, a: Register, b: Register) -> Register:
    """a * b."""
    if m.word_sums:
        return m.mul_words(a, b)
    total = None
    for half in (0, 1):
        factor = narrow_to_float(m, a, 16, False, half)
        for place in range(4 - 2 * half):
            part = m.to_int(m.mul(factor, narrow_to_float(m, b, 8, False, place)))
            bits = 16 * half + 8 * place
            part = m.shift(part, bits) if bits else part
            total = part if total is None else plus(m, total, part)
    assert total is not None, "there are six parts"
    return total


def _by_halves(m: Recorder, a: Register, b: Register, combine: Callable[..., Register]) -> Register:
    """Halves without signs; what the lower ones carry goes to the upper ones."""
    low, high = (
        m.to_int(combine(narrow_to_float(m, a, 16, False, half), narrow_to_float(m, b, 16, False, half)))
        for half in (0, 1)
    )
    carried = int_to_float(m, m.shift(low, -16, arithmetic=True))
    upper = m.to_int(m.add(int_to_float(m, high), carried))
    return m.or_(m.shift(upper, 16), m.and_(low, _LOW))


def quotient(m: Recorder, a: Register, b: Register) -> Register:
    """a / b cut towards zero; 0 for b = 0."""
    return m.and_(_divided(m, a, b)[0], _not_zero(m, b))


def rest(m: Recorder, a: Register, b: Register, like_dividend: bool) -> Register:
    """What a / b leaves, with the sign of b or, `like_dividend`, of a; 0 for b = 0."""
    left = _divided(m, a, b)[1]
    if not like_dividend:
        other = m.and_(_sign(m, m.xor(left, b)), _not_zero(m, left))
        left = plus(m, left, m.and_(b, other))
    return m.and_(left, _not_zero(m, b))


def _divided(m: Recorder, a: Register, b: Register) -> tuple[Register, Register]:
    """(a / b cut towards zero, what it leaves).

    A quotient of floats is off by some units of its last place: what it leaves is divided once more, which leaves less
    than twice the divisor. Then the divisor fits at most once more, or once too often.
    """
    divisor, left, found = int_to_float(m, b), a, None
    for _ in range(2):
        part = m.to_int(m.div(int_to_float(m, left), divisor))
        left = minus(m, left, times(m, part, b))
        found = part if found is None else plus(m, found, part)
    assert found is not None, "it was divided"
    fits = m.xor(_sign(m, minus(m, _size(m, left), _size(m, b))), _ALL)
    found, left = _moved(m, found, left, b, _sign(m, m.xor(left, b)), fits)
    beyond = m.and_(_sign(m, m.xor(left, a)), _not_zero(m, left))
    unlike = m.xor(_sign(m, m.xor(a, b)), _ALL)
    return _moved(m, found, left, b, unlike, beyond)


def _moved(
    m: Recorder, found: Register, left: Register, b: Register, negative: Register, where: Register
) -> tuple[Register, Register]:
    """Quotient and rest with one more of the divisor in the quotient, or one less where `negative`, only `where`."""
    left = minus(m, left, m.and_(_negated(m, b, negative), where))
    return plus(m, found, m.and_(m.or_(negative, 1), where)), left


def _sign(m: Recorder, x: Register) -> Register:
    """All bits where x < 0, else none."""
    return m.shift(x, -31, arithmetic=True)


def _negated(m: Recorder, x: Register, mask: Register) -> Register:
    """-x where the mask is all bits, x where it is none."""
    return minus(m, m.xor(x, mask), mask)


def _size(m: Recorder, x: Register) -> Register:
    return _negated(m, x, _sign(m, x))


def _not_zero(m: Recorder, x: Register) -> Register:
    """All bits where x is not 0, else none."""
    return m.xor(m.same_bits(x, 0, _ALL), _ALL)
