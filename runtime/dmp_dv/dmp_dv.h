/* The DV driver interface (dv.md 6). Results of type int differ in what they are on failure: `errno_t` is EINVAL,
   `status_t` -1, `counter_t` 0, `exec_id_t` -EINVAL, `exec_time_t` -1. Pointers that a function checks itself, because
   its code depends on more, are `pointer_t` and `const_pointer_t`. */

dmp_dv_context dmp_dv_context_create(void);
counter_t dmp_dv_context_release(maybe dmp_dv_context ctx);
counter_t dmp_dv_context_retain(maybe dmp_dv_context ctx);
const char *dmp_dv_context_get_info_string(dmp_dv_context ctx);
errno_t dmp_dv_context_get_info(dmp_dv_context ctx, struct dmp_dv_info *info);
status_t dmp_dv_device_exists(dmp_dv_context ctx, int dev_type_id);
status_t dmp_dv_fpga_device_exists(dmp_dv_context ctx, int dev_type_id);

dmp_dv_mem dmp_dv_mem_alloc(dmp_dv_context ctx, size_t size);
counter_t dmp_dv_mem_release(maybe dmp_dv_mem mem);
counter_t dmp_dv_mem_retain(maybe dmp_dv_mem mem);
uint8_t *dmp_dv_mem_map(dmp_dv_mem mem);
void dmp_dv_mem_unmap(dmp_dv_mem mem);
errno_t dmp_dv_mem_sync_start(dmp_dv_mem mem, int rd, int wr);
errno_t dmp_dv_mem_sync_end(dmp_dv_mem mem);
errno_t dmp_dv_mem_to_device(dmp_dv_mem mem, size_t offs, size_t size, int flags);
errno_t dmp_dv_mem_to_cpu(dmp_dv_mem mem, size_t offs, size_t size, int flags);
size_t dmp_dv_mem_get_size(dmp_dv_mem mem);
int64_t dmp_dv_mem_get_total_size(void);

dmp_dv_cmdlist dmp_dv_cmdlist_create(dmp_dv_context ctx);
counter_t dmp_dv_cmdlist_release(maybe dmp_dv_cmdlist cmdlist);
counter_t dmp_dv_cmdlist_retain(maybe dmp_dv_cmdlist cmdlist);
errno_t dmp_dv_cmdlist_add_raw(dmp_dv_cmdlist cmdlist, maybe struct dmp_dv_cmdraw *cmd);
errno_t dmp_dv_cmdlist_commit(dmp_dv_cmdlist cmdlist);
exec_id_t dmp_dv_cmdlist_exec(dmp_dv_cmdlist cmdlist);
errno_t dmp_dv_cmdlist_wait(dmp_dv_cmdlist cmdlist, exec_id_t exec_id);
exec_time_t dmp_dv_cmdlist_get_last_exec_time(dmp_dv_cmdlist cmdlist);

status_t dmp_dv_pack_conv_weights(int n_channels, int kx, int ky, int n_kernels, maybe const uint16_t *quant_map,
    maybe const void *weights, maybe const uint16_t *bias, const_pointer_t prelu, pointer_t packed_weights, pointer_t
    packed_weights_size);
status_t dmp_dv_pack_dil_weights(int n_channels, int kx, int ky, int n_kernels, maybe const uint16_t *quant_map, maybe
    const void *weights, maybe const uint16_t *bias, const_pointer_t prelu, pointer_t packed_weights, pointer_t
    packed_weights_size);

errno_t dmp_dv_pack_fc_weights(int c_input, int h_input, int w_input, int c_output, int h_output, int w_output, maybe
    const uint16_t *quant_map, maybe const void *weights, maybe const uint16_t *bias, pointer_t packed_weights,
    pointer_t packed_weights_size);

const char *dmp_dv_get_version_string(void);
const char *dmp_dv_get_last_error_message(void);
void dmp_dv_set_last_error_message(const char *form);
