"""Commands that no engine has: the simulator names the command and says what is wrong, before anything runs."""

from __future__ import annotations

import pytest

from bmcompiler.backends.bm1684.build import CommandBuilder
from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.isa import DataFormat, Direction, Eu, Precision, Task
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


BYTES = dict.fromkeys(("opt_opd0_prec", "opt_opd1_prec", "opt_res0_prec"), Precision.INT8)
WORDS = dict.fromkeys(BYTES, Precision.FP32)


@pytest.mark.parametrize(
    ("task", "unit", "fields", "reason"),
    [
        (Task.CONV, Eu.MUL, BYTES | {"opt_res0_prec": Precision.FP32}, "an int8 convolution gives int8 or int16"),
        (Task.CONV, Eu.MUL, BYTES | {"opt_res_add": 1}, "cannot accumulate"),
        (Task.CONV, Eu.MUL, BYTES | {"opt_winograd": 1}, "only the plain form"),
        (
            Task.POOL_OR_DEPTHWISE,
            Eu.MAC,
            BYTES | {"opt_res0_prec": Precision.FP32},
            "8-bit depthwise convolution gives",
        ),
        (Task.POOL_OR_DEPTHWISE, Eu.MAX, BYTES | {"opt_res0_prec": Precision.FP32}, "8-bit data of one type"),
        (Task.POOL_OR_DEPTHWISE, Eu.MAX, dict.fromkeys(BYTES, Precision.INT16), "8-bit data of one type"),
        (Task.TENSOR, Eu.SELECT_EQ, WORDS | {"opt_res0_prec": Precision.INT8}, "32-bit data only"),
        (Task.TENSOR, Eu.SELECT_EQ, WORDS | {"opt_opd0_prec": Precision.INT8}, "32-bit data only"),
    ],
)
def test_each_check_of_types_is_one_by_itself(
    memories: Memories, task: Task, unit: Eu, fields: dict[str, int], reason: str
) -> None:
    windows = {f"opd1_{axis}": 1 for axis in "hw"}
    with pytest.raises(SimulatorError, match=reason):
        bind(memories, tsk_typ=task, tsk_eu_typ=unit, **windows, **fields)


def moved(memories: Memories, **fields: int) -> None:
    """Decode one transfer of four words inside of local memory; `fields` override."""
    build = CommandBuilder()
    size = {f"{side}_{axis}": 4 if axis == "w" else 1 for side in ("src", "dst") for axis in "nchw"}
    places = {"src_addr": local_address(0), "dst_addr": local_address(0x1000)}
    build.gdma(**({"direction": Direction.LOCAL_TO_LOCAL} | size | places | fields))
    compile_plan(build.groups(), memories)


SHORT = {"src_data_format": DataFormat.INT16, "dst_data_format": DataFormat.INT16}
STRIDED = {"stride_enable": 1} | {f"{side}_{axis}_str": 1 for side in ("src", "dst") for axis in "nchw"}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (STRIDED | {"src_w": 1, "dst_w": 1, "src_w_str": 4096}, "source W stride 4096 exceeds 4095"),
        ({"special_func": 7}, "what function 7 does is not known"),
        ({"hold_des_value": 1}, "what function 0 does is not known"),
        ({"sys_mem_type": 1}, "matrices are loaded and stored"),
        ({"sys_mem_type": 1, "direction": Direction.SYSTEM_TO_LOCAL, "special_func": 3}, "matrices are loaded"),
        ({"acc_write_enable": 1, "src_data_format": DataFormat.INT8}, "formats of one width"),
        ({"acc_write_enable": 1, "dst_data_format": DataFormat.INT8}, "formats of one width"),
        ({"acc_write_enable": 1} | SHORT, "needs fp32 on both sides"),
    ],
)
def test_each_check_of_a_transfer_is_one_by_itself(memories: Memories, fields: dict[str, int], reason: str) -> None:
    with pytest.raises(SimulatorError, match=reason):
        moved(memories, **fields)


def test_the_widest_step_of_a_source_is_taken(memories: Memories) -> None:
    moved(memories, **(STRIDED | {"src_w": 1, "dst_w": 1, "src_w_str": 4095}))


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
    assert memories.table(CHIP.l2_size - 4 * 256, 256).size == memories.table(0, 256).size == 256
    for offset in (-4, 2, CHIP.l2_size - 4 * 255):
        with pytest.raises(SimulatorError, match="does not lie in L2"):
            memories.table(offset, 256)
