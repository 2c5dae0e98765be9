/* A kernel of the BM1880: doubles bytes in device memory. Prints the results; exit status 0 when they are right. */
#include <bmkernel.h>
#include <bmruntime.h>
#include <stdio.h>

#define COUNT 24

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, bmcapi_last_error());
    return 1;
}

int main(void)
{
    int8_t data[COUNT], result[COUNT];
    bmkernel_handle_t *kernel;
    bmctx_t ctx;
    bmmem_device_t memory;
    tensor_lmem *x;
    bmk1880_mul_const_param_t twice = {0};
    int i;

    for (i = 0; i < COUNT; i++)
        data[i] = (int8_t)(i - COUNT / 2);
    if (bm_init(0, &ctx) != BM_SUCCESS)
        return failed("bm_init");
    memory = bmmem_device_alloc_raw(ctx, COUNT);
    if (!memory || bm_memcpy_s2d(ctx, memory, (uint8_t *)data) != BM_SUCCESS)
        return failed("bm_memcpy_s2d");
    if (bmruntime_bmkernel_create(ctx, &kernel) != BM_SUCCESS)
        return failed("bmruntime_bmkernel_create");

    x = bmk1880_tl_alloc(kernel, shape_t4(1, 2, 3, 4), FMT_I8, CTRL_AL);
    twice.res_low = x;
    twice.a = x;
    twice.b = 2;
    twice.b_is_signed = true;
    if (!bmk1880_gdma_load(kernel, x, bmmem_device_addr(ctx, memory), CTRL_NULL) || !bmk1880_tpu_mul_const(kernel, &twice)
        || !bmk1880_gdma_store(kernel, x, bmmem_device_addr(ctx, memory), CTRL_NULL))
        return failed("kernel");
    bmk1880_tl_free(kernel, x);
    if (bmruntime_bmkernel_submit(ctx) != BM_SUCCESS || bm_memcpy_d2s(ctx, (uint8_t *)result, memory) != BM_SUCCESS)
        return failed("bmruntime_bmkernel_submit");
    bmruntime_bmkernel_destroy(ctx);
    bm_exit(ctx);

    for (i = 0; i < COUNT; i++) {
        printf("%d%c", result[i], i + 1 < COUNT ? ' ' : '\n');
        if (result[i] != 2 * data[i])
            return failed("a wrong result");
    }
    return 0;
}
