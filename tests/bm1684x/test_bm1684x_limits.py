"""Each check of a command by itself, and numbers up to which commands are taken."""

from __future__ import annotations

import numpy as np
import pytest
from test_bm1684x_vector_commands import _A, _B, _R, planned, put

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Ar, Matrix, Pord, Precision, Rounding, Task, Trans
from bmcompiler.backends.bm1684x.isa import AR, CONV, MM, PORD, TRANS
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.errors import SimulatorError
from bmcompiler.runtime.simulator.bm1684x import Memories, compile_plan
from bmcompiler.runtime.simulator.bm1684x.vector.functions import iterations
from bmcompiler.runtime.simulator.bm1684x.vector.integers import shifted

ROW = (1, 1, 1, 4)
FLOAT, WORD, BYTE = Precision.FP32, Precision.INT32, Precision.INT8


def arithmetic(unit: Ar, shape: tuple[int, ...] = ROW, types: tuple[Precision, ...] = (WORD,) * 3, **more: int) -> None:
    """Decode and run an arithmetic command; types: of the result and of both operands."""
    fields = {"tsk_typ": Task.ARITHMETIC, "tsk_eu_typ": unit, "tsk_opd_num": 2, "opd0_sign": 1, "opd1_sign": 1}
    fields |= dict(zip(("res0_prec", "opd0_prec", "opd1_prec"), types))
    planned(Memories(), AR, shape, **(fields | {"opd0_addr": _A, "opd1_addr": _B, "res0_addr": _R} | more)).run()


def static(unit: Trans, shape: tuple[int, ...], address: int) -> None:
    """Decode and run a broadcast from static memory."""
    fields = {"tsk_typ": Task.TRANSPOSE, "tsk_eu_typ": unit, "res0_prec": WORD, "res0_addr": _R}
    planned(Memories(), TRANS, shape, **fields, opd0_addr=CHIP.static_window + address).run()


@pytest.mark.parametrize(
    ("unit", "types", "fields", "words"),
    [
        (Ar.SHIFT_ARITHMETIC, (FLOAT, WORD, WORD), {}, "only integers can be shifted"),
        (Ar.SHIFT_ARITHMETIC, (WORD, FLOAT, WORD), {}, "only integers can be shifted"),
        (Ar.SHIFT_ARITHMETIC, (WORD, WORD, FLOAT), {}, "only integers can be shifted"),
        (Ar.FIRST_ONE, (WORD, FLOAT, WORD), {}, "leading bits are counted in integers"),
        (Ar.FIRST_ONE, (FLOAT, WORD, WORD), {}, "leading bits are counted in integers"),
        (Ar.MUL_HIGH, (WORD,) * 3, {"opd0_sign": 0}, "high products of unsigned"),
        (Ar.MUL_HIGH, (WORD,) * 3, {"opd1_sign": 0}, "high products of unsigned"),
        (Ar.ADD, (WORD,) * 3, {"opd0_addr": CHIP.lmem_total}, "is not in local memory"),
        (Ar.ADD, (WORD,) * 3, {"opd0_addr": CHIP.lmem_window + CHIP.lmem_total}, "is not in local memory"),
    ],
)
def test_each_check_is_one_by_itself(
    unit: Ar, types: tuple[Precision, ...], fields: dict[str, int], words: str
) -> None:
    with pytest.raises(SimulatorError, match=words):
        arithmetic(unit, types=types, **fields)


def test_local_memory_begins_where_its_window_begins() -> None:
    arithmetic(Ar.ADD, opd0_addr=CHIP.lmem_window)


@pytest.mark.parametrize(("left", "right", "fits"), [(31, 63, True), (32, 0, False), (0, 64, False)])
def test_sums_of_products_are_shifted_so_far(left: int, right: int, fits: bool) -> None:
    types, shifts = (Precision.INT16, BYTE, BYTE), {"opd2_const": 1, "opd2_addr": left | right << 8}
    if fits:
        arithmetic(Ar.MAC, types=types, **shifts)
        return
    with pytest.raises(SimulatorError, match="31 to the left and 63 to the right"):
        arithmetic(Ar.MAC, types=types, **shifts)


@pytest.mark.parametrize(("amount", "fits"), [(31, True), (32, False), (-63, True), (-64, False)])
def test_elements_are_shifted_so_far(amount: int, fits: bool) -> None:
    x, amounts = np.array([5, -7]), np.array([amount, 0], np.int8)
    if not fits:
        with pytest.raises(SimulatorError, match="a shift must be 31"):
            shifted(x, amounts, Rounding.DOWN, np.dtype(np.int32), saturating=True)
        return
    found = shifted(x, amounts, Rounding.DOWN, np.dtype(np.int32), saturating=True)
    assert found.tolist() == [2**31 - 1 if amount > 0 else 0, -7]


def test_roots_take_eight_steps_at_most() -> None:
    assert [iterations(field) for field in (0, 7)] == [1, 8]
    with pytest.raises(SimulatorError, match="9 iterations are more than the 8"):
        iterations(8)


@pytest.mark.parametrize("unit", [Trans.STATIC_BROADCAST, Trans.STATIC_DISTRIBUTE])
def test_static_memory_is_read_to_its_end(unit: Trans) -> None:
    shape = (1, 4, 1, 1) if unit == Trans.STATIC_DISTRIBUTE else ROW
    static(unit, shape, CHIP.static_size - 16)
    with pytest.raises(SimulatorError, match="do not lie in static memory"):
        static(unit, shape, CHIP.static_size - 12)


@pytest.mark.parametrize("shape", [(2, 4, 1, 1), (1, 4, 2, 1), (1, 4, 1, 2), (1, CHIP.lanes + 1, 1, 1)])
def test_elements_of_static_memory_become_a_column_of_lanes(shape: tuple[int, ...]) -> None:
    static(Trans.STATIC_DISTRIBUTE, (1, CHIP.lanes, 1, 1), 0)
    with pytest.raises(SimulatorError, match="with 64 channels at most"):
        static(Trans.STATIC_DISTRIBUTE, shape, 0)


@pytest.mark.parametrize("first", [0, 1, CHIP.lanes - 1])
@pytest.mark.parametrize("unit", [Trans.LANE_BROADCAST, Trans.STATIC_BROADCAST])
def test_broadcasts_end_in_the_last_lane(unit: Trans, first: int) -> None:
    """Exactly there is right, one lane more is none; every lane has the row then, no other one is touched."""
    memories, lanes, row = Memories(), CHIP.lanes - first, np.array([3, -7, 2**31 - 1, -(2**31)], np.int32)
    memories.static[:16] = row.view(np.uint8)
    put(memories, _A, row.reshape(ROW), lane=first)
    source = CHIP.static_window if unit == Trans.STATIC_BROADCAST else first * CHIP.lmem_size + _A
    fields = {"tsk_typ": Task.TRANSPOSE, "tsk_eu_typ": unit, "res0_prec": WORD, "opd0_addr": source}
    fields |= {"opd0_c": 1, "opd0_w": 4, "res0_addr": first * CHIP.lmem_size + _R}
    planned(memories, TRANS, (1, lanes, 1, 4), **fields).run()
    found = memories.local.bytes[:, _R : _R + 16].view(np.int32)
    assert (found[first:] == row).all() and not found[:first].any()
    with pytest.raises(SimulatorError, match="passes the last lane"):
        planned(memories, TRANS, (1, lanes + 1, 1, 4), **fields)


@pytest.mark.parametrize(("width", "fits"), [(0, False), (1, True), (4, True), (5, False)])
def test_the_last_section_of_a_matrix_has_one_column_or_is_full(width: int, fits: bool) -> None:
    sizes = {"opd0_n": 3, "opd0_c": 2, "opd0_w": 4, "opd1_w": width, "res0_c": 1, "res0_w": 4}
    types = {"res0_prec": FLOAT, "opd0_prec": FLOAT}
    places = {"opd0_addr": _A, "opd1_addr": _B, "res0_addr": _R}
    groups = [
        CommandGroup(MM.pack({"tsk_typ": Task.MATRIX, "tsk_eu_typ": Matrix.NORMAL} | sizes | types | places), b"")
    ]
    if fits:
        compile_plan(groups, Memories()).run()
        return
    with pytest.raises(SimulatorError, match="the left matrix cannot have 2 sections of 4"):
        compile_plan(groups, Memories())


def test_convolutions_have_seven_operations() -> None:
    fields = {"tsk_typ": Task.CONV, "opd0_c": 1, "opd0_h": 1, "opd0_w": 4, "opd1_h": 1, "opd1_w": 1}
    fields |= {"res_op_x_str": 1, "res_op_y_str": 1, "opd0_addr": _A, "opd1_addr": _B, "res0_addr": _R}
    with pytest.raises(SimulatorError, match="with operation 7 has no known result"):
        planned(Memories(), CONV, ROW, **fields, opd0_prec=BYTE, res0_prec=BYTE, tsk_eu_typ=7)
    planned(Memories(), CONV, ROW, **fields, opd0_prec=BYTE, res0_prec=BYTE, tsk_eu_typ=6, opd3_const=1)


@pytest.mark.parametrize("rows", [512, 513])
def test_a_window_is_as_large_as_a_lane(rows: int) -> None:
    window = {"opd0_h": rows, "opd0_w": 512, "opd1_h": rows, "opd1_w": 512, "res_op_x_str": 1, "res_op_y_str": 1}
    fields = {"tsk_typ": Task.POOL_OR_DEPTHWISE, "tsk_eu_typ": Pord.MAX, "opd0_prec": BYTE, "res0_prec": BYTE}
    given = {**window, **fields, "opd0_addr": _A, "res0_addr": _A}
    if rows == 512:
        planned(Memories(), PORD, (1, 1, 1, 1), **given).run()
        return
    with pytest.raises(SimulatorError, match="does not fit into a lane"):
        planned(Memories(), PORD, (1, 1, 1, 1), **given)
