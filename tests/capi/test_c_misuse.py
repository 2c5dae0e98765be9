"""Misuse from C: every argument of every function refused with a sentence; threads; valgrind."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from c_programs import EXAMPLES, SANITIZED, VALGRIND, needs_compiler, program, run
from c_walk import Walk, first_calls, text, whole_life

from bmcompiler.capi.build import build
from bmcompiler.runtime.capi import bmkernel, bmlib, bmrt, bmruntime, dmpdv, tpukernel

pytestmark = needs_compiler
STRANGE = "0", "7", "(uintptr_t)scratch"
"""What nobody gave out as a handle."""

RUNTIME = Walk(
    bmruntime.LIBRARY,
    """
    bmnet_info_t info = {1, (uint8_t *)scratch, 64, NULL, 0, 128, 64, 64, 64};
    if (bm_init(0, &ctx) || bm_init(1, &exited)) return 2;
    dev = bm_get_device(ctx);
    mem = bmmem_device_alloc_raw(ctx, 64);
    gone = bmmem_device_alloc_raw(ctx, 64);
    if (bmnet_register(ctx, &info, &net) || bmnet_register(ctx, &info, &cleaned)) return 3;
    if (bm_device_open(6, &closed)) return 4;
    bmmem_device_free(ctx, gone);
    bmnet_cleanup(cleaned);
    bm_device_close(closed);
    bm_exit(exited);
    """,
    {
        "bmctx_t": "ctx", "bmdev_t": "dev", "bmmem_device_t": "mem", "bmnet_t": "net", "bmshape_t *": "&shape",
        "shape_t": "shape_t4(1, 64, 1, 1)", "const char *": '"absent.bmodel"', "uint8_t *": "(uint8_t *)scratch",
        "const uint8_t *": "(uint8_t *)scratch",
    },
    {
        "bmctx_t": (*STRANGE, "mem", "exited"),
        "bmdev_t": (*STRANGE, "ctx", "closed"),
        "bmmem_device_t": (*STRANGE, "net", "gone"),
        "bmnet_t": (*STRANGE, "mem", "cleaned"),
    },
    beside={
        "index": ("-1", "99"), "neuron_offset": ("1000",), "neuron_size": ("-1",), "seq_no": ("9",), "num": ("0", "2"),
        "batch_size": ("0", "3"), "output_offset": ("1000",),
    },
    without=frozenset({"bm_enum_devices", "bm_device_query", "bm_device_config"}),  # NULL says nothing to them
    handles=("bmctx_t", "bmdev_t", "bmmem_device_t", "bmnet_t"),
    end=("bmnet_cleanup(net)", "bmmem_device_free(ctx, mem)", "bm_exit(ctx)"),
    globals="static bmctx_t ctx, exited; static bmdev_t dev, closed; static bmmem_device_t mem, gone;"
    "static bmnet_t net, cleaned; static bmshape_t shape = {BM_FMT_INT8, 2, {1, 64}};",
)  # fmt: skip
KERNEL = Walk(
    bmkernel.LIBRARY,
    """
    ctx = bmk1880_register(NULL); cleaned = bmk1880_register(NULL);
    t = bmk1880_tl_alloc(ctx, shape_t4(1, 32, 4, 4), FMT_I8, CTRL_AL);
    gone = bmk1880_tl_alloc(ctx, shape_t4(1, 32, 4, 4), FMT_I8, CTRL_AL);
    lost = bmk1880_tl_alloc(cleaned, shape_t4(1, 32, 4, 4), FMT_I8, CTRL_AL);
    bmk1880_gdma_load(ctx, t, 0, CTRL_NEURON);
    op = bmk1880_gdma_store(ctx, t, 0, CTRL_NEURON);
    far = bmk1880_gdma_load(cleaned, lost, 0, CTRL_NEURON);
    bmk1880_tl_free(ctx, gone); bmk1880_cleanup(cleaned);
    """,
    {
        "ctx_t": "ctx", "reader_t": "ctx", "op_t": "op", "tensor_lmem *": "t", "shape_t": "shape_t4(1, 32, 4, 4)",
        "stride_t": "stride_t4(512, 16, 4, 1)", "fmt_t": "FMT_I8", "ctrl_t": "CTRL_NULL",
    },
    {
        "ctx_t": (*STRANGE, "t", "cleaned"),
        "reader_t": (*STRANGE, "t", "cleaned"),
        "op_t": (*STRANGE, "ctx", "far"),
        "tensor_lmem *": (*STRANGE, "ctx", "gone"),
    },
    beside={"fmt": ("99",)},
    without=frozenset({"bmk1880_register"}),
    handles=("ctx_t", "reader_t"),
    end=("bmk1880_tl_free(ctx, t)", "bmk1880_cleanup(ctx)"),
    globals="static void *ctx, *cleaned, *op, *far; static tensor_lmem *t, *gone, *lost;",
)  # fmt: skip
DRIVER = Walk(
    dmpdv.LIBRARY,
    """
    ctx = dmp_dv_context_create(); left = dmp_dv_context_create();
    mem = dmp_dv_mem_alloc(ctx, 64); gone = dmp_dv_mem_alloc(left, 64);
    list = dmp_dv_cmdlist_create(ctx); over = dmp_dv_cmdlist_create(left);
    info.header.size = sizeof info; dmp_dv_mem_map(mem);
    dmp_dv_cmdlist_release(over); dmp_dv_mem_release(gone); dmp_dv_context_release(left);
    """,
    {
        "dmp_dv_context": "ctx", "dmp_dv_mem": "mem", "dmp_dv_cmdlist": "list",
        "struct dmp_dv_info *": "(struct dmp_dv_info *)&info", "const uint16_t *": "(const uint16_t *)scratch",
        "const void *": "scratch", "pointer_t": "NULL", "const char *": '""',
    },
    {
        "dmp_dv_context": ("7", "mem", "left"),
        "dmp_dv_mem": ("7", "list", "gone"),
        "dmp_dv_cmdlist": ("7", "ctx", "over"),
    },
    sentence="dmp_dv_get_last_error_message()",
    reset='dmp_dv_set_last_error_message("");',
    without=frozenset({"dmp_dv_get_last_error_message"}),
    handles=("dmp_dv_context", "dmp_dv_mem", "dmp_dv_cmdlist"),
    lenient=frozenset(f"dmp_dv_{one}_{two}" for one in ("context", "mem", "cmdlist") for two in ("retain", "release")),
    end=(
        "dmp_dv_cmdlist_release(list)", "dmp_dv_mem_unmap(mem)", "dmp_dv_mem_release(mem)",
        "dmp_dv_context_release(ctx)",
    ),
    globals="static dmp_dv_context ctx, left; static dmp_dv_mem mem, gone; static dmp_dv_cmdlist list, over;"
    "static struct dmp_dv_info_v0 info;",
)  # fmt: skip
_CARD = """
    if (bm_dev_request(&handle, 0) || bm_dev_request(&freed, 1)) return 2;
    if (bm_malloc_device_byte(handle, &mem, 64) || bm_malloc_device_byte(handle, &gone, 64)) return 3;
    bm_free_device(handle, gone);
"""
_CARD_GLOBALS = "static bm_handle_t handle, freed; static bm_device_mem_t mem, gone;"
_HANDLES = {"bm_handle_t": (*STRANGE, "freed")}
CARDS = Walk(
    bmlib.LIBRARY,
    _CARD + " bm_dev_free(freed); bm_set_device_mem_u64(&u64_mem, 64, bm_mem_get_device_addr(mem));"
    "sg_set_device_mem(&sg_mem, 64, bm_mem_get_device_addr(mem)); sg_gone = sg_mem; u64_gone = u64_mem;"
    "sg_mem_set_device_addr(&sg_gone, bm_mem_get_device_addr(gone));"
    "bm_mem_set_device_addr_u64(&u64_gone, bm_mem_get_device_addr(gone));",
    {
        "bm_handle_t": "handle", "bm_device_mem_t": "mem", "bm_device_mem_t *": "&mem", "const char *": '"absent"',
        "void *": "scratch", "const void *": "scratch", "address_t": "scratch", "size_t": "8", "char *": "scratch",
        "cores_t": "&core", "launches_t": "&launch", "pairs_t": "scratch, 64ull",
        "sg_device_mem_t": "sg_mem", "sg_device_mem_t *": "&sg_mem", "bm_device_mem_u64_t": "u64_mem",
        "bm_device_mem_u64_t *": "&u64_mem", "bmlib_api_dbg_callback": "NULL", "words_t *": "scratch",
    },
    _HANDLES | {"tpu_kernel_module_t": (*STRANGE, "handle")},
    beside={
        "devid": ("-1", "99"), "heap_id": ("-1", "3"), "dst": ("gone",), "src": ("gone",), "function": ("99",),
        "args": ("NULL",), "module_file": ('"absent"',), "func_name": ('"absent"',), "dst_offset": ("65",),
        "src_offset": ("65",), "offset": ("64",), "count": ("0", "-1"), "n": ("0", "-1"),
        "vmem": ("NULL",), "timeout": ("0",), "heap_id_mask": ("0", "8"), "format_size": ("3",), "dst_stride": ("2",),
        "paddr": ("0", "4096"), "dmem": ("&gone",), "core_id": ("1", "-1"), "core_num": ("0", "2", "0x7fffffff"),
        "param_num": ("0", "2", "-1"), "argc": ("0", "-1", "0x7fffffff"), "card_id": ("99",),
        "sys_mem": ("mem", "gone"), "coeff_count": ("0", "-1"), "param_list": ("&lost_launch",),
        "core_list": ("&no_core",),
    },
    handles=("bm_handle_t", "tpu_kernel_module_t"),
    end=("bm_free_device(handle, mem)", "bm_dev_free(handle)"),
    twins={
        "sg_device_mem_t": {"gone": "sg_gone"}, "sg_device_mem_t *": {"&gone": "&sg_gone"},
        "bm_device_mem_u64_t": {"gone": "u64_gone"}, "bm_device_mem_u64_t *": {"&gone": "&u64_gone"},
    },
    globals=_CARD_GLOBALS + "static sg_device_mem_t sg_mem, sg_gone; static bm_device_mem_u64_t u64_mem, u64_gone;"
    "static int core, no_core = 1; static tpu_launch_param_t launch, lost_launch = {1, 0, 0, 0};",
)  # fmt: skip
NETWORKS = Walk(
    bmrt.LIBRARY,
    _CARD + "bm_dev_free(freed); runtime = bmrt_create(handle); over = bmrt_create(handle); bmrt_destroy(over);",
    {
        "bm_handle_t": "handle", "runtime_t": "runtime", "bm_device_mem_t": "mem", "bm_shape_t": "shape",
        "const bm_shape_t *": "&shape", "const char *": '"absent"', "name_t": '"absent"', "const int *": "shape.dims",
        "const void *": "scratch", "void *": "scratch", "mem_info_t *": "&needs", "const mem_info_t *": "&needs",
    },
    _HANDLES | {"runtime_t": (*STRANGE, "handle", "over"), "const bm_net_info_t *": ("NULL", "(uintptr_t)scratch")},
    beside={
        "dtype": ("99",), "num_dims": ("0", "9"), "bmodel_path": ('"absent"',), "net_name": ('"absent"',),
        "index": ("-1", "5"), "size": ("64",), "shape": ("none",), "devid": ("-1", "1"),
        "dev_addr": ("0", "4096"), "mem_info": ("&lost",), "core_num": ("-1", "2", "0x7fffffff"),
    },
    handles=("bm_handle_t", "runtime_t"),
    end=("bmrt_destroy(runtime)", "bm_free_device(handle, mem)", "bm_dev_free(handle)"),
    globals=_CARD_GLOBALS + "static void *runtime, *over; static bm_shape_t shape = {2, {1, 4}}, none;"
    "static mem_info_t needs, lost = {{4096, 8}, {4096, 8}, {4096, 8}, {4096, 8}, {4096, 8}};",
    without=frozenset(
        {f"bmrt_launch_tensor{one}" for one in ("", "_ex", "_multi_cores", "_multi_thread")} | {"bmrt_shape_is_same"}
    ),  # below
)  # fmt: skip
COMMANDS = Walk(
    tpukernel.LIBRARY,
    "",
    {
        "local_addr_t": "0", "static_addr_t": "0", "system_addr_t": "0x100000000", "addr_t": "0x100000000",
        "global_addr_t": "0x100000000",
        "const dim4 *": "&shape", "const dim2 *": "&one", "const padding_t *": "&pad", "data_type_t": "DT_FP32",
        "const variable_t *": "&variable", "scalar_t": "scalar", "rounding_mode_t": "RM_UP",
    },
    {
        "local_addr_t": ("0xffffffff",), "static_addr_t": ("0xffffffff",), "system_addr_t": ("0",),
        "global_addr_t": ("1",), "addr_t": ("1ull << 60",), "data_type_t": ("99",), "rounding_mode_t": ("99",),
    },
    globals="static dim4 shape = {1, 1, 1, 1}; static dim2 one = {1, 1}; static padding_t pad;"
    "static variable_t variable; static scalar_t scalar;",
)  # fmt: skip

WALKS = {
    "bmruntime": (RUNTIME, "bmruntime", ("bmruntime.h",)),
    "bmkernel": (KERNEL, "bmkernel", ("bmkernel.h",)),
    "dmpdv": (DRIVER, "dmpdv", ("dmpdv.h",)),
    "bmlib": (CARDS, "bmlib", ("bmlib_runtime.h",)),
    "bmrt": (NETWORKS, "bmrt", ("bmruntime_interface.h",)),
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
@pytest.mark.parametrize("title", WALKS)
def test_every_function_may_be_the_first_call_of_a_process(built: Path, tmp_path: Path, title: str) -> None:
    walk, package, headers = WALKS[title]
    assert walked(built, tmp_path, package, first_calls(walk, *headers)) > 20


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
