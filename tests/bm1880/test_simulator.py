"""What the golden rows leave open: layouts, corner arithmetic, transfers, and programs that cannot be right."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import golden_cases
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NEURON,
    CTRL_NULL,
    CTRL_RELU,
    CTRL_TP,
    CTRL_WEIGHT,
    FMT_I8,
    FMT_U8,
    Bmk1880Context,
    bmk1880_acquire_cmdbuf,
    bmk1880_arith_shift_param_t,
    bmk1880_conv_param_t,
    bmk1880_gdma_copy_gmem,
    bmk1880_gdma_copy_lmem,
    bmk1880_gdma_load,
    bmk1880_gdma_load_stride,
    bmk1880_gdma_store,
    bmk1880_gdma_store_stride,
    bmk1880_lut_param_t,
    bmk1880_mac_const_param_t,
    bmk1880_matrix_mac_param_t,
    bmk1880_register,
    bmk1880_relu_param_t,
    bmk1880_tl_prealloc,
    bmk1880_tl_prealloc_align,
    bmk1880_tpu_arith_shift,
    bmk1880_tpu_conv,
    bmk1880_tpu_lut,
    bmk1880_tpu_mac_const,
    bmk1880_tpu_matrix_mac,
    bmk1880_tpu_relu,
    shape_t2,
    shape_t4,
    stride_t4,
    tensor_gmem,
)
from bmcompiler.backends.bm1880.cmdbuf import records
from bmcompiler.backends.bm1880.isa import FORMATS, GDMA, HEADER, Direction, Engine, GdmaFunction, StrideCode, WindowOp
from bmcompiler.errors import BMError, SimulatorError
from bmcompiler.runtime.simulator.bm1880 import LocalMemory, Memories, compile_plan
from bmcompiler.runtime.simulator.bm1880.operands import MAX_WORK, Operands, check_work

Quad = tuple[int, int, int, int]
BASE = 0x1000


def machine_with(data: NDArray[Any], room: int = 0) -> tuple[Memories, NDArray[np.uint8]]:
    """Memories with `data` and `room` zero bytes behind it at global address BASE."""
    memory = np.concatenate([data.reshape(-1).view(np.uint8), np.zeros(room, np.uint8)])
    memories = Memories()
    memories.globals.map(BASE, memory)
    return memories, memory


def run(build: Callable[[Bmk1880Context], None], memories: Memories) -> None:
    k = bmk1880_register()
    build(k)
    compile_plan(bmk1880_acquire_cmdbuf(k), memories).run()


def random_bytes(seed: int, *shape: int) -> NDArray[np.int8]:
    return np.random.default_rng(seed).integers(-128, 128, shape, dtype=np.int8)


@settings(deadline=None)
@given(
    lane=st.integers(0, 31),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 130), st.integers(1, 3), st.integers(1, 4)),
    gaps=st.tuples(*[st.integers(0, 5)] * 4),
)
def test_elements_lie_where_the_layout_rule_says(lane: int, shape: Quad, gaps: Quad) -> None:
    _, c, h, w = shape
    w_str = 1 + gaps[3]
    h_str = w * w_str + gaps[2]
    c_str = h * h_str + gaps[1]
    n_str = -(-(lane + c) // 32) * c_str + gaps[0]
    memory = LocalMemory()
    tensor = memory.tensor(lane, 7, shape, (n_str, c_str, h_str, w_str))
    values = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    tensor.write(values)
    i, j, y, x = np.indices(shape)
    offsets = 7 + i * n_str + (lane + j) // 32 * c_str + y * h_str + x * w_str
    np.testing.assert_array_equal(memory.bytes[(lane + j) % 32, offsets], values)
    np.testing.assert_array_equal(tensor.read(), values)
    assert int((memory.bytes != 0).sum()) == int((values != 0).sum())


@pytest.mark.parametrize("lanes", [(0, 0), (3, 5), (31, 30)])
def test_convolution_works_from_any_lane_into_any_lane(lanes: tuple[int, int]) -> None:
    x, w = random_bytes(1, 1, 35, 6, 7), random_bytes(2, 33, 3 * 2, 35)
    memories, memory = machine_with(np.concatenate([x.ravel(), w.ravel()]), room=33 * 4 * 6)

    def build(k: Bmk1880Context) -> None:
        ifmap = bmk1880_tl_prealloc_align(k, lanes[0] << 16, shape_t4(1, 35, 6, 7), FMT_I8)
        ofmap = bmk1880_tl_prealloc_align(k, lanes[1] << 16 | 1024, shape_t4(1, 33, 4, 6), FMT_I8)
        packed = bmk1880_tl_prealloc(k, lanes[1] << 16 | 2049, shape_t4(1, 33, 6, 35), FMT_I8)
        weight = bmk1880_tl_prealloc(k, packed.address, shape_t4(35, 33, 3, 2), FMT_I8)
        bmk1880_gdma_load(k, ifmap, BASE, CTRL_NULL)
        bmk1880_gdma_load(k, packed, BASE + x.size, CTRL_NULL)
        p = bmk1880_conv_param_t(ofmap=ofmap, ifmap=ifmap, weight=weight, bias=None, rshift_width=9)
        bmk1880_tpu_conv(k, p)
        bmk1880_gdma_store(k, ofmap, BASE + x.size + w.size, CTRL_NULL)

    run(build, memories)
    kernel = w.reshape(33, 3, 2, 35).astype(np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64), (3, 2), (2, 3))
    sums = np.einsum("ncyxrs,orsc->noyx", windows, kernel)
    expected = np.clip((sums + 256) >> 9, -128, 127).astype(np.int8)
    assert memory[x.size + w.size :].tobytes() == expected.tobytes()


def wide_planes(values: NDArray[np.int64]) -> NDArray[np.uint8]:
    return np.concatenate([(values & 255).astype(np.uint8), (values >> 8 & 255).astype(np.uint8)])


def test_arith_shift_is_a_wrapping_left_shift_and_a_floor_right_shift() -> None:
    values = np.array([-1, -3, 3, 5, -5, 1, -32768, 19643, 12672, -15860, 5, -3], np.int64)
    bits = np.array([1, 1, 1, 1, 1, 1, -1, -12, 3, -14, 16, -16], np.int8)
    n = values.size
    memories, memory = machine_with(np.concatenate([wide_planes(values), bits.view(np.uint8)]))

    def build(k: Bmk1880Context) -> None:
        low, high, amount = (bmk1880_tl_prealloc_align(k, at, shape_t4(1, 1, 1, n), FMT_I8) for at in (0, 16, 32))
        for index, t in enumerate((low, high, amount)):
            bmk1880_gdma_load(k, t, BASE + index * n, CTRL_NULL)
        bmk1880_tpu_arith_shift(k, bmk1880_arith_shift_param_t(high, low, high, low, amount))
        bmk1880_gdma_store(k, low, BASE, CTRL_NULL)
        bmk1880_gdma_store(k, high, BASE + n, CTRL_NULL)

    run(build, memories)
    got = memory[:n].astype(np.int64) + 256 * memory[n : 2 * n].view(np.int8).astype(np.int64)
    assert got.tolist() == [-2, -6, 6, 10, -10, 2, -16384, 4, -29696, -1, 0, -1]
    for beyond in (17, 256 - 17):
        memory[2 * n] = beyond
        with pytest.raises(SimulatorError, match=r"command 3 \(TPU\): shift amounts must be -16\.\.16"):
            run(build, memories)


@pytest.mark.parametrize("lshift", [3, 14, 15, 18, 24, 31])
def test_mac_wraps_its_sum_to_32_bits_before_the_rounded_shift(lshift: int) -> None:
    rng = np.random.default_rng(lshift)
    old, a = rng.integers(-32768, 32768, 400), random_bytes(5, 400)
    memories, memory = machine_with(np.concatenate([wide_planes(old), a.view(np.uint8)]))

    def build(k: Bmk1880Context) -> None:
        low, high, factor = (bmk1880_tl_prealloc_align(k, at, shape_t4(1, 4, 10, 10), FMT_I8) for at in (0, 112, 224))
        for index, t in enumerate((low, high, factor)):
            bmk1880_gdma_load(k, t, BASE + index * 400, CTRL_NULL)
        p = bmk1880_mac_const_param_t(high, low, False, factor, -77, True, lshift_width=lshift, rshift_width=9)
        bmk1880_tpu_mac_const(k, p)
        bmk1880_gdma_store(k, low, BASE, CTRL_NULL)
        bmk1880_gdma_store(k, high, BASE + 400, CTRL_NULL)

    run(build, memories)
    sums = (a.astype(np.int64) * -77 + (old << lshift)) & 0xFFFFFFFF
    sums = np.where(sums >> 31, sums - (1 << 32), sums)
    expected = np.clip((sums + 256) >> 9, -32768, 32767)
    got = memory[:400].astype(np.int64) + 256 * memory[400:800].view(np.int8).astype(np.int64)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("columns", [1, 2, 7, 70])
@pytest.mark.parametrize("turned", [False, True])
def test_matrices_of_any_width_come_and_go(columns: int, turned: bool) -> None:
    matrix = random_bytes(columns, *((columns, 5) if turned else (5, columns)))
    memories, memory = machine_with(matrix, room=matrix.size)

    def build(k: Bmk1880Context) -> None:
        t = bmk1880_tl_prealloc_align(k, 0, shape_t2(5, columns), FMT_I8)
        bmk1880_gdma_load(k, t, BASE, CTRL_TP if turned else CTRL_NULL)
        bmk1880_gdma_store(k, t, BASE + matrix.size, CTRL_NULL)

    run(build, memories)
    want = matrix.T if turned else matrix
    np.testing.assert_array_equal(memory[matrix.size :].view(np.int8).reshape(want.shape), want)


def test_relu_of_matrix_mac_saturates_to_unsigned_even_into_signed_tensors() -> None:
    left, right = np.array([[10, 10]], np.int8), np.array([[10, 30, -5], [10, 30, 0]], np.int8)
    memories, memory = machine_with(np.concatenate([left.ravel(), right.ravel()]), room=3)

    def build(k: Bmk1880Context) -> None:
        a, b, o = (
            bmk1880_tl_prealloc_align(k, at, shape_t2(rows, columns), FMT_I8)
            for at, rows, columns in ((0, 1, 2), (16, 2, 3), (64, 1, 3))
        )
        bmk1880_gdma_load(k, a, BASE, CTRL_NULL)
        bmk1880_gdma_load(k, b, BASE + 2, CTRL_NULL)
        p = bmk1880_matrix_mac_param_t(
            res=o, left=a, right=b, bias=None, lshift_width=0, rshift_width=0, res_is_int8=True, ctrls=CTRL_RELU
        )
        bmk1880_tpu_matrix_mac(k, p)
        bmk1880_gdma_store(k, o, BASE + 8, CTRL_NULL)

    run(build, memories)
    assert memory[8:].tolist() == [200, 255, 0]  # bm1880.md 8.1: 200 is stored as 0xC8


def test_lookup_uses_the_table_of_the_lane_an_element_is_in() -> None:
    index, tables = random_bytes(3, 1, 40, 2, 3).view(np.uint8), random_bytes(4, 32, 256).view(np.uint8)
    memories, memory = machine_with(np.concatenate([index.ravel(), tables.ravel()]))

    def build(k: Bmk1880Context) -> None:
        x = bmk1880_tl_prealloc_align(k, 5 << 16, shape_t4(1, 40, 2, 3), FMT_U8)
        table = bmk1880_tl_prealloc_align(k, 5 << 16 | 64, shape_t4(1, 32, 16, 16), FMT_U8)
        bmk1880_gdma_load(k, x, BASE, CTRL_NULL)
        bmk1880_gdma_load(k, table, BASE + index.size, CTRL_NULL)
        bmk1880_tpu_lut(k, bmk1880_lut_param_t(x, x, table))
        bmk1880_gdma_store(k, x, BASE, CTRL_NULL)

    run(build, memories)
    expected = tables[np.arange(40)[:, None, None] % 32, index[0]]
    np.testing.assert_array_equal(memory[: index.size].reshape(40, 2, 3), expected)


def test_transposed_and_strided_transfers() -> None:
    data = random_bytes(1, 3, 40, 2, 5)
    memories, memory = machine_with(data, room=data.size * 2)

    def build(k: Bmk1880Context) -> None:
        t = bmk1880_tl_prealloc_align(k, 0, shape_t4(3, 40, 2, 5), FMT_I8)
        bmk1880_gdma_load(k, t, BASE, CTRL_NULL)
        bmk1880_gdma_store(k, t, BASE + data.size, CTRL_TP)
        half = bmk1880_tl_prealloc_align(k, 4096, shape_t4(3, 20, 2, 5), FMT_I8)
        bmk1880_gdma_load_stride(k, half, BASE + 10, stride_t4(400, 20, 5, 1), CTRL_NULL)
        bmk1880_gdma_store_stride(k, half, BASE + 2 * data.size, stride_t4(400, 10, 5, 1), CTRL_NULL)

    run(build, memories)
    stored = memory[data.size :].view(np.int8).reshape(2, -1)
    np.testing.assert_array_equal(stored[0].reshape(40, 3, 2, 5), data.transpose(1, 0, 2, 3))
    np.testing.assert_array_equal(stored[1].reshape(3, 40, 10)[:, :20], data[:, 1::2].reshape(3, 20, 10))


def test_global_copies_may_change_the_shape() -> None:
    data = random_bytes(1, 2, 3, 4, 5)
    memories, memory = machine_with(data, room=data.size)
    source = tensor_gmem(BASE, shape_t4(2, 3, 4, 5), stride_t4(60, 20, 5, 1))
    target = tensor_gmem(BASE + 120, shape_t4(1, 6, 5, 4), stride_t4(120, 20, 4, 1))

    def build(k: Bmk1880Context) -> None:
        bmk1880_gdma_copy_gmem(k, target, source, CTRL_NULL)

    run(build, memories)
    assert memory[120:].tobytes() == data.tobytes()


@pytest.mark.parametrize("channels", [20, 70])
def test_overlapping_local_copies_read_before_they_write(channels: int) -> None:
    data = random_bytes(7, 1, channels, 3, 5)
    memories, memory = machine_with(data)

    def build(k: Bmk1880Context) -> None:
        a = bmk1880_tl_prealloc_align(k, 0, shape_t4(1, channels, 3, 5), FMT_I8)
        b = bmk1880_tl_prealloc_align(k, 3 << 16, shape_t4(1, channels, 3, 5), FMT_I8)
        bmk1880_gdma_load(k, a, BASE, CTRL_NULL)
        bmk1880_gdma_copy_lmem(k, b, a)
        bmk1880_gdma_store(k, b, BASE, CTRL_NULL)

    expected = data.tobytes()
    run(build, memories)
    assert memory.tobytes() == expected


def gdma_record(**fields: int) -> bytes:
    return HEADER.encode_one(len=GDMA.size, engine=Engine.GDMA) + GDMA.encode_one(**fields)


def test_constant_fill() -> None:
    memories, memory = machine_with(np.full(40, 9, np.uint8))
    shape = {"src_n": 1, "src_c": 1, "src_h": 1, "src_w": 5, "dst_c": 1, "dst_h": 1, "dst_w": 5}
    fill = {"direction": Direction.GLOBAL, "function": GdmaFunction.FILL, "fill_value": 77}
    compile_plan(gdma_record(**shape, **fill, dst_addr_lo=BASE + 3, dst_addr_hi=1), memories).run()
    assert memory.tolist() == [9] * 3 + [77] * 5 + [9] * 32


def test_relocation_adds_the_bases_the_flags_ask_for() -> None:
    memories, neuron = machine_with(np.arange(32, dtype=np.uint8))
    memories.globals.map(0x9000, np.arange(100, 132, dtype=np.uint8))

    k = bmk1880_register()
    t = bmk1880_tl_prealloc_align(k, 0, shape_t4(1, 1, 1, 4), FMT_I8)
    bmk1880_gdma_load(k, t, 8, CTRL_WEIGHT)
    bmk1880_gdma_store(k, t, 2, CTRL_NEURON)
    compile_plan(bmk1880_acquire_cmdbuf(k), memories, BASE, 0x9000).run()
    assert neuron[:8].tolist() == [0, 1, 108, 109, 110, 111, 6, 7]


def relu_program(k: Bmk1880Context, address: int = BASE, ctrls: int = CTRL_NULL) -> None:
    t = bmk1880_tl_prealloc_align(k, 0, shape_t4(1, 2, 2, 2), FMT_I8)
    bmk1880_gdma_load(k, t, BASE, CTRL_NULL)
    bmk1880_tpu_relu(k, bmk1880_relu_param_t(t, t))
    bmk1880_gdma_store(k, t, address, ctrls)


def test_transfers_outside_the_mapped_memory_are_refused() -> None:
    memories, _ = machine_with(np.zeros(8, np.uint8))
    with pytest.raises(SimulatorError, match=r"command 2 \(GDMA\): global tensor .* ends 1 bytes after"):
        run(lambda k: relu_program(k, BASE + 1), memories)
    with pytest.raises(SimulatorError, match=r"command 2 \(GDMA\): global address 0xfff is outside"):
        run(lambda k: relu_program(k, BASE - 1), memories)


def test_read_only_memory_is_not_written() -> None:
    memories = Memories()
    data = np.frombuffer(bytes(8), np.uint8)
    memories.globals.map(BASE, data)
    with pytest.raises(SimulatorError, match=r"command 2 \(GDMA\): it writes into the weights"):
        run(relu_program, memories)


def changed(engine: Engine, index: int, **fields: int) -> bytes:
    """The relu program with some fields of the index-th record of an engine overwritten."""
    k = bmk1880_register()
    relu_program(k)
    cmdbuf = bytearray(bmk1880_acquire_cmdbuf(k))
    found = records(bytes(cmdbuf))
    at = int(found.offset[found.of(engine)[index]])
    layout = FORMATS[engine]
    values = layout.unpack(bytes(cmdbuf[at : at + layout.size])) | fields
    cmdbuf[at : at + layout.size] = layout.encode_one(**values)
    return bytes(cmdbuf)


@pytest.mark.parametrize(
    ("engine", "fields", "message"),
    [
        (Engine.TPU, {"tsk_typ": 9}, r"command 1 \(TPU\): what task 9 does"),
        (Engine.TPU, {"tsk_eu_typ": 99}, r"command 1 \(TPU\): tensor operation 99"),
        (Engine.TPU, {"res0_w": 0}, r"command 1 \(TPU\)"),
        (Engine.TPU, {"res0_addr": 0xFFFFFF}, r"command 1 \(TPU\): res0 address .* beyond the last lane"),
        (Engine.TPU, {"opd0_addr": 0x1FFFF}, r"command 1 \(TPU\): local tensor"),
        (Engine.TPU, {"res0_n_str": 65535, "res0_n": 2, "opd0_n": 2}, r"command 1 \(TPU\): local tensor"),
        (Engine.TPU, {"cmd_en": 0}, r"command 1 \(TPU\): the command is not enabled"),
        (Engine.GDMA, {"src_w": 0}, r"command 0 \(GDMA\)"),
        (Engine.GDMA, {"dst_addr_lo": 0}, r"command 0 \(GDMA\): dst address 0x0 is not in local memory"),
        (Engine.GDMA, {"function": 3}, r"command 0 \(GDMA\): GDMA function 3"),
        (Engine.GDMA, {"src_n": 65535, "src_h": 65535}, r"command 0 \(GDMA\)"),
        (Engine.GDMA, {"valid": 0}, r"command 0 \(GDMA\): the command is not valid"),
    ],
)
def test_impossible_fields_name_the_command(engine: Engine, fields: dict[str, int], message: str) -> None:
    memories, _ = machine_with(np.zeros(8, np.uint8))
    with pytest.raises(SimulatorError, match=message):
        compile_plan(changed(engine, 0, **fields), memories).run()


@pytest.mark.parametrize("operation", list(WindowOp))
@pytest.mark.parametrize("axis", "nchw")
def test_every_axis_counts_for_the_work_of_a_window(axis: str, operation: WindowOp) -> None:
    """A result of 4095 elements along one axis, each of 4095 x 4095 products, would take minutes."""
    shape = {f"{name}_{each}": 4095 if each == axis else 1 for name in ("res0", "opd0") for each in "nchw"}
    packed = {f"short_{name}_str": StrideCode.UNALIGNED for name in ("res0", "opd0")}
    kernel = {"opd1_h": 4095, "opd1_w": 4095, "conv_op_x_str": 1, "conv_op_y_str": 1}
    cmdbuf = changed(Engine.TPU, 0, tsk_typ=1, tsk_eu_typ=operation, **shape, **packed, **kernel)
    with pytest.raises(SimulatorError, match=f"{4095**3} multiply-accumulates"):
        compile_plan(cmdbuf, machine_with(np.zeros(8, np.uint8))[0])


def test_broken_records_are_refused() -> None:
    k = bmk1880_register()
    relu_program(k)
    cmdbuf = bmk1880_acquire_cmdbuf(k)
    memories, _ = machine_with(np.zeros(8, np.uint8))
    for damaged in (cmdbuf[:-1], cmdbuf[:3], b"\0" + cmdbuf[1:], cmdbuf + b"\xa5\x40\x07\x00" + bytes(4)):
        with pytest.raises(SimulatorError, match="record"):
            compile_plan(damaged, memories)
    assert len(compile_plan(b"", memories)) == 0


@pytest.mark.parametrize("seed", range(4))
def test_mutated_programs_end_in_success_or_a_reported_error(seed: int) -> None:
    rng = random.Random(seed)
    programs = [golden_cases.build(case)[:2] for case in golden_cases.CASES]
    outcomes = set()
    for _ in range(150):
        cmdbuf, contents = rng.choice(programs)
        damaged = bytearray(cmdbuf)
        for _ in range(rng.choice([1, 2, 6])):
            damaged[rng.randrange(len(damaged))] = rng.choice([0, 255, rng.randrange(256)])
        memories, _ = machine_with(np.frombuffer(contents, np.uint8))
        memories.globals.map(0, np.frombuffer(contents, np.uint8).copy()[:BASE])
        start = time.process_time()
        try:
            compile_plan(bytes(damaged), memories).run()
            outcomes.add("ran")
        except BMError:
            outcomes.add("refused")
        assert time.process_time() - start < 10
    assert outcomes == {"ran", "refused"}


def test_work_is_refused_beyond_its_limit() -> None:
    check_work(MAX_WORK)
    with pytest.raises(SimulatorError, match="more than any real command"):
        check_work(MAX_WORK + 1)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("operand", ["opd0", "opd1", "opd2"])
def test_immediates_are_read_to_the_ends_of_their_types(bits: int, operand: str) -> None:
    half = 1 << bits - 1
    for stored, signed in {0: 0, 1: 1, half // 2: half // 2, half - 1: half - 1, half: -half, 2 * half - 1: -1}.items():
        for sign, value in ((0, stored), (1, signed)):
            told = {"const": 1, "int8": bits == 8, "sign": sign}
            fields = {f"opt_{operand}_{name}": int(bit) for name, bit in told.items()}
            some: Any = SimpleNamespace(
                fields=fields | {f"{operand}_addr": stored + 2 * half}
            )  # bits above do not count
            assert Operands.constant(some, operand) == value
