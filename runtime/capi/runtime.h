typedef struct bm_context *bmctx_t;
typedef struct bm_device *bmdev_t;
typedef struct bmnet_context *bmnet_t;
/* Handles of memory: of a device; those of host and system are the same type, as the vendor has them. */
typedef struct bm_memory *bmmem_t;
typedef bmmem_t bmmem_device_t;
typedef bmmem_t bmmem_host_t;
typedef bmmem_t bmmem_system_t;
typedef void bmkernel_handle_t;
typedef bmk_chip_info_t bm_devinfo_t;
/* A function of the program for the CPU records of a model: it works on the net's memory, and returns 0. */
typedef int (*bmnet_cpu_function_t)(void *user, uint8_t *neuron, uint64_t neuron_size, uint8_t *weight,
    uint64_t weight_size, const uint8_t *param, uint64_t param_size);
#define BM_DEVICE_MAX_NUM 8
#define BM_SHAPE_MAX_DIM 4
typedef enum bmfmt_e {
    BM_FMT_FP32 = 0,
    BM_FMT_FP16 = 1,
    BM_FMT_INT16 = 2,
    BM_FMT_INT8 = 3,
    BM_FMT_MAX = 4
} bmfmt_t;
/* Bits of an element. */
#define BM_FMT_BPP(fmt) ((fmt) == BM_FMT_FP32 ? 32 : (fmt) == BM_FMT_INT8 ? 8 : 16)
/* What a bmshape_t begins with: a tensor has 4 dimensions, a matrix 2. */
#define BM_TENSOR_WITH_FMT(n, c, h, w, fmt) {fmt, 4, {n, c, h, w}}
#define BM_TENSOR_FP32(n, c, h, w) BM_TENSOR_WITH_FMT(n, c, h, w, BM_FMT_FP32)
#define BM_TENSOR_INT16(n, c, h, w) BM_TENSOR_WITH_FMT(n, c, h, w, BM_FMT_INT16)
#define BM_TENSOR_INT8(n, c, h, w) BM_TENSOR_WITH_FMT(n, c, h, w, BM_FMT_INT8)
#define BM_MATRIX_FP32(l, r) {BM_FMT_FP32, 2, {l, r}}
#define BM_MATRIX_INT16(l, r) {BM_FMT_INT16, 2, {l, r}}
#define BM_MATRIX_INT8(l, r) {BM_FMT_INT8, 2, {l, r}}
