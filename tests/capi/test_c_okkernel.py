"""Kernels in C for the BM1684, written as public ones are: their header, their registration, their hosts' launches."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from c_programs import SANITIZED, needs_compiler, place_of, program, run

pytestmark = needs_compiler

KERNEL = """
#include "okk.h"
#ifndef NULL
#define NULL 0
#endif
#define DIV_UP(a, b) (((a) - 1) / (b) + 1)
#define LOCAL_MEM_SIZE okk_local_mem_size_per_npu()
typedef struct {
    int N, C, H, W;
    unsigned long long output_addr, input_addr, kernel_addr;
} __attribute__((packed)) param_t;

/* Over channels: exponentials, their sums by a convolution with ones, quotients. */
void softmax_over_channels(const void *args)
{
    const param_t *param = (const param_t *)args;
    dim4 shape, ones_shape, ones_stride, stride;
    local_addr_t input_addr = 0, exp_addr, work_addr, ones_addr;
    unsigned int size;
    x32 one;
    fp32_or_addr_t chance, two;
    x32_or_addr_t kept, other;
    okk_initialize();
    shape.n = param->N, shape.c = param->C, shape.h = param->H, shape.w = param->W;
    okk_128_byte_aligned_stride_for_32bit(&stride, 0, &shape);
    size = (unsigned int)(shape.n * stride.n) * (unsigned int)sizeof(float);
    exp_addr = input_addr + size;
    work_addr = exp_addr + size;
    ones_addr = work_addr + size;
    one.fp32 = 1.0f;
    ones_shape.n = DIV_UP(shape.c, 2), ones_shape.c = shape.c, ones_shape.h = 1, ones_shape.w = 2;
    okk_compact_stride(&ones_stride, 0, &ones_shape);
    OKKERNEL_ASSERT(ones_addr + (unsigned int)(ones_shape.n * ones_stride.n) * sizeof(float) <= LOCAL_MEM_SIZE);
    okk_gdma_32bit_cpy_S2L(input_addr, param->input_addr, &shape, NULL, NULL);
    okk_bdc_exp(exp_addr, input_addr, work_addr, &shape);
    okk_bdc_32bit_set_C(ones_addr, one, &ones_shape, &ones_stride);
    ones_shape.w = 1;
    okk_compact_stride(&ones_stride, 0, &ones_shape);
    okk_bdc_conv2d(work_addr, exp_addr, ones_addr, 0, &shape, shape.c, 1, 1, NULL, &ones_stride, false, false, NULL,
                   NULL, NULL);
    okk_bdc_div(exp_addr, exp_addr, work_addr, &shape, &stride, &stride, &stride);
    chance.is_addr = kept.is_addr = true;
    chance.context.addr = kept.context.addr = exp_addr;
    two.is_addr = other.is_addr = false;
    two.context.val = 2.0f;
    other.context.val.s32 = -1;
    okk_bdc_greater_select(exp_addr, &chance, &two, &other, &kept, &shape); /* of no chance */
    okk_gdma_32bit_cpy_L2S(param->output_addr, exp_addr, &shape, NULL, NULL);
    okk_poll();
}
OKKERNEL_FUNC_REGISTER(softmax_over_channels)

/* A 3x3 window for each channel, one pixel of zeros around; images one after the other, loads beside the windows. */
void depthwise(const void *args)
{
    const param_t *param = (const param_t *)args;
    Padding padding = {1, 1, 1, 1};
    dim2 stride = {1, 1}, dilation = {1, 1};
    dim4 shape, kernel_shape, image_stride, kernel_stride;
    unsigned int size, i, images = (unsigned int)param->N;
    unsigned long long outside;
    okk_initialize();
    shape.n = 1, shape.c = param->C, shape.h = param->H, shape.w = param->W;
    kernel_shape.n = 1, kernel_shape.c = param->C, kernel_shape.h = 3, kernel_shape.w = 3;
    okk_128_byte_aligned_stride_for_32bit(&image_stride, 0, &shape);
    okk_compact_stride(&kernel_stride, 0, &kernel_shape);
    size = (unsigned int)image_stride.n * (unsigned int)sizeof(float);
    outside = (unsigned long long)param->C * (unsigned long long)(param->H * param->W) * sizeof(float);
    okk_gdma_32bit_cpy_S2L(4 * size, param->kernel_addr, &kernel_shape, &kernel_stride, NULL);
    for (i = 0; i < images + 2; i++) {
        okk_parallel_start();
        if (i < images)
            okk_gdma_32bit_cpy_S2L(i % 2 * size, param->input_addr + i * outside, &shape, NULL, NULL);
        if (i > 0 && i < images + 1)
            okk_bdc_depthwise2d((2 + (i - 1) % 2) * size, (i - 1) % 2 * size, 4 * size, 0, &shape, 3, 3, false,
                                &padding, &stride, &dilation);
        if (i > 1)
            okk_gdma_32bit_cpy_L2S(param->output_addr + (i - 2) * outside, (2 + i % 2) * size, &shape, NULL, NULL);
        okk_parallel_end();
    }
    okk_poll();
}
OKKERNEL_FUNC_REGISTER(depthwise)

void refused(const void *args)
{
    dim4 shape = {1, 1, 1, 1};
    (void)args;
    okk_initialize();
    okk_bdc_add_C(2, 0, 1.0f, &shape, NULL, NULL);
    okk_poll();
}
OKKERNEL_FUNC_REGISTER(refused)
"""
HOST = """
#include <stdio.h>
#include <string.h>
#include "okk_param.h"
#include "bmlib_runtime.h"
enum { N = 3, C = 37, H = 5, W = 6, COUNT = N * C * H * W };
typedef struct {
    int N, C, H, W;
    unsigned long long output_addr, input_addr, kernel_addr;
} __attribute__((packed)) param_host_t;

/* An input and windows from stdin; what both kernels make of them to stdout, then the refusals. */
int main(void)
{
    static float input[COUNT], kernel[C * 9], output[2][COUNT];
    bm_handle_t handle;
    bm_device_mem_t in, weights, out;
    param_host_t param = {N, C, H, W, 0, 0, 0};
    if (fread(input, sizeof input, 1, stdin) != 1 || fread(kernel, sizeof kernel, 1, stdin) != 1)
        return 1;
    if (bm_dev_request(&handle, 0) != BM_SUCCESS || bm_malloc_device_byte(handle, &in, sizeof input) != BM_SUCCESS ||
        bm_malloc_device_byte(handle, &weights, sizeof kernel) != BM_SUCCESS ||
        bm_malloc_device_byte(handle, &out, sizeof input) != BM_SUCCESS)
        return 2;
    bm_memcpy_s2d(handle, in, input);
    bm_memcpy_s2d(handle, weights, kernel);
    param.output_addr = bm_mem_get_device_addr(out);
    param.input_addr = bm_mem_get_device_addr(in);
    param.kernel_addr = bm_mem_get_device_addr(weights);
    if (okkernel_launch_sync(handle, "softmax_over_channels", &param, sizeof param) != BM_SUCCESS)
        return 3;
    bm_memcpy_d2s(handle, output[0], out);
    if (okkernel_launch_sync(handle, "depthwise", &param, sizeof param) != BM_SUCCESS)
        return 4;
    bm_memcpy_d2s(handle, output[1], out);
    fwrite(output, sizeof output, 1, stdout);
    if (okkernel_launch_sync(handle, "refused", &param, sizeof param) == BM_SUCCESS)
        return 5;
    if (okkernel_launch_sync(handle, "absent", &param, sizeof param) == BM_SUCCESS)
        return 6;
    bm_free_device(handle, weights);
    if (okkernel_launch_sync(handle, "depthwise", &param, sizeof param) == BM_SUCCESS)
        return 7;
    bm_free_device(handle, in);
    bm_free_device(handle, out);
    bm_dev_free(handle);
    return 0;
}
"""
SHAPE = (3, 37, 5, 6)


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_kernels_of_a_bm1684_in_c(built: Path, tmp_path: Path, compiler: str) -> None:
    rng = np.random.default_rng(7)
    x, weight = rng.normal(0, 2, SHAPE).astype(np.float32), rng.normal(0, 1, (37, 3, 3)).astype(np.float32)
    source = tmp_path / f"okk_{compiler[1:3]}.c"
    source.write_text(KERNEL + HOST)
    flags = ("-Wno-long-long", *(SANITIZED if compiler == "gcc" else ()))
    done = run(program(built, "bmlib okkernel", source, compiler, *flags), given=x.tobytes() + weight.tobytes())
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    softmax, windows = np.frombuffer(done.stdout, np.float32).reshape(2, *SHAPE)
    e = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(softmax, e / e.sum(1, keepdims=True), rtol=1e-5)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    taps = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    np.testing.assert_allclose(windows, np.einsum("nchwij,cij->nchw", taps, weight), rtol=1e-4, atol=1e-4)
    said = done.stderr.decode()
    place = place_of(source, "okk_bdc_add_C(2, 0,")
    assert f"kernel refused: okk_bdc_add_C at {place}: dst must begin at a multiple of 4 bytes, got 0x2" in said
    assert "no kernel 'absent' is registered with TPUKERNEL_FUNC_REGISTER or OKKERNEL_FUNC_REGISTER" in said
    assert re.search(r"okk_gdma_32bit_cpy_S2L at okk_..\.c:\d+: group 0, GDMA command 0: global", said)


def test_what_is_not_offered_warns_with_the_reason(built: Path, tmp_path: Path) -> None:
    source = tmp_path / "packed.c"
    source.write_text('#include "okk.h"\nint main(void) { return okk_bdc_fixed_point_packed_add(); }\n')
    with pytest.raises(AssertionError, match="packed numbers of 8 and 16 bits are not offered"):
        program(built, "okkernel", source)
