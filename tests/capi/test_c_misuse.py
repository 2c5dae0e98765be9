"""Misuse from C: every argument of every function refused with a sentence; threads; valgrind."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from c_programs import EXAMPLES, SANITIZED, VALGRIND, needs_compiler, program, run
from c_walk import first_calls, text, whole_life
from c_walks import BMNET, CARDS, COMMANDS, DRIVER, KERNEL, NETWORKS, RUNTIME

from bmcompiler.capi.build import build

pytestmark = needs_compiler
WALKS = {
    "bmruntime": (RUNTIME, "bmruntime", ("bmruntime.h",)),
    "bmkernel": (KERNEL, "bmkernel", ("bmkernel.h",)),
    "dmpdv": (DRIVER, "dmpdv", ("dmpdv.h",)),
    "bmlib": (CARDS, "bmlib", ("bmlib_runtime.h",)),
    "bmrt": (NETWORKS, "bmrt", ("bmruntime_interface.h",)),
}
FIRST = WALKS | {
    "bmnet": (BMNET, "bmnet bmruntime", ("bmnet.h", "bmruntime.h")),
    "tpukernel": (COMMANDS, "tpukernel bmlib", ("tpu_kernel.h",)),
}


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sanitized")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFLAGS", " ".join(SANITIZED))
        build(folder, "gcc")
    return folder


def walked(built: Path, folder: Path, package: str, source: str, *flags: str) -> int:
    """How many calls a program made, all of which were refused."""
    file = folder / f"walk_{package}.c"
    file.write_text(source)
    done = run(program(built, package, file, "gcc", "-w", "-Wno-error", "-O0", *flags))
    assert done.returncode == 0, done.stdout.decode()[-3000:] + done.stderr.decode()[-500:]
    assert b"Traceback" not in done.stderr and b"fault of the library" not in done.stderr
    return int(done.stdout.split()[0])


@pytest.mark.parametrize("title", WALKS)
def test_every_misuse_from_c_is_refused(built: Path, tmp_path: Path, title: str) -> None:
    """In the thread that made the handles, in another that releases them, before they are made, and after."""
    walk, package, headers = WALKS[title]
    assert walked(built, tmp_path, package, whole_life(walk, *headers), "-pthread") > 150


@pytest.mark.sweep
@pytest.mark.parametrize("title", FIRST)
def test_every_function_may_be_the_first_call_of_a_process(built: Path, tmp_path: Path, title: str) -> None:
    walk, package, headers = FIRST[title]
    assert walked(built, tmp_path, package, first_calls(walk, *headers)) > 15


def test_every_misuse_inside_of_a_kernel_is_refused_and_its_launch_fails(built: Path, tmp_path: Path) -> None:
    main = """
#include <bmlib_runtime.h>
static void all(const void *arguments) { walk(); }
TPUKERNEL_FUNC_REGISTER(all)
int main(void)
{
    bm_handle_t handle;
    if (bm_dev_request(&handle, 0) || tpu_kernel_launch_sync(handle, "all", NULL, 0) != BM_ERR_PARAM)
        return 4;
    return bad != 0;
}
"""
    source = text(COMMANDS, "tpu_kernel.h") + main
    file = tmp_path / "walk_tpukernel.c"
    file.write_text(source)
    done = run(program(built, "tpukernel bmlib", file, "gcc", "-w", "-Wno-error", "-O0"))
    assert done.returncode == 0, done.stdout.decode()[-3000:] + done.stderr.decode()[-500:]
    assert b"fault of the library" not in done.stderr and int(done.stdout.split()[0]) > 500


THREADS = """
#include <bmruntime.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static bmctx_t ctx;
static void *work(void *argument)
{
    int8_t data[64], result[64];
    long seed = (long)argument, i, k;
    for (k = 0; k < ROUNDS; k++) {
        bmmem_device_t memory = bmmem_device_alloc_raw(ctx, sizeof data);
        for (i = 0; i < 64; i++)
            data[i] = (int8_t)(seed + k + i);
        if (!memory || bm_memcpy_s2d(ctx, memory, (uint8_t *)data) || bm_memcpy_d2s(ctx, (uint8_t *)result, memory)
            || memcmp(data, result, sizeof data))
            return (void *)1;
        if (bm_memcpy_s2d(ctx, memory, NULL) == BM_SUCCESS || !strstr(bmcapi_last_error(), "src is NULL"))
            return (void *)2;
        bmmem_device_free(ctx, memory);
        if (bm_memcpy_s2d(ctx, memory, (uint8_t *)data) == BM_SUCCESS || !strstr(bmcapi_last_error(), "freed"))
            return (void *)3;
    }
    return NULL;
}
int main(void)
{
    pthread_t threads[8];
    void *bad = NULL, *one;
    long i;
    if (bm_init(0, &ctx))
        return 9;
    for (i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (i = 0; i < 8; i++) {
        pthread_join(threads[i], &one);
        bad = one ? one : bad;
    }
    bm_exit(ctx);
    return (int)(long)bad;
}
"""


def test_eight_threads_get_their_own_answers(built: Path, tmp_path: Path) -> None:
    file = tmp_path / "threads.c"
    file.write_text(THREADS)
    done = run(program(built, "bmruntime", file, "gcc", "-DROUNDS=100", "-fsanitize=address,undefined"))
    assert done.returncode == 0 and b"Traceback" not in done.stderr


LAUNCHES = """
#include <bmlib_runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <tpu_kernel.h>
typedef struct { unsigned long long dst, src; int wrong; } args_t;
static void twice(const void *arguments)
{
    const args_t *args = (const args_t *)arguments;
    dim4 shape = {1, 8, 1, 4};
    scalar_t factor;
    factor.f32 = 2.0f;
    tpu_initialize();
    tpu_gdma_cpy_S2L(0, args->src, &shape, NULL, NULL, DT_FP32);
    tpu_bdc_fp_mul_C(0, args->wrong ? 0xffffffff : 0, factor, &shape, NULL, NULL, DT_FP32);
    tpu_gdma_cpy_L2S(args->dst, 0, &shape, NULL, NULL, DT_FP32);
    tpu_poll();
}
TPUKERNEL_FUNC_REGISTER(twice)
static bm_handle_t handle;
static void *work(void *argument)
{
    float data[32], result[32];
    bm_device_mem_t memory[2];
    args_t args;
    long seed = (long)argument;
    int k, i;
    for (k = 0; k < 5; k++) {
        for (i = 0; i < 32; i++)
            data[i] = (float)(seed + k + i);
        for (i = 0; i < 2; i++)
            if (bm_malloc_device_byte(handle, &memory[i], sizeof data) != BM_SUCCESS)
                return (void *)1;
        args.dst = memory[1].u.device.device_addr;
        args.src = memory[0].u.device.device_addr;
        args.wrong = k & 1;
        if (bm_memcpy_s2d(handle, memory[0], data) != BM_SUCCESS)
            return (void *)2;
        if ((tpu_kernel_launch_sync(handle, "twice", &args, sizeof args) == BM_SUCCESS) == args.wrong)
            return (void *)3;
        if (bm_memcpy_d2s(handle, result, memory[1]) != BM_SUCCESS)
            return (void *)4;
        for (i = 0; i < 32; i++)
            if (result[i] != (args.wrong ? 0.0f : 2.0f * data[i]))
                return (void *)5;
        bm_free_device(handle, memory[0]);
        if (tpu_kernel_launch_sync(handle, "twice", &args, sizeof args) == BM_SUCCESS)
            return (void *)6; /* it reads what was freed */
        bm_free_device(handle, memory[1]);
    }
    return NULL;
}
"""


def test_eight_threads_launch_kernels(built: Path, tmp_path: Path) -> None:
    file = tmp_path / "launches.c"
    main = THREADS[THREADS.index("int main") :].replace("bm_init(0, &ctx)", "bm_dev_request(&handle, 0)")
    file.write_text(LAUNCHES + main.replace("bm_exit(ctx)", "bm_dev_free(handle)"))
    done = run(program(built, "tpukernel bmlib", file, "gcc", "-fsanitize=address,undefined"))
    assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr.decode()[-2000:]


@pytest.mark.sweep
@pytest.mark.parametrize("title", WALKS)
def test_the_libraries_themselves_under_address_sanitizer(sanitized: Path, tmp_path: Path, title: str) -> None:
    walk, package, headers = WALKS[title]
    assert walked(sanitized, tmp_path, package, whole_life(walk, *headers), "-pthread", *SANITIZED) > 150


@pytest.mark.sweep
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
@pytest.mark.parametrize("title", ["kernel", "threads", "walk"])
def test_valgrind_finds_nothing_outside_of_the_interpreter(built: Path, tmp_path: Path, title: str) -> None:
    file = tmp_path / f"{title}_v.c"
    sources = {
        "kernel": (EXAMPLES / "kernel.c").read_text(),
        "threads": THREADS,
        "walk": text(RUNTIME, "bmruntime.h") + "int main(void) { return walk(); }\n",
    }
    file.write_text(sources[title])
    binary = program(built, "bmruntime", file, "gcc", "-w", "-Wno-error", "-g", "-DROUNDS=3")
    done = run(*VALGRIND, binary, timeout=3000, PYTHONMALLOC="malloc", OPENBLAS_NUM_THREADS="1")
    assert done.returncode == 0, re.sub(rb"(?m)^(?!==).*\n", b"", done.stderr).decode()[-4000:]
