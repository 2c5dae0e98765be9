"""A kernel in C that drives the sort engine between the two others."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from c_programs import SANITIZED, needs_compiler, program, run

PROGRAM = """
#include <stdbool.h>
#include <stdio.h>
#include <bmlib_runtime.h>
#include <tpu_kernel.h>
enum { COUNT = 40, KEPT = 7 };
typedef struct {
    global_addr_t values, places, given, names;
    int kept, descended;
} ranked_args;

/* The first numbers of twice what is given and their names, then twice these numbers. */
static void ranked(const void *arguments)
{
    const ranked_args *args = (const ranked_args *)arguments;
    dim4 all = {1, 1, 1, COUNT}, kept = {1, 1, 1, KEPT};
    scalar_t two;
    two.f32 = 2.0f;
    tpu_initialize();
    tpu_gdma_cpy_S2L(0, args->given, &all, NULL, NULL, DT_FP32);
    tpu_bdc_fp_mul_C(0, 0, two, &all, NULL, NULL, DT_FP32);
    tpu_gdma_cpy_L2S(args->given, 0, &all, NULL, NULL, DT_FP32);
    tpu_poll();
    if (args->names)
        tpu_hau_sort_specific_index(args->values, args->places, args->given, args->names, COUNT, args->kept,
                                    args->descended != 0, DT_FP32);
    else if (args->places)
        tpu_hau_sort_natural_index(args->values, args->places, args->given, COUNT, args->kept, args->descended != 0,
                                   DT_FP32);
    else
        tpu_hau_sort(args->values, args->given, COUNT, args->kept, args->descended != 0, DT_FP32);
    tpu_hau_poll();
    tpu_gdma_cpy_S2L(0, args->values, &kept, NULL, NULL, DT_FP32);
    tpu_bdc_fp_mul_C(0, 0, two, &kept, NULL, NULL, DT_FP32);
    tpu_gdma_cpy_L2S(args->values, 0, &kept, NULL, NULL, DT_FP32);
    tpu_poll();
}
TPUKERNEL_FUNC_REGISTER(ranked)

static bool need(bool holds)
{
    if (!holds)
        fprintf(stderr, "%s\\n", bmcapi_last_error());
    return holds;
}

/* Numbers and their names from stdin; of each of six sorts the values and places to stdout, then the refusals. */
int main(void)
{
    bm_handle_t handle;
    bm_device_mem_t memory[4];
    unsigned int bytes[4] = {4 * KEPT, 4 * KEPT, 4 * COUNT, 4 * COUNT}, data[2][COUNT], result[2][KEPT];
    ranked_args args;
    int sort, each;
    if (fread(data, sizeof data[0], 2, stdin) != 2 || bm_dev_request(&handle, 0) != BM_SUCCESS)
        return 1;
    for (each = 0; each < 4; each++)
        if (!need(bm_malloc_device_byte(handle, &memory[each], bytes[each]) == BM_SUCCESS))
            return 2;
    args.kept = KEPT;
    for (sort = 0; sort < 6; sort++) {
        args.values = bm_mem_get_device_addr(memory[0]);
        args.places = sort % 3 > 0 ? bm_mem_get_device_addr(memory[1]) : 0;
        args.given = bm_mem_get_device_addr(memory[2]);
        args.names = sort % 3 > 1 ? bm_mem_get_device_addr(memory[3]) : 0;
        args.descended = sort < 3;
        if (!need(bm_memcpy_s2d(handle, memory[2], data[0]) == BM_SUCCESS) ||
            !need(bm_memcpy_s2d(handle, memory[3], data[1]) == BM_SUCCESS) ||
            !need(tpu_kernel_launch_sync(handle, "ranked", &args, sizeof args) == BM_SUCCESS) ||
            !need(bm_memcpy_d2s(handle, result[0], memory[0]) == BM_SUCCESS) ||
            !need(bm_memcpy_d2s(handle, result[1], memory[1]) == BM_SUCCESS))
            return 3;
        fwrite(result, 1, sizeof result, stdout);
    }
    args.kept = COUNT + 1;
    if (tpu_kernel_launch_sync(handle, "ranked", &args, sizeof args) == BM_SUCCESS)
        return 4;
    args.kept = KEPT + 1; /* one word behind the memory of the values */
    if (tpu_kernel_launch_sync(handle, "ranked", &args, sizeof args) == BM_SUCCESS)
        return 5;
    args.kept = KEPT;
    bm_free_device(handle, memory[3]);
    if (tpu_kernel_launch_sync(handle, "ranked", &args, sizeof args) == BM_SUCCESS)
        return 6;
    bm_dev_free(handle);
    return 0;
}
"""


@needs_compiler
@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_a_kernel_in_c_sorts(built: Path, tmp_path: Path, compiler: str) -> None:
    rng = np.random.default_rng(4)
    numbers, names = rng.integers(-9, 9, 40).astype(np.float32), rng.permutation(40).astype(np.int32)
    source = tmp_path / f"sort_{compiler[1:3]}.c"
    source.write_text(PROGRAM)
    flags = ("-Wno-long-long", *(SANITIZED if compiler == "gcc" else ()))
    done = run(program(built, "bmlib tpukernel", source, compiler, *flags), given=numbers.tobytes() + names.tobytes())
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found = np.frombuffer(done.stdout, np.int32).reshape(2, 3, 2, 7)
    for results, sign in zip(found, (-1, 1)):
        natural = np.argsort(sign * numbers, kind="stable")[:7]
        specific = np.lexsort((names, sign * numbers))[:7]
        for values, _ in results:
            np.testing.assert_array_equal(values.view(np.float32), 4 * numbers[natural])
        np.testing.assert_array_equal(results[1][1], natural)
        np.testing.assert_array_equal(results[2][1], names[specific])
    said = [line for line in done.stderr.decode().splitlines() if line.startswith("tpu_kernel_launch_sync: ")]
    wanted = (
        "kernel ranked: tpu_hau_sort_specific_index: K must be in [1, len]",
        "tpu_hau_sort_specific_index: group 0, HAU command 0: global tensor (1, 1, 1, 8) at 0x100000000",
        "tpu_hau_sort_specific_index: group 0, HAU command 0: global address 0x100003000 is outside",
    )
    assert len(said) == len(wanted), said
    for line, start in zip(said, wanted):
        without_place = re.sub(rf" at {re.escape(source.name)}:\d+", "", line)
        assert without_place != line and without_place.startswith(f"tpu_kernel_launch_sync: {start}"), line
