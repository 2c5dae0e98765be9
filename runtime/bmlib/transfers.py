"""Copies of BMLib between device memory and several buffers, between cards, and out of system memory."""

from __future__ import annotations

from math import prod
from typing import Any

from bmcompiler.capi.buffers import caller_memory
from bmcompiler.errors import RuntimeUseError
from bmcompiler.runtime.bmlib.device import CardHandle
from bmcompiler.runtime.bmlib.functions import host_bytes
from bmcompiler.runtime.bmlib.types import BMLIB, BmMemType, bm_device_mem_t, served

_served = served(BMLIB)


@_served
def bm_memcpy_s2d_gather(handle: CardHandle, dst: bm_device_mem_t, argc: int, parts: list[Any]) -> None:
    """Fill `dst` from its begin with buffers, one behind the other; in C `argc` values: pointers and 64-bit sizes."""
    with handle.card.timed("in"):
        for memory, data in _pieces(handle, dst, argc, parts, written=False):
            memory[...] = data


@_served
def bm_memcpy_d2s_scatter(handle: CardHandle, src: bm_device_mem_t, argc: int, parts: list[Any]) -> None:
    """Read `src` from its begin into buffers; in C `argc` values: pointers and 64-bit sizes."""
    with handle.card.timed("out"):
        for memory, data in _pieces(handle, src, argc, parts, written=True):
            data[...] = memory


def _pieces(handle: CardHandle, memory: bm_device_mem_t, argc: int, parts: list[Any], *, written: bool) -> list[Any]:
    """Pairs of device bytes and host bytes; each buffer counts twice, as in C (the vendor's library reads so many)."""
    if argc != 2 * len(parts) or argc < 2:
        raise RuntimeUseError(f"argc is {argc}, must be twice the {len(parts)} buffers")
    buffers = [host_bytes(one, memoryview(one).nbytes if one is not None else 0, written=written) for one in parts]
    places = [sum(one.size for one in buffers[:index]) for index in range(len(buffers))]
    return [(handle.card.bytes(memory, place, one.size), one) for place, one in zip(places, buffers)]


@_served
def bm_memcpy_p2p(handle_src: CardHandle, src: bm_device_mem_t, handle_dst: CardHandle, dst: bm_device_mem_t) -> None:
    """Copy all of `src` to another card, or the same one."""
    _between(handle_src, src, handle_dst, dst)


@_served
def bm_memcpy_c2c(
    src_handle: CardHandle, dst_handle: CardHandle, src: bm_device_mem_t, dst: bm_device_mem_t, force_dst_cdma: bool
) -> None:
    """Copy all of `src` to another card, or the same one; which side moves the bytes makes no difference here."""
    _between(src_handle, src, dst_handle, dst)


def _between(source: CardHandle, src: bm_device_mem_t, target: CardHandle, dst: bm_device_mem_t) -> None:
    data = source.card.bytes(src).copy()
    target.card.bytes(dst, 0, src.size)[...] = data


@_served
def bm_mem_convert_system_to_device_neuron(
    handle: CardHandle, sys_mem: bm_device_mem_t, need_copy: bool, n: int, c: int, h: int, w: int
) -> bm_device_mem_t:
    """(code, new memory for n x c x h x w words of 4 bytes), with `need_copy` filled from system memory."""
    return _converted(handle, sys_mem, need_copy, 4, n, c, h, w)


@_served
def bm_mem_convert_system_to_device_neuron_byte(
    handle: CardHandle, sys_mem: bm_device_mem_t, need_copy: bool, n: int, c: int, h: int, w: int
) -> bm_device_mem_t:
    """(code, new memory for n x c x h x w bytes), with `need_copy` filled from system memory."""
    return _converted(handle, sys_mem, need_copy, 1, n, c, h, w)


@_served
def bm_mem_convert_system_to_device_coeff(
    handle: CardHandle, sys_mem: bm_device_mem_t, need_copy: bool, coeff_count: int
) -> bm_device_mem_t:
    """(code, new memory for words of 4 bytes), with `need_copy` filled from system memory."""
    return _converted(handle, sys_mem, need_copy, 4, coeff_count)


@_served
def bm_mem_convert_system_to_device_coeff_byte(
    handle: CardHandle, sys_mem: bm_device_mem_t, need_copy: bool, coeff_count: int
) -> bm_device_mem_t:
    """(code, new memory for bytes), with `need_copy` filled from system memory."""
    return _converted(handle, sys_mem, need_copy, 1, coeff_count)


def _converted(handle: CardHandle, memory: bm_device_mem_t, copy: bool, item: int, *sizes: int) -> bm_device_mem_t:
    if memory.rawflags & 7 != BmMemType.SYSTEM:
        raise RuntimeUseError("sys_mem is no system memory: see bm_mem_from_system")
    if min(sizes) < 1:
        raise RuntimeUseError(f"{' x '.join(map(str, sizes))} is no shape")
    size = item * prod(sizes)
    data = caller_memory(memory.device_addr, size, "sys_mem") if copy else None
    if copy and data is None:
        raise RuntimeUseError("sys_mem is NULL")
    made = handle.allocate(size)
    if data is not None:
        with handle.card.timed("in"):
            handle.card.bytes(made)[...] = host_bytes(data, size)
    return made
