"""The BMNet library: the declarations of bmnet.h, and what their types take."""

from __future__ import annotations

from typing import NoReturn

from bmcompiler.capi.api import Api, Prototype, declared
from bmcompiler.capi.kinds import Fault, anything, integer, path, real, signed, text
from bmcompiler.errors import UsageError


def _refuse(prototype: Prototype, parameter: str, fault: Fault) -> NoReturn:
    raise UsageError(f"{prototype.name}: {fault.of(parameter)}")


BMNET = Api(
    declared(__file__, "bmnet.h"),
    {
        "int": signed("int", 32),
        "long": signed("long", 64),
        "dim_t": integer("int", 1, (1 << 31) - 1),
        "float": real(),
        "const char *": text(),
        "path_t": path(),
        "CHIP_VER": anything("CHIP_VER"),
    },
    _refuse,
)
