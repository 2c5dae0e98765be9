"""Sizes that no memory has: refused with a sentence before anything is allocated, within a second, without a crash."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from c_programs import needs_compiler, program, run

pytestmark = needs_compiler

FRAME = """
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static uint8_t small[4096];
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
#define REFUSED(call, said) \\
    do { \\
        double begun = now(); \\
        long refused = (long)(call); \\
        double took = now() - begun; \\
        if (!refused || took > 1 || !*(said) || strstr(said, "Error")) \\
            printf("%s: %ld after %.2f s, '%s'\\n", #call, refused, took, said); \\
        count++; \\
    } while (0)
int main(void)
{
    int count = 0;
    alarm(300);
"""

RUNTIME = """
#include <bmruntime.h>
FRAME
    bmnet_info_t right = {1, small, 64, NULL, 0, 128, 64, 64, 64}, info;
    bmshape_t huge = BM_TENSOR_INT8(INT_MAX, INT_MAX, INT_MAX, INT_MAX);
    const size_t sizes[] = {SIZE_MAX, (size_t)1 << 62, (size_t)1 << 40, (size_t)1 << 31};
    void *kernel = bmk1880_register(NULL);
    bmmem_device_t mem, other;
    bmnet_t net, none;
    bmctx_t ctx;
    uint16_t number;
    unsigned i;
    if (bm_init(0, &ctx) || bmnet_register(ctx, &right, &net) || !(mem = bmmem_device_alloc_raw(ctx, 64)))
        return 2;
    bmk1880_create_streams(kernel, INT_MAX);
    REFUSED(*bmcapi_last_error() != 0, bmcapi_last_error());
    REFUSED(!bmmem_device_alloc(ctx, &huge), bmcapi_last_error());
    REFUSED(!bmk1880_tg_shape_to_size(shape_t4(INT_MAX, INT_MAX, INT_MAX, INT_MAX), FMT_I8), bmcapi_last_error());
    REFUSED(bmnet_load_cmdbuf(net, small, -1), bmcapi_last_error());
    REFUSED(bmnet_load_neuron(net, UINT64_MAX, 8, small), bmcapi_last_error());
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        REFUSED(bm_memcpy_s2d_ex(ctx, mem, small, 0, size), bmcapi_last_error());
        REFUSED(bm_memcpy_d2s_ex(ctx, small, mem, size, size), bmcapi_last_error());
        REFUSED(bm_load_cmdbuf(ctx, small, size, &other), bmcapi_last_error());
        REFUSED(bm_send_cmdbuf(ctx, small, size, &number), bmcapi_last_error());
        REFUSED(bm_run_cmdbuf_pio(ctx, small, size), bmcapi_last_error());
        REFUSED(bmnet_register_bmodel_data(ctx, small, size, &none), bmcapi_last_error());
        REFUSED(bmnet_load_part_input(net, small, size), bmcapi_last_error());
        REFUSED(!bmmem_device_prealloc_raw(ctx, mem, size, size), bmcapi_last_error());
        REFUSED(bmnet_inference_once(ctx, small, small, 1, small, size, small, 0, 128, 64, 64, 64),
                bmcapi_last_error());
        info = right;
        info.weight_size = size;
        REFUSED(bmnet_register(ctx, &info, &none), bmcapi_last_error());
        info = right;
        info.cmdbuf = small;
        info.cmdbuf_size = size;
        REFUSED(bmnet_register_noalloc(ctx, &info, &none), bmcapi_last_error());
        info = right;
        info.neuron_size = size * 2;
        info.input_size = size;
        REFUSED(bmnet_register(ctx, &info, &none), bmcapi_last_error());
    }
    printf("%d\\n", count);
    return 0;
}
"""

DRIVER = """
#include <dmp_dv.h>
FRAME
    const int sizes[] = {INT_MAX, 65535, INT_MIN};
    uint16_t map[256] = {0};
    dmp_dv_context ctx = dmp_dv_context_create();
    dmp_dv_cmdlist list = dmp_dv_cmdlist_create(ctx);
    struct dmp_dv_cmdraw command = {UINT_MAX, DMP_DV_DEV_CONV, 0, {0, 0}};
    size_t size;
    int i;
    for (i = 0; i < 3; i++) {
        int n = sizes[i];
        size = sizeof small;
        REFUSED(dmp_dv_pack_fc_weights(n, n, n, n, n, n, NULL, small, map, small, &size), bmcapi_last_error());
        REFUSED(dmp_dv_pack_fc_weights(n, 1, 1, n, 1, 1, map, small, map, small, &size), bmcapi_last_error());
        REFUSED(dmp_dv_pack_conv_weights(n, 3, 3, n, NULL, small, map, NULL, small, &size), bmcapi_last_error());
        REFUSED(dmp_dv_pack_dil_weights(n, n, n, n, map, small, map, NULL, small, &size), bmcapi_last_error());
    }
    size = SIZE_MAX;
    REFUSED(dmp_dv_pack_fc_weights(8, 1, 1, 8, 1, 1, NULL, small, map, small, &size), dmp_dv_get_last_error_message());
    size = (size_t)1 << 40;
    REFUSED(dmp_dv_pack_conv_weights(8, 1, 1, 8, NULL, small, map, NULL, small, &size),
            dmp_dv_get_last_error_message());
    REFUSED(!dmp_dv_mem_alloc(ctx, SIZE_MAX), dmp_dv_get_last_error_message());
    REFUSED(dmp_dv_cmdlist_add_raw(list, &command), dmp_dv_get_last_error_message());
    printf("%d\\n", count);
    return 0;
}
"""

CARDS = """
#include <bmlib_runtime.h>
#include <bmruntime_interface.h>
FRAME
    const size_t sizes[] = {SIZE_MAX, (size_t)1 << 40, (size_t)1 << 31};
    bm_device_mem_t mem, wrong;
    bm_handle_t handle;
    void *runtime;
    unsigned i;
    if (bm_dev_request(&handle, 0) || bm_malloc_device_byte(handle, &mem, 64) || !(runtime = bmrt_create(handle)))
        return 2;
    wrong = mem;
    wrong.size = UINT_MAX;
    REFUSED(bm_memcpy_s2d(handle, wrong, small), bmcapi_last_error());
    REFUSED(bm_memcpy_d2s(handle, small, wrong), bmcapi_last_error());
    REFUSED(bm_memcpy_s2d_partial(handle, mem, small, UINT_MAX), bmcapi_last_error());
    REFUSED(bm_malloc_neuron_device(handle, &wrong, INT_MAX, INT_MAX, INT_MAX, INT_MAX), bmcapi_last_error());
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        REFUSED(!tpu_kernel_load_module(handle, small, sizes[i]), bmcapi_last_error());
        REFUSED(tpu_kernel_launch(handle, 0, small, sizes[i]), bmcapi_last_error());
        REFUSED(!bmrt_load_bmodel_data(runtime, small, sizes[i]), bmcapi_last_error());
    }
    printf("%d\\n", count);
    return 0;
}
"""


@pytest.mark.parametrize(("package", "text"), [("bmruntime", RUNTIME), ("dmpdv", DRIVER), ("bmrt", CARDS)])
def test_sizes_that_lie_are_refused(built: Path, tmp_path: Path, package: str, text: str) -> None:
    file = tmp_path / f"lies_{package}.c"
    include, frame, body = re.split(r"^(FRAME)$", text, flags=re.M)
    file.write_text(include + FRAME + body)
    done = run(program(built, package, file, "gcc", "-D_GNU_SOURCE", "-Wno-declaration-after-statement"))
    assert done.returncode == 0, (done.returncode, done.stderr.decode()[-1000:])
    assert re.fullmatch(rb"\d+\n", done.stdout), done.stdout.decode()
    assert int(done.stdout) > 10 and frame == "FRAME"
