"""Devices, device memory and copies of BMLib."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from bmcompiler.capi.kinds import shown
from bmcompiler.errors import RuntimeUseError
from bmcompiler.numeric.arrays import Bytes
from bmcompiler.runtime.bmlib.device import CHIP_ID, HEAPS, CardHandle
from bmcompiler.runtime.bmlib.types import BM_MEM_ADDR_NULL, BMLIB, BmMemType, bm_device_mem_t, served
from bmcompiler.runtime.devices import MAX_DEVICES

_served = served(BMLIB)


@_served
def bm_dev_getcount() -> int:
    """(code, number of devices)."""
    return MAX_DEVICES


@_served
def bm_dev_query(devid: int) -> None:
    """The code says whether there is such a device."""
    CardHandle(devid)


@_served
def bm_dev_request(devid: int) -> CardHandle:
    """(code, a handle of device `devid`)."""
    return CardHandle(devid)


@_served
def bm_dev_free(handle: CardHandle) -> None:
    """End a handle; its memory is given back."""
    handle.end()


@_served
def bm_get_devid(handle: CardHandle) -> int:
    """The number of its device."""
    return handle.index


@_served
def bm_get_chipid(handle: CardHandle) -> int:
    """(code, 0x1686)."""
    return CHIP_ID


@_served
def bm_thread_sync(handle: CardHandle) -> None:
    """Everything is done when a call returns."""


@_served
def bm_handle_sync(handle: CardHandle) -> None:
    """Everything is done when a call returns."""


@_served
def bm_device_sync(handle: CardHandle) -> None:
    """Everything is done when a call returns."""


@_served
def bm_malloc_device_byte(handle: CardHandle, size: int) -> bm_device_mem_t:
    """(code, `size` bytes of zeroed memory)."""
    return handle.allocate(size)


@_served
def bm_malloc_device_byte_heap(handle: CardHandle, heap_id: int, size: int) -> bm_device_mem_t:
    """(code, memory); the heaps 0 to 2 are one."""
    if not 0 <= heap_id < HEAPS:
        raise RuntimeUseError(f"there is no heap {heap_id}, only 0 to {HEAPS - 1}")
    return handle.allocate(size)


@_served
def bm_malloc_device_byte_heap_mask(handle: CardHandle, heap_id_mask: int, size: int) -> bm_device_mem_t:
    """(code, memory of one of the heaps whose bits are set; the heaps 0 to 2 are one)."""
    if not 0 < heap_id_mask < 1 << HEAPS:
        raise RuntimeUseError(f"heap_id_mask: {heap_id_mask} names no heap of 0 to {HEAPS - 1}")
    return handle.allocate(size)


@_served
def bm_malloc_device_mem(handle: CardHandle, heap_id: int, size: int) -> int:
    """(code, the address of `size` bytes of zeroed memory); the heaps 0 to 2 are one."""
    if not 0 <= heap_id < HEAPS:
        raise RuntimeUseError(f"heap_id: there is no heap {heap_id}, only 0 to {HEAPS - 1}")
    return handle.allocate(size).device_addr


@_served
def bm_malloc_device_mem_mask(handle: CardHandle, heap_id_mask: int, size: int) -> int:
    """(code, the address of `size` bytes of zeroed memory); the heaps 0 to 2, one bit each, are one."""
    if not 0 < heap_id_mask < 1 << HEAPS:
        raise RuntimeUseError(f"heap_id_mask: {heap_id_mask} names no heap of 0 to {HEAPS - 1}")
    return handle.allocate(size).device_addr


@_served
def bm_free_device_mem(handle: CardHandle, paddr: int) -> None:
    """Give memory back that begins at an address."""
    handle.release(bm_device_mem_t(paddr, 0))


@_served
def bm_malloc_device_dword(handle: CardHandle, count: int) -> bm_device_mem_t:
    """(code, memory of `count` words of 4 bytes)."""
    return handle.allocate(4 * count)


@_served
def bm_malloc_neuron_device(handle: CardHandle, n: int, c: int, h: int, w: int) -> bm_device_mem_t:
    """(code, memory for n x c x h x w words of 4 bytes)."""
    if min(n, c, h, w) < 1:
        raise RuntimeUseError(f"{n} x {c} x {h} x {w} is no shape")
    return handle.allocate(4 * prod((n, c, h, w)))


@_served
def bm_free_device(handle: CardHandle, mem: bm_device_mem_t) -> None:
    """Give memory back."""
    handle.release(mem)


@_served
def bm_mem_null() -> bm_device_mem_t:
    """Memory that is none."""
    return bm_device_mem_t(BM_MEM_ADDR_NULL, 0)


@_served
def bm_mem_from_device(device_addr: int, len: int) -> bm_device_mem_t:
    """A description of memory, allocated or not."""
    return bm_device_mem_t(device_addr, len)


@_served
def bm_mem_get_device_addr(mem: bm_device_mem_t) -> int:
    """The address of a device memory, in bytes."""
    return mem.device_addr


@_served
def bm_mem_get_device_size(mem: bm_device_mem_t) -> int:
    """The size of a device memory, in bytes."""
    return mem.size


@_served
def bm_mem_set_device_addr(pmem: bm_device_mem_t, addr: int) -> None:
    """Describe memory elsewhere."""
    pmem.device_addr = addr


@_served
def bm_mem_set_device_size(pmem: bm_device_mem_t, size: int) -> None:
    """Describe more or less memory."""
    pmem.size = size


@_served
def bm_set_device_mem(pmem: bm_device_mem_t, size: int, addr: int) -> None:
    """Describe other memory."""
    pmem.size, pmem.device_addr = size, addr


@_served
def bm_mem_get_type(mem: bm_device_mem_t) -> int:
    """Whether a description is of device or of system memory."""
    return mem.rawflags & 7


@_served
def bm_mem_from_system(system_addr: int) -> bm_device_mem_t:
    """A description of memory of the host, which device functions refuse."""
    return bm_device_mem_t(system_addr, 0, rawflags=BmMemType.SYSTEM)


@_served
def bm_mem_get_system_addr(mem: bm_device_mem_t) -> int:
    """The address that a description has, of whichever memory."""
    return mem.device_addr


@_served
def bm_mem_set_system_addr(pmem: bm_device_mem_t, addr: int) -> None:
    """Another address; which kind of memory it is stays, as in the vendor's library."""
    pmem.device_addr = addr


@_served
def bm_memcpy_s2d(handle: CardHandle, dst: bm_device_mem_t, src: Any) -> None:
    """Fill all of `dst`."""
    _to_device(handle, dst, src, dst.size, 0)


@_served
def bm_memcpy_s2d_partial(handle: CardHandle, dst: bm_device_mem_t, src: Any, size: int) -> None:
    """Fill the first `size` bytes of `dst`."""
    _to_device(handle, dst, src, size, 0)


@_served
def bm_memcpy_s2d_partial_offset(handle: CardHandle, dst: bm_device_mem_t, src: Any, size: int, offset: int) -> None:
    """Fill `size` bytes of `dst` from `offset` on."""
    _to_device(handle, dst, src, size, offset)


@_served
def bm_memcpy_d2s(handle: CardHandle, dst: Any, src: bm_device_mem_t) -> None:
    """Read all of `src`."""
    _to_host(handle, dst, src, src.size, 0)


@_served
def bm_memcpy_d2s_partial(handle: CardHandle, dst: Any, src: bm_device_mem_t, size: int) -> None:
    """Read the first `size` bytes of `src`."""
    _to_host(handle, dst, src, size, 0)


@_served
def bm_memcpy_d2s_partial_offset(handle: CardHandle, dst: Any, src: bm_device_mem_t, size: int, offset: int) -> None:
    """Read `size` bytes of `src` from `offset` on."""
    _to_host(handle, dst, src, size, offset)


@_served
def bm_memcpy_d2d_byte(
    handle: CardHandle, dst: bm_device_mem_t, dst_offset: int, src: bm_device_mem_t, src_offset: int, size: int
) -> None:
    """Copy on the device; both sides may overlap."""
    _copy(handle, dst, dst_offset, src, src_offset, size)


@_served
def bm_memcpy_d2d(
    handle: CardHandle, dst: bm_device_mem_t, dst_offset: int, src: bm_device_mem_t, src_offset: int, len: int
) -> None:
    """Copy `len` words of 4 bytes on the device, from and to offsets in bytes; both sides may overlap."""
    _copy(handle, dst, dst_offset, src, src_offset, 4 * len)


@_served
def bm_memcpy_d2d_stride(
    handle: CardHandle,
    dst: bm_device_mem_t,
    dst_stride: int,
    src: bm_device_mem_t,
    src_stride: int,
    count: int,
    format_size: int,
) -> None:
    """Copy `count` elements of `format_size` bytes, 1, 2 or 4; strides are in elements.

    dst_stride is 1, or 4 with src_stride 1 and format_size 1.
    """
    if format_size not in (1, 2, 4) or count < 1 or src_stride < 1:
        raise RuntimeUseError(f"{count} elements of {format_size} bytes, {src_stride} apart, are no copy")
    if dst_stride != 1 and (dst_stride, src_stride, format_size) != (4, 1, 1):
        raise RuntimeUseError(f"dst_stride is {dst_stride}: must be 1, or 4 for bytes whose src_stride is 1")
    sizes = [((count - 1) * stride + 1) * format_size for stride in (src_stride, dst_stride)]
    kind = np.dtype(f"<u{format_size}")
    data = handle.card.bytes(src, 0, sizes[0]).copy().view(kind)[::src_stride]
    for index in range(format_size):  # bytes: memory need not begin at a multiple of the element
        place = handle.card.bytes(dst, 0, sizes[1])[index :: dst_stride * format_size]
        place[...] = np.ascontiguousarray(data).view(np.uint8)[index::format_size]


@_served
def bm_memset_device(handle: CardHandle, value: int, mem: bm_device_mem_t) -> None:
    """Fill memory with a word of 4 bytes; its size is a multiple of 4."""
    _fill(handle, mem, np.frombuffer(value.to_bytes(4, "little", signed=True), np.uint8))


@_served
def bm_memset_device_ext(handle: CardHandle, value: Any, mode: int, mem: bm_device_mem_t) -> None:
    """Fill memory with the first `mode` bytes of `value`, 1 to 4; its size is a multiple of `mode`."""
    if not 1 <= mode <= 4:
        raise RuntimeUseError(f"mode is {mode}, must be 1..4 bytes")
    _fill(handle, mem, host_bytes(value, mode))


def _copy(
    handle: CardHandle, dst: bm_device_mem_t, dst_offset: int, src: bm_device_mem_t, src_offset: int, size: int
) -> None:
    data = handle.card.bytes(src, src_offset, size).copy()
    handle.card.bytes(dst, dst_offset, size)[...] = data


def _fill(handle: CardHandle, memory: bm_device_mem_t, word: Bytes) -> None:
    if memory.size % word.size:
        raise RuntimeUseError(f"a memory of {memory.size} bytes does not consist of words of {word.size} bytes")
    handle.card.bytes(memory).reshape(-1, word.size)[...] = word


def host_bytes(buffer: Any, size: int, *, written: bool = False) -> Bytes:
    """The first bytes of a buffer, in its own memory. Raises RuntimeUseError for a small, read-only or sparse one."""
    try:
        view = memoryview(buffer)
    except TypeError:
        raise RuntimeUseError("a buffer is NULL" if buffer is None else f"{shown(buffer)} is no buffer") from None
    if not view.c_contiguous or (written and view.readonly):
        raise RuntimeUseError("the buffer has gaps, or is read-only")
    data = np.frombuffer(view.cast("B"), np.uint8)
    if data.size < size:
        raise RuntimeUseError(f"the buffer has {data.size} bytes, {size} are needed")
    return data[:size]


def _to_device(handle: CardHandle, memory: bm_device_mem_t, buffer: Any, size: int, offset: int) -> None:
    with handle.card.timed("in"):
        handle.card.bytes(memory, offset, size)[...] = host_bytes(buffer, size)


def _to_host(handle: CardHandle, buffer: Any, memory: bm_device_mem_t, size: int, offset: int) -> None:
    with handle.card.timed("out"):
        data = handle.card.bytes(memory, offset, size)
        host_bytes(buffer, size, written=True)[...] = data
