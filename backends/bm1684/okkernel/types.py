"""The types of okkernel, with the library's names; strides are in elements."""

from __future__ import annotations

import struct
from typing import NamedTuple

from bmcompiler.errors import UsageError

_WORD = 0xFFFF_FFFF


class dim4(NamedTuple):  # noqa: N801
    """A shape, or strides in elements."""

    n: int
    c: int
    h: int
    w: int


class dim2(NamedTuple):  # noqa: N801
    """Steps of a window."""

    h: int
    w: int


class Padding(NamedTuple):
    """Pixels around an image."""

    top: int
    bottom: int
    left: int
    right: int


class fp32_or_addr_t(NamedTuple):  # noqa: N801
    """A float, or a tensor by its local address."""

    is_addr: bool
    context: float


class x32_or_addr_t(NamedTuple):  # noqa: N801
    """The bits of a word, or a tensor by its local address."""

    is_addr: bool
    context: int


class x32(int):  # noqa: N801
    """The bits of a word: `x32(fp32=1.5)`, `x32(s32=-3)`, `x32(bits)`."""

    def __new__(cls, bits: int | None = None, **member: float) -> x32:
        """One argument: the bits, or one member of the union: fp32, s32, u32."""
        if (bits is None) == (not member) or len(member) > 1:
            raise UsageError("x32 takes the bits or one member of the union, such as fp32=1.5")
        ((name, value),) = member.items() if member else (("u32", bits),)
        if name == "fp32" and value is not None:
            return super().__new__(cls, fp32_bits(value))
        if name not in ("s32", "u32") or not isinstance(value, int):
            raise UsageError(f"x32 has no member '{name}' of value {value!r}: s32 and u32 hold bits, fp32 a float")
        return super().__new__(cls, value & _WORD)


def fp32_bits(value: float) -> int:
    """The bits of `value` rounded to fp32; what is too large becomes an infinity."""
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        return 0x7F80_0000 if value > 0 else 0xFF80_0000
