"""The BM runtime API as a C user knows it: order of calls, error codes, memory, kernels, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from bmcompiler import bmodel
from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NEURON,
    CTRL_NULL,
    CTRL_WEIGHT,
    FMT_I8,
    Bmk1880Context,
    bmk1880_acquire_cmdbuf,
    bmk1880_gdma_load,
    bmk1880_gdma_store,
    bmk1880_max_param_t,
    bmk1880_mul_const_param_t,
    bmk1880_register,
    bmk1880_tl_prealloc_align,
    bmk1880_tpu_max,
    bmk1880_tpu_mul_const,
    shape_t4,
)
from bmcompiler.bmodel import TensorInfo
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.runtime.bmruntime import (
    BmContext,
    BmErr,
    BmFmt,
    BmMem,
    BmNet,
    BmNetInfo,
    BmShape,
    bm_bind_device,
    bm_context_create,
    bm_context_destroy,
    bm_device_close,
    bm_device_config,
    bm_device_get_info,
    bm_device_open,
    bm_device_query,
    bm_enum_devices,
    bm_exit,
    bm_get_device,
    bm_init,
    bm_memcpy_d2s,
    bm_memcpy_s2d,
    bm_unbind_device,
    bmmem_device_addr,
    bmmem_device_alloc,
    bmmem_device_alloc_raw,
    bmmem_device_free,
    bmmem_device_prealloc,
    bmmem_device_prealloc_raw,
    bmmem_device_size,
    bmmem_host_alloc,
    bmmem_host_free,
    bmmem_host_p_addr,
    bmmem_host_v_addr,
    bmnet_cleanup,
    bmnet_get_output_info,
    bmnet_import_neuron_devmem,
    bmnet_import_weight_devmem,
    bmnet_inference,
    bmnet_input_devmem,
    bmnet_load_input,
    bmnet_load_neuron,
    bmnet_neuron_devmem,
    bmnet_output_devmem,
    bmnet_register,
    bmnet_register_bmodel,
    bmnet_register_noalloc,
    bmnet_run,
    bmnet_set_input_shape,
    bmnet_store_neuron,
    bmnet_store_output,
    bmnet_weight_devmem,
    bmruntime_bmkernel_create,
    bmruntime_bmkernel_destroy,
    bmruntime_bmkernel_submit,
)

SIZE = 24
WEIGHTS = bytes(range(0, 2 * SIZE, 2))


def max_with_weights(batch: int = 1) -> bytes:
    """Commands of a net: output (behind the input in neuron memory) = max(input, weights)."""
    k = bmk1880_register()
    shape = shape_t4(batch, 2, 3, 4)
    x, w = bmk1880_tl_prealloc_align(k, 0, shape, FMT_I8), bmk1880_tl_prealloc_align(k, 256, shape, FMT_I8)
    bmk1880_gdma_load(k, x, 0, CTRL_NEURON)
    bmk1880_gdma_load(k, w, 0, CTRL_WEIGHT)
    bmk1880_tpu_max(k, bmk1880_max_param_t(x, x, w))
    bmk1880_gdma_store(k, x, batch * SIZE, CTRL_NEURON)
    return bmk1880_acquire_cmdbuf(k)


def command(batch: int, weight_index: int) -> Command:
    shape = (batch, 2, 3, 4)
    source = TensorInfo("x", shape, threshold=1.0)
    result = TensorInfo("y", shape, offset=batch * SIZE, threshold=2.0)
    return Command([source], [result], max_with_weights(batch), 2 * batch * SIZE, weight_index)


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    """A file with two programs (batch 1 and 2) and two weight sets."""
    path = tmp_path / "max.bmodel"
    bmodel.save(Bm1880Model("max", [command(1, 0), command(2, 1)], [WEIGHTS, WEIGHTS + WEIGHTS[::-1]]), path)
    return path


@pytest.fixture
def ctx() -> BmContext:
    err, made = bm_init(0)
    assert err == BmErr.SUCCESS and made is not None
    return made


def registered(ctx: BmContext, path: Path) -> BmNet:
    err, net = bmnet_register_bmodel(ctx, path)
    assert err == BmErr.SUCCESS and net is not None
    return net


def allocated(ctx: BmContext, size: int) -> BmMem:
    mem = bmmem_device_alloc_raw(ctx, size)
    assert mem is not None
    return mem


def test_inference_in_the_documented_order(ctx: BmContext, model_file: Path) -> None:
    net = registered(ctx, model_file)
    for batch, weights in ((1, WEIGHTS), (2, WEIGHTS + WEIGHTS[::-1])):
        assert bmnet_set_input_shape(net, (batch, 2, 3, 4)) == BmErr.SUCCESS
        err, info = bmnet_get_output_info(net)
        assert err == BmErr.SUCCESS and info is not None
        assert (info.output_size, info.output_num, info.name_array) == (batch * SIZE, 1, ("y",))
        assert info.shape_array == ((batch, 2, 3, 4),) and info.threshold_array == (2.0,)
        data = np.random.default_rng(batch).integers(-128, 128, batch * SIZE, dtype=np.int8)
        output = bytearray(info.output_size)
        assert bmnet_inference(net, data, output) == BmErr.SUCCESS
        expected = np.maximum(data, np.frombuffer(weights, np.int8))
        assert bytes(output) == expected.tobytes()
    bmnet_cleanup(net)
    assert bmnet_run(net) == BmErr.UNINITIALIZED
    bm_exit(ctx)
    assert bmmem_device_alloc_raw(ctx, 1) is None


def test_load_run_and_store_step_by_step(ctx: BmContext, model_file: Path) -> None:
    net = registered(ctx, model_file)
    data = bytes(range(100, 100 + SIZE))
    assert bmnet_load_input(net, data) == BmErr.SUCCESS
    assert bmnet_run(net) == BmErr.SUCCESS
    output = np.zeros(SIZE, np.int8)
    assert bmnet_store_output(net, output) == BmErr.SUCCESS
    back = bytearray(SIZE)
    assert bmnet_store_neuron(net, SIZE, SIZE, back) == BmErr.SUCCESS
    assert bytes(back) == output.tobytes() == bytes(data)
    assert bmnet_load_neuron(net, 4, 2, b"\x01\x02") == BmErr.SUCCESS
    window = bmnet_input_devmem(net)
    assert window is not None and bytes(window.data[3:7]) == bytes([103, 1, 2, 106])
    outputs, neuron, weight = bmnet_output_devmem(net), bmnet_neuron_devmem(net), bmnet_weight_devmem(net)
    assert outputs is not None and neuron is not None and weight is not None
    assert bmmem_device_addr(ctx, outputs) == bmmem_device_addr(ctx, neuron) + SIZE
    assert weight.data.tobytes() == WEIGHTS and bmmem_device_size(ctx, weight) == SIZE


def test_registered_from_parts_with_and_without_memory(ctx: BmContext) -> None:
    info = BmNetInfo(1, WEIGHTS, max_with_weights(), 2 * SIZE, SIZE, SIZE, SIZE)
    assert (info.weight_size, info.cmdbuf_size) == (SIZE, len(max_with_weights()))
    data, expected = bytes(SIZE), WEIGHTS
    err, net = bmnet_register(ctx, info)
    assert err == BmErr.SUCCESS and net is not None
    output = bytearray(SIZE)
    assert bmnet_inference(net, data, output) == BmErr.SUCCESS and bytes(output) == expected

    err, bare = bmnet_register_noalloc(ctx, info)
    assert err == BmErr.SUCCESS and bare is not None
    assert bmnet_run(bare) == BmErr.UNINITIALIZED
    weight, neuron = allocated(ctx, SIZE), allocated(ctx, 2 * SIZE)
    assert bm_memcpy_s2d(ctx, weight, WEIGHTS) == BmErr.SUCCESS
    assert bmnet_import_neuron_devmem(bare, weight) == BmErr.INVALID_ARGUMENT  # too small
    assert bmnet_import_neuron_devmem(bare, neuron) == BmErr.SUCCESS
    assert bmnet_run(bare) == BmErr.UNINITIALIZED
    assert bmnet_import_weight_devmem(bare, weight) == BmErr.SUCCESS
    output = bytearray(SIZE)
    assert bmnet_inference(bare, data, output) == BmErr.SUCCESS and bytes(output) == expected


def test_error_codes(ctx: BmContext, model_file: Path, tmp_path: Path) -> None:
    net = registered(ctx, model_file)
    assert bmnet_set_input_shape(net, (3, 2, 3, 4)) == BmErr.INVALID_ARGUMENT
    assert bmnet_load_input(net, b"short") == BmErr.INVALID_ARGUMENT
    assert bmnet_store_output(net, bytearray(3)) == BmErr.INVALID_ARGUMENT
    assert bmnet_store_output(net, np.zeros(SIZE, np.int8)[::-1]) == BmErr.INVALID_ARGUMENT
    assert bmnet_load_neuron(net, 4 * SIZE - 1, 2, b"ab") == BmErr.INVALID_ARGUMENT
    damaged = tmp_path / "damaged.bmodel"
    damaged.write_bytes(model_file.read_bytes()[:40])
    assert bmnet_register_bmodel(ctx, damaged) == (BmErr.DATA, None)
    assert bmnet_register_bmodel(ctx, tmp_path / "absent") == (BmErr.FAILURE, None)
    bad = BmNetInfo(1, b"", b"\xa5", 2 * SIZE, SIZE, SIZE, SIZE)
    err, broken = bmnet_register(ctx, bad)
    assert err == BmErr.SUCCESS and broken is not None
    assert bmnet_run(broken) == BmErr.FAILURE
    assert bmnet_register(ctx, BmNetInfo(1, b"", b"", 8, SIZE, 0, 4))[0] == BmErr.INVALID_ARGUMENT
    assert bmmem_device_alloc_raw(ctx, 0) is None
    assert bmmem_device_alloc_raw(ctx, 1 << 33) is None
    assert bm_init(99) == (BmErr.INVALID_ARGUMENT, None)


def test_reasons_of_failures_are_logged(ctx: BmContext, caplog: pytest.LogCaptureFixture) -> None:
    assert bmnet_register_bmodel(ctx, "/nowhere/net.bmodel")[0] == BmErr.FAILURE
    assert "/nowhere/net.bmodel" in caplog.text


def test_unsupported_calls_say_so(ctx: BmContext) -> None:
    dev = bm_get_device(ctx)
    assert dev is not None
    shape = BmShape(BmFmt.INT8, (1, 1))
    codes = [bm_device_query(dev, 0), bm_device_config(dev, 0), bmmem_host_alloc(ctx, shape)]
    codes += [bmmem_host_free(ctx, None), bmmem_host_v_addr(ctx, None), bmmem_host_p_addr(ctx, None)]
    assert set(codes) == {BmErr.NOT_SUPPORTED}


def test_devices_and_contexts() -> None:
    count, infos = bm_enum_devices()
    assert count == len(infos) == 8
    err, dev = bm_device_open(5)
    assert err == BmErr.SUCCESS and dev is not None
    info = bm_device_get_info(dev)
    assert (info.version, info.npu_num, info.eu_num, info.lmem_size, info.gmem_size) == (1880, 32, 16, 65536, 1 << 32)
    err, made = bm_context_create()
    assert err == BmErr.SUCCESS and made is not None
    assert bmruntime_bmkernel_create(made)[0] == BmErr.UNINITIALIZED
    assert bm_bind_device(made, dev) == BmErr.SUCCESS
    assert bm_bind_device(made, dev) == BmErr.BUSY
    assert bm_get_device(made) is dev
    mem = bmmem_device_alloc_raw(made, 100)
    assert mem is not None and mem.address == 0x2800000  # bm1880.md 13
    bm_unbind_device(made)
    assert bm_get_device(made) is None and mem.freed
    bm_device_close(dev)
    bm_context_destroy(made)
    assert bm_bind_device(made, dev) == BmErr.UNINITIALIZED


def test_memory_objects_and_windows(ctx: BmContext) -> None:
    tensor = bmmem_device_alloc(ctx, BmShape(BmFmt.FP32, (2, 3, 4, 5)))
    assert tensor is not None and tensor.size == 480
    assert bmmem_device_alloc(ctx, BmShape(BmFmt.INT8, (2, 3, 4))) is None
    row = bmmem_device_prealloc(ctx, tensor, 100, BmShape(BmFmt.INT16, (1, 10)))
    assert row is not None and (row.size, row.address) == (20, tensor.address + 100)
    assert bmmem_device_prealloc_raw(ctx, tensor, 470, 11) is None
    assert bm_memcpy_s2d(ctx, row, bytes(range(20))) == BmErr.SUCCESS
    everything = bytearray(480)
    assert bm_memcpy_d2s(ctx, everything, tensor) == BmErr.SUCCESS
    assert everything[99:121] == b"\0" + bytes(range(20)) + b"\0"
    assert bm_memcpy_d2s(ctx, bytes(480), tensor) == BmErr.INVALID_ARGUMENT  # type: ignore[arg-type]
    first, second = allocated(ctx, 5000), allocated(ctx, 10)
    bmmem_device_free(ctx, first)
    assert bm_memcpy_s2d(ctx, first, bytes(5000)) == BmErr.INVALID_ARGUMENT
    assert allocated(ctx, 8192).address == first.address and second.address > first.address


def double(k: Bmk1880Context, address: int) -> None:
    t = bmk1880_tl_prealloc_align(k, 0, shape_t4(1, 2, 3, 4), FMT_I8)
    bmk1880_gdma_load(k, t, address, CTRL_NULL)
    bmk1880_tpu_mul_const(k, bmk1880_mul_const_param_t(None, t, t, 2, True, 0))
    bmk1880_gdma_store(k, t, address, CTRL_NULL)


def test_kernel_calls_work_on_device_memory(ctx: BmContext) -> None:
    mem = allocated(ctx, SIZE)
    data = np.arange(-12, 12, dtype=np.int8)
    assert bm_memcpy_s2d(ctx, mem, data) == BmErr.SUCCESS
    assert bmruntime_bmkernel_submit(ctx) == BmErr.UNINITIALIZED
    err, k = bmruntime_bmkernel_create(ctx)
    assert err == BmErr.SUCCESS and k is not None
    assert bmruntime_bmkernel_create(ctx)[0] == BmErr.BUSY
    for power in (2, 4):
        double(k, mem.address)
        assert bmruntime_bmkernel_submit(ctx) == BmErr.SUCCESS
        assert mem.data.view(np.int8).tolist() == (data * power).tolist()
    double(k, mem.address + SIZE)
    assert bmruntime_bmkernel_submit(ctx) == BmErr.FAILURE  # outside the allocation
    bmruntime_bmkernel_destroy(ctx)
    assert bmruntime_bmkernel_create(ctx)[0] == BmErr.SUCCESS


def test_contexts_on_several_threads_work_independently(model_file: Path) -> None:
    def work(seed: int) -> None:
        err, mine = bm_init(0)
        assert err == BmErr.SUCCESS and mine is not None
        net, rng = registered(mine, model_file), np.random.default_rng(seed)
        err, k = bmruntime_bmkernel_create(mine)
        assert err == BmErr.SUCCESS and k is not None
        mem, output = allocated(mine, SIZE), bytearray(SIZE)
        for _ in range(50):
            data = rng.integers(-60, 60, SIZE, dtype=np.int8)
            assert bmnet_inference(net, data, output) == BmErr.SUCCESS
            assert bytes(output) == np.maximum(data, np.frombuffer(WEIGHTS, np.int8)).tobytes()
            assert bm_memcpy_s2d(mine, mem, data) == BmErr.SUCCESS
            double(k, mem.address)
            assert bmruntime_bmkernel_submit(mine) == BmErr.SUCCESS
            assert mem.data.tobytes() == (data * 2).tobytes()
        bm_exit(mine)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, seed) for seed in range(4)]:
            done.result()
