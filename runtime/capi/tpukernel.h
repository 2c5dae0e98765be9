typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define NO_USE 0
#define TENSOR_N_DIM 0
#define TENSOR_C_DIM 1
#define TENSOR_H_DIM 2
#define TENSOR_W_DIM 3
#define THREAD __thread /* of variables of a kernel: launches of several threads have their own */
#define DT_TF32 ((data_type_t)19) /* of other chips: no command takes it */
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
    unsigned short bits;
    __extension__ struct { unsigned short frac : 2; unsigned short exp : 5; unsigned short sign : 1; };
} float8e5m2;
typedef union {
    unsigned short bits;
    __extension__ struct { unsigned short frac : 3; unsigned short exp : 4; unsigned short sign : 1; } format;
} float8e4m3;
typedef union {
    unsigned short bits;
    __extension__ struct { unsigned short frac : 11; unsigned short exp : 8; unsigned short sign : 1; } format;
} float20;
typedef union {
    char s4;
    unsigned char u4;
    char s8;
    unsigned char u8;
    float8e5m2 f8e5m2;
    float8e4m3 f8e3m4;
    short s16;
    unsigned short u16;
    float16 f16;
    bfloat16 bf16;
    int s32;
    unsigned int u32;
    float f32;
    float20 f20;
} scalar_t;
typedef enum { TENSOR = 0, SCALAR = 1, VECTOR = 2 } variable_type_t;
typedef variable_type_t var_type_t;
typedef union { scalar_t scalar; local_addr_t addr; } var_context_t;
typedef struct { variable_type_t type; var_context_t context; } variable_t;
typedef struct { int start; int end; } range_t;
/* How results become integers, for products that requantize. */
typedef struct {
    bool is_perchannel, do_sym_saturate;
    rounding_mode_t round_mode;
    local_addr_t addr;
    int multiplier, shift, yzp;
} requant_int_info_t;
/* A tensor, or one number for all: OPTIONAL_ADDR(DT_FP32, address), OPTIONAL_VALUE(DT_FP32, {.f32 = 1.5f}). */
typedef struct {
    int is_const;
    data_type_t dtype;
    __extension__ union { local_addr_t addr; scalar_t value; };
} optional_info_t;
#define OPTIONAL_VALUE(d, ...) {.is_const = 1, .dtype = d, .value = __VA_ARGS__}
#define OPTIONAL_ADDR(d, a) {.is_const = 0, .dtype = d, .addr = a}
#define ALIGN(x, a) ((((x) + (a) - 1) / (a)) * (a))
#define ALIGN_DOWN(x, a) (((x) / (a)) * (a))
#define DIV_UP(a, b) ((a) == 0 ? 0 : ((a) - 1) / (b) + 1)
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define ALIGN_MASK(x, mask) (((x) + (mask)) & ~(mask))
#define ALIGN_MASK_DOWN(x, mask) ((x) & ~(mask))
#define UNUSED(x) (void)(x)
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
/* Terms of the series that the exponential and the logarithm of a type of floats take. */
static inline int sfu_taylor_exp_len(data_type_t dtype) { return dtype == DT_FP32 ? 10 : 7; }
static inline int sfu_taylor_log_len(data_type_t dtype) { return dtype == DT_FP32 ? 16 : 8; }
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
typedef void (*tpu_kernel_func_t)(const void *);
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
