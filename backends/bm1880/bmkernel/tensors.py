"""Shapes, strides and tensor descriptors of the kernel API, and the layouts they stand for (bm1880.md 2, 9).

Names with `_t` and lower-case classes are those of the kernel API's C headers.
"""
# ruff: noqa: N801

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from bmcompiler.backends.bm1880.bmkernel.prototypes import KERNEL
from bmcompiler.backends.bm1880.chip import CHIP, align_up
from bmcompiler.backends.bm1880.isa import FMT_I8, FMT_U8
from bmcompiler.errors import EncodingError

_LANES = CHIP.lanes
_LMEM = CHIP.lmem_size
_ALIGN = CHIP.alignment
_FORMATS = (FMT_I8, FMT_U8)
_MATRIX_COLUMNS = 1 << 16  # the register of a row has 16 bits


@KERNEL.struct
class shape_t(NamedTuple):
    """A tensor (dim 4: n, c, h, w; dim 3: n = 1) or a matrix (dim 2: rows in h, columns in w, n = c = 1)."""

    dim: int
    n: int
    c: int
    h: int
    w: int

    @property
    def row(self) -> int:
        """Rows of a matrix."""
        return self.h

    @property
    def col(self) -> int:
        """Columns of a matrix."""
        return self.w

    @property
    def dims(self) -> tuple[int, int, int, int]:
        """(n, c, h, w)."""
        return self[1:]

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.n * self.c * self.h * self.w

    def __str__(self) -> str:
        return f"({self.h}, {self.w})" if self.dim == 2 else f"({self.n}, {self.c}, {self.h}, {self.w})"


@KERNEL.struct
class stride_t(NamedTuple):
    """Strides in elements (bytes, since every element has 8 bits); row = h and col = w for a matrix."""

    n: int
    c: int
    h: int
    w: int

    @property
    def row(self) -> int:
        """Row stride of a matrix."""
        return self.h

    @property
    def col(self) -> int:
        """Column stride of a matrix."""
        return self.w


@KERNEL.checked
def shape_t4(n: int, c: int, h: int, w: int) -> shape_t:
    """Shape of a tensor."""
    return shape_t(4, n, c, h, w)


@KERNEL.checked
def shape_t3(c: int, h: int, w: int) -> shape_t:
    """Shape of a tensor of one sample."""
    return shape_t(3, 1, c, h, w)


@KERNEL.checked
def shape_t1(len: int) -> shape_t:
    """Shape of a matrix of `len` elements: of one row where that has less than 65536, else of the fewest 2**k rows.

    Raises EncodingError for a length that cannot be halved so far.
    """
    rows, columns = 1, len
    while columns >= _MATRIX_COLUMNS:
        if columns % 2:
            raise EncodingError(f"shape_t1: {len} elements cannot be halved into rows of less than {_MATRIX_COLUMNS}")
        rows, columns = 2 * rows, columns // 2
    return shape_t(2, 1, 1, rows, columns)


@KERNEL.checked
def shape_t2(row: int, col: int) -> shape_t:
    """Shape of a matrix."""
    return shape_t(2, 1, 1, row, col)


@KERNEL.checked
def stride_t4(n: int, c: int, h: int, w: int) -> stride_t:
    """Strides of a tensor."""
    return stride_t(n, c, h, w)


@KERNEL.checked
def stride_t2(row: int, col: int) -> stride_t:
    """Strides of a matrix."""
    return stride_t(0, 0, row, col)


def matrix_dims(rows: int, cols: int) -> tuple[int, int, int, int]:
    """(n, c, h, w) of the tensor that holds a matrix in local memory (bm1880.md 2.3)."""
    width = 16 if cols <= 32 else 32
    return rows, -(-cols // width), 1, width


def local_strides(dims: tuple[int, int, int, int], aligned: bool) -> stride_t:
    """Default strides in local memory; the start lane does not enter (bm1880.md 2.2)."""
    _, c, h, w = dims
    c_stride = align_up(h * w, _ALIGN) if aligned else h * w
    return stride_t(-(-c // _LANES) * c_stride, c_stride, w, 1)


def packed_strides(dims: tuple[int, int, int, int]) -> stride_t:
    """Default strides in global memory (bm1880.md 2.1)."""
    _, c, h, w = dims
    return stride_t(c * h * w, h * w, w, 1)


def lane_bytes(shape: shape_t, aligned: bool) -> int:
    """Bytes a tensor or matrix occupies in one lane, from a start in lane 0."""
    dims = matrix_dims(shape.h, shape.w) if shape.dim == 2 else shape.dims
    return dims[0] * local_strides(dims, aligned).n


@KERNEL.handle("tensor_lmem *")
@dataclass(frozen=True, eq=False)
class tensor_lmem:
    """A tensor or matrix in local memory.

    Args:
        address: flat local address, lane * 65536 + offset.
        shape: logical shape.
        fmt: FMT_I8 or FMT_U8.
        aligned: which of the two default layouts applies when `stride` is None.
        stride: explicit strides in bytes, or None.
        bank_id: bank it was allocated from, or -1.
        owner: the allocator that reserved its bytes, or None.

    Raises:
        EncodingError: unknown format, a dimension below 1, or bytes outside local memory.
    """

    address: int
    shape: shape_t
    fmt: int
    aligned: bool = False
    stride: stride_t | None = None
    bank_id: int = -1
    owner: object = None
    freed: bool = field(default=False, init=False)

    def ended(self) -> str:
        """Why it cannot be used any more."""
        return "was freed" if self.freed else ""

    def free(self) -> None:
        """Refuse further use."""
        object.__setattr__(self, "freed", True)

    def __post_init__(self) -> None:
        if self.fmt not in _FORMATS:
            raise EncodingError(f"local tensor {self.shape}: format {self.fmt} is neither FMT_I8 (4) nor FMT_U8 (9)")
        if self.shape.dim not in (2, 3, 4) or min(self.shape) < 1:
            raise EncodingError(f"local tensor {self.shape}: every dimension must be at least 1, in a tensor or matrix")
        if not 0 <= self.address < CHIP.lmem_total or self.end > _LMEM:
            raise EncodingError(
                f"local tensor {self.shape} at address 0x{self.address:x} ends at byte {self.end} of its lane, "
                f"local memory has {CHIP.lanes} lanes of {_LMEM} bytes"
            )

    @cached_property
    def dims(self) -> tuple[int, int, int, int]:
        """(n, c, h, w) as laid out in local memory."""
        return matrix_dims(self.shape.h, self.shape.w) if self.shape.dim == 2 else self.shape.dims

    @cached_property
    def strides(self) -> stride_t:
        """Strides in bytes: the explicit ones or the default of the layout."""
        return self.stride or local_strides(self.dims, self.aligned)

    @property
    def has_aligned_layout(self) -> bool:
        """True when the engine's aligned default strides describe it."""
        return self.strides == local_strides(self.dims, True)

    @property
    def has_unaligned_layout(self) -> bool:
        """True when the engine's unaligned default strides describe it."""
        return self.strides == local_strides(self.dims, False)

    @property
    def lane(self) -> int:
        """Lane of channel 0."""
        return self.address // _LMEM

    @property
    def offset(self) -> int:
        """Byte offset in the lane."""
        return self.address % _LMEM

    @property
    def signed(self) -> int:
        """1 for FMT_I8, 0 for FMT_U8."""
        return int(self.fmt == FMT_I8)

    @property
    def is_matrix(self) -> bool:
        """True for a matrix."""
        return self.shape.dim == 2

    @cached_property
    def end(self) -> int:
        """First byte of a lane after the tensor."""
        n, c, h, w = self.dims
        s = self.strides
        groups = (self.lane + c - 1) // _LANES
        return self.offset + (n - 1) * s.n + groups * s.c + (h - 1) * s.h + (w - 1) * s.w + 1


@KERNEL.struct
@dataclass(frozen=True)
class tensor_gmem:
    """A tensor or matrix in global memory: device address, shape, strides in bytes."""

    addr: int
    shape: shape_t
    stride: stride_t
