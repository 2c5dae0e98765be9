"""libbmlib.so: devices, memory and kernels of the BM1684X for C."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from bmcompiler.capi.api import declared
from bmcompiler.capi.buffers import Size, buffered, text
from bmcompiler.capi.library import HANDLES, CLibrary, Read, Write
from bmcompiler.runtime import bmlib
from bmcompiler.runtime.bmlib.types import BM_MEM_ADDR_NULL, BMLIB, BmMemType, BmStatus, bm_device_mem_t

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
"""
MEMORY = declared(__file__, "memory.h")
_SETTERS = "bm_mem_set_device_addr", "bm_mem_set_device_size", "bm_set_device_mem", "bm_mem_set_system_addr"
_HANDLES = "bm_handle_t", "tpu_kernel_module_t"


def _setter(name: str) -> Callable[[Any, int], None]:
    """A function that changes a description of memory of the caller."""
    prototype = BMLIB.functions[name]

    def act(slots: Any, result: int) -> None:
        values = [LIBRARY.reader(one.c_type)(slots[index]) for index, one in enumerate(prototype.parameters)]
        getattr(bmlib, name)(*values)
        if isinstance(values[0], bm_device_mem_t):
            LIBRARY.store("bm_device_mem_t", slots[0], values[0])

    return act


def _buffered(name: str, **sizes: Size) -> Callable[[Any, int], None]:
    return buffered(lambda: LIBRARY, name, **sizes)


def _size(values: dict[str, Any]) -> int:
    return int(values["size"])


_READ: dict[str, Read] = {**dict.fromkeys(_HANDLES, HANDLES.read), "const char *": text}
_WRITE: dict[str, Write] = dict.fromkeys(_HANDLES, HANDLES.write)

LIBRARY: CLibrary = CLibrary(
    "bmlib",
    BMLIB,
    PREAMBLE,
    {"address_t": "void *"},
    {"bm_status_t": "BM_ERR_FAILURE", "bm_mem_type_t": "BM_MEM_TYPE_INVALID"},
    lambda name: getattr(bmlib, name),
    headers=("bmlib_runtime.h",),
    numbers={
        **dict.fromkeys(("bm_status_t", "tpu_kernel_function_t", "bm_mem_type_t"), ctypes.c_int32),
        "address_t": ctypes.c_uint64,
        "long long": ctypes.c_int64,
    },
    read=_READ,
    write=_WRITE,
    written={"bm_device_mem_t": MEMORY},
    special={
        **{one: _setter(one) for one in _SETTERS},
        "bm_memcpy_s2d": _buffered("bm_memcpy_s2d", src=lambda v: int(v["dst"].size)),
        "bm_memcpy_d2s": _buffered("bm_memcpy_d2s", dst=lambda v: int(v["src"].size)),
        **{
            f"bm_memcpy_s2d_{one}": _buffered(f"bm_memcpy_s2d_{one}", src=_size)
            for one in ("partial", "partial_offset")
        },
        **{
            f"bm_memcpy_d2s_{one}": _buffered(f"bm_memcpy_d2s_{one}", dst=_size)
            for one in ("partial", "partial_offset")
        },
        **{
            name: _buffered(name, args=_size)
            for name in ("tpu_kernel_launch", "tpu_kernel_launch_async", "tpu_kernel_launch_sync")
        },
        # other modes are refused before the value is read
        "bm_memset_device_ext": _buffered("bm_memset_device_ext", value=lambda v: min(max(0, int(v["mode"])), 4)),
        "tpu_kernel_load_module": _buffered("tpu_kernel_load_module", data=lambda v: int(v["length"])),
    },
)
