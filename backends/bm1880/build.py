"""The instruction builder kernels emit through: addresses, packed weights, and moves between the two memories."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NEURON,
    CTRL_WEIGHT,
    FMT_I8,
    FMT_U8,
    Bmk1880Context,
    bmk1880_gdma_copy_gmem,
    bmk1880_gdma_load,
    bmk1880_gdma_load_stride,
    bmk1880_gdma_store,
    bmk1880_gdma_store_stride,
    shape_t,
    shape_t2,
    shape_t4,
    stride_t,
    stride_t2,
    stride_t4,
    tensor_gmem,
    tensor_lmem,
)
from bmcompiler.backends.bm1880.chip import CHIP, align_up
from bmcompiler.codegen.build import BaseBuild, Dims, dense_strides, extents, start_of
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.memory import MemoryPlan
from bmcompiler.ir import Value

FORMATS = {"i8": FMT_I8, "u8": FMT_U8}


class Build(BaseBuild):
    """One program under construction. `overlap`: may transfers run beside computation?"""

    def __init__(self, plan: MemoryPlan, coefficients: Coefficients, overlap: bool = True) -> None:
        super().__init__(plan, coefficients)
        self.overlap = overlap
        self.ctx = Bmk1880Context()

    @contextmanager
    def parallel(self) -> Iterator[None]:
        """Commands inside do not wait for each other across engines (bm1880.md 6), unless `overlap` is off."""
        if not self.overlap:
            yield
            return
        self.ctx.sync.parallel_enable()
        yield
        self.ctx.sync.parallel_disable()

    def source(self, value: Value) -> tuple[int, int]:
        """(offset, base) to load a value from: neuron memory, or weight memory for constants as they stand."""
        offset, constant = self.stored(value)
        return offset, CTRL_WEIGHT if constant else CTRL_NEURON

    # -- activations ---------------------------------------------------------------------------------------------------
    def load_box(self, value: Value, view: Dims, box: tuple[tuple[int, int], ...], address: int) -> None:
        """Load the `box` of an activation or constant seen as `view` (N, C, H, W) into an aligned local tensor."""
        tensor = aligned(address, extents(box), FORMATS[value.dtype])
        base, flag = self.source(value)
        gaddr = base + start_of(box, view)
        if is_packed(view, box):
            bmk1880_gdma_load(self.ctx, tensor, gaddr, flag)
        else:
            bmk1880_gdma_load_stride(self.ctx, tensor, gaddr, strides_of(view, box), flag)

    def store_box(self, value: Value, view: Dims, box: tuple[tuple[int, int], ...], address: int) -> None:
        """The way back of `load_box`."""
        tensor = aligned(address, extents(box), FORMATS[value.dtype])
        gaddr = self.neuron(value) + start_of(box, view)
        if is_packed(view, box):
            bmk1880_gdma_store(self.ctx, tensor, gaddr, CTRL_NEURON)
        else:
            bmk1880_gdma_store_stride(self.ctx, tensor, gaddr, strides_of(view, box), CTRL_NEURON)

    def load_matrix(self, gaddr: int, extent: tuple[int, int], row_stride: int, address: int, flag: int) -> None:
        """Load an `extent` (rows, cols) of a matrix whose rows lie `row_stride` bytes apart; `flag` is the base."""
        rows, cols = extent
        tensor = matrix(address, rows, cols)
        if row_stride == cols:
            bmk1880_gdma_load(self.ctx, tensor, gaddr, flag)
        else:
            bmk1880_gdma_load_stride(self.ctx, tensor, gaddr, stride_t2(row_stride, 1), flag)

    def store_matrix(self, gaddr: int, extent: tuple[int, int], row_stride: int, address: int) -> None:
        """The way back of `load_matrix`, to neuron memory."""
        rows, cols = extent
        tensor = matrix(address, rows, cols)
        if row_stride == cols:
            bmk1880_gdma_store(self.ctx, tensor, gaddr, CTRL_NEURON)
        else:
            bmk1880_gdma_store_stride(self.ctx, tensor, gaddr, stride_t2(row_stride, 1), CTRL_NEURON)

    # -- weights -------------------------------------------------------------------------------------------------------
    def load_weight(
        self, offset: int, dims: Dims, address: int, *, align: bool, strides: stride_t | None = None
    ) -> None:
        """Load packed (or, with `strides`, strided) coefficient bytes as a local tensor of shape `dims`."""
        tensor = tensor_lmem(address, shape_t4(*dims), FMT_I8, align)
        if strides is None:
            bmk1880_gdma_load(self.ctx, tensor, offset, CTRL_WEIGHT)
        else:
            bmk1880_gdma_load_stride(self.ctx, tensor, offset, strides, CTRL_WEIGHT)

    # -- global memory -------------------------------------------------------------------------------------------------
    def copy_global(self, dst: int, src: int, shape: Dims, dst_strides: stride_t, src_strides: stride_t) -> None:
        """Strided copy of bytes from activation to activation memory."""
        extent = shape_t4(*shape)
        bmk1880_gdma_copy_gmem(
            self.ctx, tensor_gmem(dst, extent, dst_strides), tensor_gmem(src, extent, src_strides), CTRL_NEURON
        )


def aligned(address: int, dims: Dims, fmt: int = FMT_I8) -> tensor_lmem:
    """Descriptor of an aligned local tensor."""
    return tensor_lmem(address, shape_t4(*dims), fmt, True)


def matrix(address: int, rows: int, cols: int, fmt: int = FMT_I8) -> tensor_lmem:
    """Descriptor of an aligned local matrix."""
    return tensor_lmem(address, shape_t2(rows, cols), fmt, True)


aligned_lane_bytes = CHIP.lane_bytes
"""Bytes per lane of an aligned tensor (bm1880.md 2.2)."""


def matrix_lane_bytes(rows: int, cols: int) -> int:
    """Bytes per lane of an aligned matrix (bm1880.md 2.3)."""
    width = 16 if cols <= 32 else 32
    chunks = -(-cols // width)
    return rows * -(-chunks // CHIP.lanes) * align_up(width, CHIP.alignment)


def strides_of(view: Dims, box: tuple[tuple[int, int], ...]) -> stride_t:
    """Global strides of a box; an axis of one element needs none (long rows would not fit the 16-bit field)."""
    n_str, c_str, h_str, w_str = dense_strides(view)
    return stride_t4(n_str, c_str, h_str if box[2][1] - box[2][0] > 1 else 0, w_str)


def is_packed(view: Dims, box: tuple[tuple[int, int], ...]) -> bool:
    """True when the box is one run of bytes."""
    dims = extents(box)
    inner = 1
    for size, full in zip(reversed(dims), reversed(view)):
        if size != full:
            return all(d == 1 for d in dims[: 4 - inner])
        inner += 1
    return True


__all__ = ["Build", "Dims", "extents", "shape_t", "stride_t4"]
