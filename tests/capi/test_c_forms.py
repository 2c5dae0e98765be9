"""BMLib's functions that follow from others: 64-bit sizes, cores, other names; several buffers; what no card has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from c_programs import SANITIZED, needs_compiler, program, run

from bmcompiler.runtime import bmlib
from bmcompiler.runtime.bmlib import BmStatus
from bmcompiler.runtime.bmlib.forms import forms
from bmcompiler.runtime.bmlib.types import BMLIB, FORMS

PROGRAM = """
#include <stdlib.h>
#include "bmlib_runtime.h"
#include "tpu_kernel.h"
#define NEED(what) if (!(what)) { fprintf(stderr, "%d: %s\\n", __LINE__, bmcapi_last_error()); exit(1); }
static int launched;
static void mark(const void *args) { launched += *(const int *)args; }
TPUKERNEL_FUNC_REGISTER(mark)
static bm_status_t checked(bm_handle_t handle)
{
    unsigned int temperature;
    BM_CHECK_RET(bm_get_chip_temp(handle, &temperature));
    return BM_SUCCESS;
}
int main(void)
{
    bm_handle_t handle, other;
    bm_device_mem_u64_t wide, far;
    sg_device_mem_t sg;
    bm_device_mem_t narrow, made;
    bm_dev_stat_t stat;
    unsigned long long seen, halves[2] = {1, 2}, back[2] = {0, 0};
    unsigned int cores, chips, first, speed = 77;
    int step = 3, core = 0, bad_core = 1;
    char name[9];
    tpu_launch_param_t launch = {0, 0, NULL, 0};
    NEED(!bm_dev_request(&handle, 0) && !bm_dev_request(&other, 1));
    NEED(!bm_malloc_device_byte_u64(handle, &wide, 16) && !sg_malloc_device_dword(handle, &sg, 4));
    NEED(bm_mem_get_device_size_u64(wide) == 16 && sg_mem_get_device_size(sg) == 16);
    narrow = bm_mem_from_device(bm_mem_get_device_addr_u64(wide), 16);
    NEED(!bm_memcpy_s2d_gather(handle, narrow, 4, halves, 8ull, halves + 1, 8ull));
    NEED(!bm_memcpy_d2s_scatter(handle, narrow, 4, back + 1, 8ull, back, 8ull));
    NEED(back[0] == 2 && back[1] == 1); /* argc counts pointers and sizes, as in the vendor's library */
    NEED(!bm_memcpy_d2s_scatter(handle, narrow, 2, back, 8ull, back + 1, 8ull) && back[0] == 1 && back[1] == 1);
    NEED(bm_memcpy_d2s_scatter(handle, narrow, 3, back, 8ull, back + 1, 8ull));
    NEED(!bm_mem_mmap_device_mem_u64(handle, &wide, &seen) && ((unsigned long long *)seen)[1] == 2);
    NEED(!bm_mem_unmap_device_mem_u64(handle, (void *)seen, 16));
    bm_set_device_mem_u64(&far, 1ull << 40, bm_mem_get_device_addr_u64(wide));
    NEED(bm_mem_get_device_size_u64(far) == 1ull << 40 && bm_memcpy_s2d_partial_u64(handle, far, halves, 1ull << 39));
    NEED(bm_malloc_device_byte_u64(handle, &far, 1ull << 40) == BM_ERR_NOMEM);
    NEED(!bm_malloc_device_byte_u64(other, &far, 3ull << 30)); /* zeroed pages, taken when they are written */
    NEED(!bm_memcpy_d2d_byte_with_core(handle, bm_mem_from_device(sg.u.device.device_addr, 16), 0,
                                       bm_mem_from_device(wide.u.device.device_addr, 16), 0, 16, 0));
    NEED(bm_thread_sync_from_core(handle, 1) == BM_ERR_PARAM && !bm_thread_sync_from_core(handle, 0));
    back[0] = 0;
    NEED(!sg_memcpy_d2s_partial(handle, back, sg, 8) && back[0] == 1);
    NEED(!bm_malloc_device_byte(other, &narrow, 16));
    NEED(!bm_memcpy_c2c(handle, other, bm_mem_from_device(wide.u.device.device_addr, 16), narrow, true));
    NEED(!bm_memcpy_d2s(other, back, narrow) && back[1] == 2);
    NEED(!bm_mem_convert_system_to_device_coeff_byte(handle, &made, bm_mem_from_system(halves), true, 16));
    NEED(!bm_memcpy_d2s_partial_offset(handle, back, made, 8, 8) && back[0] == 2);
    NEED(bm_mem_convert_system_to_device_coeff_byte(handle, &made, made, true, 16) == BM_ERR_PARAM);
    NEED(!tpu_kernel_launch_async_multi_cores(handle, "mark", &step, sizeof step, &core, 1) && launched == 3);
    NEED(tpu_kernel_launch_sync_multi_cores(handle, "mark", &step, sizeof step, &bad_core, 1) && launched == 3);
    NEED(!okkernel_launch_sync(handle, "mark", &step, sizeof step) && launched == 6);
    NEED(tpu_kernel_launch_async_multicores(handle, &launch, 1) == BM_ERR_PARAM); /* no such function */
    NEED(!bm_get_stat(handle, &stat) && stat.mem_total == 4096 && stat.heap_stat[2].mem_used == 1);
    NEED(!bm_get_tpu_core_num(handle, &cores) && cores == 1);
    NEED(!bm_get_chip_num_from_card(3, &chips, &first) && chips == 1 && first == 3);
    NEED(!bm_get_board_name(handle, name) && !name[8] && name[7]);
    NEED(bm_get_fan_speed(handle, &speed) == BM_NOT_SUPPORTED && speed == 77);
    NEED(checked(handle) == BM_NOT_SUPPORTED);
    bmlib_log_set_level(0);
    NEED(bmlib_log_get_level() == 0);
    bmlib_log("quiet", 16, "%d", 5);
    sg_free_device(handle, sg);
    bm_dev_free(handle);
    bm_dev_free(other);
    return 0;
}
"""


@needs_compiler
@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_functions_of_newer_programs(built: Path, tmp_path: Path, compiler: str) -> None:
    source = tmp_path / f"forms_{compiler[1:3]}.c"
    source.write_text("#include <stdbool.h>\n#include <stdio.h>\n" + PROGRAM)
    flags = ("-Wno-long-long", *SANITIZED) if compiler == "gcc" else ("-Wno-long-long",)
    done = run(program(built, "bmlib tpukernel", source, compiler, *flags))
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    said = done.stderr.decode()
    assert "a simulated card has no temperature sensor" in said and "forms_" in said and "code 9" in said
    assert "[quiet]" not in said and "there is no core 1, a BM1684X has one" in said


def test_forms_follow_from_the_table() -> None:
    assert forms({name: one for name, one in BMLIB.functions.items() if name not in FORMS}) == FORMS
    assert BMLIB.functions["sg_mem_from_device"].parameters[1].c_type == "unsigned long long"
    assert BMLIB.functions["bm_malloc_device_byte_heap_u64"].parameters[2].c_type == "int"  # a number of a heap
    assert [one for one in BMLIB.functions if not hasattr(bmlib, one)] == []


def test_several_buffers_from_python() -> None:
    _, handle = bmlib.bm_dev_request(0)
    _, memory = bmlib.bm_malloc_device_byte_u64(handle, size=6)
    assert bmlib.bm_memcpy_s2d_gather(handle, memory, 4, [b"ab", b"cdef"]) == BmStatus.SUCCESS
    found = [np.zeros(5, np.uint8), np.zeros(1, np.uint8)]
    assert bmlib.bm_memcpy_d2s_scatter(handle, memory, 4, found) == BmStatus.SUCCESS
    assert b"".join(one.tobytes() for one in found) == b"abcdef"
    assert bmlib.bm_memcpy_s2d_gather(handle, memory, 4, [b"abcd", b"efg"]) == BmStatus.PARAM  # a byte too many
    assert bmlib.bm_memcpy_s2d_gather(handle, memory, 2, [None]) == BmStatus.PARAM
    assert bmlib.bmlib_log_set_level(99) is None and bmlib.bmlib_log_get_level() == 32
    bmlib.bm_dev_free(handle)
