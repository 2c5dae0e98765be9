typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef u32 fmt_t;
typedef u32 ctrl_t;
typedef u32 laddr_t;
typedef u64 gaddr_t;
#define LADDR_INVALID 0xffffffffu
#define GADDR_INVALID 0xffffffffffull
/* Formats of elements; tensors in local memory are of 8 bits. */
#define FMT_F32 0
#define FMT_F16 1
#define FMT_I32 2
#define FMT_I16 3
#define FMT_I8 4
#define FMT_I4 5
#define FMT_I2 6
#define FMT_I1 7
#define FMT_U16 8
#define FMT_U8 9
#define FMT_INVALID 10
#define FLOAT_SIZE 4
#define INT8_SIZE 1
/* A context, made by bmk1880_register or bmruntime_bmkernel_create, and a command, for bmk1880_add_dependency. */
typedef struct bmk1880_context_t_ bmk1880_context_t;
typedef struct ec_desc bmk1880_op_t;
