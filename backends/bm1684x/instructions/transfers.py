"""The GDMA's commands between memories (bm1684x.md 3)."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Function, Move, Precision
from bmcompiler.backends.bm1684x.instructions.operands import Command, shape_fields
from bmcompiler.backends.bm1684x.isa import ADDRESS_LOW, INDEXED, TENSOR
from bmcompiler.chip import Dims
from bmcompiler.instructions.isa import Fields
from bmcompiler.instructions.order import Engine


@dataclass(frozen=True)
class Side:
    """Source or destination of a transfer.

    Attributes:
        address: with the window of local memory, if it lies there. shape, strides: (n, c, h, w), strides in elements.
    """

    address: int
    shape: Dims
    strides: Dims

    def fields(self, name: str, sizes: bool = True, strides: bool = True) -> Fields:
        """The fields of side `src` or `dst`."""
        found = address_fields(name, self.address)
        if sizes:
            found |= shape_fields(self.shape, name)
        if strides:
            found |= {f"{name}_{axis}_str": step for axis, step in zip("nchw", self.strides)}
        return found


def address_fields(name: str, address: int) -> Fields:
    """The two halves of an address."""
    return {f"{name}_addr_lo": address & (1 << ADDRESS_LOW) - 1, f"{name}_addr_hi": address >> ADDRESS_LOW}


def in_window(local: int) -> int:
    """The address that the GDMA uses for a local address."""
    return CHIP.lmem_window + local


def _tensor(move: Move, precision: Precision, *parts: Fields, **more: int) -> Command:
    fields: Fields = {"cmd_type": move, "data_format": precision, "stride_enable": 1}
    for part in parts:
        fields |= part
    return Command(Engine.GDMA, TENSOR, fields | more)


def copy(to: Side, source: Side, precision: Precision) -> Command:
    """The elements of `source` in (n, c, h, w) order, to `to` in its own order; between one kind of memory."""
    return _tensor(Move.TENSOR, precision, source.fields("src"), to.fields("dst"))


def copy_alike(to: Side, source: Side, precision: Precision) -> Command:
    """`copy` of one shape, said only once: as the vendor's library has it between local memory and outside."""
    return _tensor(Move.TENSOR, precision, source.fields("src"), to.fields("dst", sizes=False), nchw_copy=1)


def broadcast(to: Side, source: Side, precision: Precision) -> Command:
    """The one channel of `source` to all channels of `to`, which are lanes of one row; w is dense on both sides."""
    return _tensor(Move.TENSOR, precision, source.fields("src"), to.fields("dst"), special_func=Function.BROADCAST)


def transpose_nc(to: Side, source: Side, precision: Precision, alike: bool, strides: bool = True) -> Command:
    """to(n, c, h, w) = source(c, n, h, w); without `strides` in the default layouts, with `alike` one shape is said."""
    parts = source.fields("src", strides=strides), to.fields("dst", not alike, strides)
    switches = {"special_func": Function.NC_TRANSPOSE, "nchw_copy": alike, "stride_enable": strides}
    return _tensor(Move.TENSOR, precision, *parts, **switches)


def transpose_cw(to: Side, source: Side, precision: Precision, strides: bool = True) -> Command:
    """to(n, c, h, w) = source(n, w, h, c); w is dense on both sides."""
    parts = source.fields("src", strides=strides), to.fields("dst", False, strides)
    fixed = {"src_w_str": 0, "dst_w_str": 0} if strides else {}
    return _tensor(Move.CW_TRANSPOSE, precision, *parts, **fixed, nchw_copy=1, stride_enable=strides)


def fill(to: Side, bits: int, precision: Precision) -> Command:
    """Every element of `to` becomes `bits`."""
    return _tensor(Move.TENSOR, precision, to.fields("dst"), fill_constant_en=1, constant_value=bits)


def matrix(local: Side, outer: Side, load: bool, precision: Precision, transposed: bool = False) -> Command:
    """A row-major matrix, to or from rows cut into sections, a lane each; `transposed`, its columns are cut.

    Args:
        local: shape (rows, sections, 0, section width), strides (row, section, 0, 0).
        outer: shape (0, 0, rows, columns), strides (0, 0, pitch, 0). load: to local memory.
    """
    names = ("dst", "src") if load else ("src", "dst")
    function = Function.NC_TRANSPOSE if transposed else Function.COPY
    return _tensor(Move.MATRIX, precision, local.fields(names[0]), outer.fields(names[1]), special_func=function)


@dataclass(frozen=True)
class Rows:
    """Rows of a gather or scatter: (1, c, h, w) with their strides of c and h; w is dense."""

    address: int
    sizes: tuple[int, int, int]  # c, h, w; 0 where the command has no size
    strides: tuple[int, int]

    def fields(self, name: str, strides: bool) -> Fields:
        """The fields of `src`, `dst` or `index`."""
        found = address_fields(name, self.address)
        found |= {f"{name}_{axis}": size for axis, size in zip("chw", self.sizes) if f"{name}_{axis}" != "index_w"}
        if strides:
            found |= {f"{name}_{axis}_str": step for axis, step in zip("ch", self.strides)}
        return found


def indexed(
    move: Move, to: Rows, source: Rows, index: Rows, precision: Precision, strides: bool, **more: int
) -> Command:
    """Gather or scatter whole rows; without `strides` in the default layouts."""
    fields: Fields = {"cmd_type": move, "data_format": precision, "stride_enable": strides} | more
    for name, rows in (("src", source), ("dst", to), ("index", index)):
        fields |= rows.fields(name, strides)
    return Command(Engine.GDMA, INDEXED, fields)
