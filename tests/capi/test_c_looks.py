"""Kernels in C whose own processor reads what engines computed, and writes what they are to read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from c_programs import SANITIZED, needs_compiler, place_of, program, run

PROGRAM = """
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <bmlib_runtime.h>
#include <tpu_kernel.h>
enum { ROWS = 24, WIDTH = 6, KEPT = 9 };
typedef struct {
    global_addr_t scores, sorted, places, table, chosen, result;
    int wrong;
} chosen_args;

/* Rows of a table in the order of their scores, every second one of them twice: the processor writes the indices. */
static void chosen(const void *arguments)
{
    const chosen_args *args = (const chosen_args *)arguments;
    dim4 all = {1, 1, 1, ROWS}, rows = {1, 1, KEPT, WIDTH}, one = {1, 1, 1, 1};
    scalar_t two, zero;
    const int *places;
    int *indices;
    float *local;
    int row, turn;
    two.f32 = 2.0f;
    zero.u32 = 0;
    tpu_initialize();
    tpu_gdma_cpy_S2L(0, args->scores, &all, NULL, NULL, DT_FP32);
    tpu_bdc_fp_mul_C(64, 0, two, &all, NULL, NULL, DT_FP32);
    tpu_gdma_cpy_L2S(args->scores, 64, &all, NULL, NULL, DT_FP32);
    tpu_poll();
    tpu_hau_sort_natural_index(args->sorted, args->places, args->scores, ROWS, ROWS, true, DT_FP32);
    tpu_hau_poll();
    tpu_invalidate_cache(args->places, 4 * ROWS);
    places = (const int *)tpu_global_mem_addr(args->places);
    indices = (int *)tpu_global_mem_addr(args->chosen + (args->wrong ? 1 << 20 : 0));
    for (turn = 0; turn < 2; turn++) {
        tpu_poll(); /* what was gathered before is there: the indices may be written again */
        for (row = 0; row < KEPT; row++)
            indices[row] = places[turn ? row / 2 : row];
        tpu_flush_cache(args->chosen, 4 * KEPT);
        tpu_parallel_start();
        tpu_gdma_h_gather_S2S(args->result + 4 * KEPT * WIDTH * turn, args->table, args->chosen, false, zero, &rows,
                              ROWS, NULL, NULL, NULL, DT_FP32);
        tpu_parallel_end();
    }
    local = (float *)tpu_local_mem_addr(0, 64);
    local[0] += 1.0f;
    *(float *)tpu_local_mem_addr_unified(LOCAL_MEM_SIZE * 3 + 128) = 5.0f;
    tpu_gdma_cpy_L2S(args->sorted, 64, &one, NULL, NULL, DT_FP32);
    tpu_gdma_cpy_L2S(args->sorted + 4, LOCAL_MEM_SIZE * 3 + 128, &one, NULL, NULL, DT_FP32);
    tpu_gdma_cpy_S2S(L2_SRAM_START_ADDR + 256, args->sorted, &one, NULL, NULL, DT_FP32);
    memcpy(tpu_global_mem_addr(args->sorted + 8), tpu_l2_sram_addr(L2_SRAM_START_ADDR + 256), 4);
    tpu_poll();
}
TPUKERNEL_FUNC_REGISTER(chosen)

static bool need(bool holds)
{
    if (!holds)
        fprintf(stderr, "%s\\n", bmcapi_last_error());
    return holds;
}

/* Scores and a table from stdin; what was gathered and the three first numbers behind it to stdout. */
int main(void)
{
    static const unsigned int bytes[6] = {4 * ROWS, 4 * ROWS, 4 * ROWS, 4 * ROWS * WIDTH, 4 * KEPT, 8 * KEPT * WIDTH};
    bm_handle_t handle;
    bm_device_mem_t memory[6];
    float scores[ROWS], table[ROWS][WIDTH], result[2][KEPT][WIDTH], sorted[ROWS];
    chosen_args args;
    int each;
    if (fread(scores, sizeof scores, 1, stdin) != 1 || fread(table, sizeof table, 1, stdin) != 1)
        return 1;
    if (bm_dev_request(&handle, 0) != BM_SUCCESS)
        return 1;
    for (each = 0; each < 6; each++)
        if (!need(bm_malloc_device_byte(handle, &memory[each], bytes[each]) == BM_SUCCESS))
            return 2;
    args.scores = bm_mem_get_device_addr(memory[0]);
    args.sorted = bm_mem_get_device_addr(memory[1]);
    args.places = bm_mem_get_device_addr(memory[2]);
    args.table = bm_mem_get_device_addr(memory[3]);
    args.chosen = bm_mem_get_device_addr(memory[4]);
    args.result = bm_mem_get_device_addr(memory[5]);
    args.wrong = 0;
    if (!need(bm_memcpy_s2d(handle, memory[0], scores) == BM_SUCCESS) ||
        !need(bm_memcpy_s2d(handle, memory[3], table) == BM_SUCCESS) ||
        !need(tpu_kernel_launch_sync(handle, "chosen", &args, sizeof args) == BM_SUCCESS) ||
        !need(bm_memcpy_d2s(handle, result, memory[5]) == BM_SUCCESS) ||
        !need(bm_memcpy_d2s(handle, sorted, memory[1]) == BM_SUCCESS))
        return 3;
    fwrite(result, 1, sizeof result, stdout);
    fwrite(sorted, 4, 3, stdout);
    args.wrong = 1; /* it writes somewhere, and is refused */
    if (tpu_kernel_launch_sync(handle, "chosen", &args, sizeof args) == BM_SUCCESS)
        return 4;
    bm_dev_free(handle);
    return 0;
}
"""


@needs_compiler
@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_a_kernel_reads_and_writes_between_commands(built: Path, tmp_path: Path, compiler: str) -> None:
    rng = np.random.default_rng(4)
    scores, table = rng.normal(size=24).astype(np.float32), rng.normal(size=(24, 6)).astype(np.float32)
    source = tmp_path / f"looks_{compiler[1:3]}.c"
    source.write_text(PROGRAM)
    flags = ("-Wno-long-long", *(SANITIZED if compiler == "gcc" else ()))
    done = run(program(built, "bmlib tpukernel", source, compiler, *flags), given=scores.tobytes() + table.tobytes())
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found = np.frombuffer(done.stdout, np.float32)
    order = np.argsort(-scores, kind="stable")
    wanted = np.stack([table[order[:9]], table[order[np.arange(9) // 2]]])
    np.testing.assert_array_equal(found[:-3].reshape(wanted.shape), wanted)
    assert found[-3:].tolist() == [2 * scores[0] + np.float32(1), 5.0, 2 * scores[0] + np.float32(1)]
    place = place_of(source, "indices = (int *)")
    said = f"kernel chosen: tpu_global_mem_addr at {place}: 1 bytes at 0x"
    assert said in done.stderr.decode(), done.stderr.decode()
