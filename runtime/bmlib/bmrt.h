/* BMRuntime (networks). Names, types and the order of fields and parameters are those of the public interface.
   `runtime_t` is what `bmrt_create` gives; `handles_t` is an array of handles; `tensors_t`, `outputs_t` and `shapes_t`
   are arrays that a function fills. */

typedef struct { unsigned long device_addr; unsigned int reserved; int dmabuf_fd; unsigned int rawflags; unsigned int
    size; } bm_device_mem_t;

typedef struct { int num_dims; int dims[8]; } bm_shape_t;
typedef struct { bm_data_type_t dtype; bm_shape_t shape; bm_device_mem_t device_mem; bm_store_mode_t st_mode; }
    bm_tensor_t;
typedef struct { bm_shape_t *input_shapes; bm_shape_t *output_shapes; bm_device_mem_t *input_mems; bm_device_mem_t
    *output_mems; } bm_stage_info_t;
typedef struct { const char *name; bool is_dynamic; int input_num; const char **input_names; bm_data_type_t
    *input_dtypes; float *input_scales; int output_num; const char **output_names; bm_data_type_t *output_dtypes;
    float *output_scales; int stage_num; bm_stage_info_t *stages; size_t *max_input_bytes; size_t *max_output_bytes;
    int *input_zero_point; int *output_zero_point; int *input_loc_devices; int *output_loc_devices; int core_num;
    int32_t addr_mode; } bm_net_info_t;

typedef struct { int64_t addr; u64 size; int type; int number; char reserved[124]; } memory_t;
typedef struct { memory_t instruction_mem; memory_t variable_instruction_mem; memory_t neuron_mem; memory_t coeff_mem;
    memory_t io_mem; memory_t reserved[4]; } mem_info_t;

size_t bmrt_data_type_size(bm_data_type_t dtype);
u64 bmrt_shape_count(const bm_shape_t *shape);
bool bmrt_shape_is_same(const bm_shape_t *left, const bm_shape_t *right);
void bmrt_shape(out bm_shape_t *shape, const int *dims, int num_dims);
size_t bmrt_tensor_bytesize(const bm_tensor_t *tensor);
size_t bmrt_tensor_device_size(const bm_tensor_t *tensor);
bool bmrt_tensor(out bm_tensor_t *tensor, runtime_t p_bmrt, bm_data_type_t dtype, bm_shape_t shape);
bool bmrt_tensor_ex(out bm_tensor_t *tensor, runtime_t p_bmrt, int devid, bm_data_type_t dtype, bm_shape_t shape);
void bmrt_tensor_with_device(out bm_tensor_t *tensor, bm_device_mem_t device_mem, bm_data_type_t dtype, bm_shape_t
    shape);

runtime_t bmrt_create(bm_handle_t bm_handle);
runtime_t bmrt_create_ex(handles_t bm_handles, int num_handles);
void bmrt_destroy(runtime_t p_bmrt);
void bmrt_destroy_without_coeff(runtime_t p_bmrt);
void bmrt_set_flags(runtime_t p_bmrt, unsigned int flags);
unsigned int bmrt_get_flags(runtime_t p_bmrt);
void bmrt_trace(runtime_t p_bmrt);
handle_t bmrt_get_bm_handle(runtime_t p_bmrt);
bool bmrt_load_bmodel(runtime_t p_bmrt, const char *bmodel_path);
bool bmrt_load_bmodel_data(runtime_t p_bmrt, const void *bmodel_data, size_t size);
bool bmrt_load_bmodel_with_mem(runtime_t p_bmrt, const char *bmodel_path, mem_info_t *mem_info);
bool bmrt_load_bmodel_data_with_mem(runtime_t p_bmrt, const void *bmodel_data, size_t size, mem_info_t *mem_info);
bool bmrt_load_bmodel_in_device(runtime_t p_bmrt, void *p_bmodel, u64 dev_addr, size_t size);
bool bmrt_get_bmodel_info(const char *bmodel_path, out mem_info_t *mem_info);
bool bmrt_get_bmodel_data_info(const void *bmodel_data, size_t size, out mem_info_t *mem_info);
void bmrt_show_neuron_network(runtime_t p_bmrt);
int bmrt_get_network_number(runtime_t p_bmrt);
index_t bmrt_get_network_index(runtime_t p_bmrt, name_t net_name);
name_t bmrt_get_network_name(runtime_t p_bmrt, int index);
void bmrt_get_network_names(runtime_t p_bmrt, out names_t *network_names);
const bm_net_info_t *bmrt_get_network_info(runtime_t p_bmrt, name_t net_name);
void bmrt_print_network_info(const bm_net_info_t *net_info);
int bmrt_get_stage_size(runtime_t p_bmrt, name_t net_name);
index_t bmrt_get_stage_index(runtime_t p_bmrt, name_t net_name, tensors_t input_tensor);
bool bmrt_pre_alloc_neuron_multi_cores(runtime_t p_bmrt, name_t net_name, int stage_idx, maybe const int *core_list, int
    core_num);
bool bmrt_pre_alloc_mem(runtime_t p_bmrt, name_t net_name);
bool bmrt_free_pre_alloc_mem(runtime_t p_bmrt, name_t net_name);
bool bmrt_pre_alloc_mem_multi_thread(runtime_t p_bmrt, u64 thread_idx, const mem_info_t *mem_info);
int bmrt_get_neuron_number(runtime_t p_bmrt, name_t net_name);
bm_device_mem_t bmrt_get_neuron_memory(runtime_t p_bmrt, name_t net_name, int mem_index, maybe const int *core_list, int
    core_num);
bool bmrt_launch_tensor(runtime_t p_bmrt, name_t net_name, const bm_tensor_t input_tensors[], int input_num, tensors_t
    output_tensors, int output_num);
bool bmrt_launch_tensor_ex(runtime_t p_bmrt, name_t net_name, const bm_tensor_t input_tensors[], int input_num,
    tensors_t output_tensors, int output_num, bool user_mem, bool user_stmode);
bool bmrt_launch_data(runtime_t p_bmrt, name_t net_name, buffers_t input_datas, const bm_shape_t input_shapes[], int
    input_num, outputs_t output_datas, shapes_t output_shapes, int output_num, bool user_mem);
bool bmrt_launch_tensor_multi_cores(runtime_t p_bmrt, name_t net_name, const bm_tensor_t input_tensors[], int input_num,
    tensors_t output_tensors, int output_num, bool user_mem, bool user_stmode, maybe const int *core_list, int core_num);
bool bmrt_launch_tensor_multi_thread(runtime_t p_bmrt, name_t net_name, const bm_tensor_t input_tensors[], int input_num,
    tensors_t output_tensors, int output_num, u64 thread_idx, bool user_mem, bool user_stmode, maybe const int *core_list,
    int core_num);
bool bmrt_launch_data_multi_cores(runtime_t p_bmrt, name_t net_name, buffers_t input_datas, const bm_shape_t
    input_shapes[], int input_num, outputs_t output_datas, shapes_t output_shapes, int output_num, bool user_mem,
    maybe const int *core_list, int core_num);
bool bmrt_launch_data_multi_thread(runtime_t p_bmrt, name_t net_name, buffers_t input_datas, const bm_shape_t
    input_shapes[], int input_num, outputs_t output_datas, shapes_t output_shapes, int output_num, u64 thread_idx, bool
    user_mem, maybe const int *core_list, int core_num);
