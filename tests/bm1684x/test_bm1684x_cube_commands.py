"""What no recording shows of commands with shifts in the matrix unit: ties, and shifts at their limit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Matrix, Pord, Precision, Task
from bmcompiler.backends.bm1684x.isa import MM, PORD
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import Format
from bmcompiler.runtime.simulator.bm1684x import Memories, compile_plan
from bmcompiler.runtime.simulator.memory import Tensor

_A, _B, _C, _R = 0, 0x4000, 0x8000, 0xC000


def put(memories: Memories, offset: int, values: np.ndarray) -> Tensor:
    """An aligned tensor in local memory."""
    tensor = memories.local.tensor(0, offset, values.shape, CHIP.aligned(values.shape, values.itemsize), values.dtype)
    tensor.write(values)
    return tensor


def run(memories: Memories, layout: Format, **fields: int) -> None:
    compile_plan([CommandGroup(layout.pack(fields), b"")], memories).run()


def rounded(total: int, shift: int) -> int:
    """total / 2**shift to the nearest integer, ties up, in the range of int16."""
    return max(-(1 << 15), min((1 << 15) - 1, (2 * total + (1 << shift)) // (1 << shift + 1)))


@pytest.mark.parametrize("relu", [False, True])
@settings(max_examples=20, deadline=None)
@given(
    column=st.lists(st.integers(-128, 127), min_size=1, max_size=9),
    factor=st.integers(-128, 127),
    bias=st.integers(-300, 300),
    shift=st.integers(0, 31),
)
@example(column=[-3, -1, 1, 3, 5], factor=1, bias=0, shift=1)
@example(column=[-6, -2, 2, 6], factor=3, bias=4, shift=2)
@example(column=[-128], factor=127, bias=0, shift=31)
def test_requantized_products_take_ties_up(relu: bool, column: list[int], factor: int, bias: int, shift: int) -> None:
    memories = Memories()
    put(memories, _A, np.full((1, 1, 1, 1), factor, np.int8))
    put(memories, _B, np.array(column, np.int8).reshape(1, 1, 1, -1))
    put(memories, _C, np.full((1, 1, 1, len(column)), bias, np.int16))
    result = put(memories, _R, np.zeros((1, 1, 1, len(column)), np.int16))
    signs = {f"opd{number}_sign": 1 for number in range(3)}
    sizes = {"res0_c": 1, "res0_w": len(column), "opd0_n": 1, "opd0_c": 1, "opd0_w": 1, "opd1_w": 1}
    places = {"res0_addr": _R, "opd0_addr": _A, "opd1_addr": _B, "opd2_addr": _C, "opd3_addr": shift << 8}
    unit = Matrix.REQUANT_RELU if relu else Matrix.REQUANT
    run(memories, MM, tsk_typ=Task.MATRIX, tsk_eu_typ=unit, res0_prec=Precision.INT16, **signs, **sizes, **places)
    wanted = [rounded(factor * value + bias, shift) for value in column]
    assert result.read().ravel().tolist() == [max(value, 0) if relu else value for value in wanted]


def average(values: list[int], shift: int) -> list[int]:
    """Values times 1, shifted by an average of one element."""
    memories = Memories()
    put(memories, _A, np.array(values, np.int8).reshape(1, 1, 1, -1))
    result = put(memories, _R, np.zeros((1, 1, 1, len(values)), np.int8))
    sizes = {f"res0_{axis}": size for axis, size in zip("nchw", (1, 1, 1, len(values)))}
    sizes |= {"opd0_h": 1, "opd0_w": len(values), "opd1_h": 1, "opd1_w": 1, "res_op_x_str": 1, "res_op_y_str": 1}
    fields = {"opd1_const": 1, "opd1_addr": 1, "opd2_const": 1, "opd2_addr": shift, "opd3_const": 1, "opd0_sign": 1}
    run(
        memories,
        PORD,
        tsk_typ=Task.POOL_OR_DEPTHWISE,
        tsk_eu_typ=Pord.AVERAGE,
        res0_addr=_R,
        opd0_addr=_A,
        **sizes,
        **fields,
    )
    return [int(value) for value in result.read().ravel()]


def test_shifts_go_up_to_31() -> None:
    values = [-128, -1, 0, 1, 127]
    for shift in (0, 1, 6, 30, 31):
        assert average(values, shift) == [rounded(value, shift) for value in values], shift
    with pytest.raises(SimulatorError, match="a right shift by 32 has no known result"):
        average(values, 32)
