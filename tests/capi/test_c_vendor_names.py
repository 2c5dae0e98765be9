"""Sources written for the vendors' headers compile with ours, as C and as C++, and do the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from c_programs import SANITIZED, needs_compiler, program, run

pytestmark = needs_compiler
both_compilers = pytest.mark.parametrize("compiler", ["gcc", "g++"])

KERNEL = """
#include <bmkernel/bm_kernel.h>
#include <bmkernel/bm1880/bmkernel_1880.h>
#include <libbmruntime/bmruntime.h>
#include <libbmruntime/bmruntime_bmkernel.h>
#include <stdio.h>
#include <string.h>
enum { N = 2, C = 3, H = 4, W = 6, SIZE = N * C * H * W };
static int sizes(bmk1880_context_t *kernel, tensor_lmem *t)
{
    const bmk1880_context_t *reader = kernel;
    shape_t row = shape_t1(10), many = shape_t1(1 << 17), picture = shape_t3(3, 4, 5);
    int n, c, h, w;
    if (row.dim != 2 || row.col != 10 || many.row != 4 || many.col != 1 << 15 || picture.dim != 3 || picture.n != 1)
        return 1;
    bmk1880_tl_shape_to_nchw(reader, shape_t2(5, 33), &n, &c, &h, &w);
    if (n != 5 || c != 2 || h != 1 || w != 32)
        return 2;
    if (bmk1880_tl_size(reader, t) != t->reserved_size || t->type != TL_TYPE_TENSOR || tl_is_matrix(t))
        return 3;
    if (bmk1880_tl_shape_to_size(reader, picture, true, FMT_I8) != 32)
        return 4;
    return 0;
}
int main(void)
{
    bmshape_t bms = BM_TENSOR_INT8(N, C, H, W);
    bmmem_device_t low, high;
    bmk1880_context_t *kernel;
    bmk1880_op_t *last;
    bmk1880_add_param_t add;
    bmk1880_max_pooling_param_t pool;
    bmk1880_chip_info_t chip = bmk1880_chip_info();
    tensor_lmem *a_low, *a_high, *pooled, *fixed;
    uint8_t lows[SIZE], highs[SIZE], *seen;
    gaddr_t place;
    bmctx_t ctx;
    bmerr_t ret = bm_init(0, &ctx);
    int i;
    if (ret != BM_SUCCESS || chip.lmem_banks != 8 || bms.fmt != BM_FMT_INT8 || BM_FMT_BPP(bms.fmt) != 8)
        return 1;
    for (i = 0; i < SIZE; i++) {
        lows[i] = (uint8_t)(3 * i);
        highs[i] = (uint8_t)(i - 60);
    }
    low = bmmem_device_alloc(ctx, &bms);
    high = bmmem_device_alloc(ctx, &bms);
    place = bmmem_device_addr(ctx, low);
    if (bm_memcpy_s2d(ctx, low, lows) != BM_SUCCESS || bm_memcpy_s2d(ctx, high, highs) != BM_SUCCESS)
        return 2;
    if (bmruntime_bmkernel_create(ctx, (void **)&kernel) != BM_SUCCESS)
        return 3;
    a_low = bmk1880_tl_alloc(kernel, shape_t4(N, C, H, W), FMT_I8, CTRL_AL);
    a_high = bmk1880_tl_alloc(kernel, shape_t4(N, C, H, W), FMT_I8, CTRL_AL);
    i = sizes(kernel, a_low);
    if (i)
        return 10 + i;
    bmk1880_gdma_load(kernel, a_low, place, CTRL_NULL);
    bmk1880_gdma_load(kernel, a_high, bmmem_device_addr(ctx, high), CTRL_NULL);
    add.res_high = add.a_high = add.b_high = a_high;
    add.res_low = add.a_low = add.b_low = a_low;
    last = bmk1880_tpu_add(kernel, &add); /* twice the number, saturated */
    bmk1880_gdma_store(kernel, a_low, place, CTRL_NULL);
    bmk1880_gdma_store(kernel, a_high, bmmem_device_addr(ctx, high), CTRL_NULL);
    fixed = bmk1880_tl_prealloc_align(kernel, tl_address(a_low), shape_t4(N, C, H, W), FMT_I8);
    if (!last || !tl_is_prealloc(fixed) || fixed->operand.laddr != a_low->operand.laddr)
        return 4;
    pooled = bmk1880_tl_alloc(kernel, shape_t4(N, C, H / 2, W / 2), FMT_I8, CTRL_AL);
    memset(&pool, 0xff, sizeof pool); /* every byte of it is a field of the vendor's */
    pool.ofmap = pooled;
    pool.ifmap = a_high;
    pool.kh = pool.kw = pool.stride_h = pool.stride_w = 2;
    pool.pad_top = pool.pad_bottom = pool.pad_left = pool.pad_right = 0;
    if (!bmk1880_tpu_max_pooling(kernel, &pool))
        return 5;
    bmk1880_tl_free(kernel, pooled);
    bmk1880_tl_free(kernel, a_high);
    bmk1880_tl_free(kernel, a_low);
    bmruntime_bmkernel_submit(ctx);
    bmruntime_bmkernel_destroy(ctx);
    seen = bmmem_device_v_addr(ctx, low);
    if (!seen || bm_memcpy_d2s(ctx, highs, high) != BM_SUCCESS)
        return 6;
    for (i = 0; i < SIZE; i++) {
        int value = 2 * ((int8_t)(i - 60) * 256 + (uint8_t)(3 * i));
        value = value > 32767 ? 32767 : value < -32768 ? -32768 : value;
        if (seen[i] != (value & 0xff) || highs[i] != (value >> 8 & 0xff))
            return 7;
    }
    seen[0] = 99; /* the same bytes as the copies see */
    if (bm_memcpy_d2s(ctx, lows, low) != BM_SUCCESS || lows[0] != 99)
        return 8;
    if (bm_memcpy_h2d(ctx, low, NULL, 0) != BM_ERR_NOT_SUPPORTED)
        return 9;
    bmmem_device_free(ctx, low);
    bmmem_device_free(ctx, high);
    bm_exit(ctx);
    return 0;
}
"""

DRIVER = """
#include <dmp_dv.h>
#include <dmp_dv_cmdraw_v0.h>
#include <dmp_dv_cmdraw_v1.h>
#include <string.h>
static int64_t elapsed(dmp_dv_cmdlist list) { return dmp_dv_cmdlist_get_last_exec_time(list); }
int main(void)
{
    dmp_dv_context ctx = dmp_dv_context_create();
    dmp_dv_mem mem = dmp_dv_mem_alloc(ctx, 4096);
    dmp_dv_cmdlist list = dmp_dv_cmdlist_create(ctx);
    struct dmp_dv_cmdraw_maximizer_v0 command;
    struct dmp_dv_buf place = {{mem}, 0};
    const uint16_t *slopes = NULL;
    uint8_t *bytes = dmp_dv_mem_map(mem);
    size_t packed = 0;
    int64_t done;
    memset(&command, 0, sizeof command);
    command.header.size = sizeof command;
    command.header.device_type = DMP_DV_DEV_MAXIMIZER;
    command.input_buf = command.output_buf = place;
    command.output_buf.offs = 2048;
    command.width = command.height = 2;
    command.nclass = 2;
    memset(bytes, 0, 16);
    bytes[3] = bytes[9] = 0x3c; /* 1.0 for the second class of the first pixel, the first of the third one */
    if (dmp_dv_cmdlist_add_raw(list, (struct dmp_dv_cmdraw *)&command) || dmp_dv_cmdlist_commit(list))
        return 1;
    done = dmp_dv_cmdlist_exec(list);
    if (done < 0 || dmp_dv_cmdlist_wait(list, done) || elapsed(list) < 0 || elapsed(NULL) != -1)
        return 2;
    if (dmp_dv_mem_to_device(mem, 0, 16, DMP_DV_MEM_CPU_WONT_READ) || bytes[2048] + bytes[2049] + bytes[2050] != 1)
        return 3;
    if (dmp_dv_pack_conv_weights(8, 1, 1, 8, NULL, NULL, NULL, slopes, NULL, &packed) || !packed)
        return 4;
    dmp_dv_cmdlist_release(list);
    dmp_dv_mem_release(mem);
    dmp_dv_context_release(ctx);
    return 0;
}
"""


@both_compilers
@pytest.mark.parametrize(("package", "text"), [("bmruntime", KERNEL), ("dmpdv", DRIVER)])
def test_a_source_of_the_vendors_names(built: Path, tmp_path: Path, package: str, text: str, compiler: str) -> None:
    file = tmp_path / f"names_{package}.c"
    file.write_text(text)
    done = run(program(built, package, file, compiler, *(SANITIZED if compiler == "gcc" else ())))
    assert done.returncode == 0, (done.returncode, done.stderr.decode()[-2000:])
