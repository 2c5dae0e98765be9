"""A simulated card: global memory with what is allocated in it, and kernels that run on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.chip import align_up
from bmcompiler.errors import RuntimeUseError
from bmcompiler.numeric.arrays import Bytes
from bmcompiler.runtime.bmlib.types import BMLIB, BMRT, bm_device_mem_t
from bmcompiler.runtime.devices import MAX_DEVICES
from bmcompiler.runtime.simulator.memory import GlobalMemory

if TYPE_CHECKING:
    from bmcompiler.backends.bm1684.okkernel import Program as OkkernelProgram
    from bmcompiler.backends.bm1684x.tpukernel import Program
    from bmcompiler.runtime.simulator.bm1684x import Memories
    from bmcompiler.runtime.simulator.memory import LaneMemory

CHIP_ID = 0x1686  # of a BM1684X; models of the BM1684 run, too
HEAPS = 3
_STEP = 4096
_MEMORY = 1 << 32


@dataclass
class Spent:
    """Calls of a kind, and the time that they took on the host."""

    count: int = 0
    nanoseconds: int = 0


class Card:
    """One card. Each allocation is an array of its own: a command that reads or writes beside them is refused."""

    def __init__(self) -> None:
        self.lock = RLock()
        self._memory = GlobalMemory()
        self._used: dict[int, Bytes] = {}
        self._next = CHIP.global_base
        self._memories: Memories | None = None
        self._bm1684_local: LaneMemory | None = None
        self._shown: dict[int, list[tuple[int, Bytes]]] = {}
        self.spent = {kind: Spent() for kind in ("in", "out", "run")}

    def allocate(self, size: int) -> int:
        """The address of zeroed memory. Raises RuntimeUseError, MemoryError.

        Addresses go up to the end before freed ones are given out again, so that who uses freed memory is told.
        """
        if size < 1:
            raise RuntimeUseError(f"cannot allocate {size} bytes")
        with self.lock:
            address = self._room(self._next, size) or self._room(CHIP.global_base, size)
            if address is None:
                raise MemoryError(f"no {size} bytes of device memory are left in one piece")
            self._next = align_up(address + size, _STEP)
            self._used[address] = data = np.zeros(size, np.uint8)
            self._memory.map(address, data)
            return address

    def _room(self, address: int, size: int) -> int | None:
        """The first place for so many bytes from an address on."""
        for begin in sorted(self._used):
            if begin - address >= size:
                break
            address = max(address, align_up(begin + self._used[begin].size, _STEP))
        return address if address + size <= CHIP.global_base + _MEMORY else None

    def free(self, address: int) -> None:
        """Take back an allocation. Raises RuntimeUseError when none begins there."""
        with self.lock:
            if address not in self._used:
                raise RuntimeUseError(f"no allocated memory begins at 0x{address:x}")
            del self._used[address]
            self._memory.unmap(address)

    def bytes(self, memory: bm_device_mem_t, offset: int = 0, size: int | None = None) -> Bytes:
        """Bytes offset .. offset + size of a piece of allocated memory. Raises RuntimeUseError when it is none."""
        size = memory.size - offset if size is None else size
        if size < 0 or offset + size > memory.size:
            raise RuntimeUseError(f"{size} bytes at {offset} leave a memory of {memory.size} bytes")
        address = memory.device_addr + offset
        with self.lock:
            for begin, data in self._used.items():
                if begin <= memory.device_addr and address + size <= begin + data.size:
                    return data[address - begin : address - begin + size]
        raise RuntimeUseError(f"{memory.size} bytes at 0x{memory.device_addr:x} are not allocated, or were freed")

    def show(self, memory: bm_device_mem_t) -> int:
        """The address of allocated memory in this process, where it stays until `hide`."""
        data = self.bytes(memory)
        address: int = data.ctypes.data
        with self.lock:
            self._shown.setdefault(address, []).append((memory.device_addr, data))
        return address

    def hide(self, address: int, size: int) -> None:
        """End one `show`. Raises RuntimeUseError where so many bytes are not shown there."""
        with self.lock:
            shown = self._shown.get(address, [])
            found = next((one for one in shown if one[1].size == size), None)
            if found is None:
                raise RuntimeUseError(f"vmem: no mapping of {size} bytes begins at 0x{address:x}")
            shown[:] = [one for one in shown if one is not found]
            if not shown:
                del self._shown[address]

    def device_address(self, address: int) -> int:
        """The device address of a shown byte. Raises RuntimeUseError for others."""
        with self.lock:
            for begin, shown in self._shown.items():
                for device, data in shown:
                    if begin <= address < begin + data.size:
                        return device + address - begin
        raise RuntimeUseError(f"vmem: 0x{address:x} is not mapped")

    def room(self) -> tuple[int, int, int]:
        """Bytes of memory, bytes in use, the first address."""
        with self.lock:
            return _MEMORY, sum(one.size for one in self._used.values()), CHIP.global_base

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Inside, something of a kind of `spent` is done; it counts if it succeeds."""
        begin = perf_counter_ns()
        yield
        with self.lock:
            self.spent[kind].count += 1
            self.spent[kind].nanoseconds += perf_counter_ns() - begin

    def run(self, program: Program) -> None:
        """Run what a kernel issued. Raises SimulatorError for what the chip refuses."""
        from bmcompiler.runtime.simulator.bm1684x import compile_plan  # for programs without kernels never needed

        with self.lock, self.timed("run"), program.naming_calls():
            compile_plan(program.groups, self._chip()).run()

    def _chip(self) -> Memories:
        """The memories of the BM1684X, which last as long as the card."""
        from bmcompiler.backends.bm1684x.static_tables import static_memory
        from bmcompiler.runtime.simulator.bm1684x import Memories

        if self._memories is None:
            self._memories = Memories(self._memory)
            self._memories.static[...] = static_memory()
        return self._memories

    def kept(self) -> int:
        """Elements that the BM1684X's last masked select or nonzero kept, 0 before any."""
        return self._chip().kept

    def place(self, address: int, memory: str, lane: int) -> int:
        """Where a byte of memory lies in this process: "global", "L2", or of a lane, at `address` in it.

        Raises RuntimeUseError where no memory is.
        """
        with self.lock:
            if memory == "global":
                data, offset = self.bytes(bm_device_mem_t(address, 1)), 0
            elif memory == "L2":
                data, offset = self._chip().l2, address - CHIP.l2_window
            else:
                lanes = self._chip().local
                data, offset = lanes.bytes[lane] if lane < lanes.lanes else lanes.bytes[0, :0], address
            if not 0 <= offset < data.size:
                raise RuntimeUseError(f"0x{address:x} is no address of {memory} memory")
            first: int = data.ctypes.data
            return first + offset

    def run_okkernel(self, program: OkkernelProgram) -> None:
        """The same for a kernel of okkernel: a BM1684 beside the other chip, on the same global memory.

        Its local memory stays between launches, its L2 does not.
        """
        from bmcompiler.runtime.simulator.bm1684.memory import Memories, local_memory
        from bmcompiler.runtime.simulator.bm1684.plan import compile_plan

        with self.lock:
            if self._bm1684_local is None:
                self._bm1684_local = local_memory()
            outside = GlobalMemory()
            for address, data in self._used.items():
                outside.map(address, data)
            with self.timed("run"), program.naming_calls():
                compile_plan(program.groups, Memories(outside, local=self._bm1684_local)).run()


_cards: dict[int, Card] = {}
_opening = RLock()


@BMRT.handle("bm_handle_t")
@BMLIB.handle("bm_handle_t")
class CardHandle:
    """A user of a card; its memory ends with it."""

    def __init__(self, index: int) -> None:
        if not 0 <= index < MAX_DEVICES:
            raise RuntimeUseError(f"there is no device {index}, only 0 to {MAX_DEVICES - 1}")
        with _opening:
            self.card = _cards.setdefault(index, Card())
        self.index = index
        self._own: set[int] = set()
        self._freed = False

    def ended(self) -> str:
        """Why it cannot be used any more."""
        return "was freed" if self._freed else ""

    def allocate(self, size: int) -> bm_device_mem_t:
        """Memory on the card. Raises RuntimeUseError or MemoryError."""
        with self.card.lock:
            address = self.card.allocate(size)
            self._own.add(address)
        return bm_device_mem_t(address, size)

    def release(self, memory: bm_device_mem_t) -> None:
        """Give memory back, of whichever handle. Raises RuntimeUseError when no allocation begins there."""
        with self.card.lock:
            self.card.free(memory.device_addr)
            self._own.discard(memory.device_addr)

    def end(self) -> None:
        """No calls any more; its memory is given back."""
        with self.card.lock:
            self._freed = True
            for address in self._own & self.card._used.keys():
                self.card.free(address)
