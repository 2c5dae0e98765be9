/* BMLib (devices, memory, kernels). Names, types and the order of fields and parameters are those of the public
   interface. */

typedef struct { unsigned long device_addr; unsigned int reserved; int dmabuf_fd; unsigned int rawflags; unsigned int
    size; } bm_device_mem_t;
typedef struct { unsigned long cdma_in_time; unsigned long cdma_in_counter; unsigned long cdma_out_time; unsigned long
    cdma_out_counter; unsigned long tpu_process_time; unsigned long sent_api_counter; unsigned long
    completed_api_counter; } bm_profile_t;
typedef struct { unsigned int heap_id; unsigned long long mem_total; unsigned long long mem_avail; unsigned long long
    mem_used; unsigned long long mem_start_addr; } bm_heap_stat_byte_t;
typedef struct { int pcie_soc_mode; int ddr_ecc_enable; long long ddr0a_size; long long ddr0b_size; long long ddr1_size;
    long long ddr2_size; unsigned int chipid; unsigned long chipid_bit_mask; unsigned int driver_version;
    int domain_bdf; int board_version; int a53_enable; int dyn_enable; } bm_misc_info;
typedef struct { unsigned int mem_total; unsigned int mem_avail; unsigned int mem_used; } bm_heap_stat;
typedef struct { int mem_total; int mem_used; int tpu_util; int heap_num; bm_heap_stat heap_stat[4]; } bm_dev_stat_t;
typedef struct { long long buffer_start_addr; int buffer_size; PERF_MONITOR_ID monitor_id; } bm_perf_monitor_t;
typedef struct { char *bl1_version; char *bl2_version; char *bl31_version; char *uboot_version; } boot_loader_version;
typedef struct { int core_id; tpu_kernel_function_t func_id; void *param_data; unsigned int param_size; }
    tpu_launch_param_t;

bm_status_t bm_dev_getcount(out int *count);
bm_status_t bm_dev_query(int devid);
bm_status_t bm_dev_request(out bm_handle_t *handle, int devid);
void bm_dev_free(bm_handle_t handle);
int bm_get_devid(bm_handle_t handle);
bm_status_t bm_get_chipid(bm_handle_t handle, out unsigned int *p_chipid);
bm_status_t bm_thread_sync(bm_handle_t handle);
bm_status_t bm_handle_sync(bm_handle_t handle);
bm_status_t bm_device_sync(bm_handle_t handle);

bm_status_t bm_malloc_device_byte(bm_handle_t handle, out bm_device_mem_t *pmem, unsigned int size);
bm_status_t bm_malloc_device_byte_heap(bm_handle_t handle, out bm_device_mem_t *pmem, int heap_id, unsigned int size);
bm_status_t bm_malloc_device_byte_heap_mask(bm_handle_t handle, out bm_device_mem_t *pmem, int heap_id_mask, unsigned int
    size);
bm_status_t bm_malloc_device_mem(bm_handle_t handle, out unsigned long long *paddr, int heap_id, unsigned long long
    size);
bm_status_t bm_malloc_device_mem_mask(bm_handle_t handle, out unsigned long long *paddr, int heap_id_mask, unsigned
    long long size);
void bm_free_device_mem(bm_handle_t handle, unsigned long long paddr);
bm_status_t bm_malloc_device_dword(bm_handle_t handle, out bm_device_mem_t *pmem, int count);
bm_status_t bm_malloc_neuron_device(bm_handle_t handle, out bm_device_mem_t *pmem, int n, int c, int h, int w);
void bm_free_device(bm_handle_t handle, bm_device_mem_t mem);
bm_device_mem_t bm_mem_null(void);
bm_device_mem_t bm_mem_from_device(unsigned long long device_addr, unsigned int len);
unsigned long long bm_mem_get_device_addr(bm_device_mem_t mem);
unsigned int bm_mem_get_device_size(bm_device_mem_t mem);
void bm_mem_set_device_addr(bm_device_mem_t *pmem, unsigned long long addr);
void bm_mem_set_device_size(bm_device_mem_t *pmem, unsigned int size);
void bm_set_device_mem(bm_device_mem_t *pmem, unsigned int size, unsigned long long addr);

bm_mem_type_t bm_mem_get_type(bm_device_mem_t mem);
bm_device_mem_t bm_mem_from_system(address_t system_addr);
address_t bm_mem_get_system_addr(bm_device_mem_t mem);
void bm_mem_set_system_addr(bm_device_mem_t *pmem, address_t addr);

bm_status_t bm_mem_mmap_device_mem(bm_handle_t handle, bm_device_mem_t *dmem, out unsigned long long *vmem);
bm_status_t bm_mem_mmap_device_mem_no_cache(bm_handle_t handle, bm_device_mem_t *dmem, out unsigned long long *vmem);
bm_status_t bm_mem_unmap_device_mem(bm_handle_t handle, address_t vmem, int size);
bm_status_t bm_mem_vir_to_phy(bm_handle_t handle, unsigned long long vmem, out unsigned long long *device_mem);
bm_status_t bm_mem_invalidate_device_mem(bm_handle_t handle, bm_device_mem_t *dmem);
bm_status_t bm_mem_invalidate_partial_device_mem(bm_handle_t handle, bm_device_mem_t *dmem, unsigned int offset,
    unsigned int len);
bm_status_t bm_mem_flush_device_mem(bm_handle_t handle, bm_device_mem_t *dmem);
bm_status_t bm_mem_flush_partial_device_mem(bm_handle_t handle, bm_device_mem_t *dmem, unsigned int offset, unsigned int
    len);

bm_status_t bm_memcpy_s2d(bm_handle_t handle, bm_device_mem_t dst, void *src);
bm_status_t bm_memcpy_s2d_partial(bm_handle_t handle, bm_device_mem_t dst, void *src, unsigned int size);
bm_status_t bm_memcpy_s2d_partial_offset(bm_handle_t handle, bm_device_mem_t dst, void *src, unsigned int size,
    unsigned int offset);
bm_status_t bm_memcpy_d2s(bm_handle_t handle, void *dst, bm_device_mem_t src);
bm_status_t bm_memcpy_d2s_partial(bm_handle_t handle, void *dst, bm_device_mem_t src, unsigned int size);
bm_status_t bm_memcpy_d2s_partial_offset(bm_handle_t handle, void *dst, bm_device_mem_t src, unsigned int size,
    unsigned int offset);

bm_status_t bm_memcpy_d2d_byte(bm_handle_t handle, bm_device_mem_t dst, size_t dst_offset, bm_device_mem_t src, size_t
    src_offset, size_t size);
bm_status_t bm_memcpy_d2d(bm_handle_t handle, bm_device_mem_t dst, int dst_offset, bm_device_mem_t src, int src_offset,
    int len);
bm_status_t bm_memcpy_d2d_stride(bm_handle_t handle, bm_device_mem_t dst, int dst_stride, bm_device_mem_t src, int
    src_stride, int count, int format_size);
bm_status_t bm_memcpy_s2d_gather(bm_handle_t handle, bm_device_mem_t dst, int argc, pairs_t parts);
bm_status_t bm_memcpy_d2s_scatter(bm_handle_t handle, bm_device_mem_t src, int argc, pairs_t parts);
bm_status_t bm_memcpy_p2p(bm_handle_t handle_src, bm_device_mem_t src, bm_handle_t handle_dst, bm_device_mem_t dst);
bm_status_t bm_memcpy_c2c(bm_handle_t src_handle, bm_handle_t dst_handle, bm_device_mem_t src, bm_device_mem_t dst, bool
    force_dst_cdma);
bm_status_t bm_mem_convert_system_to_device_neuron(bm_handle_t handle, out bm_device_mem_t *dev_mem, bm_device_mem_t
    sys_mem, bool need_copy, int n, int c, int h, int w);
bm_status_t bm_mem_convert_system_to_device_neuron_byte(bm_handle_t handle, out bm_device_mem_t *dev_mem,
    bm_device_mem_t sys_mem, bool need_copy, int n, int c, int h, int w);
bm_status_t bm_mem_convert_system_to_device_coeff(bm_handle_t handle, out bm_device_mem_t *dev_mem, bm_device_mem_t
    sys_mem, bool need_copy, int coeff_count);
bm_status_t bm_mem_convert_system_to_device_coeff_byte(bm_handle_t handle, out bm_device_mem_t *dev_mem, bm_device_mem_t
    sys_mem, bool need_copy, int coeff_count);
bm_status_t bm_memset_device(bm_handle_t handle, int value, bm_device_mem_t mem);
bm_status_t bm_memset_device_ext(bm_handle_t handle, void *value, int mode, bm_device_mem_t mem);

bm_status_t bm_get_profile(bm_handle_t handle, out bm_profile_t *profile);
bm_status_t bm_get_last_api_process_time_us(bm_handle_t handle, out unsigned long *time_us);
bm_status_t bm_get_misc_info(bm_handle_t handle, out bm_misc_info *pmisc_info);
bm_status_t bm_get_gmem_total_heap_num(bm_handle_t handle, out unsigned int *heap_num);
bm_status_t bm_get_gmem_heap_stat_byte_by_id(bm_handle_t handle, out bm_heap_stat_byte_t *pheap_byte, unsigned int
    heap_id);
bm_status_t bm_get_gmem_heap_id(bm_handle_t handle, bm_device_mem_t *pmem, out unsigned int *heapid);
bm_status_t bm_get_stat(bm_handle_t handle, out bm_dev_stat_t *stat);
bm_status_t bm_get_status(bm_handle_t handle, out int *status);
bm_status_t bm_get_driver_version(bm_handle_t handle, out int *driver_version);
bm_status_t bm_get_board_name(bm_handle_t handle, out words_t *name);
bm_status_t bm_get_card_id(bm_handle_t handle, out unsigned int *card_id);
bm_status_t bm_get_card_num(out unsigned int *card_num);
bm_status_t bm_get_chip_num_from_card(unsigned int card_id, out unsigned int *chip_num, out unsigned int
    *dev_start_index);
bm_status_t bm_get_tpu_scalar_num(bm_handle_t handle, out unsigned int *core_num);
void bmlib_log(const char *tag, int level, const char *fmt);
int bmlib_log_get_level(void);
void bmlib_log_set_level(int level);
void bm_flush(bm_handle_t handle);
bm_status_t bm_set_sync_timeout(bm_handle_t handle, int timeout);

tpu_kernel_module_t tpu_kernel_load_module_file(bm_handle_t handle, const char *module_file);
tpu_kernel_module_t tpu_kernel_load_module_file_key(bm_handle_t handle, const char *module_file, const char *key, int
    size);
tpu_kernel_module_t tpu_kernel_load_module(bm_handle_t handle, const void *data, size_t length);
tpu_kernel_function_t tpu_kernel_get_function(bm_handle_t handle, tpu_kernel_module_t module, const char *function);
bm_status_t tpu_kernel_launch(bm_handle_t handle, tpu_kernel_function_t function, maybe void *args, size_t size);
bm_status_t tpu_kernel_launch_async(bm_handle_t handle, tpu_kernel_function_t function, maybe void *args, size_t
    size);
bm_status_t tpu_kernel_launch_sync(bm_handle_t handle, const char *func_name, maybe const void *args, unsigned int size);
bm_status_t tpu_kernel_sync(bm_handle_t handle);
bm_status_t tpu_kernel_unload_module(bm_handle_t handle, tpu_kernel_module_t p_module);
bm_status_t tpu_kernel_free_module(bm_handle_t handle, tpu_kernel_module_t p_module);
bm_status_t tpu_kernel_launch_async_multi_cores(bm_handle_t handle, const char *func_name, maybe const void *api_param,
    size_t api_size, cores_t core_list, int core_num);
bm_status_t tpu_kernel_launch_sync_multi_cores(bm_handle_t handle, const char *func_name, maybe const void *api_param,
    size_t api_size, cores_t core_list, int core_num);
bm_status_t tpu_kernel_launch_async_multicores(bm_handle_t handle, launches_t param_list, int param_num);

/* What a simulated card has not: absent.py. */
bm_status_t bm_get_boot_loader_version(bm_handle_t handle, out boot_loader_version *version);
bm_status_t bm_get_vpu_instant_usage(bm_handle_t handle, out int *vpu_usage);
bm_status_t bm_get_jpu_core_usage(bm_handle_t handle, out int *jpu_usage);
bm_status_t bm_get_vpp_instant_usage(bm_handle_t handle, out int *vpp_usage);
bm_status_t bm_set_clk_tpu_freq(bm_handle_t handle, int freq);
bm_status_t bm_get_clk_tpu_freq(bm_handle_t handle, out int *freq);
bm_status_t bm_get_tpu_maxclk(bm_handle_t handle, out unsigned int *tpu_maxclk);
bm_status_t bm_get_tpu_minclk(bm_handle_t handle, out unsigned int *tpu_minclk);
bm_status_t bm_get_dynfreq_status(bm_handle_t handle, out int *dynfreq_status);
bm_status_t bm_change_dynfreq_status(bm_handle_t handle, int new_status);
bm_status_t bm_get_tpu_current(bm_handle_t handle, out unsigned int *tpuc);
bm_status_t bm_get_board_max_power(bm_handle_t handle, out unsigned int *maxp);
bm_status_t bm_get_board_power(bm_handle_t handle, out unsigned int *boardp);
bm_status_t bm_get_tpu_power(bm_handle_t handle, out float *tpu_power);
bm_status_t bm_get_tpu_volt(bm_handle_t handle, out unsigned int *tpu_volt);
bm_status_t bm_get_12v_atx(bm_handle_t handle, out int *atx_12v);
bm_status_t bm_get_fan_speed(bm_handle_t handle, out unsigned int *fan);
bm_status_t bm_get_board_temp(bm_handle_t handle, out unsigned int *board_temp);
bm_status_t bm_get_chip_temp(bm_handle_t handle, out unsigned int *chip_temp);
bm_status_t bm_get_ecc_correct_num(bm_handle_t handle, out unsigned long *ecc_correct_num);
bm_status_t bm_get_product_sn(out words_t *product_sn);
bm_status_t bm_get_sn(bm_handle_t handle, out words_t *sn);
bm_status_t bm_enable_perf_monitor(bm_handle_t handle, bm_perf_monitor_t *perf_monitor);
bm_status_t bm_disable_perf_monitor(bm_handle_t handle, bm_perf_monitor_t *perf_monitor);
void bm_set_debug_mode(bm_handle_t handle, int mode);
void bmlib_set_api_dbg_callback(bmlib_api_dbg_callback callback);
bm_status_t bm_load_firmware(bm_handle_t handle, const char *firmware_tcm, const char *firmware_ddr);
bm_status_t okkernel_load_firmware(bm_handle_t handle, const char *firmware_tcm, const char *firmware_ddr);
bm_status_t bmkernel_launch(bm_handle_t handle, maybe const void *args, unsigned int size);
bm_status_t bmkernel_load_lookup_table(bm_handle_t handle, const void *table, unsigned int size);
unsigned long long bm_gmem_arm_reserved_request(bm_handle_t handle);
void bm_gmem_arm_reserved_release(bm_handle_t handle);
bm_cpu_status_t bmcpu_get_cpu_status(bm_handle_t handle);
bm_status_t bmcpu_start_cpu(bm_handle_t handle, char *boot_file, char *core_file);
process_t bmcpu_open_process(bm_handle_t handle, unsigned int flags, int timeout);
bm_status_t bmcpu_load_library(bm_handle_t handle, int process_handle, char *library_file, int timeout);
bm_status_t bmcpu_unload_library(bm_handle_t handle, int process_handle, char *library_file, int timeout);
process_t bmcpu_exec_function(bm_handle_t handle, int process_handle, char *function_name, maybe void *function_param,
    unsigned int param_size, int timeout);
process_t bmcpu_exec_function_ext(bm_handle_t handle, int process_handle, char *function_name, maybe void
    *function_param, unsigned int param_size, unsigned int opt, int timeout);
bm_status_t bmcpu_exec_function_async(bm_handle_t handle, int process_handle, char *function_name, maybe void
    *function_param, unsigned int param_size, out unsigned long long *api_handle);
bm_status_t bmcpu_exec_function_async_ext(bm_handle_t handle, int process_handle, char *function_name, maybe void
    *function_param, unsigned int param_size, unsigned int opt, out unsigned long long *api_handle);
process_t bmcpu_query_exec_function_result(bm_handle_t handle, unsigned long long api_handle, int timeout);
address_t bmcpu_map_phys_addr(bm_handle_t handle, int process_handle, address_t phys_addr, unsigned int size, int
    timeout);
bm_status_t bmcpu_unmap_phys_addr(bm_handle_t handle, int process_handle, address_t phys_addr, int timeout);
bm_status_t bmcpu_close_process(bm_handle_t handle, int process_handle, int timeout);
bm_status_t bmcpu_reset_cpu(bm_handle_t handle);
bm_status_t bmcpu_set_log(bm_handle_t handle, unsigned int log_level, unsigned int log_to_console, int timeout);
bm_status_t bmcpu_get_log(bm_handle_t handle, int process_handle, char *log_file, int timeout);
bm_status_t bmcpu_sync_time(bm_handle_t handle);
