"""BMLib and BMRuntime: the host libraries of the BM1684 and BM1684X, by the vendor's names.

    code, handle = bm_dev_request(0)
    code, memory = bm_malloc_device_byte(handle, 64)
    bm_memcpy_s2d(handle, memory, array)
    runtime = bmrt_create(handle)
    bmrt_load_bmodel(runtime, "net.bmodel")

Results that C stores at pointers are returned behind the code; functions without a code return None, False or 0 where
they fail. The reason goes to the log "bmcompiler.runtime".
"""

from __future__ import annotations

from bmcompiler.runtime.bmlib import (
    absent,
    cards,
    cores,
    formed,
    functions,
    kernels,
    launches,
    loading,
    mapping,
    networks,
    transfers,
)
from bmcompiler.runtime.bmlib.types import (
    BM_MEM_ADDR_NULL,
    BmDataType,
    BmStatus,
    bm_device_mem_t,
    bm_net_info_t,
    bm_shape_t,
    bm_stage_info_t,
    bm_tensor_t,
)

__all__ = [
    "BM_MEM_ADDR_NULL", "BmDataType", "BmStatus", "bm_device_mem_t", "bm_net_info_t", "bm_shape_t", "bm_stage_info_t",
    "bm_tensor_t",
]  # fmt: skip
_PREFIXES = "bm_", "sg_", "bmrt_", "tpu_", "bmlib_", "bmcpu_", "bmkernel_", "okkernel_"
for _module in (functions, mapping, cards, kernels, transfers, formed, absent, networks, launches, cores, loading):
    _names = [name for name in vars(_module) if name.startswith(_PREFIXES)]
    globals().update({name: getattr(_module, name) for name in _names})
    __all__ += [name for name in _names if name not in __all__]
