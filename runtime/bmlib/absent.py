"""Functions of BMLib about what a simulated card has not: they are there, so that programs link, and say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bmcompiler.errors import UnsupportedError
from bmcompiler.runtime.bmlib.formed import of_table
from bmcompiler.runtime.bmlib.types import BMLIB

_LACKING = {
    "boot loader": ("bm_get_boot_loader_version",),
    "video and picture units": ("bm_get_vpu_instant_usage", "bm_get_jpu_core_usage", "bm_get_vpp_instant_usage"),
    "clock": (
        "bm_set_clk_tpu_freq", "bm_get_clk_tpu_freq", "bm_get_tpu_maxclk", "bm_get_tpu_minclk", "bm_get_dynfreq_status",
        "bm_change_dynfreq_status",
    ),
    "power meter": (
        "bm_get_tpu_current", "bm_get_board_max_power", "bm_get_board_power", "bm_get_tpu_power", "bm_get_tpu_volt",
        "bm_get_12v_atx",
    ),
    "fan": ("bm_get_fan_speed",),
    "temperature sensor": ("bm_get_board_temp", "bm_get_chip_temp"),
    "error-correcting memory": ("bm_get_ecc_correct_num",),
    "serial number": ("bm_get_product_sn", "bm_get_sn"),
    "performance monitor": ("bm_enable_perf_monitor", "bm_disable_perf_monitor"),
    "debug mode of a driver": ("bm_set_debug_mode", "bmlib_set_api_dbg_callback"),
    "firmware": ("bm_load_firmware", "okkernel_load_firmware", "bmkernel_launch", "bmkernel_load_lookup_table"),
    "Arm processor": (
        "bm_gmem_arm_reserved_request", "bm_gmem_arm_reserved_release", "bmcpu_get_cpu_status", "bmcpu_start_cpu",
        "bmcpu_open_process", "bmcpu_load_library", "bmcpu_unload_library", "bmcpu_exec_function",
        "bmcpu_exec_function_ext", "bmcpu_exec_function_async", "bmcpu_exec_function_async_ext",
        "bmcpu_query_exec_function_result", "bmcpu_map_phys_addr", "bmcpu_unmap_phys_addr", "bmcpu_close_process",
        "bmcpu_reset_cpu", "bmcpu_set_log", "bmcpu_get_log", "bmcpu_sync_time",
    ),
}  # fmt: skip


def _without(what: str) -> Callable[..., Any]:
    def refuse(*_: Any) -> Any:
        raise UnsupportedError(f"a simulated card has no {what}")

    return refuse


globals().update(
    {
        name: of_table(BMLIB, BMLIB.functions[name], _without(what), f"Refused: a simulated card has no {what}.")
        for what, names in _LACKING.items()
        for name in names
    }
)
