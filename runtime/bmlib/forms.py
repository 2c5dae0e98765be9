"""Forms of BMLib's functions that follow from another function by rule.

1. sg_NAME and bm_NAME_u64: descriptions of memory with 64-bit sizes; sizes, counts, offsets and strides have 64 bits
2. NAME_to_core, NAME_from_core, NAME_with_core: the last parameter is a core's number
3. another name
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bmcompiler.capi.api import Prototype, Variable

MEMORY = "bm_device_mem_t"
WIDE_MEMORIES = {"sg": "sg_device_mem_t", "u64": "bm_device_mem_u64_t"}
_BOTH = (
    "mem_get_type", "mem_get_device_addr", "mem_set_device_addr", "mem_get_device_size", "mem_set_device_size",
    "set_device_mem", "mem_from_device", "mem_get_system_addr", "mem_set_system_addr", "malloc_neuron_device",
    "malloc_device_dword", "malloc_device_byte", "malloc_device_byte_heap", "malloc_device_byte_heap_mask",
    "free_device", "memcpy_s2d", "memcpy_s2d_partial_offset", "memcpy_s2d_partial", "memcpy_d2s",
    "memcpy_d2s_partial_offset", "memcpy_d2s_partial", "mem_mmap_device_mem", "mem_mmap_device_mem_no_cache",
    "mem_invalidate_device_mem", "mem_invalidate_partial_device_mem", "mem_flush_device_mem",
    "mem_flush_partial_device_mem", "mem_unmap_device_mem", "get_gmem_heap_id",
)  # fmt: skip
_ONLY_U64 = "memcpy_d2d", "memcpy_d2d_byte", "memcpy_d2d_stride", "memset_device_ext"
_WIDENED = frozenset(
    ("size", "len", "count", "n", "c", "h", "w", "offset", "dst_offset", "src_offset", "dst_stride", "src_stride")
)
_WIDE = "unsigned long long"
_CORES = {
    "tpu_kernel_load_module_file": "to", "tpu_kernel_load_module": "to", "tpu_kernel_unload_module": "from",
    "tpu_kernel_get_function": "from", "tpu_kernel_launch": "from", "tpu_kernel_launch_async": "from",
    "bm_memcpy_d2d": "with", "bm_memcpy_d2d_byte": "with", "bm_memcpy_d2d_stride": "with", "bm_handle_sync": "from",
    "bm_thread_sync": "from",
}  # fmt: skip
_SAME = {
    "okkernel_launch_async": "tpu_kernel_launch_sync",
    "okkernel_launch_sync": "tpu_kernel_launch_sync",
    "okkernel_sync": "tpu_kernel_sync",
}


@dataclass(frozen=True)
class Form:
    """A function by rule: of which it is a form, its declaration, whether it has a core's number behind."""

    base: str
    prototype: Prototype
    of_core: bool = False


def forms(functions: Mapping[str, Prototype]) -> dict[str, Form]:
    """The forms of these functions, by name."""
    found: dict[str, Form] = {}
    for kind, struct in WIDE_MEMORIES.items():
        for base in _BOTH if kind == "sg" else _BOTH + _ONLY_U64:
            name = f"sg_{base}" if kind == "sg" else f"bm_{base}_u64"
            found[name] = Form(f"bm_{base}", _widened(functions[f"bm_{base}"], name, struct))
    for base, word in _CORES.items():
        name, one = f"{base}_{word}_core", functions[base]
        parameters = *one.parameters, Variable("core_id", "int")
        found[name] = Form(base, replace(one, name=name, parameters=parameters), of_core=True)
    for name, base in _SAME.items():
        found[name] = Form(base, replace(functions[base], name=name))
    return found


def _widened(one: Prototype, name: str, struct: str) -> Prototype:
    result = _WIDE if one.name == "bm_mem_get_device_size" else one.result.replace(MEMORY, struct)
    return Prototype(name, result, tuple(_wide(parameter, struct) for parameter in one.parameters))


def _wide(one: Variable, struct: str) -> Variable:
    return replace(one, c_type=_WIDE if one.name in _WIDENED else one.c_type.replace(MEMORY, struct))
