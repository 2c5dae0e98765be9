"""Device memory (dmp_dv.h, "Memory management"; dv.md 6).

The simulated device and the CPU see the same bytes; synchronisation calls check their arguments and state only.
"""

from __future__ import annotations

import errno

import numpy as np

from bmcompiler.backends.dv.formats.packing_sizes import round_up
from bmcompiler.numeric.arrays import Bytes
from bmcompiler.runtime.dmp_dv.context import DvContext
from bmcompiler.runtime.dmp_dv.handles import LOCK, Handle, release, retain
from bmcompiler.runtime.dmp_dv.messages import refuse, report
from bmcompiler.runtime.dmp_dv.prototypes import DRIVER

PAGE = 4096
_LIMIT = 1 << 32  # device addresses have 32 bits

MEM_CPU_WONT_READ, MEM_AS_DEV_OUTPUT, MEM_CPU_HADNT_READ = 1, 2, 4
"""Flags of `dmp_dv_mem_to_device` and `dmp_dv_mem_to_cpu`."""

_live: dict[int, DvMem] = {}


@DRIVER.handle("dmp_dv_mem")
class DvMem(Handle):
    """Contiguous device memory. `value` goes to the `mem` field of buffers in commands."""

    kind = "memory"

    def __init__(self, ctx: DvContext, size: int) -> None:
        super().__init__()
        self.ctx, self.size = ctx, round_up(size, PAGE)
        raw = np.zeros(self.size + PAGE, np.uint8)
        start = -raw.ctypes.data % PAGE
        self.bytes: Bytes = raw[start : start + self.size]
        self.mapped = False
        self.syncing: set[str] = set()
        with LOCK:
            _live[self.value] = self
            ctx.adopt(self)

    def describe(self) -> str:
        return f"{super().describe()}, {self.size} bytes"

    def free(self) -> None:
        self.mapped = False
        self.syncing.clear()
        _live.pop(self.value, None)
        self.bytes = np.empty(0, np.uint8)
        self.ctx.forget(self)


def memory_of(value: int) -> DvMem | None:
    """The memory that a number in a command stands for."""
    with LOCK:
        return _live.get(value)


@DRIVER.checked
def dmp_dv_mem_alloc(ctx: DvContext, size: int) -> DvMem | None:
    """Memory of at least `size` bytes, rounded up to pages; None on error. Not yet mapped. Thread-safe."""
    if not 0 < size < _LIMIT:
        report(f"{size} bytes cannot be allocated: 1 to 2^32 - 1 can")
        return None
    try:
        return DvMem(ctx, size)
    except MemoryError:
        report(f"no memory for {size} bytes")
        return None


@DRIVER.checked
def dmp_dv_mem_release(mem: DvMem | None) -> int:
    """Give back a reference; the counter after the call, 0 for NULL. At 0 the memory is unmapped and freed."""
    return release(mem, DvMem, "mem")


@DRIVER.checked
def dmp_dv_mem_retain(mem: DvMem | None) -> int:
    """Take a reference; the counter after the call, 0 for NULL."""
    return retain(mem, DvMem, "mem")


@DRIVER.checked
def dmp_dv_mem_map(mem: DvMem) -> Bytes | None:
    """The memory as a uint8 array, the same one in every call; None on error."""
    mem.mapped = True
    return mem.bytes


@DRIVER.checked
def dmp_dv_mem_unmap(mem: DvMem) -> None:
    """End synchronisation and mapping; may be called repeatedly."""
    dmp_dv_mem_sync_end(mem)
    mem.mapped = False


@DRIVER.checked
def dmp_dv_mem_sync_start(mem: DvMem, rd: int, wr: int) -> int:
    """Begin CPU access: `rd` = what the device wrote is wanted, `wr` = the CPU will write.

    Nothing happens when the wanted directions are active already; otherwise a running synchronisation is ended first.
    Returns 0; EINVAL for NULL, memory that is not mapped, or neither direction.
    """
    wanted = {name for name, used in (("rd", rd), ("wr", wr)) if used}
    if not mem.mapped:
        return refuse(errno.EINVAL, "mem is not mapped")
    if not wanted:
        return refuse(errno.EINVAL, "neither rd nor wr is set")
    if not wanted <= mem.syncing:
        mem.syncing = wanted
    return 0


@DRIVER.checked
def dmp_dv_mem_sync_end(mem: DvMem) -> int:
    """End CPU access; does nothing when none was started. Returns 0; EINVAL for NULL."""
    mem.syncing.clear()
    return 0


@DRIVER.checked
def dmp_dv_mem_to_device(mem: DvMem, offs: int, size: int, flags: int = 0) -> int:
    """Hand a range from the CPU to the device. Returns 0; EINVAL for NULL, a range outside, or unmapped memory."""
    return _transfer(mem, offs, size)


@DRIVER.checked
def dmp_dv_mem_to_cpu(mem: DvMem, offs: int, size: int, flags: int = 0) -> int:
    """Hand a range from the device to the CPU. Returns 0; EINVAL for NULL, a range outside, or unmapped memory.

    With the flag MEM_CPU_HADNT_READ nothing is done and 0 returned.
    """
    if flags & MEM_CPU_HADNT_READ:
        return 0
    return _transfer(mem, offs, size)


def _transfer(mem: DvMem, offs: int, size: int) -> int:
    """NULL is an error here; the vendor's library returns 0 for it (dv.md 1.8)."""
    if offs < 0 or size < 0 or offs + size > mem.size:
        return refuse(errno.EINVAL, f"bytes {offs} to {offs + size} are outside the {mem.size} bytes of mem")
    if not mem.mapped:
        return refuse(errno.EINVAL, "mem is not mapped")
    return 0


@DRIVER.checked
def dmp_dv_mem_get_size(mem: DvMem) -> int:
    """Real size in bytes, at least what was asked for; 0 for NULL."""
    return mem.size


@DRIVER.checked
def dmp_dv_mem_get_total_size() -> int:
    """Bytes of all device memory of the process."""
    with LOCK:
        return sum(mem.size for mem in _live.values())
