"""Calls of the BM runtime on device memory."""

from __future__ import annotations

from bmcompiler.numeric.arrays import Bytes
from bmcompiler.runtime.bmdevice import (
    RUNTIME,
    BmContext,
    BmErr,
    BmMem,
    BmRuntimeError,
    BmShape,
    coded,
    guarded,
    or_none,
)
from bmcompiler.runtime.bmnet import ReadBuffer, WriteBuffer, readable, writable

__all__ = [
    "bm_memcpy_d2h", "bm_memcpy_d2s", "bm_memcpy_h2d", "bm_memcpy_s2d", "bmmem_device_addr", "bmmem_device_alloc",
    "bmmem_device_alloc_raw", "bmmem_device_free", "bmmem_device_prealloc", "bmmem_device_prealloc_raw",
    "bmmem_device_size", "bmmem_device_v_addr", "bmmem_host_alloc", "bmmem_host_free", "bmmem_host_p_addr",
    "bmmem_host_v_addr",
]  # fmt: skip


@or_none
def bmmem_device_alloc_raw(ctx: BmContext, size: int) -> BmMem:
    """Zeroed device memory of `size` bytes."""
    return ctx.allocate(size)


@or_none
def bmmem_device_prealloc_raw(ctx: BmContext, mem: BmMem, offset: int, size: int) -> BmMem:
    """A window of `size` bytes on allocated memory."""
    return _usable(ctx, mem).cut(offset, size)


@or_none
def bmmem_device_alloc(ctx: BmContext, shape: BmShape) -> BmMem:
    """Zeroed device memory for a tensor or matrix."""
    return ctx.allocate(shape.size, shape)


@or_none
def bmmem_device_prealloc(ctx: BmContext, mem: BmMem, offset: int, shape: BmShape) -> BmMem:
    """A window for a tensor or matrix on allocated memory."""
    return _usable(ctx, mem).cut(offset, shape.size, shape)


@or_none
def bmmem_device_free(ctx: BmContext, mem: BmMem) -> None:
    """Free device memory; of a window only the handle."""
    ctx.free(mem)


@RUNTIME.checked
def bmmem_host_alloc(ctx: BmContext, shape: BmShape) -> BmErr:
    """Always NOT_SUPPORTED, as in the vendor's library."""
    return BmErr.NOT_SUPPORTED


@RUNTIME.checked
def bmmem_host_free(ctx: BmContext, mem: object) -> BmErr:
    """Always NOT_SUPPORTED, as in the vendor's library."""
    return BmErr.NOT_SUPPORTED


@RUNTIME.checked
def bmmem_device_size(ctx: BmContext, mem: BmMem) -> int:
    """Bytes of a memory object."""
    return mem.size


@RUNTIME.checked
def bmmem_device_addr(ctx: BmContext, mem: BmMem) -> int:
    """Device address of a memory object, as kernel calls take it."""
    return mem.address


@or_none
def bmmem_device_v_addr(ctx: BmContext, mem: BmMem) -> Bytes:
    """The bytes of a memory object, to be read and written where they lie, until it is freed."""
    return _usable(ctx, mem).data


@RUNTIME.checked
def bmmem_host_v_addr(ctx: BmContext, mem: object) -> BmErr:
    """Always NOT_SUPPORTED, as in the vendor's library."""
    return BmErr.NOT_SUPPORTED


@RUNTIME.checked
def bmmem_host_p_addr(ctx: BmContext, mem: object) -> BmErr:
    """Always NOT_SUPPORTED, as in the vendor's library."""
    return BmErr.NOT_SUPPORTED


@RUNTIME.checked
def bm_memcpy_h2d(ctx: BmContext, dst: BmMem, src: object, src_host_offset: int = 0) -> BmErr:
    """Always NOT_SUPPORTED: there is no memory of the host to be had."""
    return _no_host_memory()


@RUNTIME.checked
def bm_memcpy_d2h(ctx: BmContext, dst: object, src: BmMem, dst_host_offset: int = 0) -> BmErr:
    """Always NOT_SUPPORTED: there is no memory of the host to be had."""
    return _no_host_memory()


def _no_host_memory() -> BmErr:
    def refuse() -> None:
        raise BmRuntimeError(BmErr.NOT_SUPPORTED, "memory of the host is not supported, as in the vendor's library")

    return guarded(refuse)[0]


def _usable(ctx: BmContext, mem: BmMem) -> BmMem:
    mem.need(ctx.device())
    return mem


@coded
def bm_memcpy_s2d(ctx: BmContext, dst: BmMem, src: ReadBuffer) -> None:
    """Fill a whole memory object from host memory (which may be longer)."""
    _usable(ctx, dst).data[:] = readable(src, dst.size)


@coded
def bm_memcpy_d2s(ctx: BmContext, dst: WriteBuffer, src: BmMem) -> None:
    """Copy a whole memory object to host memory (which may be longer)."""
    writable(dst, _usable(ctx, src).size)[:] = src.data
