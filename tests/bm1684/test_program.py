"""Building programs, their text form, and running whole programs on the simulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bmcompiler.backends.bm1684.asm import assemble, disassemble
from bmcompiler.backends.bm1684.build import CommandBuilder
from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.isa import GDMA, TIU, Direction, Engine, Eu, Task
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.errors import EncodingError, FileFormatError, SimulatorError
from bmcompiler.runtime.simulator.bm1684 import Memories, compile_plan
from bmcompiler.runtime.simulator.memory import GlobalMemory
from bmcompiler.runtime.simulator.relocation import MovedArea, Relocation

_DATA = Path(__file__).parents[1] / "data"
# Commands that the vendor's runtime ran (bm1684.md 11): load and store of (1, 3, 8, 8) fp32; the zeros that end a
# command are left out.
_LOAD = (
    "31040100000800000000000000000000c0000000400000000800000001000000400000004000000008000000010000000100030008000800"
    "010003000800080000001005000000080100000000000000ffffffffffffffff"
)
_STORE = (
    "7104020000080100000000000000000040000000400000000800000001000000c00000004000000008000000010000000100030008000800"
    "010003000800080000000108001010050001000000000000ffffffffffffffff"
)


def _relu_program(builder: CommandBuilder) -> None:
    shape = {f"{side}_{axis}": size for side in ("src", "dst") for axis, size in zip("nchw", (1, 3, 8, 8))}
    system, local = ((192, 64, 8, 1), (64, 64, 8, 1))

    def strides(source: tuple[int, ...], target: tuple[int, ...]) -> dict[str, int]:
        pairs = (("src", source), ("dst", target))
        return {f"{side}_{axis}_str": step for side, steps in pairs for axis, step in zip("nchw", steps)}

    address = {"src_addr": CHIP.program_base, "dst_addr": local_address(0)}
    builder.gdma(direction=Direction.SYSTEM_TO_LOCAL, stride_enable=1, **shape, **strides(system, local), **address)
    size = {"res0_n": 1, "res0_c": 3, "res0_h": 8, "res0_w": 8}
    registers = {f"{name}_{axis}_str": s for name in ("res0", "opd0") for axis, s in zip("nchw", local)}
    builder.tiu(
        tsk_typ=Task.TENSOR,
        tsk_eu_typ=Eu.MAX,
        opt_shift_typ=0,
        opt_opd1_const=1,
        short_res0_str=3,
        short_opd0_str=3,
        res0_addr=local_address(0x10000),
        opd0_addr=local_address(0),
        opd1_addr=0x3E800000,
        **size,
        **registers,
    )
    address = {"src_addr": local_address(0x10000), "dst_addr": CHIP.program_base + 0x1000}
    builder.gdma(direction=Direction.LOCAL_TO_SYSTEM, stride_enable=1, **shape, **strides(local, system), **address)


def test_builder_gives_ids_and_serial_waits() -> None:
    builder = CommandBuilder()
    _relu_program(builder)
    (group,) = builder.groups()
    tiu, gdma = TIU.decode(np.frombuffer(group.tiu, np.uint8)), GDMA.decode(np.frombuffer(group.gdma, np.uint8))
    assert tiu["cmd_id_tpu"].tolist() == [1]
    assert tiu["cmd_id_gdma"].tolist() == [1]
    assert gdma["cmd_id"].tolist() == [1, 2]
    assert gdma["eng0_sync_id"].tolist() == [0, 1]


def test_a_program_runs_at_relocated_addresses() -> None:
    builder = CommandBuilder()
    _relu_program(builder)
    data = np.random.default_rng(3).standard_normal(192).astype(np.float32)
    area = np.zeros(0x2000, np.uint8)
    area[:768] = data.view(np.uint8)
    memories = Memories(GlobalMemory())
    memories.globals.map(CHIP.program_base + 0x7000, area)
    plan = compile_plan(builder.groups(), memories, Relocation(MovedArea(CHIP.program_base, 0x7000)))
    plan.run()
    assert np.array_equal(area[0x1000:0x1300].view(np.float32), np.maximum(data, np.float32(0.25)))
    area[:768] = (-data).view(np.uint8)
    plan.run()
    assert np.array_equal(area[0x1000:0x1300].view(np.float32), np.maximum(-data, np.float32(0.25)))


def test_built_transfers_equal_those_that_the_vendor_runtime_ran() -> None:
    builder = CommandBuilder()
    _relu_program(builder)
    load, store = (bytes.fromhex(text).ljust(128, b"\0") for text in (_LOAD, _STORE))
    assert builder.groups()[0].gdma == load + store


def test_named_dependencies_replace_the_serial_wait() -> None:
    builder = CommandBuilder()
    first = builder.gdma()
    builder.gdma()
    builder.tiu(after=[first])
    builder.tiu(after=[])
    waits = TIU.decode(np.frombuffer(builder.groups()[0].tiu, np.uint8))["cmd_id_gdma"]
    assert waits.tolist() == [1, 0]


def test_groups_are_closed_before_an_id_overflows() -> None:
    builder = CommandBuilder(max_id=3)
    tickets = [builder.gdma() for _ in range(4)]
    builder.tiu(after=tickets[:1])
    groups = builder.groups()
    assert [len(group.gdma) // 128 for group in groups] == [3, 1]
    assert GDMA.unpack(groups[1].gdma)["cmd_id"] == 1
    assert TIU.unpack(groups[1].tiu)["cmd_id_gdma"] == 0


def test_ids_belong_to_the_builder() -> None:
    with pytest.raises(EncodingError, match="cmd_id_tpu"):
        CommandBuilder().tiu(cmd_id_tpu=5)


def test_text_round_trip_of_recorded_commands_is_byte_identical() -> None:
    for name in ("bm1684_golden", "bm1684_golden2"):
        file = np.load(_DATA / f"{name}.npz")
        commands: dict[Engine, bytes] = {Engine.TIU: b"", Engine.GDMA: b""}
        for number in range(int(file["count"])):
            commands[Engine(int(file[f"c{number:02d}_engine"]))] += file[f"c{number:02d}_cmd"].tobytes()
        groups = [CommandGroup(commands[Engine.TIU], commands[Engine.GDMA])]
        assert assemble(disassemble(groups)) == groups


def test_text_names_the_operation() -> None:
    builder = CommandBuilder()
    _relu_program(builder)
    text = disassemble(builder.groups())
    assert "ar.max" in text
    assert "s2l.copy" in text
    assert "dst_addr=0x105101000" in text


@pytest.mark.parametrize("line", ["conv.fly id=1", "ar.add id", "ar.add id=x", "ar.add id=1 id=2"])
def test_unreadable_text_names_the_line(line: str) -> None:
    with pytest.raises(FileFormatError, match="line 2"):
        assemble(f"group\n{line}")


def test_too_wide_value_names_line_and_field() -> None:
    with pytest.raises(EncodingError, match=r"line 1.*opt_right_shift"):
        assemble("ar.add id=1 wait=0 opt_right_shift=32")


def test_a_wait_that_never_ends_is_an_error() -> None:
    group = CommandGroup(TIU.encode_one(cmd_id_tpu=1, cmd_id_gdma=9), b"")
    with pytest.raises(SimulatorError, match="never completes"):
        compile_plan([group], Memories())


def test_operands_outside_local_memory_are_refused() -> None:
    builder = CommandBuilder()
    builder.tiu(tsk_typ=Task.TENSOR, tsk_eu_typ=Eu.COPY, tsk_opd_num=1, res0_addr=local_address(0), opd0_addr=0)
    with pytest.raises(SimulatorError, match=r"TIU command 0.*opd0"):
        compile_plan(builder.groups(), Memories())


def test_coefficients_cannot_be_written() -> None:
    builder = CommandBuilder()
    builder.gdma(
        direction=Direction.LOCAL_TO_SYSTEM,
        src_addr=local_address(0),
        dst_addr=CHIP.program_base,
        **{f"{side}_{axis}": 1 for side in ("src", "dst") for axis in "nchw"},
    )
    with pytest.raises(SimulatorError, match="coefficients"):
        compile_plan(builder.groups(), Memories(), Relocation(MovedArea(CHIP.program_base, constant=True)))


def test_partial_commands_are_refused() -> None:
    with pytest.raises(SimulatorError, match="whole commands"):
        compile_plan([CommandGroup(bytes(100), b"")], Memories())
