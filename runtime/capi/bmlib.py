"""libbmlib.so: devices, memory and kernels of the BM1684X for C."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from bmcompiler.capi.api import declared
from bmcompiler.capi.buffers import Size, buffered, caller_memory, text
from bmcompiler.capi.library import HANDLES, MOST_PAIRS, CLibrary, Read, Write
from bmcompiler.errors import BMError
from bmcompiler.runtime import bmlib
from bmcompiler.runtime.bmlib.forms import WIDE_MEMORIES
from bmcompiler.runtime.bmlib.kernels import tpu_launch_param_t
from bmcompiler.runtime.bmlib.types import (
    BM_MEM_ADDR_NULL,
    BMLIB,
    CPU_FAULT,
    FORMS,
    BmMemType,
    BmStatus,
    bm_device_mem_t,
)

_CODES = ", ".join(
    f"BM_{'' if one in (BmStatus.SUCCESS, BmStatus.NOT_SUPPORTED) else 'ERR_'}{one.name} = {int(one)}"
    for one in BmStatus
)
PREAMBLE = f"""typedef enum {{ {_CODES} }} bm_status_t;
typedef enum {{ {", ".join(f"BM_MEM_TYPE_{one.name} = {int(one)}" for one in BmMemType)} }} bm_mem_type_t;
/* Bits of chipid_bit_mask. */
#define BM1682_CHIPID_BIT_MASK (1 << 0)
#define BM1684_CHIPID_BIT_MASK (1 << 1)
#define BM1686_CHIPID_BIT_MASK (1 << 2)
#define BM_MEM_ADDR_NULL (0x{BM_MEM_ADDR_NULL:x})
#define BM_MEM_NULL (bm_mem_null())
typedef struct bm_context *bm_handle_t;
typedef struct bm_module *tpu_kernel_module_t;
typedef int tpu_kernel_function_t;
typedef enum {{ PERF_MONITOR_GDMA = 0, PERF_MONITOR_TPU = 1 }} PERF_MONITOR_ID;
typedef enum {{ BMCPU_IDLE = 0, BMCPU_RUNNING = 1, BMCPU_FAULT = {CPU_FAULT} }} bm_cpu_status_t;
typedef void (*bmlib_api_dbg_callback)(int, int, int, const char *);
#define bm_get_tpu_core_num bm_get_tpu_scalar_num
#define BM_CHECK_RET(call)                                                                           \\
    do {{                                                                                             \\
        bm_status_t bm_checked = (bm_status_t)(call);                                                \\
        if (bm_checked != BM_SUCCESS) {{                                                              \\
            bmlib_log("BM_CHECK", 16, "%s:%d: code %d", __FILE__, __LINE__, (int)bm_checked);        \\
            return bm_checked;                                                                       \\
        }}                                                                                            \\
    }} while (0)
"""
MEMORY = declared(__file__, "memory.h")
_SETTERS = "bm_mem_set_device_addr", "bm_mem_set_device_size", "bm_set_device_mem", "bm_mem_set_system_addr"
_HANDLES = "bm_handle_t", "tpu_kernel_module_t"
_PAIRED = "bm_memcpy_s2d_gather", "bm_memcpy_d2s_scatter"
_ENUMS = "bm_status_t", "tpu_kernel_function_t", "bm_mem_type_t", "PERF_MONITOR_ID", "bm_cpu_status_t", "process_t"


def _setter(name: str) -> Callable[[Any, int], None]:
    """A function that changes a description of memory of the caller."""
    prototype = BMLIB.functions[name]

    def act(slots: Any, result: int) -> None:
        values = [LIBRARY.reader(one.c_type)(slots[index]) for index, one in enumerate(prototype.parameters)]
        getattr(bmlib, name)(*values)
        if isinstance(values[0], bm_device_mem_t):
            LIBRARY.store(prototype.parameters[0].c_type.rstrip(" *"), slots[0], values[0])

    return act


def _buffered(name: str, **sizes: Size) -> Callable[[Any, int], None]:
    return buffered(lambda: LIBRARY, name, **sizes)


def _said(name: str) -> Size:
    """The number that another argument is."""
    return lambda values: int(values[name])


def _memory(name: str) -> Size:
    """The bytes of a memory that another argument describes."""
    return lambda values: int(values[name].size) if values[name] is not None else 0


def _cores(values: dict[str, Any]) -> int:
    return 4 if values["core_num"] == 1 else 0  # other numbers are refused before the list is read


_LAUNCHES = "tpu_kernel_launch", "tpu_kernel_launch_async", "tpu_kernel_launch_sync"
_MULTI_CORES = "tpu_kernel_launch_async_multi_cores", "tpu_kernel_launch_sync_multi_cores"
_TABLE: tuple[tuple[tuple[str, ...], dict[str, Size]], ...] = (
    (("bm_memcpy_s2d",), {"src": _memory("dst")}),
    (("bm_memcpy_d2s",), {"dst": _memory("src")}),
    (("bm_memcpy_s2d_partial", "bm_memcpy_s2d_partial_offset"), {"src": _said("size")}),
    (("bm_memcpy_d2s_partial", "bm_memcpy_d2s_partial_offset"), {"dst": _said("size")}),
    (_LAUNCHES, {"args": _said("size")}),
    (_MULTI_CORES, {"api_param": _said("api_size"), "core_list": _cores}),
    # other modes are refused before the value is read
    (("bm_memset_device_ext",), {"value": lambda values: min(max(0, int(values["mode"])), 4)}),
    (("tpu_kernel_load_module",), {"data": _said("length")}),
)
_BUFFERS = {name: sizes for names, sizes in _TABLE for name in names}
"""Bytes of buffers by function and parameter; what is a form of a function has the same ones."""


def _base(name: str) -> str:
    """The function that a function is a form of, or itself."""
    return FORMS[name].base if name in FORMS else name


def _wide(text: str, struct: str) -> str:
    """The description of memory with a size of 64 bits."""
    description = struct.removesuffix("_t").replace("device_mem", "mem_desc")
    text = text.partition("} bm_mem_flags_t;\n")[2].replace("unsigned int size", "unsigned long long size")
    text = text.replace("bm_device_mem_t", struct).replace("bm_mem_desc", description)
    return text.replace("bm_system_mem_t", struct.replace("device", "system"))


def _paired(name: str) -> Callable[[Any, int], None]:
    """A function that takes pairs of a pointer and bytes."""
    prototype = BMLIB.functions[name]

    def act(slots: Any, result: int) -> None:
        values = [LIBRARY.reader(one.c_type)(slots[index]) for index, one in enumerate(prototype.parameters[:-1])]
        count, odd = divmod(values[-1], 2)
        if odd or not 1 <= count <= MOST_PAIRS:
            raise BMError(f"{name}: argc is {values[-1]}, must be an even number of 2..{2 * MOST_PAIRS}")
        pairs = (ctypes.c_uint64 * (2 * count)).from_address(slots[len(values)])
        titles = [f"{name}: buffer {index}" for index in range(count)]
        parts = [caller_memory(at, size, title) for at, size, title in zip(pairs[::2], pairs[1::2], titles)]
        LIBRARY.results(prototype)(slots, result, LIBRARY.functions(name)(*values, parts))

    return act


def _launches(slots: Any, result: int) -> None:
    name = "tpu_kernel_launch_async_multicores"
    handle, count = HANDLES.read(slots[0]), ctypes.c_int32(slots[2]).value
    given = None
    if slots[1]:
        raw = LIBRARY.layout("tpu_launch_param_t").from_address(slots[1]) if count == 1 else None
        given = [_launch(raw)] if raw is not None else []
    LIBRARY.results(BMLIB.functions[name])(slots, result, LIBRARY.functions(name)(handle, given, count))


def _launch(raw: Any) -> tpu_launch_param_t:
    data = caller_memory(raw.param_data or 0, raw.param_size, "param_data")
    return tpu_launch_param_t(raw.core_id, raw.func_id, data, raw.param_size)


def _put_words(address: int, words: str) -> None:
    """A string in C, with the zero behind it."""
    data = words.encode() + b"\0"
    ctypes.memmove(address, data, len(data))


_READ: dict[str, Read] = {
    **dict.fromkeys(_HANDLES, HANDLES.read),
    **dict.fromkeys(("const char *", "char *"), text),
    # of functions that refuse before they look
    **dict.fromkeys(("void *", "const void *"), lambda address: caller_memory(address, 0, "")),
}
_WRITE: dict[str, Write] = {**dict.fromkeys(_HANDLES, HANDLES.write), "words_t": _put_words}

LIBRARY: CLibrary = CLibrary(
    "bmlib",
    BMLIB,
    PREAMBLE,
    {
        "address_t": "void *",
        "words_t *": "char *",
        "cores_t": "const int *",
        "launches_t": "tpu_launch_param_t *",
        "process_t": "int",
    },
    {
        "bm_status_t": "BM_ERR_FAILURE",
        "bm_mem_type_t": "BM_MEM_TYPE_INVALID",
        "bm_cpu_status_t": "BMCPU_FAULT",
        "process_t": "-1",
    },
    lambda name: getattr(bmlib, name),
    headers=("bmlib_runtime.h",),
    numbers={
        **dict.fromkeys(_ENUMS, ctypes.c_int32),
        "address_t": ctypes.c_uint64,
        "long long": ctypes.c_int64,
        "bmlib_api_dbg_callback": ctypes.c_uint64,
    },
    read=_READ,
    write=_WRITE,
    written={"bm_device_mem_t": MEMORY, **{struct: _wide(MEMORY, struct) for struct in WIDE_MEMORIES.values()}},
    formatted=frozenset({"bmlib_log"}),
    paired=frozenset(_PAIRED),
    special={
        **{name: _setter(name) for name in BMLIB.functions if _base(name) in _SETTERS},
        **{name: _buffered(name, **_BUFFERS[_base(name)]) for name in BMLIB.functions if _base(name) in _BUFFERS},
        **{name: _paired(name) for name in _PAIRED},
        "tpu_kernel_launch_async_multicores": _launches,
    },
)
