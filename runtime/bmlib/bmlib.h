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
bm_status_t bm_memset_device(bm_handle_t handle, int value, bm_device_mem_t mem);
bm_status_t bm_memset_device_ext(bm_handle_t handle, void *value, int mode, bm_device_mem_t mem);

bm_status_t bm_get_profile(bm_handle_t handle, out bm_profile_t *profile);
bm_status_t bm_get_last_api_process_time_us(bm_handle_t handle, out unsigned long *time_us);
bm_status_t bm_get_misc_info(bm_handle_t handle, out bm_misc_info *pmisc_info);
bm_status_t bm_get_gmem_total_heap_num(bm_handle_t handle, out unsigned int *heap_num);
bm_status_t bm_get_gmem_heap_stat_byte_by_id(bm_handle_t handle, out bm_heap_stat_byte_t *pheap_byte, unsigned int
    heap_id);
bm_status_t bm_get_gmem_heap_id(bm_handle_t handle, bm_device_mem_t *pmem, out unsigned int *heapid);
void bm_flush(bm_handle_t handle);
bm_status_t bm_set_sync_timeout(bm_handle_t handle, int timeout);

tpu_kernel_module_t tpu_kernel_load_module_file(bm_handle_t handle, const char *module_file);
tpu_kernel_module_t tpu_kernel_load_module(bm_handle_t handle, void *data, size_t length);
tpu_kernel_function_t tpu_kernel_get_function(bm_handle_t handle, tpu_kernel_module_t module, const char *function);
bm_status_t tpu_kernel_launch(bm_handle_t handle, tpu_kernel_function_t function, maybe void *args, size_t size);
bm_status_t tpu_kernel_launch_async(bm_handle_t handle, tpu_kernel_function_t function, maybe void *args, size_t
    size);
bm_status_t tpu_kernel_launch_sync(bm_handle_t handle, const char *func_name, maybe void *args, unsigned int size);
bm_status_t tpu_kernel_sync(bm_handle_t handle);
bm_status_t tpu_kernel_unload_module(bm_handle_t handle, tpu_kernel_module_t p_module);
bm_status_t tpu_kernel_free_module(bm_handle_t handle, tpu_kernel_module_t p_module);
