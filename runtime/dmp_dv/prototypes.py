"""The DV driver interface: the C declarations of dmp_dv.h, and what their types take (dv.md 6)."""

from __future__ import annotations

import errno

from bmcompiler.capi.api import Api, Prototype, declared
from bmcompiler.capi.kinds import Fault, anything, buffer, signed, text, unsigned
from bmcompiler.runtime.dmp_dv.messages import report

_ON_FAILURE = {
    "errno_t": errno.EINVAL,
    "status_t": -1,
    "counter_t": 0,
    "size_t": 0,
    "exec_id_t": -errno.EINVAL,
    "exec_time_t": -1,
}


def _refuse(prototype: Prototype, parameter: str, fault: Fault) -> object:
    report(fault.of(parameter))
    return _ON_FAILURE.get(prototype.result)


DRIVER = Api(
    declared(__file__, "dmp_dv.h"),
    {
        "int": signed("int", 32),
        "exec_id_t": signed("int64_t", 64),
        "size_t": unsigned("size_t", 64),
        "pointer_t": anything("void *"),
        "const_pointer_t": anything("const void *"),
        "const char *": text(),
        **{
            one: buffer(one)
            for one in ("const uint16_t *", "const void *", "struct dmp_dv_info *", "struct dmp_dv_cmdraw *")
        },
    },
    _refuse,
)
