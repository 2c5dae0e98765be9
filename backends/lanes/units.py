"""What commands on words do, whatever the chip calls it."""

from __future__ import annotations

from enum import Enum, auto


class Unit(Enum):
    """Operations on 32-bit words: floats, or the bits of words."""

    ADD = auto()
    SUB = auto()
    MUL = auto()
    DIVIDE = auto()
    MAX = auto()
    """a > b ? a : b."""
    MIN = auto()
    """a <= b ? a : b."""
    MAC = auto()
    """a + b * c, in the place of a."""
    AND = auto()
    OR = auto()
    XOR = auto()
    SHIFT = auto()
    """To the left by b, of negative b to the right with zeros."""
    SHIFT_SIGNED = auto()
    """To the left by b, of negative b to the right with copies of the sign."""
    WORD_ADD = auto()
    """a + b of the words as integers, on chips with `LaneFacts.word_sums`; so are the two below."""
    WORD_SUB = auto()
    WORD_MUL = auto()
    COPY = auto()
    GREATER = auto()
    """Of floats, whether a > b."""
    SAME_BITS = auto()
    """Whether the words are equal."""
    CHOOSE = auto()
    TO_INT = auto()
    """int32 of a float, cut towards zero, saturating."""
    NEAREST_EXPONENT = auto()
    """Biased exponent of the nearest power of two of a positive float."""
    RSQRT = auto()
    SERIES = auto()
    LOOKUP = auto()
    WINDOW_SUM = auto()
    WINDOW_MAX = auto()

    @property
    def strided(self) -> bool:
        """Whether its operands may have any strides; the others know only the aligned default layout."""
        return self in _STRIDED

    @property
    def pairs(self) -> bool:
        """Whether it is arithmetic on pairs of elements, division left out."""
        return self.tests or self in _PAIRS

    @property
    def tests(self) -> bool:
        """Whether it asks something of two operands."""
        return self in (Unit.GREATER, Unit.SAME_BITS)

    @property
    def windowed(self) -> bool:
        """Whether it works on windows of many elements."""
        return self in (Unit.WINDOW_SUM, Unit.WINDOW_MAX)


_STRIDED = frozenset(
    {
        Unit.ADD,
        Unit.SUB,
        Unit.MUL,
        Unit.DIVIDE,
        Unit.MAX,
        Unit.MIN,
        Unit.MAC,
        Unit.AND,
        Unit.OR,
        Unit.XOR,
        Unit.SHIFT,
        Unit.SHIFT_SIGNED,
        Unit.WORD_ADD,
        Unit.WORD_SUB,
        Unit.WORD_MUL,
        Unit.COPY,
        Unit.GREATER,
        Unit.SAME_BITS,
    }
)
_PAIRS = frozenset(
    {
        *(Unit.ADD, Unit.SUB, Unit.MUL, Unit.MAX, Unit.MIN, Unit.MAC),
        *(Unit.AND, Unit.OR, Unit.XOR, Unit.SHIFT, Unit.SHIFT_SIGNED),
        *(Unit.WORD_ADD, Unit.WORD_SUB, Unit.WORD_MUL),
    }
)
