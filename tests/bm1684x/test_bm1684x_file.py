"""BM1684X model files: groups with end marks, relocation, bmnet-tool, vendor streams in files of our own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bm1684x_golden import DATA, model, program

from bmcompiler.backends.bm168x.build import NEURON_VIRTUAL
from bmcompiler.backends.bm1684x.builder import CommandBuilder, place_neurons
from bmcompiler.backends.bm1684x.chip import CHIP, dense
from bmcompiler.backends.bm1684x.codes import Ar, Move, Precision
from bmcompiler.backends.bm1684x.instructions import arithmetic, transfers
from bmcompiler.backends.bm1684x.instructions.operands import Command, Operand, constant
from bmcompiler.backends.bm1684x.stream import split
from bmcompiler.bmodel import load, save
from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xNet, Bm168xStage, Bm168xTensor, CommandGroup, TpuSubnet
from bmcompiler.bmodel.bm168x_streams import count
from bmcompiler.chip import Dims
from bmcompiler.cli.common import run
from bmcompiler.cli.tool import cli
from bmcompiler.errors import FileFormatError
from bmcompiler.instructions.order import STREAMS, Engine
from bmcompiler.runtime import Session

SHAPE = (1, 64, 2, 8)
BYTES = 4 * 64 * 16
FACTORS = np.arange(64, dtype=np.float32)
CTX = CHIP.global_base + 4096


def moved(to_lanes: bool, address: int, offset: int, shape: Dims = SHAPE) -> Command:
    """A tensor of words between global and local memory."""
    n, c, h, w = (step // 4 for step in CHIP.aligned(shape, 4))
    outside = transfers.Side(address, shape, dense(shape, 1))
    lanes = transfers.Side(transfers.in_window(offset), shape, (n, c, h, w))
    to, source = (lanes, outside) if to_lanes else (outside, lanes)
    return transfers.copy(to, source, Precision.FP32)


def scaled(builder: CommandBuilder, times: int) -> list[CommandGroup]:
    """y = x * factor + times, one lane per factor."""
    x, y, factor = Operand(0, Precision.FP32), Operand(0x8000, Precision.FP32), Operand(0x4000, Precision.FP32)
    builder.add(moved(True, NEURON_VIRTUAL, 0))
    builder.add(moved(True, CHIP.global_base, 0x4000, (1, 64, 1, 1)))
    builder.add(arithmetic.binary(Ar.MUL, SHAPE, y, x, factor._replace(strides=(64, 16, 0, 0))))
    for _ in range(times):
        builder.add(arithmetic.binary(Ar.ADD, SHAPE, y, y, constant(0x3F80_0000, Precision.FP32)))
    builder.add(moved(False, NEURON_VIRTUAL + BYTES, 0x8000))
    groups = [CommandGroup(tiu, place_neurons(gdma, CTX)) for tiu, gdma in builder.groups()]
    assert builder.finish()
    assert not builder.groups()
    return groups


def scaling(times: int = 1, max_id: int = CHIP.max_command_id, height: int = 2) -> Bm168xModel:
    builder = CommandBuilder(max_id)
    groups = scaled(builder, times)
    for engine in STREAMS:
        assert builder.counts[engine] == sum(count("BM1684X", engine, group[engine]) for group in groups)
    x, y = (Bm168xTensor(name, "float32", (1, 64, height, 8), CTX + at) for name, at in (("x", 0), ("y", BYTES)))
    stage = Bm168xStage(
        [x], [y], CTX, 2 * BYTES, [TpuSubnet(groups, [x], [y])], CHIP.global_base, memoryview(FACTORS.tobytes())
    )
    return Bm168xModel([Bm168xNet("scale", [stage])], chip="BM1684X")


@pytest.mark.parametrize("max_id", [CHIP.max_command_id, 3])
def test_a_program_of_ours_is_saved_loaded_and_run(tmp_path: Path, max_id: int) -> None:
    made = scaling(5, max_id)
    assert (len(made.nets[0].stages[0].groups) > 1) == (max_id == 3)
    save(made, tmp_path / "a.bmodel")
    again = load(tmp_path / "a.bmodel")
    assert isinstance(again, Bm168xModel)
    assert again.nets == made.nets
    assert again.target == "bm1684x"
    save(again, tmp_path / "b.bmodel")
    assert (tmp_path / "b.bmodel").read_bytes() == (tmp_path / "a.bmodel").read_bytes()
    x = np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)
    y = Session(tmp_path / "a.bmodel").run({"x": x})["y"]
    wanted = x * FACTORS[:, None, None]
    for _ in range(5):
        wanted = wanted + np.float32(1)
    assert np.array_equal(y, wanted)


def test_info_and_listing_speak_of_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "a.bmodel")
    save(scaling(), path)
    assert run(cli, "bmnet-tool", ("--info", path)) == 0
    told = capsys.readouterr().out
    assert "chip: BM1684X" in told
    assert "input: x, [1, 64, 2, 8], float32" in told
    assert run(cli, "bmnet-tool", ("--chip", path)) == 0
    assert capsys.readouterr().out == "BM1684X\n"
    assert run(cli, "bmnet-tool", ("dis", path)) == 0
    listing = capsys.readouterr().out
    assert listing.count("dma.tensor") == 3
    assert f"0x{CTX:x}" in listing


def test_files_are_combined_and_taken_apart_again(tmp_path: Path) -> None:
    names = [str(tmp_path / f"{name}.bmodel") for name in "ab"]
    save(scaling(), names[0])
    save(replace(model("s_gemm_f16"), source={}), names[1])
    both, out = str(tmp_path / "both.bmodel"), tmp_path / "out"
    assert run(cli, "bmnet-tool", ("combine", *names, "-o", both)) == 0
    assert run(cli, "bmnet-tool", ("extract", both, "-o", str(out))) == 0
    for number, name in enumerate(names):
        one, other = load(out / f"bm_net{number}_stage0.bmodel"), load(name)
        assert isinstance(one, Bm168xModel)
        assert isinstance(other, Bm168xModel)
        assert one.nets == other.nets


def test_streams_of_the_vendors_compiler_run_in_files_of_ours(tmp_path: Path) -> None:
    """Nothing of the vendor's description is kept but what the model says."""
    stage, groups = program("s_conv_wide_f16")
    subnets = [TpuSubnet(list(groups), stage.inputs, stage.outputs)]
    bare = replace(stage, subnets=subnets, source={}, locations=[])
    save(Bm168xModel([Bm168xNet("packed", [bare])], chip="BM1684X"), tmp_path / "a.bmodel")
    arrays = np.load(DATA / "bm1684x_programs" / "s_conv_wide_f16.npz")
    found = Session(tmp_path / "a.bmodel").run({one.name: arrays[f"a/in/{one.name}"] for one in stage.inputs})
    for one in stage.outputs:
        wanted = arrays[f"a/out/{one.name}"]
        assert np.array_equal(found[one.name].view(np.uint32), wanted.reshape(one.shape).view(np.uint32))


@pytest.mark.parametrize("engine", list(STREAMS))
def test_streams_without_an_end_mark_are_not_written(engine: Engine) -> None:
    made = scaling()
    (subnet,) = made.nets[0].stages[0].subnets
    assert isinstance(subnet, TpuSubnet)
    (group,) = subnet.groups
    start = split(engine, group[engine]).starts[-1]
    subnet.groups = [group._replace(**{engine.name.lower(): group[engine][:start]})]
    with pytest.raises(FileFormatError, match=f"the {engine.name} commands have no end mark"):
        made.parts()


def test_all_addresses_of_neuron_memory_find_their_place() -> None:
    """Those of indices too; others stay."""
    source, index, target = (
        transfers.Rows(address, sizes, (32, 8))
        for address, sizes in (
            (NEURON_VIRTUAL + 256, (1, 4, 8)),
            (NEURON_VIRTUAL + 512, (1, 4, 0)),
            (transfers.in_window(0), (1, 4, 8)),
        )
    )
    builder = CommandBuilder()
    builder.add(transfers.indexed(Move.GATHER, target, source, index, Precision.FP32, True))
    builder.add(moved(False, CHIP.l2_window, 0))
    ((_, gdma),) = builder.groups()
    before, after = split(Engine.GDMA, gdma).fields(), split(Engine.GDMA, place_neurons(gdma, CTX)).fields()
    changed = [{name for name in one if one[name] != other[name]} for one, other in zip(before, after)]
    assert changed == [{f"{side}_addr_{half}" for side in ("src", "index") for half in ("lo", "hi")}, set(), set()]
    assert after[0]["src_addr_lo"] | after[0]["src_addr_hi"] << 32 == CTX + 256
