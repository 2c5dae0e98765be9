"""What commands are made of: an engine, a format and fields; and the operands that become those fields."""

from __future__ import annotations

from typing import NamedTuple

from bmcompiler.backends.bm1684x.codes import ITEM_BYTES, Layout, Precision
from bmcompiler.chip import Dims
from bmcompiler.instructions.isa import Fields, Format
from bmcompiler.instructions.order import Engine


class Command(NamedTuple):
    """A command without its id and the id it waits for; the sort engine's have neither."""

    engine: Engine
    layout: Format
    fields: Fields

    def encode(self, own: int, wait: int) -> bytes:
        """Its bytes. Raises EncodingError when a value does not fit its field."""
        ids = {} if self.engine is Engine.HAU else {"cmd_id": own, "cmd_id_dep": wait}
        return self.layout.pack({**self.fields, **ids})


class Operand(NamedTuple):
    """A tensor in local memory, or a constant, as the units that work element by element see it.

    Attributes:
        place: address (lane * lane size + offset), or the constant's bits.
        precision, signed: of its elements. Floats have the bit `signed`, except where a unit wants it clear.
        strides: in elements; None is the aligned layout. constant: whether `place` is a constant.
    """

    place: int
    precision: Precision
    signed: bool = True
    strides: Dims | None = None
    constant: bool = False

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return ITEM_BYTES[self.precision]

    def bits(self) -> Operand:
        """The same bytes as integers of their width, which is what bitwise operations take; floats become signed."""
        integers = {1: Precision.INT8, 2: Precision.INT16, 4: Precision.INT32}
        return self._replace(precision=integers[self.item])


def constant(bits: int, precision: Precision, signed: bool = True) -> Operand:
    """A constant operand."""
    return Operand(bits & 0xFFFF_FFFF, precision, signed, constant=True)


def shape_fields(shape: Dims, name: str = "res0") -> Fields:
    """The four sizes of a tensor."""
    return {f"{name}_{axis}": size for axis, size in zip("nchw", shape)}


def stride_fields(name: str, operand: Operand) -> Fields:
    """Layout code of an operand, and its strides where they are free."""
    if operand.strides is None:
        return {}
    steps = {f"{name}_{axis}_str": step for axis, step in zip("nchw", operand.strides)}
    return {f"{name}_str": Layout.FREE, **steps}
