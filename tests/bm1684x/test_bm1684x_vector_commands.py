"""What no recording shows: shifts per channel, lists of places, limits of indices, operands over each other, speed."""

from __future__ import annotations

import time

import numpy as np
import pytest

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Ar, Gather, Move, Precision, Rounding, Sfu, Task, Trans
from bmcompiler.backends.bm1684x.instructions import transfers
from bmcompiler.backends.bm1684x.isa import AR, SFU, SG, TRANS
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import Format
from bmcompiler.numeric import fp32
from bmcompiler.runtime.simulator.bm1684x import Memories, compile_plan
from bmcompiler.runtime.simulator.bm1684x.vector.integers import shifted
from bmcompiler.runtime.simulator.memory import Tensor
from bmcompiler.runtime.simulator.plan import Plan

_A, _B, _C, _R = 0, 0x4000, 0x8000, 0xC000
_PERCEPTIBLE = 0.05  # seconds


def put(memories: Memories, offset: int, values: np.ndarray, *, lane: int = 0, compact: bool = False) -> Tensor:
    strides = (CHIP.compact if compact else CHIP.aligned)(values.shape, values.itemsize, lane)
    tensor = memories.local.tensor(lane, offset, values.shape, strides, values.dtype)
    tensor.write(values)
    return tensor


def planned(memories: Memories, layout: Format, shape: tuple[int, ...], **fields: int) -> Plan:
    sizes = {f"res0_{axis}": size for axis, size in zip("nchw", shape)}
    return compile_plan([CommandGroup(layout.pack(sizes | fields), b"")], memories)


def test_every_channel_has_its_shift() -> None:
    memories, shape = Memories(), (2, 70, 3, 5)
    random = np.random.default_rng(1)
    a, b = random.integers(-128, 128, (2, *shape)).astype(np.int8)
    shifts = random.integers(-9, 4, (1, 70, 1, 1)).astype(np.int8)
    for offset, values in ((_A, a), (_B, b)):
        put(memories, offset, values)
    put(memories, _C, shifts, compact=True)
    result = put(memories, _R, np.zeros(shape, np.int16))
    fields = {
        "tsk_typ": Task.ARITHMETIC,
        "tsk_eu_typ": Ar.MUL_SATURATING,
        "tsk_opd_num": 3,
        "res0_prec": Precision.INT16,
    }
    places = {"opd0_addr": _A, "opd1_addr": _B, "opd2_addr": _C, "res0_addr": _R, "opd0_sign": 1, "opd1_sign": 1}
    planned(memories, AR, shape, **fields, **places, opd2_n_str=Rounding.HALF_AWAY).run()
    products = a.astype(np.int32) * b
    want = np.stack(
        [
            shifted(products[:, c], int(shifts[0, c, 0, 0]), Rounding.HALF_AWAY, np.dtype(np.int16), saturating=True)
            for c in range(70)
        ],
        axis=1,
    )
    assert np.array_equal(result.read(), want)


@pytest.mark.parametrize("precision", [Precision.INT8, Precision.INT16, Precision.INT32])
def test_amounts_of_shifts_in_a_tensor_have_a_sign(precision: Precision) -> None:
    """Whether the command says so or not: a negative one shifts to the right."""
    memories, kind = Memories(), {Precision.INT8: np.int8, Precision.INT16: np.int16, Precision.INT32: np.int32}
    for offset, values in ((_A, [-96, 5, 7, 80]), (_B, [-4, 2, 0, -3])):
        put(memories, offset, np.array(values, kind[precision]).reshape(1, 1, 1, 4))
    result = put(memories, _R, np.zeros((1, 1, 1, 4), kind[precision]))
    fields = {"tsk_typ": Task.ARITHMETIC, "tsk_eu_typ": Ar.SHIFT_ARITHMETIC, "tsk_opd_num": 2, "opd0_sign": 1}
    fields |= {f"{name}_prec": precision for name in ("res0", "opd0", "opd1")}
    planned(memories, AR, (1, 1, 1, 4), **fields, opd0_addr=_A, opd1_addr=_B, res0_addr=_R).run()
    assert result.read().ravel().tolist() == [-6, 20, 7, 10]


@pytest.mark.parametrize(("code", "want"), [(Rounding.DOWN, -2), (7, -2), (Rounding.TO_ZERO, -1)])
def test_rounding_code_7_is_down(code: int, want: int) -> None:
    memories = Memories()
    put(memories, _A, np.full((1, 1, 1, 1), -3, np.int8))
    result = put(memories, _R, np.zeros((1, 1, 1, 1), np.int8))
    fields = {"tsk_typ": Task.ARITHMETIC, "tsk_eu_typ": Ar.SHIFT_ARITHMETIC, "tsk_opd_num": 2, "opd0_sign": 1}
    places = {"opd0_addr": _A, "res0_addr": _R, "opd1_const": 1, "opd1_addr": 0xFF, "opd1_sign": 1}
    planned(memories, AR, (1, 1, 1, 1), **fields, **places, opd2_n_str=code).run()
    assert int(result.read()[0, 0, 0, 0]) == want


def test_places_of_a_list_have_the_column_first() -> None:
    memories, image = Memories(), np.arange(3 * 4 * 6, dtype=np.int16).reshape(1, 3, 4, 6)
    pairs = np.array([[5, 0], [1, 3], [0, 2]], np.uint16)
    put(memories, _A, image)
    put(memories, _B, pairs.reshape(1, 3, 1, 2), compact=True)
    result = put(memories, _R, np.zeros((1, 3, 1, 3), np.int16))
    places = {"opd0_addr": _A, "opd1_addr": _B, "res0_addr": _R, "opd0_prec": 3, "opd1_prec": 3, "res0_prec": 3}
    fields = {"tsk_typ": Task.GATHER, "opd0_h": 4, "opd0_w": 6, "opd1_c": 3, "opd1_w": 2, **places}
    planned(memories, SG, (1, 3, 1, 3), tsk_eu_typ=Gather.LIST_2D, **fields).run()
    assert np.array_equal(result.read()[0, :, 0], image[0][:, [0, 3, 2], [5, 1, 0]])

    back = put(memories, _C, np.full((1, 3, 4, 6), -1, np.int16))
    fields |= {"opd0_addr": _R, "res0_addr": _C, "opd0_h": 1, "opd0_w": 3}
    planned(memories, SG, (1, 3, 4, 6), tsk_eu_typ=Gather.SCATTER_LIST_2D, **fields).run()
    kept = np.full_like(image, -1)
    kept[0][:, [0, 3, 2], [5, 1, 0]] = image[0][:, [0, 3, 2], [5, 1, 0]]
    assert np.array_equal(back.read(), kept)


def scattering(memories: Memories, **more: int) -> Plan:
    """Three rows of two numbers, to where the indices say among four rows."""
    rows = [(_R, (1, 4, 2)), (_A, (1, 3, 2)), (_B, (1, 3, 0))]
    sides = [transfers.Rows(transfers.in_window(at), sizes, (0, 0)) for at, sizes in rows]
    command = transfers.indexed(Move.SCATTER, *sides, Precision.FP32, strides=False)
    return compile_plan([CommandGroup(b"", command.layout.pack(command.fields | more))], memories)


def test_a_scatter_has_an_index_for_each_row_it_brings() -> None:
    memories = Memories()
    put(memories, _A, np.arange(6, dtype=np.float32).reshape(1, 1, 3, 2))
    put(memories, _B, np.array([2, 0, 9], np.uint32).reshape(1, 1, 3, 1))
    result = put(memories, _R, np.full((1, 1, 4, 2), 7, np.float32))
    scattering(memories).run()
    assert result.read()[0, 0].tolist() == [[2, 3], [7, 7], [0, 1], [7, 7]]
    for more in ({"index_h": 2}, {"src_h": 4}, {"fill_constant_en": 1}):
        with pytest.raises(SimulatorError, match=r"a scatter of \d rows has \d indices, or a constant source"):
            scattering(memories, **more).run()


@pytest.mark.parametrize("name", ["static", "l2"])
def test_transfers_see_memory_on_the_chip_to_its_ends(name: str) -> None:
    memories, size = Memories(), getattr(CHIP, f"{name}_size")
    window = getattr(CHIP, f"{name}_window")
    for offset in (0, size - 4):
        tensor = memories.globals.tensor(window + offset, (1, 1, 1, 4), (0, 0, 0, 1))
        tensor.write(np.arange(1, 5, dtype=np.uint8).reshape(1, 1, 1, 4))
        assert getattr(memories, name)[offset : offset + 4].tolist() == [1, 2, 3, 4]
    with pytest.raises(SimulatorError, match="ends 1 bytes after the memory"):
        memories.globals.tensor(window + size - 3, (1, 1, 1, 4), (0, 0, 0, 1))


@pytest.mark.parametrize(("limit", "fill", "want"), [(1, 0, [11, 90, 13]), (1, 1, [11, 7, 13]), (0, 0, None)])
def test_a_limit_spares_the_last_index(limit: int, fill: int, want: list[int] | None) -> None:
    memories = Memories()
    put(memories, _A, np.arange(10, 14, dtype=np.uint8).reshape(1, 1, 1, 4))
    put(memories, _B, np.array([1, 0xFFFF, 3], np.uint16).reshape(1, 1, 1, 3))
    result = put(memories, _R, np.full((1, 1, 1, 3), 90, np.uint8))
    fields = {"opd0_addr": _A, "opd1_addr": _B, "res0_addr": _R, "opd1_prec": 3, "opd0_w": 4, "opd1_c": 1, "opd1_w": 3}
    switches = {"opd3_const": limit, "opd2_const": fill, "opd2_addr": 7}
    plan = planned(memories, SG, (1, 1, 1, 3), tsk_typ=Task.GATHER, tsk_eu_typ=Gather.LANE, **fields, **switches)
    if want is None:
        with pytest.raises(SimulatorError, match="index 65535 is outside of the 4 elements"):
            plan.run()
        return
    plan.run()
    assert result.read().ravel().tolist() == want


def test_a_copy_to_lanes_over_its_source_reads_all_of_it_first() -> None:
    memories, shape = Memories(), (1, 64, 1, 16)
    values = np.arange(64 * 16, dtype=np.float32).reshape(shape)
    put(memories, _A, values)
    result = memories.local.tensor(10, _A, shape, CHIP.aligned(shape, 4, 10), np.dtype(np.float32))
    fields = {"opd0_addr": _A, "res0_addr": 10 * CHIP.lmem_size + _A, "res0_prec": Precision.FP32}
    planned(memories, TRANS, shape, tsk_typ=Task.TRANSPOSE, tsk_eu_typ=Trans.LANE_COPY, **fields).run()
    assert np.array_equal(result.read(), values)


# -- a million elements ------------------------------------------------------------------------------------------------
_SHAPE = (1, 64, 1, 15625)


def _seconds(plan: Plan) -> float:
    plan.run()
    times = []
    for _ in range(3):
        start = time.process_time()
        plan.run()
        times.append(time.process_time() - start)
    return min(times)


def test_a_million_elements_of_a_series_take_no_perceptible_time() -> None:
    memories = Memories()
    x = np.random.default_rng(3).standard_normal(_SHAPE).astype(np.float32)
    coefficients = (1 / np.cumprod([1, *range(1, 16)])).astype(np.float32)
    source = put(memories, 0, x)
    put(memories, 0x30000, np.broadcast_to(coefficients, (1, 64, 1, 16)).copy())
    result = put(memories, 0x10000, np.zeros(_SHAPE, np.float32))
    fields = {"tsk_typ": Task.SFU, "tsk_eu_typ": Sfu.TAYLOR, "res0_prec": 2, "opd0_prec": 2, "opd1_n": 16}
    plan = planned(memories, SFU, _SHAPE, **fields, opd0_addr=0, opd1_addr=0x30000, res0_addr=0x10000)
    assert _seconds(plan) < _PERCEPTIBLE
    part = np.ascontiguousarray(source.read()[0, 7, 0, :50])
    total = np.full_like(part, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = fp32.add(fp32.multiply(total, part), np.full_like(part, c))
    assert np.array_equal(result.read()[0, 7, 0, :50], total)


def test_a_million_lookups_take_no_perceptible_time() -> None:
    memories, random = Memories(), np.random.default_rng(4)
    indices = random.integers(0, 256, _SHAPE).astype(np.uint8)
    table = random.standard_normal((1, 64, 1, 256)).astype(np.float32)
    put(memories, 0, indices)
    put(memories, 0x30000, table)
    result = put(memories, 0x10000, np.zeros(_SHAPE, np.float32))
    fields = {"tsk_typ": Task.GATHER, "tsk_eu_typ": Gather.LANE_FAST, "res0_prec": 2, "opd0_prec": 2, "opd0_str": 4}
    sizes = {"opd0_h": 1, "opd0_w": 256, "opd1_c": 64, "opd1_w": _SHAPE[3]}
    plan = planned(memories, SG, _SHAPE, **fields, **sizes, opd0_addr=0x30000, opd1_addr=0, res0_addr=0x10000)
    assert _seconds(plan) < _PERCEPTIBLE
    assert np.array_equal(result.read(), np.take_along_axis(table, indices.astype(np.intp), 3))
