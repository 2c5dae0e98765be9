"""Our C programs, built with gcc and g++, do what Python does, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from c_programs import EXAMPLES, ROOT, SANITIZED, needs_compiler, program, run

import bmcompiler
from bmcompiler import bmodel
from bmcompiler.backends.bm1880 import bmkernel as bk
from bmcompiler.bmodel import TensorInfo
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.capi.library import Handles
from bmcompiler.runtime import Session
from bmcompiler.runtime import bmruntime as rt
from bmcompiler.runtime.bm1684x_kernels import KernelDevice
from bmcompiler.tpukernel import (
    BANK_SIZE,
    DT_FP32,
    dim2,
    dim4,
    kernel,
    padding_t,
    scalar_t,
    tpu_aligned_stride,
    tpu_bdc_fp32_exp,
    tpu_bdc_fp32_reciprocal,
    tpu_bdc_fp_avg_pool2d,
    tpu_bdc_fp_max_pool2d,
    tpu_bdc_fp_mul,
    tpu_bdc_fp_sub,
    tpu_bdc_load_fp32_exp_coeff,
    tpu_gdma_cpy_L2S,
    tpu_gdma_cpy_S2L,
    tpu_initialize,
    tpu_poll,
)

BYTES = 24
LENET = ROOT / "models" / "lenet"
pytestmark = needs_compiler
both_compilers = pytest.mark.parametrize("compiler", ["gcc", "g++"])


def checked(compiler: str) -> tuple[str, ...]:
    """What one compiler is asked for: a sanitized process takes twice as long, and finds the same in the other's."""
    return SANITIZED if compiler == "gcc" else ()


@both_compilers
def test_kernel_program(built: Path, compiler: str) -> None:
    done = run(program(built, "bmruntime", EXAMPLES / "kernel.c", compiler, *checked(compiler)))
    assert (done.returncode, done.stderr) == (0, b"")
    assert list(map(int, done.stdout.split())) == [2 * value for value in range(-12, 12)]


@both_compilers
def test_convolution_on_the_dv_driver(built: Path, compiler: str) -> None:
    done = run(program(built, "dmpdv", EXAMPLES / "dv_conv.c", compiler, *checked(compiler)))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"right\n", b"")


@both_compilers
def test_inference_program_gives_what_python_gives(built: Path, tmp_path: Path, compiler: str) -> None:
    k, shape = bk.bmk1880_register(), (1, 2, 3, 4)
    x = bk.bmk1880_tl_prealloc_align(k, 0, bk.shape_t4(*shape), bk.FMT_I8)
    bk.bmk1880_gdma_load(k, x, 0, bk.CTRL_NEURON)
    bk.bmk1880_tpu_relu(k, bk.bmk1880_relu_param_t(x, x))
    bk.bmk1880_gdma_store(k, x, BYTES, bk.CTRL_NEURON)
    tensors = TensorInfo("x", shape, threshold=1.0), TensorInfo("y", shape, offset=BYTES, threshold=2.0)
    command = Command([tensors[0]], [tensors[1]], bk.bmk1880_acquire_cmdbuf(k), 2 * BYTES, 0)
    model = tmp_path / "relu.bmodel"
    bmodel.save(Bm1880Model("relu", [command], [b""]), model)
    data = np.arange(-12, 12, dtype=np.int8)
    (tmp_path / "in").write_bytes(data.tobytes())
    inference = program(built, "bmruntime", EXAMPLES / "inference.c", compiler)
    done = run(inference, model, tmp_path / "in", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"y: 1 x 2 x 3 x 4, threshold 2\n"
    ctx, expected = rt.bm_init(0)[1], bytearray(BYTES)
    assert ctx is not None
    net = rt.bmnet_register_bmodel(ctx, model)[1]
    assert net is not None and rt.bmnet_inference(net, data, expected) == rt.BmErr.SUCCESS
    assert (tmp_path / "out").read_bytes() == bytes(expected) == np.maximum(data, 0).tobytes()


@kernel
def softmax(dst: int, src: int, rows: int, columns: int) -> None:
    """As in examples/c/tpu_softmax.c."""
    row, one = dim4(1, rows, 1, columns), dim4(1, rows, 1, 1)
    x, y, work0, work1, value, series = (place * BANK_SIZE for place in range(6))
    along = tpu_aligned_stride(0, one, DT_FP32)._replace(h=0, w=0)
    window = (row, dim2(1, columns), padding_t(0, 0, 0, 0), dim2(1, 1), dim2(1, 1), DT_FP32)
    tpu_initialize()
    tpu_bdc_load_fp32_exp_coeff(series)
    tpu_gdma_cpy_S2L(x, src, row, None, None, DT_FP32)
    tpu_bdc_fp_max_pool2d(value, x, *window, scalar_t(f32=-3.4e38))
    tpu_bdc_fp_sub(y, x, value, row, None, None, along, DT_FP32)
    tpu_bdc_fp32_exp(x, y, work0, work1, series, 0, row)
    tpu_bdc_fp_avg_pool2d(value, x, *window, scalar_t(f32=1.0))
    tpu_bdc_fp32_reciprocal(value, value, one, None, None)
    tpu_bdc_fp_mul(y, x, value, row, None, None, along, DT_FP32)
    tpu_gdma_cpy_L2S(dst, y, row, None, None, DT_FP32)
    tpu_poll()


@both_compilers
def test_tpu_kernel_with_its_host_program(built: Path, compiler: str) -> None:
    x = np.random.default_rng(0).normal(size=(70, 33)).astype(np.float32)
    device = KernelDevice(1 << 20)
    source, target = device.upload(x), device.malloc(x.nbytes)
    device.launch(softmax(target, source, *x.shape))
    module = program(built, "tpukernel", EXAMPLES / "tpu_softmax.c", compiler, "-shared", "-fPIC")
    host = program(built, "bmlib", EXAMPLES / "tpu_host.c", compiler, *checked(compiler))
    done = run(host, module, *map(str, x.shape), given=x.tobytes())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == device.download(target, x.shape).tobytes()
    missing = run(host, module.with_name("absent.so"), *map(str, x.shape), given=x.tobytes())
    assert missing.returncode == 1 and b"absent.so: there is no such file" in missing.stderr
    wide = run(host, module, "1", "5000", given=bytes(20000))  # a row of 20000 bytes reaches into the next bank
    assert wide.returncode == 1 and wide.stderr


LAYOUTS = """
#include <stdlib.h>
#include <tpu_kernel.h>
#define NEED(what) if (!(what)) exit(__LINE__)
int main(void)
{
    /* What the vendor's library gives for these. */
    static THREAD reduce_method_t method = REDUCE_PROD;
    dim3 volume = {1, 2, 3};
    padding3d_t around = {1, 2, 3, 4, 5, 6};
    dim5 five = {2, 3, 4, 5, 6};
    dim4 four, wide = {170, 127, 102, 54}, small = {4, 35, 162, 130};
    range_t one = tpu_bank_range(81927, 40000), other = tpu_bank_range(16383, 2);
    range_t apart[3] = {{0, 0}, {2, 2}, {4, 4}}, touching[3] = {{4, 5}, {0, 1}, {5, 6}}, inside[2] = {{0, 5}, {2, 3}};
    tpu_local_shape_5d_to_4d(&five, &four);
    NEED(method == 4 && volume.w == 3 && around.right == 6);
    NEED(four.n == 8 && four.c == 3 && four.h == 5 && four.w == 6);
    NEED(one.start == 5 && one.end == 7 && other.start == 0 && other.end == 1);
    NEED(!tpu_any_range_overlapped(apart, 3) && tpu_any_range_overlapped(touching, 3));
    NEED(tpu_range_overlapped(inside, inside + 1) && tpu_range_overlapped(inside + 1, inside));
    NEED(!tpu_range_overlapped(apart, apart + 1) && !tpu_range_overlapped(apart + 1, apart));
    NEED(tpu_get_local_size(&wide, DT_FP16, 2, false) == 5618160);
    NEED(tpu_get_local_size(&small, DT_UINT8, 32, true) == 168960);
    NEED(tpu_npu_c_offset(200, 3, DT_INT8) == 9 && tpu_unified_c_offset(200, 3, DT_INT8) == 0x200009);
    return 0;
}
"""


@both_compilers
def test_layouts_and_banks_in_c(built: Path, tmp_path: Path, compiler: str) -> None:
    source = tmp_path / f"layouts_{compiler[1:3]}.c"
    source.write_text(LAYOUTS)
    done = run(program(built, "tpukernel", source, compiler, "-Wno-long-long", *checked(compiler)))
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("compiler", "target"), [("gcc", "bm1684"), ("g++", "bm1684x")])
def test_network_through_the_runtime(built: Path, tmp_path: Path, compiler: str, target: str) -> None:
    model = tmp_path / "lenet.bmodel"
    bmcompiler.compile(LENET / "deploy.prototxt", LENET / "lenet.caffemodel", target=target).save(model)
    x = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
    (tmp_path / "in").write_bytes(x.tobytes())
    inference = program(built, "bmrt", EXAMPLES / "bmrt_inference.c", compiler, *checked(compiler))
    done = run(inference, model, tmp_path / "in", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"LeNet: 1 stages, input data scale 1, output prob scale 1\n"
    assert (tmp_path / "out").read_bytes() == Session(model).run(x)["prob"].tobytes()
    (tmp_path / "broken").write_bytes(model.read_bytes()[:1000])
    done = run(inference, tmp_path / "broken", tmp_path / "in", tmp_path / "out")
    assert done.returncode == 1 and b"broken" in done.stderr and b"Traceback" not in done.stderr


class Thing:
    def __init__(self, reason: str = "") -> None:
        self.reason = reason

    def ended(self) -> str:
        return self.reason


def test_handles_of_living_objects_are_never_forgotten() -> None:
    handles, living = Handles(), Thing()
    first = handles.number(living)
    numbers = {handles.number(Thing("was freed")) for _ in range(10000)}
    assert handles.read(first) is living and handles.number(living) == first and len(numbers) == 10000
    assert len(handles._objects) < 5000 and handles.read(0) is None
    few = Handles(first=1 << 40, most=2)
    old, *new = [few.number(Thing()) for _ in range(3)]
    assert not isinstance(few.read(old), Thing) and all(isinstance(few.read(one), Thing) for one in new)


MANY = """
#include <dmpdv.h>
#include <stdio.h>
int main(void)
{
    dmp_dv_context ctx = dmp_dv_context_create();
    dmp_dv_mem kept = dmp_dv_mem_alloc(ctx, 64), first = dmp_dv_mem_alloc(ctx, 64);
    int i;
    dmp_dv_mem_release(first);
    for (i = 0; i < 6000; i++) {
        dmp_dv_mem mem = dmp_dv_mem_alloc(ctx, 64);
        if (!mem || dmp_dv_mem_release(mem) != 0)
            return 1;
        dmp_dv_set_last_error_message("%d of %s", i, "many");
        if (!dmp_dv_get_last_error_message())
            return 2;
    }
    puts(dmp_dv_get_last_error_message());
    return dmp_dv_mem_get_size(kept) < 64 || dmp_dv_mem_get_size(first) != 0;
}
"""


def test_a_driver_program_that_runs_long(built: Path, tmp_path: Path) -> None:
    file = tmp_path / "many.c"
    file.write_text(MANY)
    done = run(program(built, "dmpdv", file, "gcc", *SANITIZED))
    assert (done.returncode, done.stdout) == (0, b"5999 of many\n")
