"""libtpukernel.so: TPUKernel for kernels in C. A kernel is run by the launches of libbmlib.so."""

from __future__ import annotations

import ctypes
from typing import Any

from bmcompiler.backends.bm1684x.tpukernel import (
    ALIGN_BYTES,
    BANK_SIZE,
    FUNCTIONS,
    LOCAL_MEM_BANKS,
    LOCAL_MEM_SIZE,
    NPU_NUM,
    TABLE,
    data_type_t,
    dim2,
    dim4,
    padding_t,
    rounding_mode_t,
    scalar_t,
    variable_type_t,
)
from bmcompiler.backends.bm1684x.tpukernel.control import L2_USABLE
from bmcompiler.backends.bm1684x.tpukernel.recorder import recorder_or_none
from bmcompiler.backends.bm1684x.tpukernel.units.unavailable import UNAVAILABLE
from bmcompiler.capi.api import Api, declared
from bmcompiler.capi.library import CLibrary, Read, Write
from bmcompiler.runtime.capi.kernel_calls import kernel_calls

_STRUCTS = """
typedef struct { int n, c, h, w; } dim4;
typedef struct { int h, w; } dim2;
typedef struct { int top, bottom, left, right; } padding_t;
"""
_ENUMS = "".join(
    f"typedef enum {{ {', '.join(f'{one.name} = {int(one)}' for one in kind)} }} {kind.__name__};\n"
    for kind in (data_type_t, rounding_mode_t)
)
_ADDRESSES = {
    "local_addr_t": "unsigned int",
    "static_addr_t": "unsigned int",
    "system_addr_t": "unsigned long long",
    "global_addr_t": "unsigned long long",
    "l2_sram_addr_t": "unsigned long long",
    "addr_t": "unsigned long long",
}
_SIZES = {
    "NPU_NUM": NPU_NUM,
    "LOCAL_MEM_SIZE": LOCAL_MEM_SIZE,
    "LOCAL_MEM_BANKS": LOCAL_MEM_BANKS,
    "BANK_SIZE": BANK_SIZE,
    "LOCAL_BANK_SIZE": BANK_SIZE,
    "ALIGN_BYTES": ALIGN_BYTES,
    "L2_SRAM_SIZE": L2_USABLE,
    "EU_NUM": ALIGN_BYTES // 4,
    "EU_NUM_32BIT": ALIGN_BYTES // 4,
    "EU_NUM_16BIT": ALIGN_BYTES // 2,
    "EU_NUM_8BIT": ALIGN_BYTES,
}

_WRITTEN, _OF_DIMS = (declared(__file__, name) for name in ("tpukernel.h", "tpukernel_dims.h"))
_THEIR_OWN = (
    "tpu_bdc_check_inf_nan",
    "tpu_bdc_fp_isinf",
    "tpu_bdc_fp_isnan",
    "tpu_bdc_fp_pow_234",
    "tpu_bdc_pow",
    "tpu_bdc_pow_C",
    "tpu_bdc_C_pow",
)
"""Functions of newer libraries that firmware for older ones defines itself: no declaration may stand in its way."""
PREAMBLE = (
    _ENUMS
    + "".join(f"typedef {c_type} {name};\n" for name, c_type in _ADDRESSES.items())
    + "".join(f"#define {name} {value}\n" for name, value in _SIZES.items())
    + _WRITTEN
    + "".join(
        f'TPUKERNEL_NOT_OFFERED({name}, "{why}")\n'
        for name, why in UNAVAILABLE.items()
        if name not in _THEIR_OWN and f"{name}(" not in _WRITTEN + _OF_DIMS
    )
)


class _Variable(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("value", ctypes.c_uint32)]


def _write_scalar(address: int, value: int) -> None:
    ctypes.c_uint32.from_address(address).value = int(value) & 0xFFFF_FFFF


def _variable(address: int) -> Any:
    raw = _Variable.from_address(address) if address else None
    return None if raw is None else (raw.type, scalar_t(raw.value) if raw.type == variable_type_t.SCALAR else raw.value)


API = Api(_STRUCTS + "".join(f"{row.declared};\n" for row in TABLE.values()), {}, lambda *fault: None)
API.classes.update(dim4=dim4, dim2=dim2, padding_t=padding_t)
_READ: dict[str, Read] = {
    "scalar_t": lambda address: scalar_t(ctypes.c_uint32.from_address(address).value),
    "const variable_t *": _variable,
}
_WRITE: dict[str, Write] = {"scalar_t": _write_scalar}

LIBRARY = CLibrary(
    "tpukernel",
    API,
    PREAMBLE,
    {"pointer_t": "void *"},
    {"pointer_t": "tpukernel_nothing()"},
    kernel_calls(FUNCTIONS, API, recorder_or_none),
    headers=("tpu_kernel.h", "tpu_defs.h"),
    extras=lambda: {name: declared(__file__, name) for name in ("common_def.h", "tpu_utils.h")},
    includes=("<stdio.h>", "<stdlib.h>"),
    numbers={
        "pointer_t": ctypes.c_uint64,
        **dict.fromkeys(("data_type_t", "rounding_mode_t"), ctypes.c_int32),
        **{name: ctypes.c_uint32 if c[-3:] == "int" else ctypes.c_uint64 for name, c in _ADDRESSES.items()},
    },
    by_value=frozenset({"scalar_t"}),
    read=_READ,
    write=_WRITE,
    after={"dim4": _OF_DIMS},
    unplaced=frozenset(_THEIR_OWN),
)
