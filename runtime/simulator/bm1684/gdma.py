"""GDMA commands: copies, transpositions, matrices, fills and format conversions (bm1684.md 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.chip import aligned_strides, global_strides, is_local, lane_offset
from bmcompiler.backends.bm1684.isa import DataFormat, Direction, Function
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import Fields
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.fp32 import add
from bmcompiler.runtime.simulator.bm1684.memory import Memories
from bmcompiler.runtime.simulator.memory import Shape, Tensor
from bmcompiler.runtime.simulator.plan import Step
from bmcompiler.runtime.simulator.relocation import Relocation
from bmcompiler.runtime.simulator.sections import Sections

_DTYPES: dict[int, np.dtype[Any]] = {
    DataFormat.FP32: np.dtype(np.float32),
    DataFormat.INT16: np.dtype(np.int16),
    DataFormat.UINT8: np.dtype(np.uint8),
    DataFormat.INT8: np.dtype(np.int8),
    DataFormat.FP16: np.dtype(np.float16),
}
_MAX_SOURCE_W_STRIDE = 4095
_HALF_NORMAL = 0x0400  # bits of the smallest normal fp16 number
_LOCAL_SOURCE = (Direction.LOCAL_TO_SYSTEM, Direction.LOCAL_TO_LOCAL)
_LOCAL_TARGET = (Direction.SYSTEM_TO_LOCAL, Direction.LOCAL_TO_LOCAL)


class Transfer:
    """One GDMA command: its tensors in `memories`."""

    def __init__(self, memories: Memories, fields: Fields, relocation: Relocation) -> None:
        self.memories, self.fields, self.relocation = memories, fields, relocation
        self.direction = Direction(fields["direction"])
        self.function = fields["special_func"]

    def dtype(self, side: str) -> np.dtype[Any]:
        """Element type of `src` or `dst`. Raises SimulatorError for unknown formats."""
        code = self.fields[f"{side}_data_format"]
        if code not in _DTYPES:
            raise SimulatorError(f"data format {code} does not exist")
        return _DTYPES[code]

    def size(self, side: str) -> Shape:
        """(n, c, h, w) of one side."""
        f = self.fields
        return (f[f"{side}_n"], f[f"{side}_c"], f[f"{side}_h"], f[f"{side}_w"])

    def registers(self, side: str) -> Shape:
        """Stride registers (n, c, h, w), in elements. Raises SimulatorError for a source W stride over 4095."""
        f = self.fields
        if side == "src" and f["src_w_str"] > _MAX_SOURCE_W_STRIDE:
            raise SimulatorError(f"source W stride {f['src_w_str']} exceeds {_MAX_SOURCE_W_STRIDE}")
        return (f[f"{side}_n_str"], f[f"{side}_c_str"], f[f"{side}_h_str"], f[f"{side}_w_str"])

    def is_local(self, side: str) -> bool:
        """Whether the side is in local memory, by the direction."""
        return self.direction in (_LOCAL_SOURCE if side == "src" else _LOCAL_TARGET)

    def address(self, side: str) -> int:
        """Address of the first element; global ones relocated."""
        f = self.fields
        address = f[f"{side}_addr_lo"] | f[f"{side}_addr_hi"] << 32
        if self.is_local(side):
            if not is_local(address):
                raise SimulatorError(f"address 0x{address:x} is not in local memory")
            return address
        return self.relocation(address, side == "dst")

    def tensor(self, side: str, shape: Shape, strides: Shape | None = None, skip: int = 0) -> Tensor:
        """`shape` elements of one side; strides in elements, by default registers or default layouts.

        `skip` channels come before the first one in local memory.
        """
        dtype, address = self.dtype(side), self.address(side)
        if strides is None:
            strides = self.registers(side) if self.fields["stride_enable"] else self._default(side, shape, address)
        n, c, h, w = (dtype.itemsize * stride for stride in strides)
        if not self.is_local(side):
            return self.memories.globals.tensor(address, shape, (n, c, h, w), dtype)
        lane, offset = lane_offset(address)
        return self.memories.local.tensor(lane + skip, offset, shape, (n, c, h, w), dtype)

    def _default(self, side: str, shape: Shape, address: int) -> Shape:
        if not self.is_local(side):
            return global_strides(shape)
        return aligned_strides(shape, lane_offset(address)[0], self.dtype(side).itemsize)

    def target_size(self) -> Shape:
        """Destination sizes: those of the source when the command says so."""
        return self.size("src") if self.fields["chw_copy"] else self.size("dst")


def gdma_step(transfer: Transfer) -> Step:
    """Step of one GDMA command. Raises SimulatorError for forms whose meaning is unknown and for bad operands."""
    f = transfer.fields
    if not f["pio_gdma_enable"]:
        raise SimulatorError("the command is not enabled")
    if f["common_mode"]:
        return _linear(transfer)
    if f["sys_mem_type"]:
        return _matrix(transfer)
    maker = _FUNCTIONS.get(transfer.function)
    if maker is None or f["hold_des_value"]:
        raise SimulatorError(f"what function {transfer.function} does is not known")
    return maker(transfer)


def _same_width(transfer: Transfer) -> None:
    if transfer.dtype("src").itemsize != transfer.dtype("dst").itemsize:
        raise SimulatorError("a copy needs formats of one width on both sides")


def _bits(tensor: Tensor) -> Tensor:
    """The tensor with its elements as integers: copying floats could alter NaNs and would compare them."""
    kind = np.dtype(f"u{tensor.dtype.itemsize}")
    return Tensor(tensor.shape, kind, [(channels, view.view(kind)) for channels, view in tensor.pieces])


def _count(shape: Shape) -> int:
    n, c, h, w = shape
    return n * c * h * w


def _copy(transfer: Transfer) -> Step:
    """Elements in (n, c, h, w) order of the source go to the destination in its own order; only counts must agree."""
    _same_width(transfer)
    shape, target_shape = transfer.size("src"), transfer.target_size()
    if _count(shape) != _count(target_shape):
        raise SimulatorError(f"source {shape} and destination {target_shape} differ in their number of elements")
    source, target = transfer.tensor("src", shape), transfer.tensor("dst", target_shape)
    if transfer.fields["acc_write_enable"]:
        return _accumulate(source, target)
    source, target = _bits(source), _bits(target)
    if shape == target_shape and source.view is not None and target.view is not None:
        to, origin = target.view, source.view
        return lambda: np.copyto(to, origin)
    return lambda: target.write(source.read().copy().reshape(target_shape))


def _accumulate(source: Tensor, target: Tensor) -> Step:
    if source.dtype != np.float32:  # the target is as wide
        raise SimulatorError("adding to the destination needs fp32 on both sides")
    return lambda: target.write(add(target.read(), source.read().reshape(target.shape)))


def _nc_transpose(transfer: Transfer) -> Step:
    _same_width(transfer)
    n, c, h, w = transfer.size("src")
    source, target = _bits(transfer.tensor("src", (n, c, h, w))), _bits(transfer.tensor("dst", (c, n, h, w)))
    return lambda: target.write(source.read().transpose(1, 0, 2, 3).copy())


def _cw_transpose(transfer: Transfer) -> Step:
    """N and H count as 1."""
    _same_width(transfer)
    _, c, _, w = transfer.size("src")
    source, target = _bits(transfer.tensor("src", (1, c, 1, w))), _bits(transfer.tensor("dst", (1, w, 1, c)))
    return lambda: target.write(source.read().transpose(0, 3, 2, 1).copy())


def _lrn_shift(transfer: Transfer) -> Step:
    if transfer.direction != Direction.LOCAL_TO_LOCAL:
        raise SimulatorError("the LRN shift has a known result inside local memory only")
    return _copy(transfer)


def _fill(transfer: Transfer) -> Step:
    target = _bits(transfer.tensor("dst", transfer.target_size()))
    value = np.array([transfer.fields["constant_value"]], "<u4").view(target.dtype)[:1].reshape(1, 1, 1, 1)
    filled = np.broadcast_to(value, target.shape)
    return lambda: target.write(filled)


def _linear(transfer: Transfer) -> Step:
    """common_mode: as many elements as the source N stride says, in a row."""
    _same_width(transfer)
    shape, strides = (1, 1, 1, transfer.fields["src_n_str"]), (0, 0, 0, 1)
    source = _bits(transfer.tensor("src", shape, strides))
    target = _bits(transfer.tensor("dst", shape, strides))
    return lambda: target.write(source.read().copy())


def _matrix(transfer: Transfer) -> Step:
    """Rows of global memory to or from the sections of a local matrix; function 1 transposes (bm1684.md 5.3)."""
    if transfer.function not in (Function.COPY, Function.NC_TRANSPOSE) or transfer.direction not in (
        Direction.SYSTEM_TO_LOCAL,
        Direction.LOCAL_TO_SYSTEM,
    ):
        raise SimulatorError("matrices are loaded and stored, and perhaps transposed, nothing else")
    _same_width(transfer)
    load = transfer.direction == Direction.SYSTEM_TO_LOCAL
    system, local = ("src", "dst") if load else ("dst", "src")
    *_, rows, columns = transfer.size(system)
    count, sections, _, width = transfer.size(local)
    transposed = transfer.function == Function.NC_TRANSPOSE
    if (count, sections * width < (rows if transposed else columns)) != (columns if transposed else rows, False):
        raise SimulatorError(f"a matrix of {rows} x {columns} does not fit {count} rows of {sections} x {width}")
    outer = _bits(transfer.tensor(system, (1, 1, rows, columns)))
    default = aligned_strides((count, sections, 1, width), 0, transfer.dtype(local).itemsize)
    strides = None if transfer.fields["stride_enable"] else default
    inner = Sections(
        lambda shape, skip: _bits(transfer.tensor(local, shape, strides, skip=skip)),
        count,
        rows if transposed else columns,
        width,
    )
    if load:
        return lambda: inner.write(_plain(outer.read(), transposed))
    return lambda: outer.write(_plain(inner.read(), transposed)[None, None])


def _plain(matrix: Array, transposed: int) -> Array:
    flat = matrix.reshape(matrix.shape[-2:])
    return flat.T if transposed else flat


def _convert(transfer: Transfer) -> Step:
    """Format conversion while copying (bm1684.md 5.6)."""
    source_format, target_format = transfer.fields["src_data_format"], transfer.fields["dst_data_format"]
    if source_format == target_format:
        return _copy(transfer)
    function = _CONVERSIONS.get((source_format, target_format))
    if function is None:
        raise SimulatorError(f"format {source_format} cannot be converted to format {target_format}")
    source = transfer.tensor("src", transfer.size("src"))
    target = transfer.tensor("dst", transfer.target_size())
    if _count(source.shape) != _count(target.shape):
        raise SimulatorError(f"source {source.shape} and destination {target.shape} differ in their number of elements")
    return lambda: target.write(function(source.read()).reshape(target.shape))


def _to_bytes(kind: type[np.integer[Any]]) -> Callable[[Array], Array]:
    """fp32 to 8 bits: half to even, saturating; NaN gives the largest value."""
    limits = np.iinfo(kind)

    def run(x: Array) -> Array:
        finite = np.where(np.isnan(x), np.float32(np.inf), x)
        return np.clip(np.rint(finite), limits.min, limits.max).astype(kind)

    return run


def _to_half(x: Array) -> Array:
    """fp32 to fp16, mantissa cut off; too large values and NaN become infinite, denormal results zero."""
    magnitude = np.abs(x)
    near = magnitude.astype(np.float16)
    above = near.astype(np.float32) > magnitude
    bits = near.view(np.uint16) - above.astype(np.uint16)
    bits = np.where(~(magnitude < 65536), np.uint16(0x7C00), bits)
    bits = np.where(bits < _HALF_NORMAL, np.uint16(0), bits)
    sign = (np.ascontiguousarray(x).view(np.uint32) >> 16).astype(np.uint16) & np.uint16(0x8000)
    return (bits.astype(np.uint16) | sign).view(np.float16)


def _from_half(x: Array) -> Array:
    """fp16 to fp32; the chip has no infinities there: the largest exponent is an ordinary one."""
    bits = np.ascontiguousarray(x).view(np.uint16).astype(np.uint32)
    special = (bits & 0x7C00) == 0x7C00
    plain = (((bits & 0x7FFF) << 13) + (112 << 23) | (bits & 0x8000) << 16).astype(np.uint32)
    return np.where(special, plain.view(np.float32), x.astype(np.float32))


def _to_float(x: Array) -> Array:
    return x.astype(np.float32)


_CONVERSIONS: dict[tuple[int, int], Callable[[Array], Array]] = {
    (DataFormat.FP32, DataFormat.INT8): _to_bytes(np.int8),
    (DataFormat.FP32, DataFormat.UINT8): _to_bytes(np.uint8),
    (DataFormat.INT8, DataFormat.FP32): _to_float,
    (DataFormat.UINT8, DataFormat.FP32): _to_float,
    (DataFormat.FP32, DataFormat.FP16): _to_half,
    (DataFormat.FP16, DataFormat.FP32): _from_half,
}
_FUNCTIONS: dict[int, Callable[[Transfer], Step]] = {
    Function.COPY: _copy,
    Function.NC_TRANSPOSE: _nc_transpose,
    Function.LRN_SHIFT: _lrn_shift,
    Function.CONVERT: _convert,
    Function.FILL: _fill,
    Function.CW_TRANSPOSE: _cw_transpose,
}
