"""libdmpdv.so: the DV driver interface for C."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from bmcompiler.backends.dv.driver import structs
from bmcompiler.capi.buffers import caller_memory, text
from bmcompiler.capi.library import CLibrary, Read, Write
from bmcompiler.errors import BMError
from bmcompiler.runtime import dmp_dv
from bmcompiler.runtime.dmp_dv.handles import Handle
from bmcompiler.runtime.dmp_dv.messages import report
from bmcompiler.runtime.dmp_dv.prototypes import DRIVER

_FLAGS = "".join(
    f"#define DMP_DV_{name} {getattr(dmp_dv, name)}\n"
    for name in ("MEM_CPU_WONT_READ", "MEM_AS_DEV_OUTPUT", "MEM_CPU_HADNT_READ")
)
_IMAGES = "".join(f"#define DMP_DV_{one.name} {int(one)}\n" for one in structs.ImageFormat)
_IMAGES += "#define DMP_DV_CNV_FP16_SUB 0\n#define DMP_DV_CNV_FP16_DIV_255 1\n"
PREAMBLE = f"""typedef struct dmp_dv_context_impl *dmp_dv_context;
typedef struct dmp_dv_mem_impl *dmp_dv_mem;
typedef struct dmp_dv_cmdlist_impl *dmp_dv_cmdlist;
/* A place in device memory, `offs` bytes from its beginning; `mem` 0 is none. */
typedef struct dmp_dv_buf {{
    __extension__ union {{ dmp_dv_mem mem; uint64_t rsvd; }};
    uint64_t offs;
}} dmp_dv_buf;
{_FLAGS}{_IMAGES}"""
_DEVICES = "".join(f"#define DMP_DV_DEV_{one.name} {int(one)}\n" for one in structs.DeviceType)
PREAMBLE += f"{_DEVICES}#define DMP_DV_DEV_COUNT {structs.DEVICE_TYPES}\n{structs.TEXT}"

_MOST_STRINGS = 1024
_handles: dict[int, Handle] = {}
_sweep = [4096]  # at so many handles those without an object are forgotten
_strings: dict[str, Any] = {}


def _read(number: int) -> object:
    return _handles.get(number, _handles) if number else None


def _write(address: int, value: Handle | None) -> None:
    """The number of a handle is the one that commands name it by."""
    if value is not None:
        _handles[value.value] = value
        if len(_handles) > _sweep[0]:
            for number in [number for number, one in list(_handles.items()) if not one.alive]:
                _handles.pop(number, None)
            _sweep[0] = max(4096, 2 * len(_handles))
    ctypes.c_uint64.from_address(address).value = 0 if value is None else value.value


def _write_text(address: int, value: str | None) -> None:
    """A string stays where it is until so many others were given out."""
    if len(_strings) >= _MOST_STRINGS and value not in _strings:
        _strings.pop(next(iter(_strings)), None)
    buffer = None if value is None else _strings.setdefault(value, ctypes.create_string_buffer(value.encode()))
    ctypes.c_uint64.from_address(address).value = 0 if buffer is None else ctypes.addressof(buffer)


def _write_array(address: int, value: Any) -> None:
    ctypes.c_uint64.from_address(address).value = 0 if value is None else value.ctypes.data


def _sized(address: int) -> Any:
    """A structure that begins with its size."""
    return _bytes(address, max(8, ctypes.c_uint32.from_address(address).value), "the structure") if address else None


def _bytes(address: int, size: int, title: str) -> Any:
    """Memory of the program; what is wrong with it is the driver's last message, too."""
    try:
        return caller_memory(address, size, title)
    except BMError as error:
        report(str(error))
        raise


def _packer(function: Callable[..., int], dims: int, slopes: bool) -> Callable[[Any, int], None]:
    """A packer: sizes follow from its dimensions, and from the given room."""

    def act(slots: Any, result: int) -> None:
        sizes = [ctypes.c_int32(slots[index]).value for index in range(dims)]
        outputs = sizes[3] if slopes else max(0, sizes[3]) * max(0, sizes[4]) * max(0, sizes[5])
        inputs = max(0, sizes[0]) * max(0, sizes[1]) * max(0, sizes[2])
        quant, weights, bias, *rest = slots[dims : dims + 6]
        extra = [_bytes(rest.pop(0), 2 * outputs, "prelu")] if slopes else []
        cell = ctypes.c_size_t.from_address(rest[1]) if rest[1] else None
        target = _bytes(rest[0], cell.value if cell is not None else 0, "packed_weights")
        count = inputs * max(0, outputs)
        arrays = (
            _bytes(quant, 512, "quant_map"),
            _bytes(weights, count if quant else 2 * count, "weights"),
            _bytes(bias, 2 * outputs, "bias"),
        )
        ctypes.c_int32.from_address(result).value = function(*sizes, *arrays, *extra, target, cell)

    return act


_READ: dict[str, Read] = {
    "const char *": text,
    **dict.fromkeys(("dmp_dv_context", "dmp_dv_mem", "dmp_dv_cmdlist"), _read),
    **dict.fromkeys(("struct dmp_dv_info *", "struct dmp_dv_cmdraw *"), _sized),
}
_WRITE: dict[str, Write] = {
    **dict.fromkeys(("dmp_dv_context", "dmp_dv_mem", "dmp_dv_cmdlist"), _write),
    "const char *": _write_text,
    "uint8_t *": _write_array,
}

LIBRARY = CLibrary(
    "dmpdv",
    DRIVER,
    PREAMBLE,
    {
        "errno_t": "int",
        "status_t": "int",
        "counter_t": "int",
        "exec_id_t": "int64_t",
        "exec_time_t": "int64_t",
        "pointer_t": "void *",
        "const_pointer_t": "const void *",
    },
    {"errno_t": "22", "status_t": "-1", "exec_id_t": "-22", "exec_time_t": "-1"},
    lambda name: getattr(dmp_dv, name),
    headers=("dmpdv.h", "dmp_dv.h", "dmp_dv_cmdraw_v0.h", "dmp_dv_cmdraw_v1.h"),
    read=_READ,
    write=_WRITE,
    special={
        "dmp_dv_pack_conv_weights": _packer(dmp_dv.dmp_dv_pack_conv_weights, 4, True),
        "dmp_dv_pack_dil_weights": _packer(dmp_dv.dmp_dv_pack_dil_weights, 4, True),
        "dmp_dv_pack_fc_weights": _packer(dmp_dv.dmp_dv_pack_fc_weights, 6, False),
    },
    formatted=frozenset({"dmp_dv_set_last_error_message"}),
)
