/* The BM Runtime library (bm1880.md 13). Handles are `bmctx_t`, `bmdev_t`, `bmmem_device_t` and `bmnet_t`. Functions
   that are not supported, whatever they are given, do not look at their arguments: `any_dev_t` is a `bmdev_t` and so
   on. */

typedef struct { u32 version, npu_num, eu_num, lmem_size, lmem_banks, lmem_bank_size; } bm_devinfo_t;
typedef struct { bmfmt_t fmt; int dim_size; int dim[4]; } bmshape_t;
typedef struct { u32 batch_size; uint8_t *weight; size_t weight_size; uint8_t *cmdbuf; size_t cmdbuf_size; size_t
    neuron_size; size_t input_size; u64 output_offset; size_t output_size; } bmnet_info_t;
typedef struct { size_t output_size; size_t output_num; char **name_array; shape_t *shape_array; float
    *threshold_array; size_t *size_array; u32 *fmt_array; } bmnet_output_info_t;
typedef struct { size_t input_size; size_t input_num; shape_t *shape_array; float *threshold_array; size_t
    *size_array; u32 *fmt_array; } bmnet_input_info_t;
typedef struct { char *net_name; u32 chip; u32 command_num; bmnet_input_info_t *input_info_array; bmnet_output_info_t
    *output_info_array; } bmnet_model_info_t;

bmerr_t bm_init(int index, out bmctx_t *ctx);
void bm_exit(bmctx_t ctx);
void bm_enum_devices(out int *count, out bm_devinfo_t devinfo[]);
bmerr_t bm_device_open(int index, out bmdev_t *dev);
void bm_device_close(bmdev_t dev);
bmerr_t bm_device_query(any_dev_t dev, any_int_t id, void *buf);
bmerr_t bm_device_config(any_dev_t dev, any_int_t id, void *buf);
bm_devinfo_t bm_device_get_info(bmdev_t dev);
u64 bm_device_get_gmem_size(bmdev_t dev);
int bm_device_get_chip_ver(bmdev_t dev);
const char *bm_library_type(void);
bmerr_t bm_context_create(out bmctx_t *ctx);
void bm_context_destroy(bmctx_t ctx);
bmerr_t bm_bind_device(bmctx_t ctx, bmdev_t dev);
void bm_unbind_device(bmctx_t ctx);
bmdev_t bm_get_device(bmctx_t ctx);

bmerr_t bmruntime_bmkernel_create(bmctx_t ctx, out bmkernel_handle_t **p_bk_ctx);
bmerr_t bmruntime_bmkernel_submit(bmctx_t ctx);
bmerr_t bmruntime_bmkernel_submit_pio(bmctx_t ctx);
void bmruntime_bmkernel_destroy(bmctx_t ctx);

bmmem_device_t bmmem_device_alloc_raw(bmctx_t ctx, size_t size);
bmmem_device_t bmmem_device_prealloc_raw(bmctx_t ctx, bmmem_device_t mem, u64 offset, size_t size);
bmmem_device_t bmmem_device_alloc(bmctx_t ctx, bmshape_t *shape);
bmmem_device_t bmmem_device_prealloc(bmctx_t ctx, bmmem_device_t mem, u64 offset, bmshape_t *shape);
void bmmem_device_free(bmctx_t ctx, bmmem_device_t mem);
bmmem_host_t bmmem_host_alloc(any_ctx_t ctx, any_shape_t shape);
void bmmem_host_free(any_ctx_t ctx, bmmem_host_t mem);
size_t bmmem_device_size(bmctx_t ctx, bmmem_device_t mem);
u64 bmmem_device_addr(bmctx_t ctx, bmmem_device_t mem);
uint8_t *bmmem_device_v_addr(bmctx_t ctx, bmmem_device_t mem);
void *bmmem_host_v_addr(any_ctx_t ctx, bmmem_host_t mem);
u64 bmmem_host_p_addr(any_ctx_t ctx, bmmem_host_t mem);
bmerr_t bm_memcpy_h2d(any_ctx_t ctx, any_mem_t dst, bmmem_host_t src, any_u32_t src_host_offset);
bmerr_t bm_memcpy_d2h(any_ctx_t ctx, bmmem_host_t dst, any_mem_t src, any_u32_t dst_host_offset);
bmerr_t bm_memcpy_s2d(bmctx_t ctx, bmmem_device_t dst, uint8_t *src);
bmerr_t bm_memcpy_d2s(bmctx_t ctx, uint8_t *dst, bmmem_device_t src);

bmerr_t bmnet_register(bmctx_t ctx, bmnet_info_t *info, out bmnet_t *net);
bmerr_t bmnet_register_bmodel(bmctx_t ctx, const char *bmodel, out bmnet_t *net);
bmerr_t bmnet_register_noalloc(bmctx_t ctx, bmnet_info_t *info, out bmnet_t *net);
bmerr_t bmnet_set_input_shape(bmnet_t net, shape_t input_shape);
bmerr_t bmnet_get_output_info(bmnet_t net, out bmnet_output_info_t *output_info);
void bmnet_cleanup(bmnet_t net);
bmerr_t bmnet_run(bmnet_t net);
bmmem_device_t bmnet_weight_devmem(bmnet_t net);
bmmem_device_t bmnet_neuron_devmem(bmnet_t net);
bmmem_device_t bmnet_input_devmem(bmnet_t net);
bmmem_device_t bmnet_output_devmem(bmnet_t net);
bmerr_t bmnet_import_weight_devmem(bmnet_t net, bmmem_device_t weight_mem);
bmerr_t bmnet_import_neuron_devmem(bmnet_t net, bmmem_device_t neuron_mem);
bmerr_t bmnet_load_input(bmnet_t net, uint8_t *input);
bmerr_t bmnet_load_neuron(bmnet_t net, u64 neuron_offset, int neuron_size, uint8_t *neuron);
bmerr_t bmnet_store_output(bmnet_t net, uint8_t *output);
bmerr_t bmnet_store_neuron(bmnet_t net, u64 neuron_offset, int neuron_size, uint8_t *neuron);
bmerr_t bmnet_inference(bmnet_t net, uint8_t *input, uint8_t *output);

bmerr_t bm_memcpy_s2d_ex(bmctx_t ctx, bmmem_device_t dst, uint8_t *src, u64 offset, size_t size);
bmerr_t bm_memcpy_d2s_ex(bmctx_t ctx, uint8_t *dst, bmmem_device_t src, u64 offset, size_t size);
bmerr_t bm_load_cmdbuf(bmctx_t ctx, uint8_t *cmdbuf, size_t sz, out bmmem_device_t *cmdbuf_mem);
bmerr_t bm_run_cmdbuf(bmctx_t ctx, bmmem_device_t cmdbuf_mem, out u16 *seq_no);
bmerr_t bm_send_cmdbuf(bmctx_t ctx, uint8_t *cmdbuf, size_t sz, out u16 *seq_no);
bmerr_t bm_wait_cmdbuf_done(bmctx_t ctx, u16 seq_no);
bmerr_t bm_run_cmdbuf_pio(bmctx_t ctx, uint8_t *cmdbuf, size_t sz);
bmerr_t bmnet_register_bmodel_data(bmctx_t ctx, uint8_t *bmodel_data, size_t size, out bmnet_t *net);
bmerr_t bmnet_set_input_shape2(bmnet_t net, shape_t shape[], int num);
bmnet_input_info_t *bmnet_get_input_info(bmnet_t net);
bmnet_model_info_t *bmnet_get_model_info(bmnet_t net);
bmerr_t bmnet_load_part_input(bmnet_t net, uint8_t *input, size_t size);
bmerr_t bmnet_load_cmdbuf(bmnet_t net, const uint8_t *cmdbuf, int cmdbuf_size);
float bmnet_get_input_threshold(bmnet_t net);
float bmmet_get_input_threshold(bmnet_t net);
bmerr_t bmnet_register_cpu_function(const char *name, cpu_function_t function, maybe user_t user);
bmerr_t bmnet_inference_once(bmctx_t ctx, uint8_t *input, uint8_t *output, u32 batch_size, uint8_t *weight, size_t
    weight_size, uint8_t *cmdbuf, size_t cmdbuf_size, size_t neuron_size, size_t input_size, u64 output_offset, size_t
    output_size);
