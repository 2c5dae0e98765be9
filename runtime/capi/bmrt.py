"""libbmrt.so: networks of the BM1684 and BM1684X for C."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from bmcompiler.capi.buffers import buffered, text
from bmcompiler.capi.library import HANDLES, CLibrary, Read, Write
from bmcompiler.errors import RuntimeUseError
from bmcompiler.runtime import bmlib
from bmcompiler.runtime.bmlib.networks import NetworkRuntime
from bmcompiler.runtime.bmlib.types import (
    BMRT,
    MAX_DIMS,
    BmDataType,
    bm_device_mem_t,
    bm_net_info_t,
    bm_stage_info_t,
    item_bytes,
)
from bmcompiler.runtime.capi.mem_info import mem_info_reader, mem_info_writer
from bmcompiler.runtime.capi.rt_tensors import RuntimeTensors

_TYPES = ", ".join(f"BM_{one.name} = {int(one)}" for one in BmDataType)
PREAMBLE = f"""typedef enum bm_data_type_e {{ {_TYPES}, BM_INT4 = 9, BM_UINT4 = 10 }} bm_data_type_t;
typedef enum bm_store_mode_e {{ BM_STORE_1N = 0, BM_STORE_2N = 1, BM_STORE_4N = 2 }} bm_store_mode_t;
typedef enum bm_runtime_flag_e {{ BM_RUNTIME_AUTO = 0, BM_RUNTIME_SHARE_MEM = 1, BM_RUNTIME_CHECK_MEM = 2,
    BM_RUNTIME_SHARE_DYNMEM = 4, BM_RUNTIME_SOC_CMDBUF_MEM = 8, BM_RUNTIME_FREE_COEFF = 16,
    BM_RUNTIME_NEURON_MEM_IN_PRE_ALLOC = 32, BM_RUNTIME_YIELD_TO_KERNEL_TASK = 64 }} bm_runtime_flag_t;
typedef enum {{ ADDR_MODE_BASIC = 0, ADDR_MODE_IO_ALONE = 1, ADDR_MODE_IO_TAG = 2, ADDR_MODE_IO_TAG_FUSE = 3,
    ADDR_MODE_IO_RELOC = 4 }} addr_mode_t;
#define BM_MAX_DIMS_NUM {MAX_DIMS}
"""
_ENUMS = "bm_data_type_t", "bm_store_mode_t"
_C = ctypes.CDLL(None)
_C.malloc.restype, _C.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
_infos: WeakKeyDictionary[NetworkRuntime, dict[str, list[Any]]] = WeakKeyDictionary()
"""What network infos consist of; it lives as long as the runtime."""


def _readable(
    runtime: object, name: str | None, input_num: int, output_num: int
) -> tuple[bm_net_info_t | None, int, int]:
    """The network of that name, and how many inputs and outputs are read: none where the caller's number is wrong."""
    usable = isinstance(runtime, NetworkRuntime) and not runtime.ended()
    found = runtime.networks.get(name or "") if isinstance(runtime, NetworkRuntime) and usable else None
    if found is None:
        return None, 0, 0
    ins, outs = len(found.info.input_names), len(found.info.output_names)
    return found.info, ins if input_num == ins else 0, outs if output_num == outs else 0


def _launch(name: str) -> Callable[[Any, int], None]:
    function, options = getattr(bmlib, name), _options(name)

    def act(slots: Any, result: int) -> None:
        runtime, title = HANDLES.read(slots[0]), text(slots[1])
        input_num, output_num = ctypes.c_int32(slots[3]).value, ctypes.c_int32(slots[5]).value
        _, ins, outs = _readable(runtime, title, input_num, output_num)
        rest = options(slots)
        own = bool(rest.get("user_mem"))  # memory of the caller, whose tensors are read
        outputs: Any = _TENSORS.tensors(slots[4], outs if own else 0)
        if outputs is not None and not own:
            outputs = [None] * outs
        done = function(runtime, title, _TENSORS.tensors(slots[2], ins), input_num, outputs, output_num, **rest)
        if done:
            _TENSORS.write_tensors(slots[4], outputs)
        ctypes.c_bool.from_address(result).value = done

    return act


def _options(name: str) -> Callable[[Any], dict[str, Any]]:
    """What stands behind a launch's number of outputs, by name."""
    places = {one.name: index for index, one in enumerate(BMRT.functions[name].parameters)}
    after = [one for one in places if places[one] > places["output_num"] and one not in ("core_list", "core_num")]

    def read(slots: Any) -> dict[str, Any]:
        given: dict[str, Any] = {
            one: slots[places[one]] if one == "thread_idx" else bool(slots[places[one]] & 0xFF) for one in after
        }
        return given | (_cores(slots, places["core_list"]) if "core_list" in places else {})

    return read


def _cores(slots: Any, place: int) -> dict[str, Any]:
    """The list of cores, read where it has one, and their number."""
    address, count = slots[place], ctypes.c_int32(slots[place + 1]).value
    cores = [ctypes.c_int32.from_address(address).value] if address and count == 1 else None
    return {"core_list": cores, "core_num": count}


def _of_cores(name: str) -> Callable[[Any, int], None]:
    """A function whose last parameters are a list of cores and their number."""
    prototype = BMRT.functions[name]

    def act(slots: Any, result: int) -> None:
        plain = list(enumerate(prototype.parameters[:-2]))
        values = [LIBRARY.reader(one.c_type)(slots[index]) for index, one in plain]
        found = LIBRARY.functions(name)(*values, **_cores(slots, len(plain)))
        if found is not None:
            LIBRARY.writer(prototype.result)(result, found)

    return act


def _stage_index(slots: Any, result: int) -> None:
    runtime, title = HANDLES.read(slots[0]), text(slots[1])
    usable = isinstance(runtime, NetworkRuntime) and not runtime.ended()
    found = runtime.networks.get(title or "") if isinstance(runtime, NetworkRuntime) and usable else None
    tensors = _TENSORS.tensors(slots[2], len(found.info.input_names) if found else 0)
    index = LIBRARY.functions("bmrt_get_stage_index")(runtime, title, tensors)
    ctypes.c_int32.from_address(result).value = -1 if index is None else index


def _net_info(address: int) -> bm_net_info_t | None:
    """The network whose info `bmrt_get_network_info` put at an address."""
    if not address:
        return None
    for runtime, infos in list(_infos.items()):
        for name, kept in infos.items():
            if name in runtime.networks and kept and ctypes.addressof(kept[-1]) == address:
                return runtime.networks[name].info
    raise RuntimeUseError("net_info is none that bmrt_get_network_info gave")


def _launch_data(name: str) -> Callable[[Any, int], None]:
    options = _options(name)
    return lambda slots, result: _launch_buffers(name, options, slots, result)


def _launch_buffers(name: str, options: Callable[[Any], dict[str, Any]], slots: Any, result: int) -> None:
    runtime, title = HANDLES.read(slots[0]), text(slots[1])
    input_num, output_num = (ctypes.c_int32(slots[index]).value for index in (4, 7))
    rest = options(slots)
    user_mem = bool(rest["user_mem"])
    info, ins, outs = _readable(runtime, title, input_num, output_num)
    shapes = _TENSORS.shapes(slots[3], ins)
    sizes = [item_bytes(dtype) * one.count for one, dtype in zip(shapes or (), info.input_dtypes if info else ())]
    inputs = _buffers(slots[2], sizes)
    rooms = info.max_output_bytes[:outs] if info is not None else ()
    outputs: list[Any] | None = _buffers(slots[5], rooms) if user_mem else [None] * outs
    found: list[Any] = [None] * outs
    given = (inputs, shapes, input_num, outputs if slots[5] else None, found if slots[6] else None)
    done = LIBRARY.functions(name)(runtime, title, *given, output_num, **rest)
    if done:
        _TENSORS.write_shapes(slots[6], found)
    for index in range(outs if done else 0):
        if not user_mem and outputs is not None:
            ctypes.c_uint64.from_address(slots[5] + 8 * index).value = _owned(outputs[index])
    ctypes.c_bool.from_address(result).value = done


def _buffers(address: int, sizes: Sequence[int]) -> list[Any] | None:
    """Memory of the caller, by an array of its addresses."""
    if not address:
        return None
    starts = (ctypes.c_uint64 * len(sizes)).from_address(address)
    return [(ctypes.c_uint8 * size).from_address(start) if start else None for start, size in zip(starts, sizes)]


def _owned(array: Any) -> int:
    """A copy that the caller frees."""
    address = _C.malloc(max(1, array.nbytes))
    if not address:
        raise MemoryError("no memory for an output")
    ctypes.memmove(address, array.ctypes.data, array.nbytes)
    return int(address)


def _create_ex(slots: Any, result: int) -> None:
    count = ctypes.c_int32(slots[1]).value
    handles = [HANDLES.read(ctypes.c_uint64.from_address(slots[0]).value)] if slots[0] and count == 1 else []
    made = LIBRARY.functions("bmrt_create_ex")(handles if slots[0] else None, count)
    ctypes.c_uint64.from_address(result).value = HANDLES.number(made)


def _names(slots: Any, result: int) -> None:
    """The array belongs to the caller, who frees it; the names are the runtime's."""
    runtime = HANDLES.read(slots[0])
    if not slots[1]:
        raise RuntimeUseError("bmrt_get_network_names: network_names is NULL")
    names = LIBRARY.functions("bmrt_get_network_names")(runtime)[1]
    if names is None:
        return
    address = _C.malloc(8 * max(1, len(names)))
    if not address:
        raise MemoryError("no memory for the names of networks")
    for index, name in enumerate(names):
        ctypes.c_uint64.from_address(address + 8 * index).value = _text_of(runtime, name)
    ctypes.c_uint64.from_address(slots[1]).value = address


def _name(slots: Any, result: int) -> None:
    runtime = HANDLES.read(slots[0])
    name = LIBRARY.functions("bmrt_get_network_name")(runtime, ctypes.c_int32(slots[1]).value)
    ctypes.c_uint64.from_address(result).value = 0 if name is None else _text_of(runtime, name)


def _text_of(runtime: NetworkRuntime, name: str) -> int:
    kept = _infos.setdefault(runtime, {}).setdefault(f"name {name}", [])
    if not kept:
        kept.append(ctypes.create_string_buffer(name.encode()))
    return ctypes.addressof(kept[0])


def _info(slots: Any, result: int) -> None:
    runtime = HANDLES.read(slots[0])
    info = LIBRARY.functions("bmrt_get_network_info")(runtime, text(slots[1]))
    if info is None:
        ctypes.c_uint64.from_address(result).value = 0
        return
    kept = _infos.setdefault(runtime, {}).setdefault(info.name, [])
    if not kept:
        kept.append(_info_of(info, kept))
    ctypes.c_uint64.from_address(result).value = ctypes.addressof(kept[-1])


def _info_of(info: bm_net_info_t, kept: list[Any]) -> Any:
    """The structure; what it points to goes to `kept`."""

    def array(kind: Any, values: Sequence[Any]) -> int:
        made = (kind * len(values))(*values)
        kept.append(made)
        return ctypes.addressof(made)

    def string(value: str) -> int:
        kept.append(ctypes.create_string_buffer(value.encode()))
        return ctypes.addressof(kept[-1])

    raw = LIBRARY.layout("bm_net_info_t")()
    raw.name, raw.is_dynamic, raw.core_num, raw.addr_mode = string(info.name), info.is_dynamic, 1, info.addr_mode
    raw.input_num, raw.output_num, raw.stage_num = len(info.input_names), len(info.output_names), len(info.stages)
    for side in ("input", "output"):
        names = getattr(info, f"{side}_names")
        setattr(raw, f"{side}_names", array(ctypes.c_uint64, [string(one) for one in names]))
        setattr(raw, f"{side}_dtypes", array(ctypes.c_int32, getattr(info, f"{side}_dtypes")))
        setattr(raw, f"{side}_scales", array(ctypes.c_float, getattr(info, f"{side}_scales")))
        setattr(raw, f"{side}_zero_point", array(ctypes.c_int32, getattr(info, f"{side}_zero_point")))
        setattr(raw, f"max_{side}_bytes", array(ctypes.c_size_t, getattr(info, f"max_{side}_bytes")))
        setattr(raw, f"{side}_loc_devices", array(ctypes.c_int32, [0] * len(names)))
    stage_type = LIBRARY.layout("bm_stage_info_t")
    stages = (stage_type * len(info.stages))()
    kept.append(stages)
    for one, stage in zip(stages, info.stages):
        _fill_stage(one, stage, kept)
    raw.stages = ctypes.addressof(stages)
    return raw


def _fill_stage(raw: Any, stage: bm_stage_info_t, kept: list[Any]) -> None:
    for side in ("input", "output"):
        shapes, memories = getattr(stage, f"{side}_shapes"), getattr(stage, f"{side}_mems")
        for field, name, values in (("shapes", "bm_shape_t", shapes), ("mems", "bm_device_mem_t", memories)):
            array = (LIBRARY.layout(name) * len(values))()
            kept.append(array)
            for cell, value in zip(array, values):
                LIBRARY.writer(name)(ctypes.addressof(cell), value)
            setattr(raw, f"{side}_{field}", ctypes.addressof(array))


def _dims(slots: Any, result: int) -> None:
    count = ctypes.c_int32(slots[2]).value
    if not slots[0]:
        raise RuntimeUseError("bmrt_shape: shape is NULL")
    if not 1 <= count <= MAX_DIMS:
        raise RuntimeUseError(f"bmrt_shape: num_dims is {count}, must be 1..{MAX_DIMS}")
    dims = tuple((ctypes.c_int32 * count).from_address(slots[1])) if slots[1] else None
    shape = LIBRARY.functions("bmrt_shape")(dims, count)[1]
    if shape is not None:
        _TENSORS.write_shape(slots[0], shape)


def _size(values: dict[str, Any]) -> int:
    return int(values["size"])


_ON_CORES = "_multi_cores", "_multi_thread"
_OF_DATA = "bmrt_load_bmodel_data", "bmrt_load_bmodel_data_with_mem", "bmrt_get_bmodel_data_info"
_SHAPES = "bm_shape_t", "const bm_shape_t *"
_TENSORS = RuntimeTensors(lambda: LIBRARY)
_READ: dict[str, Read] = {
    **dict.fromkeys(("bm_handle_t", "runtime_t"), HANDLES.read),
    **dict.fromkeys(("const char *", "name_t"), text),
    **dict.fromkeys(_SHAPES, _TENSORS.shape),
    "const bm_tensor_t *": _TENSORS.tensor,
    "const bm_net_info_t *": _net_info,
    **dict.fromkeys(("mem_info_t *", "const mem_info_t *"), mem_info_reader(lambda: LIBRARY)),
}
_WRITE: dict[str, Write] = {
    **dict.fromkeys(("handle_t", "runtime_t"), HANDLES.write),
    "bm_shape_t": _TENSORS.write_shape,
    "bm_tensor_t": _TENSORS.write_tensor,
    "mem_info_t": mem_info_writer(lambda: LIBRARY),
}

LIBRARY: CLibrary = CLibrary(
    "bmrt",
    BMRT,
    PREAMBLE,
    {
        "runtime_t": "void *",
        "handle_t": "void *",
        "index_t": "int",
        "u64": "uint64_t",
        "name_t": "const char *",
        "names_t *": "const char ***",
        "tensors_t": "bm_tensor_t *",
        "handles_t": "bm_handle_t *",
        "buffers_t": "void *const *",
        "outputs_t": "void **",
        "shapes_t": "bm_shape_t *",
    },
    {"index_t": "-1"},
    lambda name: getattr(bmlib, name),
    needs=("bmlib",),
    headers=("bmruntime_interface.h", "bmdef.h"),
    includes=('"bmlib_runtime.h"',),
    numbers={**dict.fromkeys(_ENUMS, ctypes.c_int32), "u64": ctypes.c_uint64},
    read=_READ,
    write=_WRITE,
    skipped=frozenset({"bm_device_mem_t"}),
    special={
        **{name: buffered(lambda: LIBRARY, name, bmodel_data=_size) for name in _OF_DATA},
        "bmrt_load_bmodel_in_device": buffered(lambda: LIBRARY, "bmrt_load_bmodel_in_device", p_bmodel=_size),
        "bmrt_get_stage_index": _stage_index,
        **{name: _of_cores(name) for name in ("bmrt_pre_alloc_neuron_multi_cores", "bmrt_get_neuron_memory")},
        "bmrt_create_ex": _create_ex,
        "bmrt_shape": _dims,
        **{f"bmrt_launch_data{one}": _launch_data(f"bmrt_launch_data{one}") for one in ("", *_ON_CORES)},
        "bmrt_get_network_info": _info,
        "bmrt_get_network_name": _name,
        "bmrt_get_network_names": _names,
        **{f"bmrt_launch_tensor{one}": _launch(f"bmrt_launch_tensor{one}") for one in ("", "_ex", *_ON_CORES)},
    },
)
BMRT.classes["bm_device_mem_t"] = bm_device_mem_t
