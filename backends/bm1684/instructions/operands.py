"""Operands of typed instructions, and the register fields that say where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.isa import StrideCode
from bmcompiler.backends.lanes import operands
from bmcompiler.backends.lanes.facts import Range, Shape, Strides
from bmcompiler.backends.lanes.operands import Immediate, Source, Words
from bmcompiler.errors import EncodingError

Fields = dict[str, int]


class Commands(Protocol):
    """What instructions are added to; ranges are bytes of a lane, of L2 from `CHIP.l2_window` on."""

    def tiu(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> Any:
        """Add a TIU command."""

    def gdma(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> Any:
        """Add a GDMA command; of global memory there are no ranges."""


def sizes(name: str, shape: Shape) -> Fields:
    """Size fields of `res0`, `opd0` or `opd1`."""
    return {f"{name}_{axis}": size for axis, size in zip("nchw", shape)}


def strides(name: str, steps: Strides) -> Fields:
    """Stride fields of an operand, in words; those before the first word count from 2**32 down."""
    return {f"{name}_{axis}_str": step & 0xFFFF_FFFF for axis, step in zip("nchw", steps)}


steps_of, bytes_of = partial(operands.steps_of, CHIP), partial(operands.bytes_of, CHIP)


def bytes_read(sources: Sequence[Source]) -> list[Range]:
    """The bytes of the operands that are tensors."""
    return [bytes_of(source) for source in sources if isinstance(source, Words)]


def placed(name: str, source: Source) -> Fields:
    """Address of a tensor, or an immediate."""
    if isinstance(source, Immediate):
        return {f"{name}_addr": source.bits, f"opt_{name}_const": 1}
    return {f"{name}_addr": local_address(source.address)}


def strided(name: str, source: Source, shape: Shape) -> Fields:
    """`placed`, with the strides that spread a tensor over `shape` along the axes where it has one element."""
    fields = placed(name, source) | {f"short_{name}_str": int(StrideCode.EXPLICIT)}
    if isinstance(source, Immediate):
        return fields
    n, c, h, w = (0 if a == 1 and b > 1 else s for a, b, s in zip(source.shape, shape, steps_of(source)))
    return fields | strides(name, (n, c, h, w))


def need_default_layout(what: str, *operands: Source) -> None:
    """Raise EncodingError where an operand of a command without stride registers has strides."""
    if any(isinstance(operand, Words) and operand.strides is not None for operand in operands):
        raise EncodingError(f"{what} works on tiles in the aligned default layout only")
