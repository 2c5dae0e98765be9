"""Functions that the vendor declares and this library does not offer, with the reason of each."""

from __future__ import annotations

_MESSAGES = "engines of this chip wait for each other by command ids, not by messages; the commands are not known"
_SYSTEM_DMA = "this chip has one DMA engine; use the tpu_gdma function of that name"
_NMS = "the engine that suppresses boxes is not simulated; sort the scores, and let the host suppress"
_LINES = (
    "use tpu_gdma_h_gather_S2S of the shape (1, 1, index_len, line_len), with indices less `start` and `param_h` "
    "end - start + 1, which fills with C as with `fill_const`"
)
_RECORDED = "a kernel is recorded before it runs, and cannot read what it computes"
_REFUSED = "the vendor's library refuses it on this chip"
_ABSENT = "the vendor's library of this chip does not have it"
_ROI = "what the region forms of the pooling unit compute is not known"
_ROWS = "rows of the vendor's layout for it are not known"
_LINKS = "this chip is alone: it has no links to others"
_VIRTUAL_DMA = "this chip has no virtual DMA engines; use the tpu_gdma function of that name"
_ONE_CORE = "this chip has one core, which waits for its own engines by command ids"
_STATE = "a kernel is recorded before it runs, and cannot ask what an engine is doing"
_REDUCING = "transfers of this chip have no field for what is added to, or for how bits are lost"
_EIGHT_BITS = "commands of this chip know no floats of 8 bits"
_RANDOM = "what the generator of random numbers leaves in local memory was not recorded"
_NEWER = "it came to the library after its reference; what it makes of its arguments was not recorded"
_BY_SINGLE = "what its 16-bit form computes was not recorded; cast, and use the tpu_bdc_fp32 function of that name"
_LATER_CONV = "it came to the library after its reference, and was not recorded; use the form of older kernels"
_WORDS = {
    _MESSAGES: """
        bdc_send_msg bdc_wait_msg gdma_send_msg gdma_wait_msg hau_send_msg hau_wait_msg sdma_send_msg sdma_wait_msg
        cdma_send_msg cdma_wait_msg bdc_set_base_msg_id gdma_set_base_msg_id hau_set_base_msg_id sdma_set_base_msg_id
        cdma_set_base_msg_id sync_core""",
    _SYSTEM_DMA: """
        sdma_cpy_S2S sdma_cpy_nc_trans_S2S sdma_cpy_cw_trans_S2S sdma_set_C_system sdma_h_gather_S2S
        sdma_h_scatter_S2S sdma_system_cpy sdma_reverse_S2S sdma_mask_select_S2S sdma_nonzero_S2S""",
    _VIRTUAL_DMA: """
        vsdma_cpy_S2S vsdma_cpy_nc_trans_S2S vsdma_cpy_cw_trans_S2S vsdma_set_C_system vsdma_h_gather_S2S
        vsdma_h_scatter_S2S vsdma_system_cpy vsdma_reverse_S2S vsdma_mask_select_S2S vsdma_nonzero_S2S vsdma_poll
        vsdma_initialize vsdma_port_initialize vsdma_port_poll vsdma_send_msg vsdma_wait_msg""",
    _LINKS: """
        cdma_initialize cdma_port_initialize cdma_poll cdma_port_poll cdma_perf_poll cdma_perf_port_poll
        cdma_all_port_nop cdma_get_port cdma_get_port_v2 cdma_get_used_port_num cdma_get_used_ports cdma_nop
        cdma_nop_sync cdma_send cdma_send_v2 cdma_recv cdma_recv_v2 cdma_write cdma_lossy_compress
        cdma_lossy_decompress cdma_port_set_base_msg_id cdma_rx_send_msg cdma_rx_wait_msg cdma_tx_send_msg
        cdma_tx_wait_msg cdma_tx_rx_debug cdma_fake_all_reduce cdma_fake_p2p chip_id chip_num chip_map rank sccl_init
        get_ccl_msg_id set_cdma_defered_barrier_msg_id is_cdma_busy use_ring""",
    _ONE_CORE: """
        sync_all_bdc sync_all_gdma sync_all_sdma sync_all_hau sync_core_innner sync_finish next_msg_id set_base_msg_id
        core_context_setup get_local_msg_id get_global_msg_id get_core_sync_msg_id physical_core_id physical_core_num
        start_physical_core_id tpuv7_env sync_all_with_msg_id sync_core_with_external_engine core_barrier
        get_base_msg_id get_schedule_msg_id""",
    _STATE: """
        bdc_busy gdma_busy sdma_busy hau_sort_busy gdma_cmd_overflow sdma_cmd_overflow hau_sort_cmd_overflow
        dump_global_layer_data""",
    _REDUCING: """
        gdma_cpy_reduce_L12L2 gdma_cpy_reduce_S2L2 gdma_cpy_reduce_L22L2 gdma_cpy_reduce_L2S gdma_cpy_reduce_S2S
        gdma_cpy_reduce_mac_L2S gdma_cpy_reduce_mac_S2S gdma_cpy_nctrans_reduce_L12L2 gdma_cpy_nctrans_reduce_L22L2
        gdma_cpy_nctrans_reduce_S2L2 gdma_lossy_compress_L2S gdma_lossy_compress_S2S gdma_lossy_decompress_S2L
        gdma_lossy_decompress_S2S gdma_lossy_compress_reduce_S2L2 gdma_lossy_compress_reduce_L12L2
        gdma_lossy_compress_reduce_L22L2 gdma_lossy_decompress_reduce_S2L2 gdma_lossy_decompress_reduce_L22L2
        sdma_cpy_reduce_S2L2 sdma_cpy_reduce_L22L2 sdma_cpy_nctrans_reduce_S2L2 sdma_cpy_nctrans_reduce_L22L2
        sdma_lossy_compress sdma_lossy_decompress sdma_lossy_compress_reduce_S2L2 sdma_lossy_compress_reduce_L22L2
        sdma_lossy_decompress_reduce_S2L2 sdma_lossy_decompress_reduce_L22L2 vsdma_cpy_reduce_S2L2""",
    _EIGHT_BITS: """
        bdc_fp8_mm bdc_fp8_mm_R_trans bdc_fp8_mm_all_trans bdc_fp8_mm_with_bias bdc_fp8_mm_R_trans_with_bias
        bdc_fp8_mm_all_trans_with_bias bdc_fp8_mm_blockwise bdc_fp8_bq_mm2_nt bdc_fp8_avg_pool2d bdc_fp8_add_C
        bdc_fp8_C_sub bdc_fp8_mul_C""",
    _RANDOM: """
        bdc_random_gen bdc_random_gen_init bdc_random_gen_load_state gdma_random_mask_S2L
        gdma_random_mask_init_seed_S2L gdma_random_mask_set_seed set_bd_random_gen_seed bd_set_random_gen_seed
        bd_rand_seed_gen""",
    "use tpu_gdma_set_C_system with a shape of that many elements": "sdma_system_set vsdma_system_set",
    "use tpu_gdma_cpy_S2S with a stride of 0": "gdma_system_bcast",
    "use tpu_bdc_neg around tpu_bdc_fp_max_pool2d, or the integer form": """
        bdc_fp_min_pool2d bdc_int8_min_pool2d bdc_int_min_pool2d""",
    _LATER_CONV: """
        bdc_fp_conv2d_with_rescale bdc_fp_conv2d_rescale_C bdc_fp_conv2d_rescale_pc bdc_fp_depthwise2d_with_scale
        bdc_fp_conv_bw bdc_fp_conv2d_backward bdc_fp_conv2d_long_instr bdc_fp_conv2d_with_ins
        bdc_fp_conv2d_for_deconv2d_without_rotate bdc_int8_asym_quant_conv2d_for_deconv2d_without_rotate""",
    f"{_ABSENT}; use the tpu_bdc_fp32 function of that name": "bdc_fp_elu bdc_fp_log_sigmoid bdc_fp_arctanh",
    _BY_SINGLE: "bdc_fp_tan bdc_pow bdc_pow_C bdc_C_pow",
    _NEWER: """
        gdma_h_gather_S2S_ext gdma_h_scatter_S2S_ext gdma_c_gather_S2S gdma_c_gather_S2L gdma_c_gather_L2S
        gdma_c_gather_L2L gdma_c_scatter_S2S gdma_c_scatter_S2L gdma_c_scatter_L2S gdma_c_scatter_L2L
        gdma_compress_RACU_racu_stride gdma_compress_RACU_meta_stride get_ic_parallel conv_kernel_size
        conv_kernel_size_per_oc static_mem_get_start_addr
        bdc_f16_dequant bdc_f16_pc_dequant bdc_f16_group_dequant bdc_qt0_quant bdc_quant_blockwise bdc_quant_by_block
        bdc_mm_blockwise bdc_fp_dq2_mm2_nt bdc_fp_dq2_mm2_nt_requant bdc_fp_dq2_mm2_tt bdc_fp_dq2_mm2_tt_requant
        bdc_arithmetic_sequence_bcast_with_dtype bdc_arithmetic_sequence_distribute_with_dtype
        bdc_arithmetic_sequence_distribute_aligned_with_dtype bdc_arithmetic_sequence_distribute_general
        bdc_arithmetic_sequence_general_with_dtype bdc_check_inf_nan bdc_fp_isinf bdc_fp_isnan bdc_fp_isneginf
        bdc_fp_isposinf bdc_clamp bdc_fp_trunc bdc_fp_frexp bdc_fp_exp2 bdc_fp_fast_exp bdc_fp_exp_for_neg_arg
        bdc_fuse_exp bdc_fuse_exp_with_range bdc_load_fuse_exp_coeff bdc_fuse_madd bdc_fuse_mul_cast bdc_fp_div2
        bdc_fp_div2_C bdc_fp_C_div2 bdc_load_div_lut bdc_fp_reciprocal_v2 bdc_fp_sfu_reciprocal bdc_fp_sqrt_v2
        bdc_srch_bin_select bdc_fp_conv2d_with_relu nop debug_cmd sr_setup sync_start sync_end is_sync_state
        is_descriptor_mode run_commands engine_num reset_base_addr set_base_addr global_mem_real_addr
        bdc_fp_pow_234 bdc_int_pow_234 bdc_hw_reduce bdc_w_reduce bdc_fp_hw_reduce_mean bdc_fp_avg_pool2d_ex
        bdc_int_max_pool2d bdc_w_scatter_exception bdc_bf16_gelu_fast2 bdc_bf16_sigmoid_fast
        bdc_fp_arctan bdc_fp32_tan_cot""",
    _NMS: "hau_hard_nms hau_soft_nms",
    _LINES: "hau_line_gather",
    "no header declares its arguments": "hau_sort_general",
    _RECORDED: """
        sdma_get_filter_num vsdma_get_filter_num""",
    "it prints what is computed later; `KernelDevice.local` shows local memory after a launch": "print_local_mem_data",
    "it prints what is computed later; `KernelDevice.download` shows global memory after a launch": """
        print_global_mem_data""",
    "the time of a kernel is told by `KernelDevice.analyze`": "enable_pmu disable_pmu",
    "launches check what commands touch": """
        mem_record_add mem_record_del mem_check_tensor mem_check_matrix mem_check_range""",
    "ids of commands are the library's own": """
        set_id_node get_id_node set_parallel_id_node get_parallel_id_node enable_check_id_node disable_check_id_node
        set_gdma_id set_bdid set_bd_id bdc_end initialize_parallel poll_parallel poll_empty""",
    "kernels are registered by TPUKERNEL_FUNC_REGISTER": "register_kernel_func dump_registered_kernel_funcs",
    "memory of the kernel's processor is the program's own: use memcpy and memset": "kernel_memcpy kernel_memset",
    _REFUSED: """
        gdma_reverse_S2S gdma_reverse_S2L gdma_reverse_L2S gdma_reverse_L2L gdma_compress_normal_L2S
        gdma_decompress_normal_S2L gdma_compress_RACU_L2S gdma_decompress_RACU_S2L bdc_conv2d_requant_pc
        bdc_conv2d_requant_C bdc_conv2d_requant_pc_asym_pc bdc_conv2d_requant_C_asym_pc bdc_conv2d_requant_C_asym_C
        bdc_conv2d_requant_pc_asym_C bdc_depthwise2d_requant_pc_asym_C bdc_depthwise2d_requant_C_sym_C
        bdc_fp_roi_depthwise2d hau_sort_2d hau_sort_natural_index_2d hau_sort_specific_index_2d""",
    "it belongs to compressed transfers, which the vendor's library refuses on this chip": """
        gdma_compress_normal_max_bytes gdma_compress_RACU_max_meta_bytes gdma_compress_RACU_max_racu_bytes""",
    _ABSENT: """
        bdc_fp_mm_with_bias bdc_fp_mm_all_trans_with_bias bdc_fp_mm_L_const_with_bias
        bdc_fp_mm_R_const_with_bias bdc_fp_mm_L_const_R_trans_with_bias bdc_fp_mm_L_const_all_trans_with_bias
        bdc_fp_mm_R_const_all_trans_with_bias bdc_quant_mm bdc_first_zero_bit_index bdc_first_one_bit_index""",
    "what the vendor's library makes of it was not recorded; use tpu_bdc_fp_mm_R_trans, then add": """
        bdc_fp_mm_R_trans_with_bias""",
    _ROI: "bdc_fp_roi_max_pool2d bdc_fp_roi_avg_pool2d bdc_int8_roi_max_pool2d bdc_int8_roi_avg_pool2d "
    "bdc_int8_roi_depthwise2d bdc_fp_roi_min_pool2d bdc_int8_roi_min_pool2d",
    "its operands lie in four banks at once, in a way that is not known": """
        bdc_4bank_w_gather bdc_4bank_w_gather_exception""",
    _ROWS: "bdc_batch_bcast_h_gather bdc_batch_bcast_h_gather_exception bdc_batch_bcast_h_scatter",
    "its structures have no form in Python, C has it; compute with local addresses": """
        local_shape_5d_to_4d bank_range range_overlapped any_range_overlapped""",
    "use tpu_bdc_arithmetic_sequence_distribute, or with strides tpu_bdc_arithmetic_sequence_bcast": """
        bdc_arithmetic_sequence_distribute_aligned bdc_generate_arithmetic_sequence""",
}
UNAVAILABLE: dict[str, str] = {f"tpu_{name}": why for why, names in _WORDS.items() for name in names.split()}
"""Name -> why the function is not there."""
