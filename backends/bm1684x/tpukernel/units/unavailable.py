"""Functions that the vendor declares and this library does not offer, with the reason of each."""

from __future__ import annotations

_MESSAGES = "engines of this chip wait for each other by command ids, not by messages; the commands are not known"
_SYSTEM_DMA = "this chip has one DMA engine; use the tpu_gdma function of that name"
_SORT = "the commands of the sort engine are not known"
_RECORDED = "a kernel is recorded before it runs, and cannot read what it computes"
_REFUSED = "the vendor's library refuses it on this chip"
_ABSENT = "the vendor's library of this chip does not have it"
_ROI = "what the region forms of the pooling unit compute is not known"
_ROWS = "rows of the vendor's layout for it are not known"
_WORDS = {
    _MESSAGES: """
        bdc_send_msg bdc_wait_msg gdma_send_msg gdma_wait_msg hau_send_msg hau_wait_msg sdma_send_msg sdma_wait_msg
        cdma_send_msg cdma_wait_msg bdc_set_base_msg_id gdma_set_base_msg_id hau_set_base_msg_id sdma_set_base_msg_id
        cdma_set_base_msg_id sync_core""",
    _SYSTEM_DMA: """
        sdma_cpy_S2S sdma_cpy_nc_trans_S2S sdma_cpy_cw_trans_S2S sdma_set_C_system sdma_h_gather_S2S
        sdma_h_scatter_S2S sdma_system_cpy sdma_reverse_S2S""",
    _SORT: """
        hau_sort hau_sort_natural_index hau_sort_specific_index hau_sort_general hau_hard_nms hau_soft_nms
        hau_line_gather""",
    _RECORDED: """
        global_mem_addr local_mem_addr local_mem_addr_unified l2_sram_addr gdma_get_filter_num
        gdma_mask_select_S2S_with_ret""",
    "it prints what is computed later; `KernelDevice.local` shows local memory after a launch": "print_local_mem_data",
    "ids of commands are the library's own": """
        set_id_node get_id_node set_parallel_id_node get_parallel_id_node enable_check_id_node disable_check_id_node""",
    "kernels are registered by TPUKERNEL_FUNC_REGISTER": "register_kernel_func dump_registered_kernel_funcs",
    "memory of the kernel's processor is the program's own: use memcpy and memset": "kernel_memcpy kernel_memset",
    _REFUSED: """
        gdma_reverse_S2S gdma_reverse_S2L gdma_reverse_L2S gdma_reverse_L2L gdma_compress_normal_L2S
        gdma_decompress_normal_S2L gdma_compress_RACU_L2S gdma_decompress_RACU_S2L bdc_conv2d_requant_pc
        bdc_conv2d_requant_C bdc_conv2d_requant_pc_asym_pc bdc_conv2d_requant_C_asym_pc bdc_conv2d_requant_C_asym_C
        bdc_conv2d_requant_pc_asym_C bdc_depthwise2d_requant_pc_asym_C bdc_depthwise2d_requant_C_sym_C
        bdc_fp_roi_depthwise2d""",
    "it belongs to compressed transfers, which the vendor's library refuses on this chip": """
        gdma_compress_normal_max_bytes gdma_compress_RACU_max_meta_bytes gdma_compress_RACU_max_racu_bytes""",
    _ABSENT: """
        bdc_fp_mm_with_bias bdc_fp_mm_all_trans_with_bias bdc_fp_mm_L_const_with_bias
        bdc_fp_mm_R_const_with_bias bdc_fp_mm_L_const_R_trans_with_bias bdc_fp_mm_L_const_all_trans_with_bias
        bdc_fp_mm_R_const_all_trans_with_bias bdc_quant_mm bdc_first_zero_bit_index bdc_first_one_bit_index""",
    "what the vendor's library makes of it was not recorded; use tpu_bdc_fp_mm_R_trans, then add": """
        bdc_fp_mm_R_trans_with_bias""",
    _ROI: "bdc_fp_roi_max_pool2d bdc_fp_roi_avg_pool2d bdc_int8_roi_max_pool2d bdc_int8_roi_avg_pool2d "
    "bdc_int8_roi_depthwise2d",
    "its operands lie in four banks at once, in a way that is not known": """
        bdc_4bank_w_gather bdc_4bank_w_gather_exception""",
    _ROWS: "bdc_batch_bcast_h_gather bdc_batch_bcast_h_gather_exception bdc_batch_bcast_h_scatter",
    "its structures have no form in Python; compute with local addresses": """
        local_shape_5d_to_4d bank_range range_overlapped any_range_overlapped npu_c_offset unified_c_offset
        get_local_size""",
    "use the function without `tunable`, which takes three steps": """
        bdc_fp32_tunable_compensate_reciprocal bdc_fp_tunable_rsqrt bdc_fp_tunable_sqrt bdc_fp32_tunable_sqrt""",
    "use tpu_bdc_fp32_rsqrt": "bdc_fp_rsqrt",
    "use tpu_bdc_arithmetic_sequence_distribute, or with strides tpu_bdc_arithmetic_sequence_bcast": """
        bdc_arithmetic_sequence_distribute_aligned bdc_generate_arithmetic_sequence""",
    "compare the exponent's bits: tpu_bdc_and_C, tpu_bdc_equal_C": "bdc_fp_isfinite",
}
UNAVAILABLE: dict[str, str] = {f"tpu_{name}": why for why, names in _WORDS.items() for name in names.split()}
"""Name -> why the function is not there."""
