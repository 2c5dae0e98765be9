static inline stride_t stride_st4(int n, int c, int h, int w)
{
    stride_t made;
    made.n = (u32)n;
    made.c = (u32)c;
    made.h = (u32)h;
    made.w = (u32)w;
    return made;
}
typedef u32 tl_type;
#define TL_TYPE_TENSOR 0
#define TL_TYPE_TENSOR_PREALLOC 1
#define TL_TYPE_CONSTANT 2
#define TL_TYPE_SLICE 3
#define TL_TYPE_CLONE 4
typedef union { u32 reg_val; float fp32_val; } const_fp32_t;
typedef union { laddr_t laddr; const_fp32_t const_fp32; } opd_t;
/* A tensor or matrix in local memory. What a program writes into shape, stride, aligned, fmt and the address counts from
   the next call on; memory that a stride points to belongs to the program, a descriptor to the context. */
typedef struct {
    tl_type type;
    __extension__ union { opd_t operand; laddr_t address; };
    shape_t shape;
    stride_t *stride; /* or NULL: the layout that `aligned` says */
    bool aligned;
    fmt_t fmt;
    u32 bank_id;
    int reserved_size; /* bytes of a lane that are set aside for it */
} tensor_lmem;
static inline laddr_t tl_address(tensor_lmem *tlp)
{
    return tlp->type == TL_TYPE_CONSTANT ? LADDR_INVALID : tlp->operand.laddr;
}
static inline bool tl_is_const(tensor_lmem *tlp) { return tlp->type == TL_TYPE_CONSTANT; }
static inline bool tl_is_prealloc(tensor_lmem *tlp) { return tlp->type == TL_TYPE_TENSOR_PREALLOC; }
static inline bool tl_is_matrix(tensor_lmem *tlp) { return tlp->shape.dim == 1 || tlp->shape.dim == 2; }
static inline void tl_reshape(tensor_lmem *tlp, shape_t shape) { tlp->shape = shape; }
