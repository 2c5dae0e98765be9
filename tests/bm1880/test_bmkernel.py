"""The kernel API: golden command bytes, allocation, and every constraint with its message."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import golden_cases
import pytest

from bmcompiler.backends.bm1880 import bmkernel as bk
from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_AL,
    CTRL_NEURON,
    CTRL_NULL,
    CTRL_TP,
    CTRL_WEIGHT,
    FMT_I8,
    FMT_U8,
    shape_t2,
    shape_t4,
    stride_t2,
    stride_t4,
)
from bmcompiler.backends.bm1880.cmdbuf import records
from bmcompiler.backends.bm1880.isa import GDMA, TIU
from bmcompiler.errors import EncodingError

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data/bm1880_golden.json").read_text())

SEED_CALLS = (
    "register cleanup acquire_cmdbuf reset parallel_enable parallel_disable create_streams destroy_streams "
    "set_stream add_dependency chip_info tl_prealloc tl_prealloc_align tl_alloc tl_alloc_bank tl_free "
    "gdma_copy_gmem gdma_copy_lmem gdma_load gdma_store gdma_load_stride gdma_store_stride gdma_lrn_shift"
)
SEED_TPU_CALLS = (
    "mul mul_const mac mac_const add add_const sub max min max_const min_const arith_shift and_int8 and_int16 "
    "or_int8 or_int16 xor_int8 xor_int16 copy copy_with_stride mdsum lut relu conv winograd depthwise "
    "max_pooling avg_pooling matrix_mac matrix_mac_2"
)

# load, load, mul, store (bm1880.md 16; its third line has three surplus zero digits, dropped here)
SHORT_PROGRAM = """
a540020100000000010001008840000000000000000000000000000000000000000000000000000003000300050004000500040040000008
00200000010000010000000000000000
a540020200000000010002008840000000000000000000000000000000000000000000000000000003000300050004000500040080000008
40000000010000010000000000000000
a5700000000000000d00100060003462e00ffe0100000000013000045000c000004000008000000000000340000540000500000000000000
0110000310000340000500000000000020002000050001000000200020000000050001001000200020000500010000001000200020000500
0100100000000000
a540020100000000410003008840010000000000000000000000000000000000000000000000000003000300050004000500040000300000
c0000008010001000000000000000000
"""


@pytest.mark.parametrize("row", ROWS, ids=[row["case"] for row in ROWS])
def test_command_bytes_equal_the_vendor_encoders(row: dict[str, Any]) -> None:
    cmdbuf = golden_cases.build(row["case"])[0]
    assert len(cmdbuf) == row["bytes"]
    assert hashlib.sha256(cmdbuf).hexdigest()[:16] == row["sha256"]


def test_complete_bytes_of_a_short_program() -> None:
    ctx = bk.bmk1880_register()
    a, b, o = (bk.bmk1880_tl_prealloc_align(ctx, at, shape_t4(1, 3, 4, 5), FMT_I8) for at in (64, 128, 192))
    bk.bmk1880_gdma_load(ctx, a, 0x2000, CTRL_NEURON)
    bk.bmk1880_gdma_load(ctx, b, 0x40, CTRL_WEIGHT)
    bk.bmk1880_tpu_mul(ctx, bk.bmk1880_mul_param_t(None, o, a, b, 6))
    bk.bmk1880_gdma_store(ctx, o, 0x3000, CTRL_NEURON)
    assert bk.bmk1880_acquire_cmdbuf(ctx) == bytes.fromhex("".join(SHORT_PROGRAM.split()))


def test_every_call_of_the_seed_exists() -> None:
    for name in SEED_CALLS.split():
        assert callable(getattr(bk, f"bmk1880_{name}"))
    for name in SEED_TPU_CALLS.split():
        assert callable(getattr(bk, f"bmk1880_tpu_{name}"))
        assert hasattr(bk, f"bmk1880_{name}_param_t")


def test_chip_info() -> None:
    info = bk.bmk1880_chip_info()
    assert (info.version, info.npu_num, info.eu_num) == (1880, 32, 16)
    assert (info.lmem_size, info.lmem_banks, info.lmem_bank_size) == (65536, 8, 8192)


# --- allocation -------------------------------------------------------------------------------------------------------


@pytest.fixture
def ctx() -> bk.Bmk1880Context:
    return bk.bmk1880_register()


def test_allocation_sequence(ctx: bk.Bmk1880Context) -> None:
    wanted = [
        ((1, 1, 1, 1), CTRL_NULL),
        ((1, 1, 1, 1), CTRL_NULL),
        ((1, 33, 1, 5), CTRL_NULL),
        ((1, 1, 1, 3), CTRL_AL),
        ((1, 1, 1, 1), CTRL_NULL),
        ((2, 1, 1, 17), CTRL_AL),
        ((1, 1, 1, 1), CTRL_AL),
    ]
    tensors = [bk.bmk1880_tl_alloc(ctx, shape_t4(*dims), FMT_I8, ctrls) for dims, ctrls in wanted]
    assert [t.address for t in tensors if t] == [0, 1, 2, 16, 32, 48, 112]
    for t in reversed(tensors):
        assert t is not None
        bk.bmk1880_tl_free(ctx, t)
    again = bk.bmk1880_tl_alloc(ctx, shape_t4(1, 1, 1, 1), FMT_I8, CTRL_NULL)
    assert again is not None
    assert again.address == 0


def test_allocation_returns_none_when_full(ctx: bk.Bmk1880Context) -> None:
    assert bk.bmk1880_tl_alloc(ctx, shape_t4(1, 33, 1, 32769), FMT_I8, CTRL_NULL) is None
    assert bk.bmk1880_tl_alloc(ctx, shape_t4(1, 32, 1, 65536), FMT_I8, CTRL_NULL) is not None
    assert bk.bmk1880_tl_alloc(ctx, shape_t4(1, 1, 1, 1), FMT_I8, CTRL_NULL) is None


def test_banks_have_their_own_stacks(ctx: bk.Bmk1880Context) -> None:
    first, second = (bk.bmk1880_tl_alloc_bank(ctx, 3, shape_t4(1, 1, 1, 100), FMT_I8, CTRL_AL) for _ in range(2))
    assert first is not None
    assert second is not None
    assert (first.address, second.address, first.bank_id) == (3 * 8192, 3 * 8192 + 112, 3)
    assert bk.bmk1880_tl_alloc_bank(ctx, 2, shape_t4(1, 1, 1, 8193), FMT_I8, CTRL_NULL) is None
    with pytest.raises(EncodingError, match="last-in first-out"):
        bk.bmk1880_tl_free(ctx, first)
    with pytest.raises(EncodingError, match="bank 8 does not exist"):
        bk.bmk1880_tl_alloc_bank(ctx, 8, shape_t4(1, 1, 1, 1), FMT_I8, CTRL_NULL)


def test_tensors_survive_a_reset_of_the_command_buffer(ctx: bk.Bmk1880Context) -> None:
    t = bk.bmk1880_tl_alloc(ctx, shape_t4(1, 1, 1, 1), FMT_I8, CTRL_AL)
    assert t is not None
    bk.bmk1880_gdma_load(ctx, t, 0, CTRL_NULL)
    bk.bmk1880_reset(ctx)
    assert bk.bmk1880_acquire_cmdbuf(ctx) == b""
    bk.bmk1880_tl_free(ctx, t)


@pytest.mark.parametrize(
    ("cols", "chunks", "width"),
    [(1, 1, 16), (17, 2, 16), (32, 2, 16), (33, 2, 32), (70, 3, 32), (100, 4, 32), (1000, 32, 32), (4096, 128, 32)],
)
def test_matrix_layout(ctx: bk.Bmk1880Context, cols: int, chunks: int, width: int) -> None:
    assert bk.bmk1880_tl_prealloc_align(ctx, 0, shape_t2(5, cols), FMT_I8).dims == (5, chunks, 1, width)


def test_command_buffer_of_the_user_is_filled_and_bounded() -> None:
    buffer = bytearray(100)
    ctx = bk.bmk1880_register(bk.bmk1880_info_t(1880, len(buffer), buffer))
    t = bk.bmk1880_tl_prealloc_align(ctx, 0, shape_t4(1, 1, 1, 1), FMT_I8)
    bk.bmk1880_gdma_load(ctx, t, 0, CTRL_NULL)
    with pytest.raises(EncodingError, match="100 bytes is full after 1 commands"):
        bk.bmk1880_gdma_load(ctx, t, 0, CTRL_NULL)
    cmdbuf = bk.bmk1880_acquire_cmdbuf(ctx)
    assert buffer[:72] == cmdbuf
    bk.bmk1880_cleanup(ctx)
    with pytest.raises(EncodingError, match="cleaned up"):
        bk.bmk1880_gdma_load(ctx, t, 0, CTRL_NULL)
    with pytest.raises(EncodingError, match="chip_version is 1682"):
        bk.bmk1880_register(bk.bmk1880_info_t(1682))


# --- fields of calls without a golden row -----------------------------------------------------------------------------


def only(ctx: bk.Bmk1880Context) -> dict[str, int]:
    """Fields of the single command in the buffer."""
    ((engine, payload, _),) = records(bk.bmk1880_acquire_cmdbuf(ctx))
    return (GDMA if engine == 2 else TIU).unpack(payload)


def aligned(ctx: bk.Bmk1880Context, at: int, *dims: int, fmt: int = FMT_I8) -> bk.tensor_lmem:
    return bk.bmk1880_tl_prealloc_align(ctx, at, shape_t4(*dims) if len(dims) == 4 else shape_t2(*dims), fmt)


def plain(ctx: bk.Bmk1880Context, at: int, *dims: int, fmt: int = FMT_I8) -> bk.tensor_lmem:
    return bk.bmk1880_tl_prealloc(ctx, at, shape_t4(*dims), fmt)


def test_arith_shift_fields(ctx: bk.Bmk1880Context) -> None:
    rl, rh, al, ah, bits = (aligned(ctx, 256 * i, 1, 4, 5, 6) for i in range(5))
    bk.bmk1880_tpu_arith_shift(ctx, bk.bmk1880_arith_shift_param_t(rh, rl, ah, al, bits))
    f = only(ctx)
    assert (f["tsk_eu_typ"], f["opt_shift_typ"], f["opt_rshift_typ"]) == (6, 1, 0)
    assert (f["opt_res0_int8"], f["opt_opd0_int8"], f["opt_opd1_int8"], f["opt_opd2_int8"]) == (0, 0, 1, 0)
    assert (f["res0_b_str"], f["opd0_b_str"], f["opd1_b_str"]) == (256, 256, 16)


def test_copy_with_stride_fields(ctx: bk.Bmk1880Context) -> None:
    dst, src = aligned(ctx, 0, 1, 3, 4, 5), aligned(ctx, 1024, 1, 3, 4, 5)
    p = bk.bmk1880_copy_with_stride_param_t(dst, stride_t4(96, 96, 20, 2), src, stride_t4(32, 32, 5, 1))
    bk.bmk1880_tpu_copy_with_stride(ctx, p)
    f = only(ctx)
    assert [f[f"res0_{axis}_str"] for axis in "nchw"] == [96, 96, 20, 2]
    assert [f[f"opd0_{axis}_str"] for axis in "nchw"] == [32, 32, 5, 1]
    for role in ("opd1", "opd2"):
        assert [f[f"{role}_{axis}_str"] for axis in "nchw"] == [16, 16, 0, 1]
        assert [f[f"{role}_{axis}"] for axis in "nchw"] == [1, 3, 4, 5]


def test_max_const_mirrors_min_const(ctx: bk.Bmk1880Context) -> None:
    a, o = aligned(ctx, 0, 1, 3, 4, 5, fmt=FMT_U8), aligned(ctx, 64, 1, 3, 4, 5, fmt=FMT_U8)
    bk.bmk1880_tpu_max_const(ctx, bk.bmk1880_max_const_param_t(o, a, 200, False))
    f = only(ctx)
    assert (f["tsk_eu_typ"], f["opt_opd1_const"], f["opd1_addr"], f["opt_opd1_sign"]) == (4, 1, 0xFFC8, 0)


def test_strided_load_and_store(ctx: bk.Bmk1880Context) -> None:
    t = aligned(ctx, 0x10040, 2, 40, 5, 7)
    bk.bmk1880_gdma_load_stride(ctx, t, 0x12345, stride_t4(0x23456, 0x12345, 70, 1), CTRL_WEIGHT)
    f = only(ctx)
    assert (f["direction"], f["enable_stride"], f["copy_chw"]) == (0, 1, 1)
    assert (f["src_n_str"], f["src_c_str_lo"], f["src_c_str_hi"], f["src_h_str"]) == (0x23456, 0x2345, 1, 70)
    assert (f["dst_n_str"], f["dst_c_str_lo"], f["dst_h_str"], f["dst_addr_lo"]) == (96, 48, 7, 0x8010040)
    assert (f["src_addr_lo"], f["src_addr_hi"]) == (0x12345, 1)
    bk.bmk1880_reset(ctx)
    bk.bmk1880_gdma_store_stride(ctx, aligned(ctx, 0, 5, 70), 0, stride_t2(100, 1), CTRL_NEURON)
    f = only(ctx)
    assert (f["matrix"], f["enable_stride"], f["dst_h_str"], f["dst_h"], f["dst_w"]) == (1, 1, 100, 5, 70)
    assert (f["src_n_str"], f["src_c_str_lo"], f["src_h_str"]) == (32, 32, 32)


def test_copy_gmem_transposed(ctx: bk.Bmk1880Context) -> None:
    src = bk.global_tensor(0x100, shape_t4(2, 3, 4, 5))
    dst = bk.global_tensor(0x1000, shape_t4(3, 2, 4, 5))
    bk.bmk1880_gdma_copy_gmem(ctx, dst, src, CTRL_TP | CTRL_NEURON)
    f = only(ctx)
    assert (f["direction"], f["function"], f["enable_stride"], f["copy_chw"]) == (2, 1, 1, 0)
    assert (f["src_n"], f["src_c"], f["dst_c"], f["dst_n_str"]) == (2, 3, 2, 40)


def test_lrn_shift_past_the_last_lane_continues_in_lane_0(ctx: bk.Bmk1880Context) -> None:
    src, dst = aligned(ctx, 31 * 65536, 1, 5, 2, 8), aligned(ctx, 31 * 65536 + 64, 1, 5, 2, 8)
    bk.bmk1880_gdma_lrn_shift(ctx, dst, src, True, 2)
    f = only(ctx)
    assert (f["dst_addr_lo"], f["src_addr_lo"]) == (0x8000000 + 65536 + 64 + 16, 0x8000000 + 31 * 65536)
