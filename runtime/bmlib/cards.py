"""What BMLib says of a card: heaps, times, what kind it is."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.errors import RuntimeUseError
from bmcompiler.runtime.bmlib.device import CHIP_ID, HEAPS, CardHandle
from bmcompiler.runtime.bmlib.types import BMLIB, bm_device_mem_t, served

_served = served(BMLIB)
_SOC = 1
"""Memory can be mapped, as on a chip that is host and device."""
_CHIP_BIT = 1 << 2


@BMLIB.struct
@dataclass(frozen=True)
class bm_profile_t:  # noqa: N801
    """Microseconds of the host, and calls, since the process has used the card: copies to it and from it, programs."""

    cdma_in_time: int
    cdma_in_counter: int
    cdma_out_time: int
    cdma_out_counter: int
    tpu_process_time: int
    sent_api_counter: int
    completed_api_counter: int


@BMLIB.struct
@dataclass(frozen=True)
class bm_heap_stat_byte_t:  # noqa: N801
    """A heap: bytes in all, free and used, and where it begins."""

    heap_id: int
    mem_total: int
    mem_avail: int
    mem_used: int
    mem_start_addr: int


@BMLIB.struct
@dataclass(frozen=True)
class bm_misc_info:  # noqa: N801
    """What a card is. Sizes are those of the memory that the simulator has; what it has not is 0."""

    ddr0a_size: int
    pcie_soc_mode: int = _SOC
    ddr_ecc_enable: int = 0
    ddr0b_size: int = 0
    ddr1_size: int = 0
    ddr2_size: int = 0
    chipid: int = CHIP_ID
    chipid_bit_mask: int = _CHIP_BIT
    driver_version: int = 0
    domain_bdf: int = 0
    board_version: int = 0
    a53_enable: int = 0
    dyn_enable: int = 0


@_served
def bm_get_profile(handle: CardHandle) -> bm_profile_t:
    """(code, how long copies and programs have taken: on the host, not what a chip would need)."""
    into, out, runs = (handle.card.spent[one] for one in ("in", "out", "run"))
    times = [one.nanoseconds // 1000 for one in (into, out, runs)]
    return bm_profile_t(times[0], into.count, times[1], out.count, times[2], runs.count, runs.count)


@_served
def bm_get_last_api_process_time_us(handle: CardHandle) -> int:
    """(code, 0): the vendor gave this function up. See bm_get_profile."""
    return 0


@_served
def bm_get_misc_info(handle: CardHandle) -> bm_misc_info:
    """(code, what the card is): a BM1684X whose memory can be mapped."""
    return bm_misc_info(handle.card.room()[0])


@_served
def bm_get_gmem_total_heap_num(handle: CardHandle) -> int:
    """(code, number of heaps), which are one memory."""
    return HEAPS


@_served
def bm_get_gmem_heap_stat_byte_by_id(handle: CardHandle, heap_id: int) -> bm_heap_stat_byte_t:
    """(code, how much of a heap is used); the heaps are one memory."""
    if heap_id >= HEAPS:
        raise RuntimeUseError(f"heap_id: there is no heap {heap_id}, only 0 to {HEAPS - 1}")
    total, used, first = handle.card.room()
    return bm_heap_stat_byte_t(heap_id, total, total - used, used, first)


@_served
def bm_get_gmem_heap_id(handle: CardHandle, pmem: bm_device_mem_t) -> int:
    """(code, 0), for memory that is allocated."""
    handle.card.bytes(pmem)
    return 0


@_served
def bm_flush(handle: CardHandle) -> None:
    """Everything is done when a call returns."""


@_served
def bm_set_sync_timeout(handle: CardHandle, timeout: int) -> None:
    """Milliseconds that a program may take; a simulated one ends by itself."""
    if timeout < 1:
        raise RuntimeUseError(f"timeout: {timeout} ms are no time")
