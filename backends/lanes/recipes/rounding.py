"""Whole numbers, and conversions between integers and floats."""

from __future__ import annotations

from bmcompiler.backends.lanes.recipes.recorder import SIGN, Number, Recorder, Register

_EXACT = 8388608.0  # 2**23: fp32 numbers from here on are whole
_MIDDLE = 12582912.0  # 2**23 + 2**22: fp32 numbers around it are whole, and the low bits of the sum the integer
_WHOLE = 8388607.5  # and so is everything above this
_HALF_BELOW = 0x3EFF_FFFF  # the number before 1/2: adding 1/2 itself rounds some numbers twice
EXACT_BITS = 0x4B00_0000
"""Of 2**23: the low bits of the word are an unsigned integer."""
MIDDLE_BITS = {8: 0x4B00_0080, 16: 0x4B00_8000}
"""The same for signed integers of so many bits."""
_OFFSETS = {8: 8388736.0, 16: 8421376.0}


def _whole(m: Recorder, x: Register) -> tuple[Register, Register]:
    """(|x|, |x| rounded half to even with the sign of x), the second for |x| below 2**23."""
    size = m.abs(x)
    near = m.sub(m.add(size, _EXACT), _EXACT)
    return size, m.or_(near, m.and_(x, SIGN))


def round_even(m: Recorder, x: Register) -> Register:
    """Nearest whole number, halves to the even one."""
    size, near = _whole(m, x)
    return m.choose(size, _WHOLE, x, near)


def floor(m: Recorder, x: Register) -> Register:
    """Largest whole number that is not above x."""
    size, near = _whole(m, x)
    return m.choose(size, _WHOLE, x, m.sub(near, m.greater(near, x)))


def ceil(m: Recorder, x: Register) -> Register:
    """Smallest whole number that is not below x."""
    size, near = _whole(m, x)
    return m.choose(size, _WHOLE, x, m.add(near, m.greater(x, near)))


def truncate(m: Recorder, x: Register) -> Register:
    """The whole part of x."""
    size = m.abs(x)
    return m.choose(size, _WHOLE, x, m.or_(floor(m, size), m.and_(x, SIGN)))


def round_small(m: Recorder, x: Register) -> Register:
    """`round_even` of |x| below 2**22 in two commands."""
    return m.sub(m.add(x, _MIDDLE), _MIDDLE)


def low_bits(m: Recorder, x: Register, plus: int = 0) -> Register:
    """A word whose low 16 bits are those of the integer nearest to x + plus, |x| and |plus| below 2**21.

    Halves go to the even integer, of an odd `plus` to the odd one: give whole numbers there.
    """
    return m.add(x, _MIDDLE + plus)


def round_away_to_int(m: Recorder, x: Register) -> Register:
    """int32 nearest to x, halves away from zero, saturating."""
    half = m.or_(m.and_(x, SIGN), _HALF_BELOW)
    return m.to_int(m.add(half, x))


def quantize(m: Recorder, x: Number, low: float, high: float) -> Register:
    """int32 nearest to x, halves away from zero, within `low` to `high`."""
    return round_away_to_int(m, m.min(m.max(x, low), high))


def narrow_to_float(m: Recorder, x: Register, bits: int, signed: bool, slot: int = 0) -> Register:
    """Float of the 8- or 16-bit integer number `slot` of each word."""
    first = bits * slot
    part = m.shift(x, -first) if first else x
    if first + bits < 32:
        part = m.and_(part, (1 << bits) - 1)
    if signed:
        return m.sub(m.xor(part, MIDDLE_BITS[bits]), _OFFSETS[bits])
    return m.sub(m.xor(part, EXACT_BITS), _EXACT)


def int_to_float(m: Recorder, x: Register) -> Register:
    """Float nearest to an int32: both halves are exact, their sum rounds once."""
    return m.add(m.mul(_upper(m, x), 65536.0), _lower(m, x))


def _lower(m: Recorder, x: Register) -> Register:
    return m.sub(m.xor(m.and_(x, 0xFFFF), EXACT_BITS), _EXACT)


def _upper(m: Recorder, x: Register) -> Register:
    return m.sub(m.xor(m.shift(x, -16), MIDDLE_BITS[16]), _OFFSETS[16])


def int_difference(m: Recorder, a: Register, b: Register) -> Register:
    """A float with the sign of a - b for int32 words, 0 where they are equal.

    The difference of the upper halves, if there is one, outweighs that of the lower ones by far.
    """
    high = m.sub(_upper(m, a), _upper(m, b))
    low = m.sub(_lower(m, a), _lower(m, b))
    return m.add(m.mul(high, 131072.0), low)


def zero_for_nan(m: Recorder, x: Register) -> Register:
    """x, or 0 where it is not a number."""
    return m.choose(m.abs(x), -1.0, x, 0.0)


def float_of_half(m: Recorder, x: Register, bits: int, plus: float) -> Register:
    """Float of a signed integer of at most 16 bits in a word, plus a whole number."""
    low = m.xor(m.and_(x, 0xFFFF), MIDDLE_BITS[bits])
    return m.sub(low, _OFFSETS[bits] - plus)
