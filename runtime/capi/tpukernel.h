typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define NO_USE 0
#define TENSOR_N_DIM 0
#define TENSOR_C_DIM 1
#define TENSOR_H_DIM 2
#define TENSOR_W_DIM 3
#define THREAD __thread /* of variables of a kernel: launches of several threads have their own */
typedef struct { int d, h, w; } dim3;
typedef struct { int n, c, d, h, w; } dim5;
typedef struct { int front, back, top, bottom, left, right; } padding3d_t;
typedef enum {
    REDUCE_MEAN = 0, REDUCE_SUM = 1, REDUCE_MAX = 2, REDUCE_MIN = 3, REDUCE_PROD = 4, REDUCE_L2 = 5, REDUCE_L1 = 6
} reduce_method_t;
typedef union {
    unsigned short bits;
    __extension__ struct { unsigned short frac : 10; unsigned short exp : 5; unsigned short sign : 1; } format;
} float16;
typedef union {
    unsigned short bits;
    __extension__ struct { unsigned short frac : 7; unsigned short exp : 8; unsigned short sign : 1; } format;
} bfloat16;
typedef union {
    char s4;
    unsigned char u4;
    char s8;
    unsigned char u8;
    short s16;
    unsigned short u16;
    float16 f16;
    bfloat16 bf16;
    int s32;
    unsigned int u32;
    float f32;
} scalar_t;
typedef enum { TENSOR = 0, SCALAR = 1, VECTOR = 2 } variable_type_t;
typedef variable_type_t var_type_t;
typedef union { scalar_t scalar; local_addr_t addr; } var_context_t;
typedef struct { variable_type_t type; var_context_t context; } variable_t;
typedef struct { int start; int end; } range_t;
#define ALIGN(x, a) ((((x) + (a) - 1) / (a)) * (a))
#define ALIGN_DOWN(x, a) (((x) / (a)) * (a))
#define DIV_UP(a, b) ((a) == 0 ? 0 : ((a) - 1) / (b) + 1)
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define ALIGN_MASK(x, mask) (((x) + (mask)) & ~(mask))
#define ALIGN_MASK_DOWN(x, mask) ((x) & ~(mask))
#define UNUSED(x) ((void)(x))
#define LOCAL_MEM_START_ADDR tpu_local_mem_get_start_addr()
#define L2_SRAM_START_ADDR tpu_l2_sram_get_start_addr()
/* Bits of 1, of -1, and of the largest and least number of a type of floats. */
#define TPUKERNEL_BITS_OF(dtype, f32, f16, bf16) ((dtype) == DT_FP32 ? (f32) : (dtype) == DT_FP16 ? (f16) : (bf16))
#define FP_ONE(dtype) TPUKERNEL_BITS_OF(dtype, 0x3f800000u, 0x3c00u, 0x3f80u)
#define FP_NEG_ONE(dtype) TPUKERNEL_BITS_OF(dtype, 0xbf800000u, 0xbc00u, 0xbf80u)
#define FP_MAX(dtype) TPUKERNEL_BITS_OF(dtype, 0x7f7fffffu, 0x7bffu, 0x7f7fu)
#define FP_NEG_MAX(dtype) TPUKERNEL_BITS_OF(dtype, 0xff7fffffu, 0xfbffu, 0xff7fu)
#define TPUKERNEL_LOG(...) printf(__VA_ARGS__)
#define TPUKERNEL_DBG(...) ((void)0)
#define TPUKERNEL_ASSERT(holds) \
    do { \
        if (!(holds)) { \
            fprintf(stderr, "%s:%d: assertion %s\n", __FILE__, __LINE__, #holds); \
            abort(); \
        } \
    } while (0)
/* The same with words of the caller's, as of printf. */
#define TPUKERNEL_ASSERT_INFO(holds, ...) \
    do { \
        if (!(holds)) { \
            fprintf(stderr, __VA_ARGS__); \
            fprintf(stderr, "\n%s:%d: assertion %s\n", __FILE__, __LINE__, #holds); \
            abort(); \
        } \
    } while (0)
#define TPUKERNEL_ERR(...) TPUKERNEL_ASSERT_INFO(0, __VA_ARGS__)
/* Types and roundings as layers of networks name them. */
#ifndef _COMMON_DEF_H_
#define _COMMON_DEF_H_
typedef enum {
    SG_ROUND_INF = 0, SG_ROUND_UP = 1, SG_ROUND_DOWN = 2, SG_ROUND_EVEN = 3, SG_ROUND_ODD = 4, SG_ROUND_ZERO = 5,
    SG_TRIM_ZERO = 6, SG_TRIM_INF = 7, SG_TRIM_UP = 8, SG_TRIM_DOWN = 9
} sg_round_mode_t;
typedef enum {
    SG_DTYPE_FP32 = 0, SG_DTYPE_FP16 = 1, SG_DTYPE_INT8 = 2, SG_DTYPE_UINT8 = 3, SG_DTYPE_INT16 = 4,
    SG_DTYPE_UINT16 = 5, SG_DTYPE_INT32 = 6, SG_DTYPE_UINT32 = 7, SG_DTYPE_BFP16 = 8, SG_DTYPE_INT4 = 9,
    SG_DTYPE_UINT4 = 10, SG_DTYPE_UNKNOWN = -1
} sg_data_type_t;
#endif
static inline data_type_t tpu_type_convert(sg_data_type_t data_type)
{
    static const data_type_t found[] = {
        DT_FP32, DT_FP16, DT_INT8, DT_UINT8, DT_INT16, DT_UINT16, DT_INT32, DT_UINT32, DT_BFP16, DT_INT4, DT_UINT4
    };
    TPUKERNEL_ASSERT(data_type >= SG_DTYPE_FP32 && data_type <= SG_DTYPE_UINT4);
    return found[data_type];
}
static inline rounding_mode_t tpu_round_mode_convert(sg_round_mode_t mode)
{
    /* -1: no rounding of a command. */
    static const int found[] = {
        RM_HALF_AWAY_FROM_ZERO, RM_HALF_UP, RM_HALF_DOWN, RM_HALF_TO_EVEN, -1, -1, RM_TOWARDS_ZERO, -1, RM_UP, RM_DOWN
    };
    TPUKERNEL_ASSERT(mode >= SG_ROUND_INF && mode <= SG_TRIM_DOWN && found[mode] >= 0);
    return (rounding_mode_t)found[mode];
}
/* The first and the last bank of so many bytes from an address on. */
static inline range_t tpu_bank_range(local_addr_t addr, int size)
{
    range_t banks;
    int first = (int)(addr % LOCAL_MEM_SIZE);
    banks.start = first / BANK_SIZE;
    banks.end = (first + size - 1) / BANK_SIZE;
    return banks;
}
/* Whether two ranges, which include their ends, have something in common; whether any two of several have. */
static inline bool tpu_range_overlapped(const range_t *r0, const range_t *r1)
{
    return r0->start <= r1->end && r1->start <= r0->end;
}
static inline bool tpu_any_range_overlapped(const range_t *ranges, int num)
{
    int one, other;
    for (one = 0; one < num; one++)
        for (other = one + 1; other < num; other++)
            if (tpu_range_overlapped(&ranges[one], &ranges[other]))
                return true;
    return false;
}
/* A function that is declared by others and not offered: the compiler says why. */
#if defined(__GNUC__) && !defined(__clang__)
#define TPUKERNEL_WHY(why) __attribute__((warning(why)))
#else
#define TPUKERNEL_WHY(why)
#endif
#ifdef __cplusplus
#define TPUKERNEL_NOT_OFFERED(name, why) int name(...) TPUKERNEL_WHY(#name " is not offered: " why);
#else
#define TPUKERNEL_NOT_OFFERED(name, why) int name() TPUKERNEL_WHY(#name " is not offered: " why);
#endif
/* Makes a kernel, a function of one pointer, known by its name to launches; stands behind it, without a semicolon. */
#define TPUKERNEL_FUNC_REGISTER(kernel) \
    static void bmcapi_call_##kernel(const void *arguments) { (void)kernel(arguments); } \
    static bmcapi_entry bmcapi_entry_##kernel = {#kernel, bmcapi_call_##kernel, NULL}; \
    __attribute__((constructor)) static void bmcapi_begin_##kernel(void) { bmcapi_register(&bmcapi_entry_##kernel); } \
    __attribute__((destructor)) static void bmcapi_end_##kernel(void) { bmcapi_forget(&bmcapi_entry_##kernel); }
/* What a kernel that is a layer of a network is called with: tensors without gaps in global memory, constants of the network
   among the inputs; the numbers of the layer; the bytes of each lane that it may use, from 0 on. */
typedef struct { global_addr_t address; data_type_t dtype; int dims; int shape[8]; } tpu_layer_tensor_t;
typedef struct {
    const tpu_layer_tensor_t *inputs, *outputs;
    const int *i32_params;
    const float *f32_params;
    int input_num, output_num, i32_num, f32_num;
    unsigned int local_bytes;
    char *reason;
} tpu_layer_call_t;
/* The host is to compute the layer, for this reason; return after it. */
static inline void tpu_layer_refuse(const tpu_layer_call_t *call, const char *reason)
{
    snprintf(call->reason, 256, "%s", reason);
}
/* What a kernel looks at where it is refused to look: it goes on to its end, and its launch fails. */
static inline void *tpukernel_nothing(void)
{
    static void *found = NULL;
    if (!found)
        found = calloc(1, 1 << 24);
    return found;
}
