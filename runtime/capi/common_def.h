#ifndef _COMMON_DEF_H_
#define _COMMON_DEF_H_
/* What layers of networks are called with, as firmware and its host programs name it. The names are free for sources that
   do not include this header, or bring their own of this name. Without the kinds of groups, which sources of custom layers
   define themselves. */
#ifndef FW_MAX_SHAPE_DIMS
#define FW_MAX_SHAPE_DIMS 8
#endif
#ifndef UNUSED
#define UNUSED(x) (void)(x)
#endif
#define SWAP_VAL(a, b) a ^= b; b ^= a; a ^= b
typedef enum {
    SG_FW_SUCCESS = 0, SG_FW_ERR_AGAIN = 1001, SG_FW_ERR_FAILURE = 1002, SG_FW_ERR_TIMEOUT = 1003, SG_FW_ERR_PARAM = 1004,
    SG_FW_ERR_NOMEM = 1005, SG_FW_ERR_DATA = 1006, SG_FW_ERR_BUSY = 1007, SG_FW_ERR_NOFEATURE = 1008, SG_FW_ERR_ASSERT = 1009
} sg_fw_status_t;
typedef enum {
    SG_ROUND_INF = 0, SG_ROUND_UP = 1, SG_ROUND_DOWN = 2, SG_ROUND_EVEN = 3, SG_ROUND_ODD = 4, SG_ROUND_ZERO = 5,
    SG_TRIM_ZERO = 6, SG_TRIM_INF = 7, SG_TRIM_UP = 8, SG_TRIM_DOWN = 9
} sg_round_mode_t;
typedef enum {
    SG_DTYPE_FP32 = 0, SG_DTYPE_FP16 = 1, SG_DTYPE_INT8 = 2, SG_DTYPE_UINT8 = 3, SG_DTYPE_INT16 = 4,
    SG_DTYPE_UINT16 = 5, SG_DTYPE_INT32 = 6, SG_DTYPE_UINT32 = 7, SG_DTYPE_BFP16 = 8, SG_DTYPE_INT4 = 9,
    SG_DTYPE_UINT4 = 10, SG_DTYPE_FP20 = 11, SG_DTYPE_FP8E5M2 = 12, SG_DTYPE_FP8E4M3 = 13, SG_DTYPE_UNKNOWN = -1
} sg_data_type_t;
typedef enum {
    SG_REDUCE_MEAN = 0, SG_REDUCE_SUM = 1, SG_REDUCE_MAX = 2, SG_REDUCE_MIN = 3, SG_REDUCE_PROD = 4, SG_REDUCE_L2 = 5,
    SG_REDUCE_L1 = 6
} sg_reduce_method_t;
typedef enum {
    BINARY_ADD = 0, BINARY_SUB = 1, BINARY_MUL = 2, BINARY_DIV = 3, BINARY_MAX = 4, BINARY_MIN = 10000, BINARY_GT = 10001,
    BINARY_GE = 10002, BINARY_LT = 10003, BINARY_LE = 10004, BINARY_EQ = 10005, BINARY_NE = 10006,
    BINARY_SQUARED_DIFF = 10007, BINARY_FLOOR_MOD = 10008, BINARY_FLOOR_DIV = 10009
} sg_binary_type_t;
typedef enum {
    ACTIVE_TANH = 0, ACTIVE_SIGMOID = 1, ACTIVE_RELU = 2, ACTIVE_EXP = 3, ACTIVE_ELU = 4, ACTIVE_SQRT = 5,
    ACTIVE_SQUARE = 6, ACTIVE_RSQRT = 7, ACTIVE_ABSVAL = 8, ACTIVE_LN = 9, ACTIVE_ROUND = 10, ACTIVE_CEIL = 11,
    ACTIVE_FLOOR = 12, ACTIVE_SIN = 13, ACTIVE_COS = 14, ACTIVE_IS_FINITE = 15, ACTIVE_MISH = 16, ACTIVE_SWISH = 17,
    ACTIVE_HSWISH = 18, ACTIVE_SILU = 19, ACTIVE_ARCSIN = 20, ACTIVE_ARCCOS = 21, ACTIVE_ARCSINH = 22, ACTIVE_ARCCOSH = 23,
    ACTIVE_ARCTANH = 24, ACTIVE_SINH = 25, ACTIVE_COSH = 26, ACTIVE_TAN = 27, ACTIVE_SIGN = 28, ACTIVE_GELU = 29,
    ACTIVE_ERF = 30, ACTIVE_HSIGMOID = 31, ACTIVE_LOG_SIGMOID = 32, ACTIVE_SOFT_PLUS = 33, ACTIVE_SOFT_SIGN = 34,
    ACTIVE_LOG2 = 35
} sg_active_type_t;
typedef enum { SHIFT_L = 0, SHIFT_R = 1, SHIFT_CL = 2, SHIFT_CR = 3 } sg_shift_type_t; /* C: around */
typedef enum { BATCH_TORCH = 0, BATCH_FIRST = 1, BATCH_ONNX = 2 } sg_rnn_batch_t;
typedef enum {
    CAFFE_SUPPORT = 0, TENSORFLOW_SUPPORT = 1, CAFFE_NEAREST = 2, TENSORFLOW_NEAREST = 3, PYTORCH_SUPPORT = 4,
    PYTORCH_NEAREST = 5, OPENCV_BILINEAR = 6, ONNX_NEAREST = 7
} PLATFORM_SUPPORT;
#define IS_INT4(t) ((t) == SG_DTYPE_INT4 || (t) == SG_DTYPE_UINT4)
#define IS_INT8(t) ((t) == SG_DTYPE_INT8 || (t) == SG_DTYPE_UINT8)
#define IS_INT16(t) ((t) == SG_DTYPE_INT16 || (t) == SG_DTYPE_UINT16)
#define IS_INT32(t) ((t) == SG_DTYPE_INT32 || (t) == SG_DTYPE_UINT32)
#define IS_FP16(t) ((t) == SG_DTYPE_FP16 || (t) == SG_DTYPE_BFP16)
#define IS_FP20(t) ((t) == SG_DTYPE_FP20)
#define IS_FP(t) ((t) == SG_DTYPE_FP32 || IS_FP16(t) || (t) >= SG_DTYPE_FP20)
#define IS_SIGN(t) ((t) == SG_DTYPE_INT4 || (t) == SG_DTYPE_INT8 || (t) == SG_DTYPE_INT16 || (t) == SG_DTYPE_INT32)
/* Bits of an element; 0 for a type that is none. */
static inline unsigned tpukernel_layer_bits(int t)
{
    static const unsigned char bits[] = {32, 16, 8, 8, 16, 16, 32, 32, 16, 4, 4, 20, 8, 8};
    return t >= 0 && t < (int)sizeof(bits) ? bits[t] : 0;
}
/* Bytes that an element takes, 4 bits one: 0 for a type that does not lie in memory. */
static inline unsigned sg_dtype_len(sg_data_type_t t)
{
    return IS_FP20(t) ? 0 : (tpukernel_layer_bits(t) + 7) / 8;
}
/* The greatest and the least number of a type of integers; 0 of others. */
static inline long long sg_dtype_fixed_max(sg_data_type_t t)
{
    return IS_FP(t) || t < 0 ? 0 : (1ll << (tpukernel_layer_bits(t) - (IS_SIGN(t) ? 1 : 0))) - 1;
}
static inline long long sg_dtype_fixed_min(sg_data_type_t t)
{
    return IS_SIGN(t) ? -(1ll << (tpukernel_layer_bits(t) - 1)) : 0;
}
static inline const char *sg_dtype_name(int t)
{
    static const char *const names[] = {
        "FP32", "FP16", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "BFP16", "INT4", "UINT4", "FP20", "FP8E5M2",
        "FP8E4M3"
    };
    return t == SG_DTYPE_UNKNOWN ? "UNKNOWN" : t >= 0 && t <= SG_DTYPE_FP8E4M3 ? names[t] : "";
}
static inline const char *sg_round_name(int t)
{
    static const char *const names[] = {
        "ROUND_INF", "ROUND_UP", "ROUND_DOWN", "ROUND_EVEN", "ROUND_ODD", "ROUND_ZERO", "TRIM_ZERO", "TRIM_INF", "TRIM_UP",
        "TRIM_DOWN"
    };
    return t >= 0 && t <= SG_TRIM_DOWN ? names[t] : "UNKNOWN";
}
static inline const char *sg_reduce_name(int t)
{
    static const char *const names[] = {"MEAN", "SUM", "MAX", "MIN", "PROD", "L2", "L1"};
    return t >= 0 && t <= SG_REDUCE_L1 ? names[t] : "UNKNOWN";
}
static inline const char *sg_binary_name(int t)
{
    static const char *const names[] = {
        "ADD", "SUB", "MUL", "DIV", "MAX", "MIN", "GT", "GE", "LT", "LE", "EQ", "NE", "SQUARED_DIFF", "FLOOR_MOD", "FLOOR_DIV"
    };
    int at = t >= BINARY_MIN ? t - BINARY_MIN + BINARY_MAX + 1 : t > BINARY_MAX ? -1 : t;
    return at >= 0 && t <= BINARY_FLOOR_DIV ? names[at] : "UNKNOWN";
}
static inline const char *sg_active_name(int t)
{
    static const char *const names[] = {
        "TANH", "SIGMOID", "RELU", "EXP", "ELU", "SQRT", "SQUARE", "RSQRT", "ABSVAL", "LN", "ROUND", "CEIL", "FLOOR", "SIN",
        "COS", "IS_FINITE", "MISH", "SWISH", "HSWISH", "SILU", "ARCSIN", "ARCCOS", "ARCSINH", "ARCCOSH", "ARCTANH", "SINH",
        "COSH", "TAN", "SIGN", "GELU", "ERF", "HSIGMOID", "LOG_SIGMOID", "SOFT_PLUS", "SOFT_SIGN", "LOG2"
    };
    return t >= 0 && t <= ACTIVE_LOG2 ? names[t] : "UNKNOWN";
}
/* Boxes of detections. */
#define MIN_PROPOSAL_NUM (1)
#define MAX_PROPOSAL_NUM (40000)
#define MAX_SOFT_SUPPORT_PROPOSAL_NUM (22500)
#define ALL_MASK_IN_L2_MAX_SIZE (1400)
#define ALL_MASK_IN_L2_SOFT_NMS_MAX_SIZE (350)
typedef enum sgdnn_nms_alg_ { HARD_NMS = 0, SOFT_NMS, ADAPTIVE_NMS, SSD_NMS, MAX_NMS_TYPE } sgdnn_nms_alg_e;
typedef enum { LINEAR_WEIGHTING = 0, GAUSSIAN_WEIGHTING, MAX_WEIGHTING_TYPE } sgdnn_weighting_method_e;
typedef struct { float x1, y1, x2, y2, score; } __attribute__((packed)) face_rect_t;
typedef struct nms_proposal {
    int size;
    face_rect_t face_rect[MAX_PROPOSAL_NUM];
    int capacity;
    face_rect_t *begin, *end;
} __attribute__((packed)) nms_proposal_t;
#endif
