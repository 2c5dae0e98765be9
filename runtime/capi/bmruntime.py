"""libbmruntime.so: the BM runtime for C."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from bmcompiler.capi.api import declared
from bmcompiler.capi.buffers import Size, buffered, caller_memory, text
from bmcompiler.capi.library import HANDLES, CLibrary, Read, Write
from bmcompiler.runtime import bmruntime
from bmcompiler.runtime.bmdevice import RUNTIME, UNSEEN, BmErr, BmMem, BmRuntimeError, BmShape
from bmcompiler.runtime.bmnet import BmNet, BmNetInfo, BmNetInputInfo, BmNetOutputInfo

_HANDLES = ("bmctx_t", "bmdev_t", "bmnet_t", "bmmem_device_t", "bmkernel_handle_t *")
_arrays: WeakKeyDictionary[BmNet, list[Any]] = WeakKeyDictionary()
"""What output infos of a net point to; it lives as long as the net."""


def _shape(address: int) -> BmShape | None:
    if not address:
        return None
    raw = LIBRARY.layout("bmshape_t").from_address(address)
    return BmShape(raw.fmt, tuple(raw.dim)[: max(0, min(raw.dim_size, len(raw.dim)))])


def _info(address: int) -> BmNetInfo | None:
    if not address:
        return None
    raw = LIBRARY.layout("bmnet_info_t").from_address(address)
    parts: list[Any] = []
    for pointer, size in ((raw.weight, raw.weight_size), (raw.cmdbuf, raw.cmdbuf_size)):
        found = caller_memory(pointer or 0, size, "info")
        parts.append(bytes(found) if found is not None else None if size else b"")
    weight, cmdbuf = parts
    return BmNetInfo(
        raw.batch_size, weight, cmdbuf, raw.neuron_size, raw.input_size, raw.output_offset, raw.output_size
    )


def _input_shape(address: int) -> tuple[int, ...]:
    return tuple((ctypes.c_uint32 * 5).from_address(address))[1:]


def _no_host_memory(slots: Any, result: int) -> None:
    raise BmRuntimeError(BmErr.NOT_SUPPORTED, "memory of the host is not supported")


def _enum_devices(slots: Any, result: int) -> None:
    count, infos = bmruntime.bm_enum_devices()
    if not slots[0]:
        raise BmRuntimeError(BmErr.INVALID_ARGUMENT, "bm_enum_devices: count is NULL")
    ctypes.c_int32.from_address(slots[0]).value = count
    size = ctypes.sizeof(LIBRARY.layout("bm_devinfo_t"))
    for index, info in enumerate(infos if slots[1] else ()):
        LIBRARY.store("bm_devinfo_t", slots[1] + index * size, info)


def _output_info(library: Callable[[], CLibrary]) -> Callable[[Any, int], None]:
    """`bmnet_get_output_info` with the structure as the library has it."""

    def act(slots: Any, result: int) -> None:
        net = HANDLES.read(slots[0])
        code, info = bmruntime.bmnet_get_output_info(net)
        if info is not None and not slots[1]:
            raise BmRuntimeError(BmErr.INVALID_ARGUMENT, "bmnet_get_output_info: output_info is NULL")
        ctypes.c_int32.from_address(result).value = code
        if info is not None:
            _fill(net, info, library().layout("bmnet_output_info_t").from_address(slots[1]))

    return act


def _input_info(slots: Any, result: int) -> None:
    net = HANDLES.read(slots[0])
    info = bmruntime.bmnet_get_input_info(net)
    if info is not None:
        raw = LIBRARY.layout("bmnet_input_info_t")()
        _fill(net, info, raw)
        ctypes.c_uint64.from_address(result).value = ctypes.addressof(raw)


def _model_info(library: Callable[[], CLibrary]) -> Callable[[Any, int], None]:
    """`bmnet_get_model_info` with the structures as the library has them."""

    def act(slots: Any, result: int) -> None:
        net = HANDLES.read(slots[0])
        found = bmruntime.bmnet_get_model_info(net)
        if found is None:
            return
        layout = library().layout
        name = ctypes.create_string_buffer(found.net_name.encode())
        ins = (layout("bmnet_input_info_t") * found.command_num)()
        outs = (layout("bmnet_output_info_t") * found.command_num)()
        for index, source in enumerate(found.input_info_array):
            _fill(net, source, ins[index])
        for index, result_info in enumerate(found.output_info_array):
            _fill(net, result_info, outs[index])
        places = [ctypes.addressof(one) for one in (name, ins, outs)]
        raw = layout("bmnet_model_info_t")(places[0], found.chip, found.command_num, *places[1:])
        _arrays[net].append([raw, name, ins, outs])
        ctypes.c_uint64.from_address(result).value = ctypes.addressof(raw)

    return act


def _memory_bytes(slots: Any, result: int) -> None:
    found = bmruntime.bmmem_device_v_addr(HANDLES.read(slots[0]), HANDLES.read(slots[1]))
    ctypes.c_uint64.from_address(result).value = 0 if found is None else found.ctypes.data


def _library_type(slots: Any, result: int) -> None:
    ctypes.c_uint64.from_address(result).value = ctypes.addressof(_KIND)


def _set_input_shapes(slots: Any, result: int) -> None:
    num = ctypes.c_int32(slots[2]).value
    size = ctypes.sizeof(ctypes.c_uint32 * 5)
    count = min(max(num, 0), _MOST_INPUTS)
    shapes = [_input_shape(slots[1] + index * size) for index in range(count)] if slots[1] else None
    code = bmruntime.bmnet_set_input_shape2(HANDLES.read(slots[0]), shapes, num)  # type: ignore[arg-type]
    ctypes.c_int32.from_address(result).value = code


_KIND = ctypes.create_string_buffer(bmruntime.bm_library_type().encode())
_MOST_INPUTS = 64


def _fill(net: BmNet, info: BmNetInputInfo | BmNetOutputInfo, raw: Any) -> None:
    """Store numbers and arrays of those fields that the structure has; the arrays live as long as the net."""
    shapes = [number for shape in info.shape_array for number in (4, *(*shape, 1, 1, 1, 1)[:4])]
    count = len(info.shape_array)
    arrays: dict[str, Any] = {
        "shape_array": (ctypes.c_uint32 * len(shapes))(*shapes),
        "threshold_array": (ctypes.c_float * count)(*info.threshold_array),
        "size_array": (ctypes.c_size_t * count)(*info.size_array),
        "fmt_array": (ctypes.c_uint32 * count)(*info.fmt_array),
    }
    if isinstance(info, BmNetOutputInfo):
        arrays["name_array"] = (ctypes.c_char_p * count)(*(name.encode() for name in info.name_array))
    for name, _ in raw._fields_:
        setattr(raw, name, ctypes.addressof(arrays[name]) if name in arrays else getattr(info, name))
    _arrays.setdefault(net, []).append([raw, arrays])


def _memory(values: dict[str, Any], name: str) -> int:
    mem = values[name]
    return mem.size if isinstance(mem, BmMem) and not mem.ended() else 0


def _inputs(values: dict[str, Any]) -> int:
    net = values["net"]
    return net.input_bytes if isinstance(net, BmNet) else 0


def _outputs(values: dict[str, Any]) -> int:
    net = values["net"]
    return net.output_bytes if isinstance(net, BmNet) else 0


def _inference(slots: Any, result: int) -> None:
    """What programs call in their loop, so that it is written out."""
    net = HANDLES.read(slots[0])
    ins, outs = (net.input_bytes, net.output_bytes) if isinstance(net, BmNet) else (0, 0)
    source = caller_memory(slots[1], ins, "bmnet_inference: input")
    target = caller_memory(slots[2], outs, "bmnet_inference: output")
    ctypes.c_int32.from_address(result).value = bmruntime.bmnet_inference(net, source, target)


def _count(values: dict[str, Any]) -> int:
    return max(0, int(values["neuron_size"]))


def _given(name: str) -> Size:
    """The bytes that another argument says."""
    return lambda values: int(values[name])


def _buffered(name: str, **sizes: Size) -> Callable[[Any, int], None]:
    return buffered(lambda: LIBRARY, name, **sizes)


LIBRARY_READ: dict[str, Read] = {
    **dict.fromkeys(_HANDLES, HANDLES.read),
    "bmshape_t *": _shape,
    "bmnet_info_t *": _info,
    "shape_t": _input_shape,
    "const char *": text,
    **dict.fromkeys(UNSEEN, lambda bits: None),
    **dict.fromkeys(("cpu_function_t", "user_t"), lambda bits: bits or None),
}
LIBRARY_WRITE: dict[str, Write] = dict.fromkeys(_HANDLES, HANDLES.write)

_HEADERS = "bmruntime", "bmruntime_bmnet", "bmruntime_bmkernel"

LIBRARY: CLibrary = CLibrary(
    "bmruntime",
    RUNTIME,
    declared(__file__, "runtime.h"),
    UNSEEN | {"cpu_function_t": "bmnet_cpu_function_t", "user_t": "void *"},
    {"bmerr_t": "BM_ERR_FAILURE"},
    lambda name: getattr(bmruntime, name),
    headers=("bmruntime.h", *(f"libbmruntime/{one}.h" for one in _HEADERS), "bmtap2.h"),
    numbers={"bmfmt_t": ctypes.c_int32},
    needs=("bmkernel",),
    includes=('"bmkernel.h"',),
    by_value=frozenset({"shape_t"}),
    written={"bm_devinfo_t": ""},
    read=LIBRARY_READ,
    write=LIBRARY_WRITE,
    special={
        **dict.fromkeys(
            ("bmmem_host_alloc", "bmmem_host_free", "bmmem_host_v_addr", "bmmem_host_p_addr"), _no_host_memory
        ),
        "bm_enum_devices": _enum_devices,
        "bm_library_type": _library_type,
        "bmmem_device_v_addr": _memory_bytes,
        "bmnet_get_model_info": _model_info(lambda: LIBRARY),
        "bmnet_get_output_info": _output_info(lambda: LIBRARY),
        "bmnet_get_input_info": _input_info,
        "bmnet_set_input_shape2": _set_input_shapes,
        "bm_memcpy_s2d_ex": _buffered("bm_memcpy_s2d_ex", src=_given("size")),
        "bm_memcpy_d2s_ex": _buffered("bm_memcpy_d2s_ex", dst=_given("size")),
        **{
            name: _buffered(name, cmdbuf=_given("sz"))
            for name in ("bm_load_cmdbuf", "bm_send_cmdbuf", "bm_run_cmdbuf_pio")
        },
        "bmnet_load_part_input": _buffered("bmnet_load_part_input", input=_given("size")),
        "bmnet_load_cmdbuf": _buffered("bmnet_load_cmdbuf", cmdbuf=_given("cmdbuf_size")),
        "bmnet_register_bmodel_data": _buffered("bmnet_register_bmodel_data", bmodel_data=_given("size")),
        "bmnet_inference_once": _buffered(
            "bmnet_inference_once",
            input=_given("input_size"),
            output=_given("output_size"),
            weight=_given("weight_size"),
            cmdbuf=_given("cmdbuf_size"),
        ),
        "bm_memcpy_s2d": _buffered("bm_memcpy_s2d", src=lambda v: _memory(v, "dst")),
        "bm_memcpy_d2s": _buffered("bm_memcpy_d2s", dst=lambda v: _memory(v, "src")),
        "bmnet_load_input": _buffered("bmnet_load_input", input=_inputs),
        "bmnet_store_output": _buffered("bmnet_store_output", output=_outputs),
        "bmnet_load_neuron": _buffered("bmnet_load_neuron", neuron=_count),
        "bmnet_store_neuron": _buffered("bmnet_store_neuron", neuron=_count),
        "bmnet_inference": _inference,
    },
)

LIBRARY_1_0_3: CLibrary = replace(
    LIBRARY,
    sdk="1.0.3",
    api=RUNTIME.without("bmnet_output_info_t", "size_array", "fmt_array"),
    special={
        **LIBRARY.special,
        "bmnet_get_model_info": _model_info(lambda: LIBRARY_1_0_3),
        "bmnet_get_output_info": _output_info(lambda: LIBRARY_1_0_3),
    },
)
"""For programs that were built with an SDK of 1.0.3, where the structure of outputs ends earlier."""
