/* BMLib (devices, memory, kernels). Names, types and the order of fields and parameters are those of the public
   interface. */

typedef struct { unsigned long device_addr; unsigned int reserved; int dmabuf_fd; unsigned int rawflags; unsigned int
    size; } bm_device_mem_t;

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
bm_status_t bm_memset_device(bm_handle_t handle, int value, bm_device_mem_t mem);
bm_status_t bm_memset_device_ext(bm_handle_t handle, void *value, int mode, bm_device_mem_t mem);

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
