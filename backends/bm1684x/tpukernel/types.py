"""The types of TPUKernel, with the library's names and codes (tpukernel.md 3, tpukernel-api.md 1)."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from bmcompiler.backends.bm1684x.codes import ITEM_BYTES, Precision
from bmcompiler.errors import UsageError

_FP8 = 15, 47  # E5M2, E4M3
_FOUR_BITS = 12, 13
_FLOATS = 3, 5, 11
_WORD = 0xFFFF_FFFF


class data_type_t(IntEnum):  # noqa: N801
    """Element types: twice the precision code, + 1 where signed."""

    DT_UINT8 = 0
    DT_INT8 = 1
    DT_FP16 = 3
    DT_FP32 = 5
    DT_UINT16 = 6
    DT_INT16 = 7
    DT_UINT32 = 8
    DT_INT32 = 9
    DT_BFP16 = 11
    DT_UINT4 = 12
    DT_INT4 = 13
    DT_FP8E5M2 = 15
    DT_FP20 = 17
    DT_FP8E4M3 = 47

    @property
    def precision(self) -> Precision:
        """The code in commands. Raises UsageError for types that no command takes."""
        try:
            return Precision(self >> 1 & 7) if self < 12 else Precision(self >> 1)
        except ValueError:
            raise UsageError(f"{self.name} is no type of a command") from None

    @property
    def signed(self) -> bool:
        """The bit beside the precision; set for floats."""
        return bool(self & 1)

    @property
    def is_float(self) -> bool:
        """FP16, FP32, BFP16, and 8-bit floats."""
        return self in _FLOATS or self in _FP8

    @property
    def is_float8(self) -> bool:
        """E5M2 and E4M3."""
        return self in _FP8

    @property
    def is_int(self) -> bool:
        """Integers of 4, 8, 16 and 32 bits."""
        return not self.is_float and self != data_type_t.DT_FP20

    @property
    def computes(self) -> bool:
        """Whether TIU and GDMA know the type: 8, 16 and 32 bits, but for 8-bit floats."""
        return self < 12

    @property
    def size(self) -> int:
        """Bytes of an element. Raises UsageError for types of 4 bits."""
        if self in _FOUR_BITS:
            raise UsageError(f"{self.name} has no whole bytes")
        if self in _FP8:
            return 1
        return 4 if self == data_type_t.DT_FP20 else ITEM_BYTES[self.precision]

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return 4 if self in _FOUR_BITS else 8 * self.size


class rounding_mode_t(IntEnum):  # noqa: N801
    """How results are rounded to fewer bits."""

    RM_HALF_TO_EVEN = 0
    RM_HALF_AWAY_FROM_ZERO = 1
    RM_TOWARDS_ZERO = 2
    RM_DOWN = 3
    RM_UP = 4
    RM_HALF_UP = 5
    RM_HALF_DOWN = 6


class variable_type_t(IntEnum):  # noqa: N801
    """What a `variable_t` is."""

    TENSOR = 0
    SCALAR = 1
    VECTOR = 2


class dim4(NamedTuple):  # noqa: N801
    """A shape, or strides in elements."""

    n: int
    c: int
    h: int
    w: int


class dim2(NamedTuple):  # noqa: N801
    """Sizes of a window."""

    h: int
    w: int


class padding_t(NamedTuple):  # noqa: N801
    """Pixels around an image."""

    top: int
    bottom: int
    left: int
    right: int


class scalar_t(int):  # noqa: N801
    """The bits of a constant: `scalar_t(f32=1.5)`, `scalar_t(s8=-3)`, `scalar_t(bits)`."""

    def __new__(cls, bits: int | None = None, **member: float) -> scalar_t:
        """One argument: the bits, or one member of the union: s8, u8, s16, u16, s32, u32, f16, bf16 (bits), f32."""
        if (bits is None) == (not member) or len(member) > 1:
            raise UsageError("scalar_t takes the bits or one member of the union, such as f32=1.5")
        if bits is not None:
            return super().__new__(cls, bits & _WORD)
        ((name, value),) = member.items()
        widths = {"s8": 8, "u8": 8, "s16": 16, "u16": 16, "s32": 32, "u32": 32, "f16": 16, "bf16": 16}
        if name == "f32":
            return super().__new__(cls, fp32_bits(value))
        if name not in widths or not isinstance(value, int):
            raise UsageError(
                f"scalar_t has no member '{name}' of value {value!r}: {', '.join(widths)} hold bits, f32 a float"
            )
        return super().__new__(cls, value & (1 << widths[name]) - 1)

    @property
    def f32(self) -> float:
        """The bits as fp32."""
        return float(struct.unpack("<f", struct.pack("<I", self))[0])

    @property
    def s32(self) -> int:
        """The bits as a signed word."""
        return (self & _WORD ^ 1 << 31) - (1 << 31)


class variable_t(NamedTuple):  # noqa: N801
    """An operand of the select functions: a tensor's or vector's local address, or a scalar's bits."""

    type: variable_type_t
    value: int


def fp32_bits(value: float) -> int:
    """The bits of `value` rounded to fp32; what is too large becomes an infinity."""
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        return 0x7F80_0000 if value > 0 else 0xFF80_0000
