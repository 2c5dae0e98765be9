"""The DV driver interface (dmp_dv.h), same names and parameters in Python form, on a simulated device.

Handles are objects and None is NULL; in command structures a memory handle is its number, `mem.value`. Pointers are
any objects with a buffer, `size_t *` is ctypes.c_size_t or a list or array with one element. Codes are C's: 0, -1,
errno values; strings and handles are None on failure, and `dmp_dv_get_last_error_message()` says why.

    ctx = dmp_dv_context_create()
    mem = dmp_dv_mem_alloc(ctx, 4096)
    dmp_dv_mem_map(mem)[:] = ...
    cmdlist = dmp_dv_cmdlist_create(ctx)
    dmp_dv_cmdlist_add_raw(cmdlist, ConvCommand(...).encode())
    dmp_dv_cmdlist_commit(cmdlist)
    dmp_dv_cmdlist_wait(cmdlist, dmp_dv_cmdlist_exec(cmdlist))

Where the wiki and the current headers differ, this follows the headers (dv.md 0): release and retain return counters,
the packers of convolutions take slopes.
"""

from __future__ import annotations

from bmcompiler.runtime.dmp_dv.cmdlist import (
    DvCmdlist,
    dmp_dv_cmdlist_add_raw,
    dmp_dv_cmdlist_commit,
    dmp_dv_cmdlist_create,
    dmp_dv_cmdlist_exec,
    dmp_dv_cmdlist_get_last_exec_time,
    dmp_dv_cmdlist_release,
    dmp_dv_cmdlist_retain,
    dmp_dv_cmdlist_wait,
)
from bmcompiler.runtime.dmp_dv.context import (
    DvContext,
    dmp_dv_context_create,
    dmp_dv_context_get_info,
    dmp_dv_context_get_info_string,
    dmp_dv_context_release,
    dmp_dv_context_retain,
    dmp_dv_device_exists,
    dmp_dv_fpga_device_exists,
    new_info,
)
from bmcompiler.runtime.dmp_dv.memory import (
    MEM_AS_DEV_OUTPUT,
    MEM_CPU_HADNT_READ,
    MEM_CPU_WONT_READ,
    DvMem,
    dmp_dv_mem_alloc,
    dmp_dv_mem_get_size,
    dmp_dv_mem_get_total_size,
    dmp_dv_mem_map,
    dmp_dv_mem_release,
    dmp_dv_mem_retain,
    dmp_dv_mem_sync_end,
    dmp_dv_mem_sync_start,
    dmp_dv_mem_to_cpu,
    dmp_dv_mem_to_device,
    dmp_dv_mem_unmap,
)
from bmcompiler.runtime.dmp_dv.messages import (
    dmp_dv_get_last_error_message,
    dmp_dv_get_version_string,
    dmp_dv_set_last_error_message,
)
from bmcompiler.runtime.dmp_dv.weights import dmp_dv_pack_conv_weights, dmp_dv_pack_dil_weights, dmp_dv_pack_fc_weights

__all__ = [
    "MEM_AS_DEV_OUTPUT", "MEM_CPU_HADNT_READ", "MEM_CPU_WONT_READ", "DvCmdlist", "DvContext", "DvMem",
    "dmp_dv_cmdlist_add_raw", "dmp_dv_cmdlist_commit", "dmp_dv_cmdlist_create", "dmp_dv_cmdlist_exec",
    "dmp_dv_cmdlist_get_last_exec_time", "dmp_dv_cmdlist_release", "dmp_dv_cmdlist_retain", "dmp_dv_cmdlist_wait",
    "dmp_dv_context_create", "dmp_dv_context_get_info", "dmp_dv_context_get_info_string", "dmp_dv_context_release",
    "dmp_dv_context_retain", "dmp_dv_device_exists", "dmp_dv_fpga_device_exists", "dmp_dv_get_last_error_message",
    "dmp_dv_get_version_string", "dmp_dv_mem_alloc", "dmp_dv_mem_get_size", "dmp_dv_mem_get_total_size",
    "dmp_dv_mem_map", "dmp_dv_mem_release", "dmp_dv_mem_retain", "dmp_dv_mem_sync_end", "dmp_dv_mem_sync_start",
    "dmp_dv_mem_to_cpu", "dmp_dv_mem_to_device", "dmp_dv_mem_unmap", "dmp_dv_pack_conv_weights",
    "dmp_dv_pack_dil_weights", "dmp_dv_pack_fc_weights", "dmp_dv_set_last_error_message", "new_info",
]  # fmt: skip
