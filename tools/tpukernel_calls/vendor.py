"""The vendor's C model of the BM1684X by its library of kernel functions: one call, in a process of its own."""

from __future__ import annotations

import ctypes
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684x.tpukernel.rows import Parameter
from bmcompiler.tpukernel import LOCAL_MEM_SIZE, NPU_NUM, TABLE
from tpukernel_calls.memory import Memory

_NODE = 0
_WORDS = {"system_addr_t": ctypes.c_uint64, "global_addr_t": ctypes.c_uint64, "addr_t": ctypes.c_uint64}
_WORDS |= {"unsigned long long": ctypes.c_uint64, "float": ctypes.c_float, "int": ctypes.c_int32}


class Recorded(NamedTuple):
    """What a call issued, as (engine, bytes), and a digest of the memories afterwards."""

    commands: list[tuple[int, bytes]]
    digest: int


class Vendor:
    """The library, in this process; it must have been started with `taken.c` loaded before everything else."""

    def __init__(self, folder: Path, global_bytes: int) -> None:
        self._library = ctypes.CDLL(str(folder / "libcmodel_bm1684x.so"), mode=ctypes.RTLD_GLOBAL)
        if self._library.cmodel_init(_NODE, ctypes.c_ulonglong(1 << 24)):
            raise SystemExit("the C model does not start")
        self._library.load_lookup_tables()
        self._library.use_atomic_cmodel()
        lanes = ctypes.cast(self._pointer("get_local_mem"), ctypes.POINTER(ctypes.c_void_p))[0]
        assert lanes is not None
        self.memory = Memory(
            _bytes_at(lanes, NPU_NUM * LOCAL_MEM_SIZE).reshape(NPU_NUM, LOCAL_MEM_SIZE),
            _bytes_at(self._pointer("get_global_memaddr"), global_bytes),
        )
        self.memory.local[...] = 0
        self.memory.globals[...] = 0

    def _pointer(self, name: str) -> int:
        function = getattr(self._library, name)
        function.restype = ctypes.c_void_p
        found: int = function(_NODE)
        return found

    def has(self, name: str) -> bool:
        """Whether the library exports a function."""
        return hasattr(self._library, name)

    def run(self, name: str, arguments: list[Any], prepare: Callable[[Memory], None]) -> Recorded | str:
        """Call on memory that `prepare` has filled; the reason in the library's words where it refuses."""
        return self.kernel(lambda library: getattr(library, name.removeprefix("tpu_"))(*arguments), prepare)

    def kernel(self, body: Callable[[Any], object], prepare: Callable[[Memory], None]) -> Recorded | str:
        """The same of a kernel, which calls functions of what it is given, without "tpu_" in front."""
        read, write = os.pipe()
        child = os.fork()
        if not child:
            self._record(body, prepare, write)
        os.close(write)
        with os.fdopen(read, "rb") as file:
            data = file.read()
        os.waitpid(child, 0)
        found: Recorded | str = pickle.loads(data.split(b"\0RESULT\0")[-1]) if b"\0RESULT\0" in data else _reason(data)
        return found

    def _record(self, body: Callable[[Any], object], prepare: Callable[[Memory], None], write: int) -> None:
        os.dup2(write, 1)
        os.dup2(write, 2)
        prepare(self.memory)
        self._library.tpu_initialize()
        body(_Functions(self._library))
        found = Recorded(self._taken(), self.memory.digest())
        os.write(write, b"\0RESULT\0" + pickle.dumps(found))
        os._exit(0)

    def _taken(self) -> list[tuple[int, bytes]]:
        ours = ctypes.CDLL(None)
        ours.taken_bytes.restype = ctypes.c_void_p
        ours.taken_sizes.restype = ours.taken_engines.restype = ctypes.POINTER(ctypes.c_int)
        sizes, engines = ours.taken_sizes(), ours.taken_engines()
        found, at = [], ours.taken_bytes()
        for number in range(ours.taken_count()):
            found.append((engines[number], ctypes.string_at(at, sizes[number])))
            at += sizes[number]
        return found


class _Functions:
    """The library's functions, with arguments of Python."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Callable[..., None]:
        row = TABLE[f"tpu_{name}"]

        def call(*arguments: Any) -> None:
            kept: list[Any] = []
            values = [_value(each, given, kept) for each, given in zip(row.parameters, arguments)]
            getattr(self._library, row.name)(*values)

        return call


def _bytes_at(address: int, size: int) -> NDArray[np.uint8]:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _reason(output: bytes) -> str:
    lines = [
        line for line in output.decode(errors="replace").splitlines() if "Assert" in line or "ERROR: ASSERT" in line
    ]
    return lines[0].rpartition("/")[2] if lines else "ended without a word"


def _value(parameter: Parameter, given: Any, kept: list[Any]) -> Any:
    if given is None:
        return ctypes.c_void_p(0)
    if isinstance(given, (tuple, list)):
        kept.append((ctypes.c_uint32 * len(given))(*(int(each) & 0xFFFF_FFFF for each in given)))
        return kept[-1]
    kind: Any = _WORDS.get(parameter.base, ctypes.c_uint32)
    return kind(given if kind is ctypes.c_float else int(given) & 0xFFFF_FFFF_FFFF_FFFF)
