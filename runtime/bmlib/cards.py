"""What BMLib says of a card: heaps, times, what kind it is."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass

from bmcompiler.errors import RuntimeUseError
from bmcompiler.runtime.bmlib.device import CHIP_ID, HEAPS, CardHandle
from bmcompiler.runtime.bmlib.types import BMLIB, bm_device_mem_t, served
from bmcompiler.runtime.devices import MAX_DEVICES

_served = served(BMLIB)
_SOC = 1
"""Memory can be mapped, as on a chip that is host and device."""
_CHIP_BIT = 1 << 2
_MIB = 1 << 20
_HEAP_STATS = 4
"""A stat has room for so many heaps."""
_words = logging.getLogger("bmlib")
"""What programs write with `bmlib_log`; its level is 60 less the vendor's, whose lower numbers are the graver ones."""
_USUAL_LEVEL = 32


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


@BMLIB.struct
@dataclass(frozen=True)
class bm_heap_stat:  # noqa: N801
    """A heap: MiB in all, free and used."""

    mem_total: int = 0
    mem_avail: int = 0
    mem_used: int = 0


@dataclass(frozen=True)
class bm_dev_stat_t:  # noqa: N801
    """A card's memory in MiB; `tpu_util` is 0, as nothing runs while somebody asks."""

    mem_total: int
    mem_used: int
    heap_num: int
    heap_stat: tuple[bm_heap_stat, ...]
    tpu_util: int = 0


@BMLIB.struct
@dataclass(frozen=True)
class bm_perf_monitor_t:  # noqa: N801
    """Where a performance monitor would write to; there is none."""

    buffer_start_addr: int
    buffer_size: int
    monitor_id: int


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
def bm_get_stat(handle: CardHandle) -> bm_dev_stat_t:
    """(code, how much memory is used, in MiB); the heaps are one memory, which each of them shows."""
    total, used, _ = handle.card.room()
    in_use = -(-used // _MIB)
    heap = bm_heap_stat(total // _MIB, total // _MIB - in_use, in_use)
    heaps = [heap] * HEAPS + [bm_heap_stat()] * (_HEAP_STATS - HEAPS)
    return bm_dev_stat_t(heap.mem_total, in_use, HEAPS, tuple(heaps))


@_served
def bm_get_status(handle: CardHandle) -> int:
    """(code, 0): bits for a chip that hangs, a broken link and heat, of which a simulated card has none."""
    return 0


@_served
def bm_get_driver_version(handle: CardHandle) -> int:
    """(code, 0): no driver is in between."""
    return 0


@_served
def bm_get_board_name(handle: CardHandle) -> str:
    """(code, the name of the card: in C 9 bytes with the zero behind it)."""
    return "SIM1684X"


@_served
def bm_get_card_id(handle: CardHandle) -> int:
    """(code, the number of its card): each device is a card of one chip."""
    return handle.index


@_served
def bm_get_card_num() -> int:
    """(code, number of cards): each device is a card of one chip."""
    return MAX_DEVICES


@_served
def bm_get_chip_num_from_card(card_id: int) -> tuple[int, int]:
    """(code, number of chips on a card, the first one's device number)."""
    CardHandle(card_id)
    return 1, card_id


@_served
def bm_get_tpu_scalar_num(handle: CardHandle) -> int:
    """(code, number of cores)."""
    return 1


@_served
def bmlib_log(tag: str, level: int, fmt: str) -> None:
    """Write a program's words to stderr, if their level is not above the one that is set; ERROR is 16, INFO 32."""
    if level <= _level():
        sys.stderr.write(f"[{tag}] {fmt.rstrip()}\n")


@_served
def bmlib_log_get_level() -> int:
    """Up to which level words are written."""
    return _level()


@_served
def bmlib_log_set_level(level: int) -> None:
    """Write words up to this level, from -8 (nothing) to 56 (everything)."""
    if not -8 <= level <= 56:
        raise RuntimeUseError(f"level is {level}, must be -8..56")
    _words.setLevel(60 - level)


def _level() -> int:
    return 60 - _words.level if _words.level else _USUAL_LEVEL


@_served
def bm_flush(handle: CardHandle) -> None:
    """Everything is done when a call returns."""


@_served
def bm_set_sync_timeout(handle: CardHandle, timeout: int) -> None:
    """Milliseconds that a program may take; a simulated one ends by itself."""
    if timeout < 1:
        raise RuntimeUseError(f"timeout: {timeout} ms are no time")
