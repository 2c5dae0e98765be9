"""The BMKernel library: the C declarations of bmkernel.h, and what their types take."""

from __future__ import annotations

from typing import NoReturn

from bmcompiler.capi.api import Api, Prototype, declared
from bmcompiler.capi.kinds import Fault, anything, boolean, instance, integer, signed, text, unsigned
from bmcompiler.errors import EncodingError


def _refuse(prototype: Prototype, parameter: str, fault: Fault) -> NoReturn:
    raise EncodingError(f"{prototype.name}: {fault.of(parameter)}")


KERNEL = Api(
    declared(__file__, "bmkernel.h"),
    {
        "bool": boolean(),
        "int": signed("int", 32),
        "u8": unsigned("u8", 8),
        "u32": unsigned("u32", 32),
        "u64": unsigned("u64", 64),
        "const8": integer("s8", -128, 255),
        "const16": integer("s16", -0x8000, 0xFFFF),
        "fmt_t": unsigned("fmt_t", 32),
        "ctrl_t": unsigned("ctrl_t", 32),
        "laddr_t": unsigned("laddr_t", 32),
        "u8 *": instance("u8 *", bytearray, "a bytearray"),
        "const char *": text(),
        "params_t": instance("const void *", (bytes, bytearray, memoryview), "bytes"),
        "void *": anything("void *"),
    },
    _refuse,
)
"""Handles (`ctx_t`, `reader_t` and `op_t`, all `void *` in C) and structures are added by their classes."""
