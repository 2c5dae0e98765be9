"""The C declarations of BMLib (devices, memory, kernels) and BMRuntime (networks), by which Python's are checked.

Names, types and the order of fields and parameters are those of the public interface. `runtime_t` is what
`bmrt_create` gives; `tensors_t`, `outputs_t` and `shapes_t` are arrays that a function fills.
"""

from __future__ import annotations

_COPIES = "".join(
    f"""bm_status_t bm_memcpy_{name}(bm_handle_t handle, {order});
bm_status_t bm_memcpy_{name}_partial(bm_handle_t handle, {order}, unsigned int size);
bm_status_t bm_memcpy_{name}_partial_offset(bm_handle_t handle, {order}, unsigned int size, unsigned int offset);
"""
    for name, order in (("s2d", "bm_device_mem_t dst, void *src"), ("d2s", "void *dst, bm_device_mem_t src"))
)

MEMORY = """
typedef struct { unsigned long device_addr; unsigned int reserved; int dmabuf_fd; unsigned int rawflags;
    unsigned int size; } bm_device_mem_t;
"""

DEVICES = f"""{MEMORY}
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

{_COPIES}
bm_status_t bm_memcpy_d2d_byte(bm_handle_t handle, bm_device_mem_t dst, size_t dst_offset, bm_device_mem_t src,
    size_t src_offset, size_t size);
bm_status_t bm_memset_device(bm_handle_t handle, int value, bm_device_mem_t mem);

tpu_kernel_module_t tpu_kernel_load_module_file(bm_handle_t handle, const char *module_file);
tpu_kernel_module_t tpu_kernel_load_module(bm_handle_t handle, void *data, size_t length);
tpu_kernel_function_t tpu_kernel_get_function(bm_handle_t handle, tpu_kernel_module_t module, const char *function);
bm_status_t tpu_kernel_launch(bm_handle_t handle, tpu_kernel_function_t function, maybe void *args, size_t size);
bm_status_t tpu_kernel_launch_async(bm_handle_t handle, tpu_kernel_function_t function, maybe void *args, size_t size);
bm_status_t tpu_kernel_launch_sync(bm_handle_t handle, const char *func_name, maybe void *args, unsigned int size);
bm_status_t tpu_kernel_sync(bm_handle_t handle);
bm_status_t tpu_kernel_unload_module(bm_handle_t handle, tpu_kernel_module_t p_module);
bm_status_t tpu_kernel_free_module(bm_handle_t handle, tpu_kernel_module_t p_module);
"""

NETWORKS = (
    MEMORY
    + """
typedef struct { int num_dims; int dims[8]; } bm_shape_t;
typedef struct { bm_data_type_t dtype; bm_shape_t shape; bm_device_mem_t device_mem; bm_store_mode_t st_mode;
    } bm_tensor_t;
typedef struct { bm_shape_t *input_shapes; bm_shape_t *output_shapes; bm_device_mem_t *input_mems;
    bm_device_mem_t *output_mems; } bm_stage_info_t;
typedef struct { const char *name; bool is_dynamic; int input_num; const char **input_names;
    bm_data_type_t *input_dtypes; float *input_scales; int output_num; const char **output_names;
    bm_data_type_t *output_dtypes; float *output_scales; int stage_num; bm_stage_info_t *stages;
    size_t *max_input_bytes; size_t *max_output_bytes; int *input_zero_point; int *output_zero_point;
    int *input_loc_devices; int *output_loc_devices; int core_num; int32_t addr_mode; } bm_net_info_t;

size_t bmrt_data_type_size(bm_data_type_t dtype);
u64 bmrt_shape_count(const bm_shape_t *shape);
bool bmrt_shape_is_same(const bm_shape_t *left, const bm_shape_t *right);
void bmrt_shape(out bm_shape_t *shape, const int *dims, int num_dims);
size_t bmrt_tensor_bytesize(const bm_tensor_t *tensor);
size_t bmrt_tensor_device_size(const bm_tensor_t *tensor);
bool bmrt_tensor(out bm_tensor_t *tensor, runtime_t p_bmrt, bm_data_type_t dtype, bm_shape_t shape);
void bmrt_tensor_with_device(out bm_tensor_t *tensor, bm_device_mem_t device_mem, bm_data_type_t dtype,
    bm_shape_t shape);

runtime_t bmrt_create(bm_handle_t bm_handle);
void bmrt_destroy(runtime_t p_bmrt);
handle_t bmrt_get_bm_handle(runtime_t p_bmrt);
bool bmrt_load_bmodel(runtime_t p_bmrt, const char *bmodel_path);
bool bmrt_load_bmodel_data(runtime_t p_bmrt, const void *bmodel_data, size_t size);
void bmrt_show_neuron_network(runtime_t p_bmrt);
int bmrt_get_network_number(runtime_t p_bmrt);
index_t bmrt_get_network_index(runtime_t p_bmrt, name_t net_name);
name_t bmrt_get_network_name(runtime_t p_bmrt, int index);
void bmrt_get_network_names(runtime_t p_bmrt, out names_t *network_names);
const bm_net_info_t *bmrt_get_network_info(runtime_t p_bmrt, name_t net_name);
bool bmrt_launch_tensor(runtime_t p_bmrt, name_t net_name, const bm_tensor_t input_tensors[], int input_num,
    tensors_t output_tensors, int output_num);
bool bmrt_launch_tensor_ex(runtime_t p_bmrt, name_t net_name, const bm_tensor_t input_tensors[], int input_num,
    tensors_t output_tensors, int output_num, bool user_mem, bool user_stmode);
bool bmrt_launch_data(runtime_t p_bmrt, name_t net_name, buffers_t input_datas, const bm_shape_t input_shapes[],
    int input_num, outputs_t output_datas, shapes_t output_shapes, int output_num, bool user_mem);
"""
)
