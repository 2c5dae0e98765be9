"""Device memory where the host sees it, as on a chip that shares its memory with the host: BMLib's mappings."""

from __future__ import annotations

from bmcompiler.runtime.bmlib.device import CardHandle
from bmcompiler.runtime.bmlib.types import BMLIB, bm_device_mem_t, served

_served = served(BMLIB)


@_served
def bm_mem_mmap_device_mem(handle: CardHandle, dmem: bm_device_mem_t) -> int:
    """(code, where the program sees the memory), until it is unmapped, also if it is freed meanwhile."""
    return handle.card.show(dmem)


@_served
def bm_mem_mmap_device_mem_no_cache(handle: CardHandle, dmem: bm_device_mem_t) -> int:
    """(code, where the program sees the memory), until it is unmapped, also if it is freed meanwhile."""
    return handle.card.show(dmem)


@_served
def bm_mem_unmap_device_mem(handle: CardHandle, vmem: int, size: int) -> None:
    """End the mapping of `size` bytes at this address of the program."""
    handle.card.hide(vmem, size)


@_served
def bm_mem_vir_to_phy(handle: CardHandle, vmem: int) -> int:
    """(code, the device address of a byte that is mapped to this address of the program)."""
    return handle.card.device_address(vmem)


@_served
def bm_mem_invalidate_device_mem(handle: CardHandle, dmem: bm_device_mem_t) -> None:
    """Results are in the program's view when a call returns."""
    handle.card.bytes(dmem)


@_served
def bm_mem_invalidate_partial_device_mem(handle: CardHandle, dmem: bm_device_mem_t, offset: int, len: int) -> None:
    """Results are in the program's view when a call returns."""
    handle.card.bytes(dmem, offset, len)


@_served
def bm_mem_flush_device_mem(handle: CardHandle, dmem: bm_device_mem_t) -> None:
    """The device sees at once what the program writes."""
    handle.card.bytes(dmem)


@_served
def bm_mem_flush_partial_device_mem(handle: CardHandle, dmem: bm_device_mem_t, offset: int, len: int) -> None:
    """The device sees at once what the program writes."""
    handle.card.bytes(dmem, offset, len)
