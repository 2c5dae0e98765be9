"""What sources of firmware ask of the headers beside functions: names of layers, headers and names of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_programs import needs_compiler, program, run

pytestmark = needs_compiler

NAMES = """
#include <stdio.h>
#include "tpu_utils.h"
int main(void)
{
    int t, wrong = 0, shape[FW_MAX_SHAPE_DIMS] = {0};
    scalar_t half;
    optional_info_t value = OPTIONAL_VALUE(DT_FP32, {.f32 = 1.5f}), place = OPTIONAL_ADDR(DT_INT8, 64);
    requant_int_info_t requant = {false, true, RM_HALF_UP, 128, 3, -4, 5};
    tpu_kernel_func_t none = NULL;
    half.f8e5m2.bits = 0;
    half.f8e5m2.exp = 15;
    half.f20.bits = 0;
    UNUSED(shape);
    UNUSED(none);
    for (t = -1; t <= SG_DTYPE_FP8E4M3; t++)
        printf("%s %u %lld %lld %d%d%d%d%d%d\\n", sg_dtype_name(t), sg_dtype_len((sg_data_type_t)t),
               sg_dtype_fixed_min((sg_data_type_t)t), sg_dtype_fixed_max((sg_data_type_t)t), IS_FP(t), IS_FP16(t),
               IS_SIGN(t), IS_INT8(t), IS_INT16(t), IS_INT32(t));
    for (t = 0; t <= SG_DTYPE_FP8E4M3; t++)
        printf("%d ", tpu_type_convert((sg_data_type_t)t));
    for (t = 0; t <= SG_TRIM_DOWN; t++)
        if (t != SG_ROUND_ODD && t != SG_ROUND_ZERO && t != SG_TRIM_INF)
            printf("%s:%d%s", sg_round_name(t), tpu_round_mode_convert((sg_round_mode_t)t),
                   t < SG_TRIM_DOWN ? " " : "\\n");
    printf("%s %s %s %s %s %s %s\\n", sg_reduce_name(SG_REDUCE_L1), sg_binary_name(BINARY_MAX),
           sg_binary_name(BINARY_MIN), sg_binary_name(BINARY_FLOOR_DIV), sg_binary_name(5), sg_active_name(ACTIVE_GELU),
           sg_active_name(ACTIVE_LOG2));
    wrong += !value.is_const || value.value.f32 != 1.5f || place.is_const || place.addr != 64 || requant.shift != -4;
    wrong += sfu_taylor_exp_len(DT_FP32) != 10 || sfu_taylor_log_len(DT_BFP16) != 8 || DT_TF32 != 19;
    wrong += half.f8e5m2.exp != 0 || sizeof(scalar_t) != 4 || sizeof(face_rect_t) != 20;
    return wrong;
}
"""

PRINTED = """UNKNOWN 0 0 0 000000
FP32 4 0 0 100000
FP16 2 0 0 110000
INT8 1 -128 127 001100
UINT8 1 0 255 000100
INT16 2 -32768 32767 001010
UINT16 2 0 65535 000010
INT32 4 -2147483648 2147483647 001001
UINT32 4 0 4294967295 000001
BFP16 2 0 0 110000
INT4 1 -8 7 001000
UINT4 1 0 15 000000
FP20 0 0 0 100000
FP8E5M2 1 0 0 100000
FP8E4M3 1 0 0 100000
5 3 1 0 7 6 9 8 11 13 12 17 15 47 \
ROUND_INF:1 ROUND_UP:5 ROUND_DOWN:6 ROUND_EVEN:0 TRIM_ZERO:2 TRIM_UP:4 TRIM_DOWN:3
L1 MAX MIN FLOOR_DIV UNKNOWN GELU LOG2
"""

OWN = """
#define UNUSED(x) (void)(x)
#define NO_USE 0
typedef unsigned int u32;
typedef unsigned long long u64;
typedef enum { INT8 = 0, FP16 = 1, FP32 = 2, INT16 = 3, INT32 = 4, BFP16 = 5 } PREC;
typedef union { unsigned short bits; } fp16;
typedef enum { GROUP_NORMAL = 0, GROUP_3D = 1 } group_type_t;
"""
LAYER = """
#include "{first}"
#include "{second}"
{more}
typedef struct {{ sg_active_type_t active; sg_binary_type_t binary; int shape[FW_MAX_SHAPE_DIMS]; }} layer_t;
static inline void pipeline_move(unsigned long long *array, int num)
{{
    while (--num > 0)
        array[num] = array[num - 1];
}}
void tpu_bdc_fp_isinf(local_addr_t dst_addr, local_addr_t src_addr, local_addr_t work0_addr, const dim4 *shape,
                      data_type_t dtype)
{{
    scalar_t all = {{.u32 = dtype == DT_FP32 ? 0x7fffffff : 0x7fff}}, inf;
    inf.u32 = dtype == DT_FP32 ? 0x7f800000 : 0x7c00;
    tpu_bdc_and_C(work0_addr, src_addr, all, shape, NULL, NULL, dtype);
    tpu_bdc_equal_C(dst_addr, work0_addr, inf, (scalar_t)1.0f, shape, NULL, NULL, DT_UINT8, dtype);
}}
void tpu_bdc_pow(local_addr_t dst_addr, local_addr_t src_addr, const dim4 *shape, data_type_t dtype)
{{
    tpu_bdc_fp_mul(dst_addr, src_addr, src_addr, shape, NULL, NULL, NULL, dtype);
}}
int kernel(const void *args)
{{
    const layer_t *layer = (const layer_t *)args;
    dim4 shape = {{.n = 1, .c = NPU_NUM, .h = 1, .w = layer->shape[3]}};
    variable_t zero = {{.type = SCALAR, .context.scalar = {{.u32 = 0}}}};
    unsigned long long moved[3] = {{0}};
    TPUKERNEL_ASSERT_INFO(layer->active == ACTIVE_GELU, "layer %d", layer->binary);
    tpu_initialize();
    tpu_bdc_pow(0, 64, &shape, DT_FP32);
    tpu_bdc_fp_isinf(128, 0, ALIGN(192 + sizeof(float), ALIGN_BYTES), &shape, DT_FP32);
    tpu_bdc_greater_select(0, &zero, &zero, &zero, &zero, &shape, DT_FP32, DT_FP32);
    pipeline_move(moved, 3);
    tpu_poll();
    return 0;
}}
TPUKERNEL_FUNC_REGISTER(kernel);
"""

KEPT = """
#include <stdbool.h>
#include <stdio.h>
#include <bmlib_runtime.h>
#include <tpu_kernel.h>
enum { MANY = 50 };
typedef struct { global_addr_t numbers, places, chosen, counts; } kept_args;

/* Places of the numbers that are not 0, and of these places those behind which a number is not 0; how many of both. */
static void kept(const void *arguments)
{
    const kept_args *args = (const kept_args *)arguments;
    dim4 all = {1, 1, 1, MANY}, some = {1, 1, 1, 1};
    unsigned int *counts = (unsigned int *)tpu_global_mem_addr(args->counts);
    tpu_initialize();
    counts[0] = tpu_gdma_get_filter_num();
    tpu_gdma_nonzero_S2S(args->places, args->numbers, &all, DT_INT32, 0);
    counts[1] = tpu_gdma_get_filter_num();
    some.w = (int)counts[1];
    counts[2] = tpu_gdma_mask_select_S2S_with_ret(args->chosen, args->places, args->numbers + 4, 0, &some, DT_UINT32,
                                                  DT_UINT32);
    tpu_gdma_cpy_S2S(args->chosen + 4 * MANY, args->chosen, &some, NULL, NULL, DT_UINT32);
    counts[3] = tpu_gdma_get_filter_num();
    tpu_poll();
}
TPUKERNEL_FUNC_REGISTER(kept)

int main(void)
{
    bm_handle_t handle;
    bm_device_mem_t memory[4];
    unsigned int bytes = 8 * MANY, each;
    kept_args args;
    char data[8 * MANY];
    if (fread(data, 4 * MANY, 1, stdin) != 1 || bm_dev_request(&handle, 0) != BM_SUCCESS)
        return 1;
    for (each = 0; each < 4; each++)
        if (bm_malloc_device_byte(handle, &memory[each], bytes) != BM_SUCCESS)
            return 2;
    args.numbers = bm_mem_get_device_addr(memory[0]);
    args.places = bm_mem_get_device_addr(memory[1]);
    args.chosen = bm_mem_get_device_addr(memory[2]);
    args.counts = bm_mem_get_device_addr(memory[3]);
    if (bm_memcpy_s2d_partial(handle, memory[0], data, 4 * MANY) != BM_SUCCESS ||
        tpu_kernel_launch_sync(handle, "kept", &args, sizeof args) != BM_SUCCESS)
        return 3;
    for (each = 1; each < 4; each++) {
        if (bm_memcpy_d2s(handle, data, memory[each]) != BM_SUCCESS)
            return 4;
        fwrite(data, 1, sizeof data, stdout);
    }
    bm_dev_free(handle);
    return 0;
}
"""


def test_a_kernel_is_told_how_many_elements_were_kept(built: Path) -> None:
    numbers = np.where(np.arange(50) % 3, 0, np.arange(50) - 20).astype(np.int32)
    source = built / "firmware_kept.c"
    source.write_text(KEPT)
    done = run(program(built, "bmlib tpukernel", source, "gcc", "-Wno-long-long"), given=numbers.tobytes())
    assert done.returncode == 0, done.stderr.decode()
    places, chosen, counts = np.frombuffer(done.stdout, np.uint32).reshape(3, 100)
    wanted = np.flatnonzero(numbers)
    marked = wanted[numbers[1 : 1 + wanted.size] != 0]
    assert counts[:4].tolist() == [0, wanted.size, marked.size, marked.size]
    assert places[: wanted.size].tolist() == wanted.tolist()
    assert chosen[: marked.size].tolist() == marked.tolist()


def test_names_of_layers_are_what_firmware_means_by_them(built: Path) -> None:
    source = built / "firmware_names.c"
    source.write_text(NAMES)
    assert run(program(built, "tpukernel", source, "gcc", "-Wno-pedantic")).stdout.decode() == PRINTED


@pytest.mark.parametrize("order", [("common_def.h", "tpu_kernel.h"), ("tpu_kernel.h", "common_def.h")])
@pytest.mark.parametrize("own_first", [False, True])
def test_sources_with_headers_of_their_own_compile(built: Path, order: tuple[str, str], own_first: bool) -> None:
    """In both orders of headers, with a common_def.h of their own or ours, and with names that newer libraries have."""
    theirs = built / "theirs"
    theirs.mkdir(exist_ok=True)
    ours = (built / "include" / "common_def.h").read_text()
    (theirs / "common_def.h").write_text(ours.replace("ACTIVE_LOG2 = 35", "ACTIVE_LOG2 = 35, ACTIVE_OWN = 99"))
    source, target = built / "firmware_layer.c", built / "firmware_layer.so"
    own = OWN + ("enum { OWN = ACTIVE_OWN };" if own_first else "")
    source.write_text(LAYER.format(first=order[0], second=order[1], more=own))
    folders = [f"-I{each}" for each in ((theirs, built / "include") if own_first else (built / "include",))]
    command = ["gcc", "-std=gnu11", "-Wall", "-Werror", "-shared", "-fPIC", "-Wl,--no-undefined", *folders, str(source)]
    link = [f"-L{built / 'lib'}", "-ltpukernel", "-lbmcapi", "-o", str(target)]
    done = subprocess.run([*command, *link], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


PLAIN = """
#define BMCAPI_NO_LINES
#include "tpu_kernel.h"
extern int tpu_npu_num(void);
int main(void) { return tpu_npu_num() != NPU_NUM; }
"""
TAKEN = """
#include "tpu_kernel.h"
int main(void)
{
    int (*lanes)(void) = tpu_npu_num;
    return (tpu_npu_num)() != lanes();
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
@pytest.mark.parametrize("text", [PLAIN, TAKEN], ids=["declared by the source", "by its address"])
def test_functions_are_functions_though_calls_say_their_lines(
    built: Path, tmp_path: Path, text: str, compiler: str
) -> None:
    source = tmp_path / f"plain_{compiler[1:3]}.c"
    source.write_text(text)
    done = run(program(built, "tpukernel", source, compiler))
    assert done.returncode == 0, done.stderr.decode()
