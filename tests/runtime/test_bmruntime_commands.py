"""Calls of programs beyond the vendor's manual: command buffers, parts of memory, inputs of networks, sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmcompiler import bmodel
from bmcompiler.backends.bm1880 import bmkernel as bk
from bmcompiler.bmodel import TensorInfo
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.errors import EncodingError
from bmcompiler.runtime import bmruntime as rt
from bmcompiler.runtime.bmruntime import BmErr

BYTES = 24
DATA = np.arange(-12, 12, dtype=np.int8)


def doubling(source: int, target: int, ctrls: int) -> bytes:
    """Commands that double 24 bytes."""
    k = bk.bmk1880_register()
    x = bk.bmk1880_tl_prealloc_align(k, 0, bk.shape_t4(1, 2, 3, 4), bk.FMT_I8)
    bk.bmk1880_gdma_load(k, x, source, ctrls)
    bk.bmk1880_tpu_mul_const(k, bk.bmk1880_mul_const_param_t(None, x, x, 2, True, 0))
    bk.bmk1880_gdma_store(k, x, target, ctrls)
    return bk.bmk1880_acquire_cmdbuf(k)


@pytest.fixture
def ctx() -> Any:
    made = rt.bm_init(0)[1]
    assert made is not None
    return made


def test_command_buffers_run_where_the_memory_is(ctx: Any) -> None:
    mem = rt.bmmem_device_alloc_raw(ctx, 2 * BYTES)
    assert mem is not None
    commands, found = doubling(mem.address, mem.address + BYTES, bk.CTRL_NULL), np.zeros(BYTES, np.int8)
    assert rt.bm_memcpy_s2d_ex(ctx, mem, DATA, 0, BYTES) == BmErr.SUCCESS
    assert rt.bm_send_cmdbuf(ctx, commands, len(commands)) == (BmErr.SUCCESS, 1)
    assert rt.bm_memcpy_d2s_ex(ctx, found, mem, BYTES, BYTES) == BmErr.SUCCESS
    assert np.array_equal(found, 2 * DATA)
    code, loaded = rt.bm_load_cmdbuf(ctx, commands, len(commands))
    assert code == BmErr.SUCCESS and loaded is not None
    assert rt.bm_memcpy_s2d_ex(ctx, mem, found, 0, BYTES) == BmErr.SUCCESS
    assert rt.bm_run_cmdbuf(ctx, loaded) == (BmErr.SUCCESS, 2)
    assert rt.bm_memcpy_d2s_ex(ctx, found, mem, BYTES, BYTES) == BmErr.SUCCESS
    assert np.array_equal(found, 4 * DATA)
    assert rt.bm_run_cmdbuf_pio(ctx, commands, len(commands)) == BmErr.SUCCESS
    assert rt.bm_wait_cmdbuf_done(ctx, 3) == BmErr.SUCCESS
    assert rt.bm_wait_cmdbuf_done(ctx, 4) == rt.bm_wait_cmdbuf_done(ctx, 0) == BmErr.INVALID_ARGUMENT
    rt.bmmem_device_free(ctx, loaded)
    assert rt.bm_run_cmdbuf(ctx, loaded) == (BmErr.INVALID_ARGUMENT, None)
    assert rt.bm_send_cmdbuf(ctx, commands, len(commands) + 1)[0] == BmErr.INVALID_ARGUMENT
    assert rt.bm_memcpy_s2d_ex(ctx, mem, DATA, BYTES + 1, BYTES) == BmErr.INVALID_ARGUMENT


def test_networks_from_memory_say_what_they_take(ctx: Any, tmp_path: Path) -> None:
    x, y = TensorInfo("x", (1, 2, 3, 4), threshold=1.5), TensorInfo("y", (1, 2, 3, 4), offset=BYTES, threshold=2.0)
    commands = doubling(0, BYTES, bk.CTRL_NEURON)
    file = tmp_path / "net.bmodel"
    bmodel.save(Bm1880Model("net", [Command([x], [y], commands, 2 * BYTES, 0)], [b""]), file)
    code, net = rt.bmnet_register_bmodel_data(ctx, file.read_bytes(), file.stat().st_size)
    assert code == BmErr.SUCCESS and net is not None
    assert rt.bmnet_get_input_info(net) == rt.BmNetInputInfo(BYTES, 1, (x.shape,), (1.5,), (BYTES,), (x.fmt,))
    assert rt.bmnet_get_input_threshold(net) == rt.bmmet_get_input_threshold(net) == 1.5
    assert rt.bmnet_set_input_shape2(net, [x.shape], 1) == BmErr.SUCCESS
    assert rt.bmnet_set_input_shape2(net, [(1, 1, 1, 1)], 1) == BmErr.INVALID_ARGUMENT
    assert rt.bmnet_set_input_shape2(net, [x.shape], 2) == BmErr.INVALID_ARGUMENT
    assert rt.bmnet_register_bmodel_data(ctx, file.read_bytes()[:40], 40) == (BmErr.DATA, None)
    found = bytearray(BYTES)
    parts = (1, b"", 0, commands, len(commands), 2 * BYTES, BYTES, BYTES, BYTES)
    assert rt.bmnet_inference_once(ctx, DATA, found, *parts) == BmErr.SUCCESS
    assert found == (2 * DATA).tobytes()
    before = len(ctx.allocations)
    assert rt.bmnet_inference_once(ctx, DATA[:4], found, *parts) == BmErr.INVALID_ARGUMENT
    assert sum(not one.freed for one in ctx.allocations[before:]) == 0


def test_sizes_of_tensors() -> None:
    ctx = bk.bmk1880_register()
    shape = bk.shape_t4(2, 33, 3, 5)
    t = bk.bmk1880_tl_alloc(ctx, shape, bk.FMT_I8, bk.CTRL_AL)
    assert t is not None
    assert bk.bmk1880_tl_size(ctx, t) == bk.bmk1880_tl_shape_to_size(ctx, shape, True, bk.FMT_I8) == 2 * 2 * 16
    assert bk.bmk1880_tl_shape_to_size(ctx, shape, False, bk.FMT_I8) == 2 * 2 * 15
    assert bk.bmk1880_tg_shape_to_size(shape, bk.FMT_U8) == 2 * 33 * 15
    assert bk.bmk1880_tg_shape_to_size(bk.shape_t2(7, 9), bk.FMT_U8) == 63
    assert bk.shape_equal(shape, bk.shape_t4(2, 33, 3, 5)) and not bk.shape_equal(shape, bk.shape_t2(7, 9))
    for wrong in (bk.shape_t4(0, 1, 1, 1), bk.shape_t2(5, 0)):
        with pytest.raises(EncodingError):
            bk.bmk1880_tg_shape_to_size(wrong, bk.FMT_I8)
    with pytest.raises(EncodingError, match="format 3"):
        bk.bmk1880_tg_shape_to_size(shape, 3)
