"""Devices, contexts and device memory of the BM runtime (the vendor's BM Runtime Library; bm1880.md 13)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import wraps
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

import numpy as np

from bmcompiler.backends.bm1880.chip import CHIP, align_up
from bmcompiler.capi.api import Api, Prototype, declared
from bmcompiler.capi.kinds import Fault, anything, buffer, integer, integers, path, signed, unsigned
from bmcompiler.errors import BMError, FileFormatError, RuntimeUseError, UnsupportedError, UsageError
from bmcompiler.numeric.arrays import Bytes
from bmcompiler.runtime.bm1880_device import FIRST_ADDRESS
from bmcompiler.runtime.devices import MAX_DEVICES
from bmcompiler.runtime.simulated import PAGE
from bmcompiler.runtime.simulator.bm1880.memory import GlobalMemory, Memories

if TYPE_CHECKING:
    from bmcompiler.backends.bm1880.bmkernel import Bmk1880Context

log = logging.getLogger("bmcompiler.runtime")

GMEM_SIZE = 0x1_0000_0000
T = TypeVar("T")
P = ParamSpec("P")


class BmErr(IntEnum):
    """Return codes of the runtime."""

    SUCCESS = 0
    AGAIN = 1
    FAILURE = 2
    TIMEOUT = 3
    UNINITIALIZED = 4
    INVALID_ARGUMENT = 5
    NOMEM = 6
    DATA = 7
    BUSY = 8
    NOT_SUPPORTED = 9


class BmFmt(IntEnum):
    """Element formats of `BmShape`."""

    FP32 = 0
    FP16 = 1
    INT16 = 2
    INT8 = 3


_FMT_BYTES = {BmFmt.FP32: 4, BmFmt.FP16: 2, BmFmt.INT16: 2, BmFmt.INT8: 1}


def _refuse(prototype: Prototype, parameter: str, fault: Fault) -> Any:
    """The code, with None for every result, or what a function without a code returns on failure."""
    log.error("%s: %s", prototype.name, fault.of(parameter))
    if prototype.result != "bmerr_t":
        return _FAILURES.get(prototype.result)
    memory = any(one.name == parameter and one.c_type == "bmmem_device_t" for one in prototype.parameters)
    code = BmErr.UNINITIALIZED if fault.ended and not memory else BmErr.INVALID_ARGUMENT
    return (code, *(None for _ in prototype.outs)) if prototype.outs else code


UNSEEN = {
    "void *": "void *",
    "bmmem_host_t": "bmmem_host_t",
    "any_ctx_t": "bmctx_t",
    "any_dev_t": "bmdev_t",
    "any_int_t": "int",
    "any_u32_t": "u32",
    "any_mem_t": "bmmem_device_t",
    "any_shape_t": "bmshape_t *",
}
"""Types of arguments that no function looks at, and C's names of them."""

RUNTIME = Api(
    declared(__file__, "bmruntime.h"),
    {
        "int": signed("int", 32),
        "u16": unsigned("u16", 16),
        "u32": unsigned("u32", 32),
        "u64": unsigned("u64", 64),
        "size_t": unsigned("size_t", 64),
        "bmfmt_t": signed("bmfmt_t", 32),
        "uint8_t *": buffer("uint8_t *"),
        "const uint8_t *": buffer("const uint8_t *"),
        "const char *": path(),
        "shape_t": integers("shape_t", signed("int", 32)),
        "cpu_function_t": integer("cpu_function_t", 1, (1 << 64) - 1),
        "user_t": anything("user_t"),
        **{one: anything(c_type) for one, c_type in UNSEEN.items()},
    },
    _refuse,
)


@RUNTIME.struct
@dataclass(frozen=True)
class BmShape:
    """Shape of a memory object: a tensor has 4 dimensions, a matrix 2."""

    c_name: ClassVar[str] = "bmshape_t"
    fmt: BmFmt
    dim: tuple[int, ...]

    @property
    def dim_size(self) -> int:
        """Number of dimensions."""
        return len(self.dim)

    @property
    def size(self) -> int:
        """Bytes. Raises UsageError for other ranks, empty dimensions or unknown formats."""
        if len(self.dim) not in (2, 4) or min(self.dim) < 1 or self.fmt not in _FMT_BYTES:
            raise UsageError(f"{self} is not the shape of a tensor (4 dimensions) or matrix (2)")
        return prod(self.dim) * _FMT_BYTES[self.fmt]


@dataclass(frozen=True)
class BmDevInfo:
    """Facts of a device; sizes in bytes, `lmem_size` per lane."""

    version: int = CHIP.version
    npu_num: int = CHIP.lanes
    eu_num: int = CHIP.execution_units
    lmem_size: int = CHIP.lmem_size
    lmem_banks: int = CHIP.lmem_banks
    lmem_bank_size: int = CHIP.lmem_bank_size
    gmem_size: int = GMEM_SIZE


_FAILURES: dict[str, object] = {"bm_devinfo_t": BmDevInfo(*(0,) * 7), "size_t": 0, "u64": 0, "int": 0, "float": 0.0}


class BmRuntimeError(BMError):
    """A failed runtime call; `code` is what the call returns."""

    def __init__(self, code: BmErr, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def code_of(error: BMError | OSError | MemoryError) -> BmErr:
    """The vendor's error code for an error of this package."""
    if isinstance(error, BmRuntimeError):
        return error.code
    if isinstance(error, FileFormatError):
        return BmErr.DATA
    if isinstance(error, MemoryError):
        return BmErr.NOMEM
    if isinstance(error, UnsupportedError):
        return BmErr.NOT_SUPPORTED
    return BmErr.INVALID_ARGUMENT if isinstance(error, RuntimeUseError | UsageError) else BmErr.FAILURE


def guarded(action: Callable[[], T]) -> tuple[BmErr, T | None]:
    """Run `action`: (SUCCESS, result), or (code, None) after writing the reason to the log "bmcompiler.runtime"."""
    try:
        return BmErr.SUCCESS, action()
    except (BMError, OSError, MemoryError) as error:
        code = code_of(error)
        log.error("%s: %s", code.name, error)
        return code, None


def coded(function: Callable[P, object]) -> Callable[P, BmErr]:
    """A call that returns a code."""

    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> BmErr:
        return guarded(lambda: function(*given, **named))[0]

    return RUNTIME.checked(call)


def with_code(function: Callable[P, T]) -> Callable[P, tuple[BmErr, T | None]]:
    """A call that returns a code and a result, which is None on failure."""

    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> tuple[BmErr, T | None]:
        return guarded(lambda: function(*given, **named))

    return RUNTIME.checked(call)


def or_none(function: Callable[P, T]) -> Callable[P, T | None]:
    """A call that returns a result, or None on failure."""

    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> T | None:
        return guarded(lambda: function(*given, **named))[1]

    return RUNTIME.checked(call)


@RUNTIME.handle("bmmem_device_t")
@dataclass(eq=False)
class BmMem:
    """A piece of device memory. `data` is its content; a window shares that of the object it was cut from (`whole`)."""

    home: BmDevice
    address: int
    data: Bytes
    shape: BmShape | None = None
    whole: BmMem | None = None
    freed: bool = False

    def ended(self) -> str:
        """Why it cannot be used any more."""
        if self.freed:
            return f"was freed (memory at 0x{self.address:x})"
        return f"is a window, its memory {self.whole.ended()}" if self.whole is not None and self.whole.ended() else ""

    def need(self, home: BmDevice) -> None:
        """Refuse memory that was freed, or lies on another device. Raises BmRuntimeError."""
        if self.ended():
            raise BmRuntimeError(BmErr.INVALID_ARGUMENT, f"the memory {self.ended()}")
        if self.home is not home:
            reason = f"the memory is on device {self.home.index}, not on device {home.index}"
            raise BmRuntimeError(BmErr.INVALID_ARGUMENT, reason)

    @property
    def size(self) -> int:
        """Bytes of the memory."""
        return int(self.data.size)

    def cut(self, offset: int, size: int, shape: BmShape | None = None) -> BmMem:
        """A window on bytes offset .. offset + size. Raises BmRuntimeError when it leaves this object."""
        if offset < 0 or size < 0 or offset + size > self.size:
            reason = f"window of {size} bytes at {offset} leaves a memory object of {self.size} bytes"
            raise BmRuntimeError(BmErr.INVALID_ARGUMENT, reason)
        return BmMem(self.home, self.address + offset, self.data[offset : offset + size], shape, whole=self)


@RUNTIME.handle("bmdev_t")
class BmDevice:
    """One simulated chip's global memory and what is allocated in it; used by contexts of any thread."""

    def __init__(self, index: int) -> None:
        if not 0 <= index < MAX_DEVICES:
            raise BmRuntimeError(BmErr.INVALID_ARGUMENT, f"there is no device {index}, only 0 to {MAX_DEVICES - 1}")
        self.index, self.info = index, BmDevInfo()
        self.memory = GlobalMemory()
        self.users = 0
        """Calls of bm_device_open without a close, and bound contexts."""
        self._used: dict[int, int] = {}
        self._lock = threading.Lock()

    def ended(self) -> str:
        """Why it cannot be used any more."""
        return "" if self.users else "was closed"

    def open(self) -> BmDevice:
        """One more user."""
        with self._lock:
            self.users += 1
        return self

    def close(self) -> None:
        """One user less."""
        with self._lock:
            self.users -= 1

    def allocate(self, size: int, shape: BmShape | None = None) -> BmMem:
        """Zeroed memory at the lowest free address, from 0x2800000 on. Raises BmRuntimeError when none is left."""
        if size < 1:
            raise BmRuntimeError(BmErr.INVALID_ARGUMENT, f"cannot allocate {size} bytes")
        with self._lock:
            address = FIRST_ADDRESS
            for base, length in sorted(self._used.items()):
                if address + size <= base:
                    break
                address = base + align_up(length, PAGE)
            if address + size > GMEM_SIZE:
                raise BmRuntimeError(BmErr.NOMEM, f"device memory has no room for {size} bytes")
            mem = BmMem(self, address, np.zeros(size, np.uint8), shape)
            self.memory.map(address, mem.data)
            self._used[address] = size
        return mem

    def free(self, mem: BmMem) -> None:
        """Give memory back; of a window only the handle ends. Raises BmRuntimeError for memory freed before."""
        with self._lock:
            mem.need(self)
            mem.freed = True
            if mem.whole is None:
                self.memory.unmap(mem.address)
                mem.data = np.empty(0, np.uint8)
                del self._used[mem.address]


_devices: dict[int, BmDevice] = {}
_devices_lock = threading.Lock()


def device(index: int) -> BmDevice:
    """The device of that number; every caller gets the same one. Raises BmRuntimeError when there is none."""
    with _devices_lock:
        if index not in _devices:
            _devices[index] = BmDevice(index)
        return _devices[index]


@RUNTIME.handle("bmctx_t")
@dataclass(eq=False)
class BmContext:
    """A user of a device, with local memory of its own: contexts on several threads do not disturb each other."""

    bound: BmDevice | None = None
    memories: Memories | None = None
    allocations: list[BmMem] = field(default_factory=list)
    closed: bool = False
    lock: threading.RLock = field(default_factory=threading.RLock)
    kernels: threading.local = field(default_factory=threading.local)
    kernel_contexts: list[Bmk1880Context] = field(default_factory=list)
    sent: int = 0
    """Command buffers that were run."""

    def ended(self) -> str:
        """Why it cannot be used any more."""
        return "was destroyed" if self.closed else ""

    def bind(self, target: BmDevice) -> None:
        """Use `target` from now on. Raises BmRuntimeError when a device is bound already."""
        with self.lock:
            self.check()
            if self.bound is not None:
                raise BmRuntimeError(BmErr.BUSY, "the context is bound to a device already")
            self.bound, self.memories = target.open(), Memories(target.memory)

    def unbind(self) -> None:
        """Release all memory of this context and the device."""
        with self.lock:
            if self.bound is not None:
                for mem in self.allocations:
                    if not mem.freed:
                        self.bound.free(mem)
                self.bound.close()
            self.allocations.clear()
            self.bound = self.memories = None

    def close(self) -> None:
        """Release everything: memory, device and kernel contexts."""
        with self.lock:
            self.unbind()
            self.closed = True
            for kernel in self.kernel_contexts:
                kernel.close()

    def check(self) -> None:
        """Refuse a destroyed context."""
        if self.closed:
            raise BmRuntimeError(BmErr.UNINITIALIZED, "the context was destroyed")

    def device(self) -> BmDevice:
        """The bound device. Raises BmRuntimeError when there is none."""
        self.check()
        if self.bound is None:
            raise BmRuntimeError(BmErr.UNINITIALIZED, "the context is not bound to a device")
        return self.bound

    def chip(self) -> Memories:
        """The memories that commands work on. Raises BmRuntimeError when no device is bound."""
        self.device()
        assert self.memories is not None, "the device is bound"
        return self.memories

    def allocate(self, size: int, shape: BmShape | None = None) -> BmMem:
        """Device memory that ends with the context at the latest."""
        with self.lock:
            mem = self.device().allocate(size, shape)
            self.allocations.append(mem)
        return mem

    def free(self, mem: BmMem) -> None:
        """Give device memory back."""
        with self.lock:
            self.device().free(mem)
            if mem in self.allocations:
                self.allocations.remove(mem)

    @property
    def kernel(self) -> Bmk1880Context | None:
        """The kernel context of the calling thread."""
        found: Bmk1880Context | None = getattr(self.kernels, "current", None)
        return found

    @kernel.setter
    def kernel(self, value: Bmk1880Context | None) -> None:
        self.kernels.current = value
