"""Kernels in C: modules with TPUKernel or okkernel functions, compiled for the host, and their launches on the card.

A kernel is called with its arguments, its calls of the library are recorded, and the card runs what was recorded: at
the end, or of a TPUKernel kernel that looks into memory itself (`tpu_global_mem_addr`) before each look and poll.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from bmcompiler.capi.entries import registered
from bmcompiler.errors import RuntimeUseError
from bmcompiler.runtime.bmlib.device import CardHandle
from bmcompiler.runtime.bmlib.functions import host_bytes
from bmcompiler.runtime.bmlib.types import BMLIB, served

if TYPE_CHECKING:
    from bmcompiler.backends.bm1684x.tpukernel.recorder import Memory, Recorder

Entry = Callable[[int], object]
"""A kernel: called with the address of its arguments."""

_CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_functions: dict[int, tuple[str, Entry]] = {}
_known: dict[int, int] = {}  # numbers of functions by address
_numbers = count(1)
_loading = Lock()
_contents: dict[str, dict[str, int]] = {}
_served = served(BMLIB)


@dataclass(frozen=True)
class tpu_launch_param_t:  # noqa: N801
    """One of several launches: the core, the kernel's number, its arguments and their bytes."""

    core_id: int
    func_id: int
    param_data: Any
    param_size: int


@BMLIB.handle("tpu_kernel_module_t")
class KernelModule:
    """A shared object with kernels; `entries`: their addresses by name."""

    def __init__(self, file: str, title: str) -> None:
        with _loading:
            before = {address for _, address in registered()}
            try:
                library = ctypes.CDLL(file)
            except OSError as error:
                raise RuntimeUseError(f"it cannot be loaded: {error}", file=title) from error
            new = {name: address for name, address in registered() if address not in before}
            known = _contents.setdefault(str(library._handle), new)  # a second load registers nothing
        if not known:
            raise RuntimeUseError(
                "it registers no kernel with TPUKERNEL_FUNC_REGISTER or OKKERNEL_FUNC_REGISTER", file=title
            )
        self.title, self.entries = title, known
        self.unloaded = False

    def ended(self) -> str:
        """Why it cannot be used any more."""
        return "was unloaded" if self.unloaded else ""


@_served
def tpu_kernel_load_module_file(handle: CardHandle, module_file: str) -> KernelModule:
    """The module of a shared object, compiled for this host."""
    if not Path(module_file).is_file():
        raise RuntimeUseError("there is no such file", file=module_file)
    return KernelModule(str(Path(module_file).resolve()), str(module_file))


@_served
def tpu_kernel_load_module_file_key(handle: CardHandle, module_file: str, key: str, size: int) -> KernelModule:
    """The same; the key, which tells a card's modules apart, is not needed here."""
    if not Path(module_file).is_file():
        raise RuntimeUseError("there is no such file", file=module_file)
    return KernelModule(str(Path(module_file).resolve()), str(module_file))


@_served
def tpu_kernel_load_module(handle: CardHandle, data: Any, length: int) -> KernelModule:
    """The same from memory."""
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(host_bytes(data, length).tobytes())
        file.flush()
        return KernelModule(file.name, f"a module of {length} bytes")


@_served
def tpu_kernel_get_function(handle: CardHandle, module: KernelModule, function: str) -> int:
    """The number of a kernel of a module; 0 when it has none of that name."""
    if function not in module.entries:
        raise RuntimeUseError(
            f"there is no kernel '{function}', only {', '.join(sorted(module.entries))}", file=module.title
        )
    address = module.entries[function]
    with _loading:
        if address not in _known:
            _known[address] = number = next(_numbers)
            _functions[number] = function, _CALL(address)
        return _known[address]


@_served
def tpu_kernel_launch(handle: CardHandle, function: int, args: Any, size: int) -> None:
    """Run a kernel with `size` bytes of arguments."""
    _launch_number(handle, function, args, size)


@_served
def tpu_kernel_launch_async(handle: CardHandle, function: int, args: Any, size: int) -> None:
    """The same: a launch is done when the call returns."""
    _launch_number(handle, function, args, size)


@_served
def tpu_kernel_launch_sync(handle: CardHandle, func_name: str, args: Any, size: int) -> None:
    """Run a kernel that is part of the program, by its name."""
    _launch_named(handle, func_name, args, size)


@_served
def tpu_kernel_launch_async_multi_cores(
    handle: CardHandle, func_name: str, api_param: Any, api_size: int, core_list: Any, core_num: int
) -> None:
    """Run a kernel that is part of the program on the cores of a list: int32 numbers, of which only 0 is there."""
    _cores(core_list, core_num)
    _launch_named(handle, func_name, api_param, api_size)


@_served
def tpu_kernel_launch_sync_multi_cores(
    handle: CardHandle, func_name: str, api_param: Any, api_size: int, core_list: Any, core_num: int
) -> None:
    """The same: a launch is done when the call returns."""
    _cores(core_list, core_num)
    _launch_named(handle, func_name, api_param, api_size)


@_served
def tpu_kernel_launch_async_multicores(
    handle: CardHandle, param_list: Sequence[tpu_launch_param_t], param_num: int
) -> None:
    """Run kernels, each on a core of its own: there is one core, so that `param_num` is 1."""
    if param_num != 1 or len(param_list) != param_num:
        raise RuntimeUseError(f"param_num is {param_num}, a BM1684X has one core")
    one = param_list[0]
    only_core(one.core_id)
    _launch_number(handle, one.func_id, one.param_data, one.param_size)


@_served
def tpu_kernel_sync(handle: CardHandle) -> None:
    """Everything is done when a call returns."""


@_served
def tpu_kernel_unload_module(handle: CardHandle, p_module: KernelModule) -> None:
    """End a module. Its code stays in memory: functions of it may still be launched by those who have their numbers."""
    p_module.unloaded = True


@_served
def tpu_kernel_free_module(handle: CardHandle, p_module: KernelModule) -> None:
    """Unload a module; functions of it cannot be launched any more."""
    p_module.unloaded = True


def only_core(number: int) -> None:
    """Raises RuntimeUseError for another core than the one that a card has."""
    if number != 0:
        raise RuntimeUseError(f"core_id: there is no core {number}, a BM1684X has one, 0")


def _cores(numbers: Any, count: int) -> None:
    if count != 1:
        raise RuntimeUseError(f"core_num is {count}, a BM1684X has one core")
    only_core(int(host_bytes(numbers, 4).view(np.int32)[0]))


def _launch_named(handle: CardHandle, name: str, args: Any, size: int) -> None:
    address = dict(reversed(list(registered()))).get(name)
    if address is None:
        raise RuntimeUseError(
            f"no kernel '{name}' is registered with TPUKERNEL_FUNC_REGISTER or OKKERNEL_FUNC_REGISTER"
        )
    _launch(handle, name, _CALL(address), args, size)


def _launch_number(handle: CardHandle, function: int, args: Any, size: int) -> None:
    if function not in _functions:
        raise RuntimeUseError(f"function is {function}, which no tpu_kernel_get_function gave")
    name, entry = _functions[function]
    _launch(handle, name, entry, args, size)


@dataclass(frozen=True)
class _Board:
    """A card that runs a kernel while it is recorded."""

    handle: CardHandle
    name: str

    def run(self, recorder: Recorder) -> None:
        """Run what has been issued. Raises SimulatorError."""
        from bmcompiler.backends.bm1684x.tpukernel.kernel import Program

        self.handle.card.run(Program(self.name, tuple(recorder.commands), tuple(recorder.polls)))

    def kept(self) -> int:
        """Elements that the last masked select or nonzero kept."""
        return self.handle.card.kept()

    def place(self, address: int, memory: Memory, lane: int) -> int:
        """Where a byte of a memory of the card lies. Raises RuntimeUseError."""
        return self.handle.card.place(address, memory.value, lane)


def _launch(handle: CardHandle, name: str, entry: Entry, args: Any, size: int) -> None:
    """Record and run. Raises RuntimeUseError for the first call of the kernel that was refused, SimulatorError."""
    from bmcompiler.backends.bm1684 import okkernel  # many programs have no kernels
    from bmcompiler.backends.bm1684x import tpukernel

    if size and args is None:
        raise RuntimeUseError(f"args is NULL, of {size} bytes")
    copy = ctypes.create_string_buffer(host_bytes(args, size).tobytes() if size else b"", size + 8)
    with tpukernel.recording() as recorder, okkernel.recording() as other:
        recorder.board = _Board(handle, name)
        entry(ctypes.addressof(copy))
    refused = recorder.refused or other.refused
    if refused is not None:
        raise RuntimeUseError(f"kernel {name}: {refused}")
    program, of_bm1684 = tpukernel.program_of(recorder, name), okkernel.program_of(other, name)
    if len(program) and len(of_bm1684):
        raise RuntimeUseError(f"kernel {name} calls TPUKernel and okkernel: a kernel is for one chip")
    if len(of_bm1684):
        handle.card.run_okkernel(of_bm1684)
    else:
        handle.card.run(program)
