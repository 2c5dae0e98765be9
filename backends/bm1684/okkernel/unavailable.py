"""What the vendor's library has and this one does not offer, with the reason."""

from __future__ import annotations

_PACKED = "fixed_point_packed_"
_REASONS = {
    "packed numbers of 8 and 16 bits are not offered: a word of their tensors holds bytes of four images or "
    "halfwords of two, and what the library makes of their op_type was not recorded; a compiled network has these "
    "commands": (
        *(f"bdc_{_PACKED}{name}{end}" for name in ("add", "sub", "mul", "mac", "max", "min") for end in ("", "_C")),
        *(f"bdc_{_PACKED}16bit_{word}_shift{end}" for word in ("arithmetic", "logical") for end in ("", "_C")),
        *(f"bdc_{_PACKED}16bit_C_{word}_shift" for word in ("arithmetic", "logical")),
        *(f"bdc_{_PACKED}16bit_{name}" for name in ("mul_8bit", "split_high_8bit", "split_low_8bit")),
        f"bdc_{_PACKED}C_sub",
        f"bdc_{_PACKED}s16_mul_u8_to_s16",
        "bdc_4N_int8_to_fp32",
        "bdc_fp32_to_4N_int8",
        "bdc_int8_to_fp32",
    ),
    "a kernel is recorded before its commands run, so that it can look into no memory": (
        "global_mem_addr",
        "local_mem_addr",
        "l2_sram_addr",
        "dtcm_addr",
    ),
    "the library keeps the ids of commands itself": (
        "set_id_node",
        "get_id_node",
        "enable_check_id_node",
        "disable_check_id_node",
    ),
    "its prototype is not in the public header": (
        "64_byte_aligned_feature_size",
        "bdc_avg_pool2d_v2",
        "bdc_conv2d_kernel_const",
        "bdc_npu_bcast",
        "gdma_compact_S2L",
    ),
    "its table of the processor is the vendor's own": ("lookup_table_start_addr", "lookup_table_size"),
}
UNAVAILABLE = {f"okk_{name}": reason for reason, names in _REASONS.items() for name in names}
"""Function name -> reason."""
