/* A kernel of the BM1684X that is a layer of networks: a + factor * b, piece by piece (docs/kernel_layers.md). */
#include <tpu_kernel.h>

enum { PIECE = 1024 };

static void weighted(const void *arguments)
{
    const tpu_layer_call_t *call = (const tpu_layer_call_t *)arguments;
    const tpu_layer_tensor_t *a = call->inputs, *b = call->inputs + 1, *y = call->outputs;
    const local_addr_t left = 0, right = BANK_SIZE, sum = 2 * BANK_SIZE;
    dim4 shape = {1, 1, 1, 0};
    scalar_t factor;
    int size = 1, at, axis;

    if (call->input_num != 2 || call->f32_num != 1 || y->dtype != DT_FP32) {
        tpu_layer_refuse(call, "it needs two inputs, a factor and floats");
        return;
    }
    for (axis = 0; axis < y->dims; axis++)
        size *= y->shape[axis];
    factor.f32 = call->f32_params[0];

    tpu_initialize();
    for (at = 0; at < size; at += PIECE) {
        global_addr_t offset = (global_addr_t)at * sizeof(float);
        shape.w = MIN(PIECE, size - at);
        tpu_gdma_cpy_S2L(left, a->address + offset, &shape, NULL, NULL, DT_FP32);
        tpu_gdma_cpy_S2L(right, b->address + offset, &shape, NULL, NULL, DT_FP32);
        tpu_bdc_fp_mul_C(right, right, factor, &shape, NULL, NULL, DT_FP32);
        tpu_bdc_fp_add(sum, left, right, &shape, NULL, NULL, NULL, DT_FP32);
        tpu_gdma_cpy_L2S(y->address + offset, sum, &shape, NULL, NULL, DT_FP32);
    }
    tpu_poll();
}
TPUKERNEL_FUNC_REGISTER(weighted)
