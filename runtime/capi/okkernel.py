"""libokkernel.so: okkernel for kernels in C of the BM1684. A kernel is run by the launches of libbmlib.so."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from bmcompiler.backends.bm1684.okkernel import FUNCTIONS, TABLE, Padding, dim2, dim4
from bmcompiler.backends.bm1684.okkernel.recorder import recorder_or_none
from bmcompiler.backends.bm1684.okkernel.types import fp32_or_addr_t, x32_or_addr_t
from bmcompiler.backends.bm1684.okkernel.unavailable import UNAVAILABLE
from bmcompiler.capi.api import Api, declared
from bmcompiler.capi.library import CLibrary
from bmcompiler.runtime.capi.kernel_calls import kernel_calls

_STRUCTS = """
typedef struct { int n, c, h, w; } dim4;
typedef struct { int h, w; } dim2;
typedef struct { int top, bottom, left, right; } Padding;
"""
_ADDRESSES = {
    "local_addr_t": "unsigned int",
    "system_addr_t": "unsigned long long",
    "global_addr_t": "unsigned long long",
}
_BITS: dict[str, Any] = {"x32": ctypes.c_uint32, "x16": ctypes.c_uint16, "x8": ctypes.c_uint8}

PREAMBLE = (
    "".join(f"typedef {c_type} {name};\n" for name, c_type in _ADDRESSES.items())
    + declared(__file__, "okkernel.h")
    + "".join(f'OKKERNEL_NOT_OFFERED({name}, "{why}")\n' for name, why in UNAVAILABLE.items())
)


API = Api(_STRUCTS + "".join(f"{row.declared};\n" for row in TABLE.values()), {}, lambda *fault: None)
API.classes.update(dim4=dim4, dim2=dim2, Padding=Padding)


class _Choice(ctypes.Structure):
    _fields_ = [("is_addr", ctypes.c_bool), ("context", ctypes.c_uint32)]


def _read_choice(kind: type[Any]) -> Callable[[int], Any]:
    def read(address: int) -> Any:
        raw = _Choice.from_address(address) if address else None
        if raw is None or raw.is_addr or kind is x32_or_addr_t:
            return None if raw is None else kind(raw.is_addr, raw.context)
        return kind(False, ctypes.c_float.from_address(address + _Choice.context.offset).value)

    return read


def _read_bits(name: str) -> Callable[[int], int]:
    return lambda address: _BITS[name].from_address(address).value


LIBRARY = CLibrary(
    "okkernel",
    API,
    PREAMBLE,
    {},
    {},
    kernel_calls(FUNCTIONS, API, recorder_or_none),
    headers=("okk.h", "okk_param.h"),
    includes=("<stdio.h>", "<stdlib.h>"),
    numbers={name: ctypes.c_uint32 if c[-3:] == "int" else ctypes.c_uint64 for name, c in _ADDRESSES.items()},
    by_value=frozenset(_BITS),
    read={
        **{name: _read_bits(name) for name in _BITS},
        **{f"const {kind.__name__} *": _read_choice(kind) for kind in (fp32_or_addr_t, x32_or_addr_t)},
    },
    unplaced=frozenset(),
)
