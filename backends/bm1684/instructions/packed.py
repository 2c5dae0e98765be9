"""Element-wise commands on words that hold bytes of four images or halfwords of two (bm1684.md 4.2, 6.4)."""

from __future__ import annotations

from typing import NamedTuple

from bmcompiler.backends.bm1684.chip import CHIP, local_address, pixel_strides
from bmcompiler.backends.bm1684.instructions.words import Commands, sizes, strides
from bmcompiler.backends.bm1684.isa import Eu, Precision, StrideCode, Task
from bmcompiler.backends.lanes.facts import Range, Shape, Strides
from bmcompiler.instructions.isa import Fields

PRECISION = {1: Precision.INT8, 2: Precision.INT16}


class Packed(NamedTuple):
    """A tile of integers.

    Attributes:
        item: bytes of an element, 1 or 2; signed: how its bits are read, which results are not.
        steps: strides in words between word-images, channels, rows, columns; None = the aligned default layout.
        one: whether the first image of a word stands for all images of the result's words.
    """

    address: int
    item: int
    signed: bool = True
    steps: Strides | None = None
    one: bool = False

    def strides(self, dims: Shape) -> Strides:
        """Strides of a tile of `dims` elements, in words."""
        return self.steps or CHIP.aligned_strides(CHIP.words_of(dims, self.item))

    def range(self, dims: Shape) -> Range:
        """Bytes of a lane that a tile of `dims` elements lies in."""
        n, c, h, w = CHIP.words_of(dims, self.item)
        counts = (n, CHIP.channel_rows(0, c), h, w)
        last = sum((size - 1) * step for size, step in zip(counts, self.strides(dims)))
        return self.address - self.address % 4, self.address + 4 * (last + 1)


class Number(NamedTuple):
    """An immediate of `item` bytes."""

    value: int
    item: int
    signed: bool


Operand = Packed | Number


def emit_packed(
    build: Commands,
    unit: Eu,
    dims: Shape,
    result: Packed,
    a: Operand,
    b: Operand,
    right: int = 0,
    left: int = 0,
    *,
    arithmetic: bool = False,
) -> None:
    """Emit result = a `unit` b over `dims` elements, saturating; of MAC, result += a * b.

    Args:
        right: rounding right shift of the result. left: left shift of the old result of MAC. arithmetic: whether SHIFT
            keeps the sign.
    """
    reads = [operand.range(dims) for operand in (a, b) if isinstance(operand, Packed)]
    if unit == Eu.MAC:
        reads.append(result.range(dims))
    build.tiu(
        reads,
        [result.range(dims)],
        tsk_typ=Task.TENSOR,
        tsk_eu_typ=unit,
        opt_shift_typ=int(arithmetic),
        opt_right_shift=right,
        opt_left_shift=left,
        opt_res0_prec=PRECISION[result.item],
        opt_opd2_prec=PRECISION[result.item],
        short_res0_str=StrideCode.EXPLICIT,
        res0_addr=local_address(result.address),
        **sizes("res0", dims),
        **strides("res0", result.strides(dims)),
        **_operand("opd0", a, dims),
        **_operand("opd1", b, dims),
    )


def _operand(name: str, operand: Operand, dims: Shape) -> Fields:
    fields = {
        f"opt_{name}_prec": int(PRECISION[operand.item]),
        f"opt_{name}_sign": int(operand.signed),
        f"short_{name}_str": int(StrideCode.EXPLICIT),
    }
    if isinstance(operand, Number):
        bits = operand.value & ((1 << 8 * operand.item) - 1)
        return fields | {f"{name}_addr": bits, f"opt_{name}_const": 1}
    fields |= {f"{name}_addr": local_address(operand.address), f"{name}_neq1": int(operand.one)}
    return fields | strides(name, operand.strides(dims))


def pixel_halves(address: int, dims: Shape, signed: bool) -> tuple[Shape, Packed]:
    """All halfwords of an int16 result of a convolution of `dims`, whatever image they belong to (bm1684.md 4.2)."""
    n, c, h, w = dims
    groups = -(-n // 4)
    image, channel, _, _ = (step // 4 for step in pixel_strides((groups, c, h, w)))
    return (2 * groups, c, h, 2 * w), Packed(address, 2, signed, (image, channel, 2 * w, 1))


def pixel_bytes(dims: Shape) -> int:
    """Bytes per lane of an int16 result of a convolution: 8 for each pixel of four images."""
    n, c, h, w = dims
    groups = -(-n // 4)
    return groups * CHIP.channel_rows(0, c) * pixel_strides((groups, c, h, w))[1]


def pack_words(
    build: Commands,
    dims: Shape,
    words: int,
    halves: int,
    result: int,
    signed: bool,
    steps: Strides | None = None,
) -> None:
    """Pack numbers that fit a byte, one per word, into the image slots of words (bm1684.md 4.3.1).

    The halves of each word are taken as two images of 16 bits and saturated to bytes; of several images, the pairs of
    bytes (number, its sign) are then numbers of 16 bits again. `halves` is a place for these. steps: of the words.
    """
    n, c, h, w = dims
    zero = Number(0, 2, signed)
    source = Packed(words, 2, signed, steps)
    if n > 1:
        between = Packed(halves, 1, signed)
        emit_packed(build, Eu.ADD, (2 * n, c, h, w), between, source, zero)
        source = Packed(halves, 2, signed)
    emit_packed(build, Eu.ADD, dims, Packed(result, 1), source, zero)


def pack_low_halves(build: Commands, dims: Shape, words: int, halves: int, result: int, signed: bool) -> None:
    """The same of numbers 0 to 255 in the low halves of words whose high halves are more than 255.

    Those saturate, so that 255 stands above each byte, which goes with the next command. Its results are signed: 128 is
    taken away, too, and for unsigned ones put back. signed: whether results are 128 less than the numbers.
    """
    n, c, h, w = dims
    between, source = Packed(halves, 1, False), Packed(halves, 2, False)
    emit_packed(build, Eu.ADD, (2 * n, c, h, w), between, Packed(words, 2, False), Number(0, 2, False))
    emit_packed(build, Eu.SUB, dims, Packed(result, 1), source, Number(0xFF80, 2, False))
    if not signed:
        emit_packed(build, Eu.XOR, dims, Packed(result, 1), Packed(result, 1, False), Number(0x80, 1, False))
