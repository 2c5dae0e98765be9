/* The BMKernel library: structures and functions, which Python's are checked by. Two types take more than C's,
   because a Python integer is not reinterpreted: `const8` and `const16` are s8 and s16 that hold an unsigned number
   where `b_is_signed` is false. `ctx_t` is a context, `reader_t` one that a call does not change. */

typedef struct { u32 chip_version; maybe u32 cmdbuf_size; maybe u8 *cmdbuf; } bmk1880_info_t;
typedef struct { u32 version, npu_num, eu_num, lmem_size, lmem_banks, lmem_bank_size; } bmk1880_chip_info_t;
typedef struct { u32 dim, n, c; u32 h/row; u32 w/col; } shape_t;
typedef struct { u32 n, c; u32 h/row; u32 w/col; } stride_t;
typedef struct { u64 addr; shape_t shape; stride_t stride; } tensor_gmem;

typedef struct { maybe tensor_lmem *res_high; tensor_lmem *res_low; tensor_lmem *a; tensor_lmem *b; int rshift_width;
    } bmk1880_mul_param_t;
typedef struct { maybe tensor_lmem *res_high; tensor_lmem *res_low; tensor_lmem *a; const8 b; bool b_is_signed; int
    rshift_width; } bmk1880_mul_const_param_t;
typedef struct { maybe tensor_lmem *res_high; tensor_lmem *res_low; bool res_is_int8; tensor_lmem *a; tensor_lmem *b;
    int lshift_width; int rshift_width; } bmk1880_mac_param_t;
typedef struct { maybe tensor_lmem *res_high; tensor_lmem *res_low; bool res_is_int8; tensor_lmem *a; const8 b; bool
    b_is_signed; int lshift_width; int rshift_width; } bmk1880_mac_const_param_t;
typedef struct { maybe tensor_lmem *res_high; tensor_lmem *res_low; maybe tensor_lmem *a_high; tensor_lmem *a_low;
    maybe tensor_lmem *b_high; tensor_lmem *b_low; } bmk1880_add_param_t;
typedef struct { maybe tensor_lmem *res_high; tensor_lmem *res_low; maybe tensor_lmem *a_high; tensor_lmem *a_low;
    maybe tensor_lmem *b_high; tensor_lmem *b_low; } bmk1880_sub_param_t;
typedef struct { maybe tensor_lmem *res_high; tensor_lmem *res_low; maybe tensor_lmem *a_high; tensor_lmem *a_low;
    const16 b; bool b_is_signed; } bmk1880_add_const_param_t;
typedef struct { maybe tensor_lmem *res_high; tensor_lmem *res_low; maybe tensor_lmem *a_high; tensor_lmem *a_low;
    tensor_lmem *bits; } bmk1880_arith_shift_param_t;
typedef struct { tensor_lmem *max; tensor_lmem *a; tensor_lmem *b; } bmk1880_max_param_t;
typedef struct { tensor_lmem *min; tensor_lmem *a; tensor_lmem *b; } bmk1880_min_param_t;
typedef struct { tensor_lmem *max; tensor_lmem *a; const8 b; bool b_is_signed; } bmk1880_max_const_param_t;
typedef struct { tensor_lmem *min; tensor_lmem *a; const8 b; bool b_is_signed; } bmk1880_min_const_param_t;
typedef struct { tensor_lmem *res; tensor_lmem *a; tensor_lmem *b; } bmk1880_and_int8_param_t;
typedef struct { tensor_lmem *res; tensor_lmem *a; tensor_lmem *b; } bmk1880_or_int8_param_t;
typedef struct { tensor_lmem *res; tensor_lmem *a; tensor_lmem *b; } bmk1880_xor_int8_param_t;
typedef struct { maybe tensor_lmem *res_high; tensor_lmem *res_low; maybe tensor_lmem *a_high; tensor_lmem *a_low;
    maybe tensor_lmem *b_high; tensor_lmem *b_low; } bmk1880_and_int16_param_t;
typedef struct { maybe tensor_lmem *res_high; tensor_lmem *res_low; maybe tensor_lmem *a_high; tensor_lmem *a_low;
    maybe tensor_lmem *b_high; tensor_lmem *b_low; } bmk1880_or_int16_param_t;
typedef struct { maybe tensor_lmem *res_high; tensor_lmem *res_low; maybe tensor_lmem *a_high; tensor_lmem *a_low;
    maybe tensor_lmem *b_high; tensor_lmem *b_low; } bmk1880_xor_int16_param_t;
typedef struct { tensor_lmem *dst; tensor_lmem *src; } bmk1880_copy_param_t;
typedef struct { tensor_lmem *dst; stride_t dst_stride; tensor_lmem *src; stride_t src_stride; }
    bmk1880_copy_with_stride_param_t;
typedef struct { maybe tensor_lmem *res_high; tensor_lmem *res_low; tensor_lmem *a; } bmk1880_mdsum_param_t;
typedef struct { tensor_lmem *ofmap; tensor_lmem *ifmap; tensor_lmem *table; } bmk1880_lut_param_t;
typedef struct { tensor_lmem *ofmap; tensor_lmem *ifmap; } bmk1880_relu_param_t;
typedef struct { tensor_lmem *ofmap; tensor_lmem *ifmap; tensor_lmem *weight; maybe tensor_lmem *bias; u8 ins_h,
    ins_last_h, ins_w, ins_last_w, pad_top, pad_bottom, pad_left, pad_right; u8 stride_h, stride_w; u8 dilation_h,
    dilation_w; bool relu_enable; int rshift_width; } bmk1880_conv_param_t;
typedef struct { tensor_lmem *ofmap; tensor_lmem *ifmap; tensor_lmem *weight; maybe tensor_lmem *bias;
    manual u8 ins_h, ins_last_h, ins_w, ins_last_w; u8 pad_top, pad_bottom, pad_left, pad_right; bool relu_enable; int
    rshift_width; } bmk1880_winograd_param_t;
typedef struct { tensor_lmem *ofmap; tensor_lmem *ifmap; tensor_lmem *weight; maybe tensor_lmem *bias; u8 ins_h,
    ins_last_h, ins_w, ins_last_w, pad_top, pad_bottom, pad_left, pad_right; u8 stride_h, stride_w; int rshift_width;
    } bmk1880_depthwise_param_t;
typedef struct { tensor_lmem *ofmap; tensor_lmem *ifmap; u8 kh, kw; manual u8 ins_h, ins_last_h, ins_w,
    ins_last_w; u8 pad_top, pad_bottom, pad_left, pad_right; u8 stride_h, stride_w; } bmk1880_max_pooling_param_t;
typedef struct { tensor_lmem *ofmap; tensor_lmem *ifmap; u8 kh, kw; u8 ins_h, ins_last_h, ins_w, ins_last_w, pad_top,
    pad_bottom, pad_left, pad_right; u8 stride_h, stride_w; u8 avg_pooling_const; int rshift_width; }
    bmk1880_avg_pooling_param_t;
typedef struct { tensor_lmem *res; tensor_lmem *left; tensor_lmem *right; maybe tensor_lmem *bias; int lshift_width;
    int rshift_width; bool res_is_int8; ctrl_t ctrls; } bmk1880_matrix_mac_param_t;
typedef struct { tensor_lmem *res; tensor_lmem *left; tensor_lmem *right; } bmk1880_matrix_mac_2_param_t;

void *bmk1880_register(maybe bmk1880_info_t *info);
void bmk1880_cleanup(ctx_t ctx);
u8 *bmk1880_acquire_cmdbuf(ctx_t ctx, out u32 *size);
void bmk1880_reset(ctx_t ctx);
void bmk1880_parallel_enable(ctx_t ctx);
void bmk1880_parallel_disable(ctx_t ctx);
void bmk1880_create_streams(ctx_t ctx, int nr_streams);
void bmk1880_destroy_streams(ctx_t ctx);
void bmk1880_set_stream(ctx_t ctx, int i);
void bmk1880_add_dependency(ctx_t ctx, op_t before, op_t after);
void bmk1880_cpu_op(ctx_t ctx, const char *name, params_t params);
bmk1880_chip_info_t bmk1880_chip_info(void);
shape_t shape_t4(int n, int c, int h, int w);
shape_t shape_t3(int c, int h, int w);
shape_t shape_t2(int row, int col);
shape_t shape_t1(int len);
stride_t stride_t4(int n, int c, int h, int w);
stride_t stride_t2(int row, int col);
bool shape_equal(shape_t s1, shape_t s2);
void bmk1880_tl_shape_to_nchw(reader_t ctx, shape_t s, out int *n, out int *c, out int *h, out int *w);
int bmk1880_tl_shape_to_size(reader_t ctx, shape_t s, bool aligned, fmt_t fmt);
int bmk1880_tl_size(reader_t ctx, tensor_lmem *tlp);
size_t bmk1880_tg_shape_to_size(shape_t s, fmt_t fmt);
tensor_lmem *bmk1880_tl_prealloc(ctx_t ctx, laddr_t la, shape_t s, fmt_t fmt);
tensor_lmem *bmk1880_tl_prealloc_align(ctx_t ctx, laddr_t la, shape_t s, fmt_t fmt);
tensor_lmem *bmk1880_tl_alloc(ctx_t ctx, shape_t s, fmt_t fmt, ctrl_t ctrls);
tensor_lmem *bmk1880_tl_alloc_bank(ctx_t ctx, u32 bank_id, shape_t s, fmt_t fmt, ctrl_t ctrls);
void bmk1880_tl_free(ctx_t ctx, tensor_lmem *tlp);
op_t bmk1880_gdma_copy_gmem(ctx_t ctx, tensor_gmem *dst, tensor_gmem *src, ctrl_t ctrls);
op_t bmk1880_gdma_copy_lmem(ctx_t ctx, tensor_lmem *dst, tensor_lmem *src);
op_t bmk1880_gdma_load(ctx_t ctx, tensor_lmem *t, u64 gaddr, ctrl_t ctrls);
op_t bmk1880_gdma_store(ctx_t ctx, tensor_lmem *t, u64 gaddr, ctrl_t ctrls);
op_t bmk1880_gdma_load_stride(ctx_t ctx, tensor_lmem *t, u64 gaddr, stride_t stride, ctrl_t ctrls);
op_t bmk1880_gdma_store_stride(ctx_t ctx, tensor_lmem *t, u64 gaddr, stride_t stride, ctrl_t ctrls);
op_t bmk1880_gdma_lrn_shift(ctx_t ctx, tensor_lmem *dst, tensor_lmem *src, bool right_shift, int lrn_step);

op_t bmk1880_tpu_mul(ctx_t ctx, const bmk1880_mul_param_t *p);
op_t bmk1880_tpu_mul_const(ctx_t ctx, const bmk1880_mul_const_param_t *p);
op_t bmk1880_tpu_mac(ctx_t ctx, const bmk1880_mac_param_t *p);
op_t bmk1880_tpu_mac_const(ctx_t ctx, const bmk1880_mac_const_param_t *p);
op_t bmk1880_tpu_add(ctx_t ctx, const bmk1880_add_param_t *p);
op_t bmk1880_tpu_add_const(ctx_t ctx, const bmk1880_add_const_param_t *p);
op_t bmk1880_tpu_sub(ctx_t ctx, const bmk1880_sub_param_t *p);
op_t bmk1880_tpu_max(ctx_t ctx, const bmk1880_max_param_t *p);
op_t bmk1880_tpu_max_const(ctx_t ctx, const bmk1880_max_const_param_t *p);
op_t bmk1880_tpu_min(ctx_t ctx, const bmk1880_min_param_t *p);
op_t bmk1880_tpu_min_const(ctx_t ctx, const bmk1880_min_const_param_t *p);
op_t bmk1880_tpu_arith_shift(ctx_t ctx, const bmk1880_arith_shift_param_t *p);
op_t bmk1880_tpu_and_int8(ctx_t ctx, const bmk1880_and_int8_param_t *p);
op_t bmk1880_tpu_and_int16(ctx_t ctx, const bmk1880_and_int16_param_t *p);
op_t bmk1880_tpu_or_int8(ctx_t ctx, const bmk1880_or_int8_param_t *p);
op_t bmk1880_tpu_or_int16(ctx_t ctx, const bmk1880_or_int16_param_t *p);
op_t bmk1880_tpu_xor_int8(ctx_t ctx, const bmk1880_xor_int8_param_t *p);
op_t bmk1880_tpu_xor_int16(ctx_t ctx, const bmk1880_xor_int16_param_t *p);
op_t bmk1880_tpu_copy(ctx_t ctx, const bmk1880_copy_param_t *p);
op_t bmk1880_tpu_copy_with_stride(ctx_t ctx, const bmk1880_copy_with_stride_param_t *p);
op_t bmk1880_tpu_mdsum(ctx_t ctx, const bmk1880_mdsum_param_t *p);
op_t bmk1880_tpu_lut(ctx_t ctx, const bmk1880_lut_param_t *p);
op_t bmk1880_tpu_relu(ctx_t ctx, const bmk1880_relu_param_t *p);
op_t bmk1880_tpu_conv(ctx_t ctx, const bmk1880_conv_param_t *p);
op_t bmk1880_tpu_winograd(ctx_t ctx, const bmk1880_winograd_param_t *p);
op_t bmk1880_tpu_depthwise(ctx_t ctx, const bmk1880_depthwise_param_t *p);
op_t bmk1880_tpu_max_pooling(ctx_t ctx, const bmk1880_max_pooling_param_t *p);
op_t bmk1880_tpu_avg_pooling(ctx_t ctx, const bmk1880_avg_pooling_param_t *p);
op_t bmk1880_tpu_matrix_mac(ctx_t ctx, const bmk1880_matrix_mac_param_t *p);
op_t bmk1880_tpu_matrix_mac_2(ctx_t ctx, const bmk1880_matrix_mac_2_param_t *p);
