"""Commands that no engine has: the simulator names the command and says what is wrong, before anything runs."""

from __future__ import annotations

import pytest

from bmcompiler.backends.bm1684.build import CommandBuilder
from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.isa import Eu, Precision, Task
from bmcompiler.errors import SimulatorError
from bmcompiler.runtime.simulator.bm1684 import Memories, compile_plan
from bmcompiler.runtime.simulator.memory import GlobalMemory

_NO_UNIT = 31


@pytest.fixture(scope="module")
def memories() -> Memories:
    return Memories(GlobalMemory())


def bind(memories: Memories, **fields: int) -> None:
    """Decode one TIU command on small tensors in local memory; `fields` override."""
    build = CommandBuilder()
    places = {"opd0": 0, "opd1": 0x400, "res0": 0x800}
    given = {f"{name}_addr": local_address(offset) for name, offset in places.items()}
    given |= {f"{name}_{axis}": size for name in places for axis, size in zip("nchw", (1, 64, 2, 2))}
    build.tiu(**(given | fields))
    compile_plan(build.groups(), memories)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (Task.CONV, "only the plain form of convolution is known"),
        (Task.MATRIX, "operation 31 does not exist for matrices"),
        (Task.TENSOR, "operation 31 does not exist for fp32 tensors"),
        (Task.SCALAR, "operation 31 does not exist for scalar commands"),
        (Task.SFU, "operation 31 does not exist for special-function commands"),
        (Task.LINEAR, "operation 31 does not exist for linear commands"),
        (Task.COMPARE, "operation 31 does not exist for compare commands"),
        (Task.VECTOR_CORRELATION, "operation 31 does not exist for vectors"),
        (Task.SUM, "what task 7 does is not known"),
        (Task.LUT, "a table of 256 words .* does not lie in L2"),
    ],
)
def test_an_operation_that_does_not_exist_is_named(memories: Memories, task: Task, reason: str) -> None:
    with pytest.raises(SimulatorError, match=f"group 0, TIU command 0: {reason}"):
        bind(memories, tsk_typ=task, tsk_eu_typ=_NO_UNIT)


@pytest.mark.parametrize(("operand", "result"), [(Precision.INT8, Precision.FP32), (Precision.INT8, Precision.INT32)])
def test_a_product_of_bytes_is_of_bytes_or_halfwords(memories: Memories, operand: Precision, result: Precision) -> None:
    sizes = {"opd0_n": 1, "opd0_c": 1, "opd0_w": 1, "opd1_w": 1, "res0_c": 1, "res0_w": 1}
    types = {"opt_opd0_prec": operand, "opt_opd1_prec": operand, "opt_res0_prec": result}
    with pytest.raises(SimulatorError, match="an int8 matrix product gives int8 or int16"):
        bind(memories, tsk_typ=Task.MATRIX, tsk_eu_typ=Eu.MUL, **sizes, **types)


@pytest.mark.parametrize("precision", range(5))
@pytest.mark.parametrize("task", range(16))
def test_every_pair_of_task_and_operation_binds_or_is_refused(memories: Memories, task: int, precision: int) -> None:
    refused = 0
    for unit in range(_NO_UNIT + 1):
        try:
            bind(memories, tsk_typ=task, tsk_eu_typ=unit, opt_opd0_prec=precision, opt_res0_prec=precision)
        except SimulatorError as error:
            assert str(error).startswith("group 0, TIU command 0: ")
            refused += 1
    assert refused >= _NO_UNIT + 1 - len(Eu)


def test_a_table_may_end_where_its_memory_ends(memories: Memories) -> None:
    assert memories.table(CHIP.l2_size - 4 * 256, 256).size == 256
    for offset in (-4, CHIP.l2_size - 4 * 255):
        with pytest.raises(SimulatorError, match="does not lie in L2"):
            memories.table(offset, 256)
