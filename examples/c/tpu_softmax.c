/* A kernel of the BM1684X: softmax of each row of a matrix. Compiled to a shared object, which tpu_host.c loads. */
#include <tpu_kernel.h>

typedef struct {
    unsigned long long dst, src;
    int rows, columns;
} softmax_args;

void softmax(const void *arguments)
{
    const softmax_args *args = (const softmax_args *)arguments;
    dim4 row = {1, 0, 1, 0}, one = {1, 0, 1, 1}, along;
    dim2 window = {1, 0}, step = {1, 1};
    padding_t no_pad = {0, 0, 0, 0};
    scalar_t lowest, factor;
    local_addr_t x = 0, y = BANK_SIZE, work0 = 2 * BANK_SIZE, work1 = 3 * BANK_SIZE, value = 4 * BANK_SIZE;
    local_addr_t series = 5 * BANK_SIZE;

    row.c = one.c = args->rows;
    row.w = window.w = args->columns;
    lowest.f32 = -3.4e38f;
    factor.f32 = 1.0f;
    tpu_aligned_stride(&along, 0, &one, DT_FP32);
    along.h = along.w = 0; /* one value for the whole row */

    tpu_initialize();
    tpu_bdc_load_fp32_exp_coeff(series);
    tpu_gdma_cpy_S2L(x, args->src, &row, NULL, NULL, DT_FP32);
    tpu_bdc_fp_max_pool2d(value, x, &row, &window, &no_pad, &step, &step, DT_FP32, lowest);
    tpu_bdc_fp_sub(y, x, value, &row, NULL, NULL, &along, DT_FP32);
    tpu_bdc_fp32_exp(x, y, work0, work1, series, 0, &row);
    tpu_bdc_fp_avg_pool2d(value, x, &row, &window, &no_pad, &step, &step, DT_FP32, factor); /* factor 1: the sum */
    tpu_bdc_fp32_reciprocal(value, value, &one, NULL, NULL);
    tpu_bdc_fp_mul(y, x, value, &row, NULL, NULL, &along, DT_FP32);
    tpu_gdma_cpy_L2S(args->dst, y, &row, NULL, NULL, DT_FP32);
    tpu_poll();
}
TPUKERNEL_FUNC_REGISTER(softmax)
