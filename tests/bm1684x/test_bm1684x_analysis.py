"""Timing, trace, race check and listing of programs of the vendor's compiler."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bm1684x_golden import DATA, PROGRAMS, model
from click.testing import CliRunner
from cycle_nets import FLOATS
from lane_nets import Net
from varied_commands import analysis, commands

from bmcompiler.backends.bm1684x.asm import assemble, listing
from bmcompiler.backends.bm1684x.codes import Matrix
from bmcompiler.backends.bm1684x.isa import FORMATS, GDMA_SYS, SYS
from bmcompiler.backends.bm1684x.stream import ended, split
from bmcompiler.bmodel.bm168x import CommandGroup, TpuSubnet
from bmcompiler.bmodel.bm168x_streams import count
from bmcompiler.cli.tool import cli
from bmcompiler.errors import EncodingError, SimulatorError, UsageError
from bmcompiler.instructions.order import STREAMS, Engine
from bmcompiler.ops.base import TensorOp
from bmcompiler.runtime.simulator.bm1684x.analysis import analyze
from bmcompiler.target import find_target


def test_programs_are_numbered_from_0() -> None:
    for number in (-1, len(model(PROGRAMS[0]).all_stages())):
        with pytest.raises(UsageError, match=f"there is no program {number}"):
            analyze(model(PROGRAMS[0]), number)


@pytest.mark.parametrize("name", PROGRAMS)
def test_vendor_programs_have_no_races_and_take_time(name: str) -> None:
    analysis = analyze(model(name))
    assert analysis.races() == []
    timing = analysis.timing()
    busy = {use.name: use.busy for use in timing.engines}
    assert max(busy["TIU"], busy["GDMA"]) <= timing.cycles <= busy["TIU"] + busy["GDMA"]
    assert 0 <= timing.utilization <= 1
    assert 0 <= timing.weights <= len(model(name).all_stages()[0][1].coefficients)
    assert timing.features and timing.features <= timing.loaded + timing.stored
    assert all(timing.assumptions)


def test_multiply_accumulates_are_those_of_the_net() -> None:
    for kind in ("f32", "f16", "int8"):
        assert analyze(model(f"s_conv_wide_{kind}")).timing().macs == 40 * 81 * 70 * 9, (
            "1x70x9x9, a 3x3 convolution to 40 channels"
        )


def test_channels_of_a_load_are_short_runs_as_each_lies_in_another_lane() -> None:
    """40 single words of bias take 40 times 256 bytes, although they follow each other in global memory."""
    analysis = analyze(model("s_conv_wide_f32"))
    cycles = analysis.costs.cycles[analysis.decoded.at[Engine.GDMA]]
    fields = analysis.decoded.fields[Engine.GDMA]
    biases = (fields["src_c"] == 40) & (fields["src_h"] * fields["src_w"] == 1)
    assert cycles[biases].tolist() == [int(40 * 256 / 13.51)]


def test_the_trace_names_every_command() -> None:
    analysis = analyze(model("s_block_int8"))
    events = json.loads(analysis.trace())["traceEvents"]
    assert {"conv.normal", "rq.rq1", "dma.tensor.copy"} <= {event["name"] for event in events}


def test_a_lost_wait_is_found() -> None:
    whole = model("s_gemm_f16")
    ((_, stage),) = whole.all_stages()
    (group,) = stage.groups
    lost = 0
    for engine in STREAMS:
        stream = split(engine, group[engine])
        for number, fields in enumerate(stream.fields()):
            if not fields["cmd_id_dep"]:
                continue
            commands = [
                layout.pack(one | ({"cmd_id_dep": 0} if at == number else {}))
                for at, (layout, one) in enumerate(zip(stream.formats, stream.fields()))
            ]
            broken = group._replace(**{engine.name.lower(): ended(engine, commands[:-1])})
            changed = replace(stage, subnets=[replace(stage.subnets[0], groups=[broken])])
            lost += bool(analyze(replace(whole, nets=[replace(whole.nets[0], stages=[changed])])).races())
    assert lost >= 5


def test_a_command_that_leaves_memory_is_named() -> None:
    whole = model("s_gemm_f16")
    ((_, stage),) = whole.all_stages()
    group = assemble(listing(whole).replace("src_h=1 src_w=45", "src_h=60000 src_w=45"))[0]
    changed = replace(stage, subnets=[replace(stage.subnets[0], groups=[group])])
    with pytest.raises(SimulatorError, match=r"command \d+ \(GDMA\): "):
        analyze(replace(whole, nets=[replace(whole.nets[0], stages=[changed])])).accesses()


@pytest.mark.parametrize("name", PROGRAMS)
def test_listings_assemble_to_the_program(name: str) -> None:
    ((_, stage),) = model(name).all_stages()
    assert assemble(listing(model(name))) == stage.groups


def test_tools_show_files(tmp_path: Path) -> None:
    path = tmp_path / "net.bmodel"
    with np.load(DATA / "bm1684x_models.npz") as files:
        path.write_bytes(files["s_block_int8"].tobytes())
    shown = CliRunner().invoke(cli, ["dis", str(path)])
    assert shown.exit_code == 0, shown.output
    assert "conv.normal" in shown.output
    info = CliRunner().invoke(cli, ["info", str(path)])
    assert info.exit_code == 0, info.output
    assert "BM1684X" in info.output


def test_the_container_counts_commands_as_the_tables_have_them() -> None:
    """Lengths of commands stand in the tables of formats and, for counting, in the container."""
    for engine in STREAMS:
        for layout in FORMATS[engine]:
            for task in range(16):
                for unit in (0, 4, 17):
                    keys = {"tsk_typ": task, "tsk_eu_typ": unit} if engine is Engine.TIU else {"cmd_type": task}
                    command = layout.pack(keys)
                    try:
                        known = split(engine, command).formats == [layout]
                    except EncodingError:
                        known = False
                    if known and layout not in (SYS, GDMA_SYS):
                        stream = ended(engine, [command])
                        assert count("BM1684X", engine, stream) == len(split(engine, stream)), (layout, task, unit)
    assert count("BM1684X", Engine.TIU, CommandGroup(b"", b"").tiu) == 0
    assert isinstance(model("s_gemm_f16").all_stages()[0][1].subnets[0], TpuSubnet)


@pytest.mark.parametrize("name", ["conv", "strided", "depthwise", "matmul", "deep matmul"])
def test_products_of_a_program_are_those_of_its_op(name: str) -> None:
    net = Net([(2, 70, 9, 8)])
    module = net.module([FLOATS[name](net, net.inputs[0])])
    wanted = sum(op.macs() for op in module.main.ops if isinstance(op, TensorOp))
    analysis = analyze(find_target("bm1684x").compile([module], 0).model)
    assert analysis.costs.macs.sum() == wanted


@pytest.mark.parametrize("columns", [3, 2])
def test_zero_points_of_columns_are_read_from_as_many_lanes(columns: int) -> None:
    """Of a transposed right operand column j is read from lane j (the simulator's `_zero_points`)."""
    products = (one for kind in commands("bm1684x").values() for one in kind if one.layout.name.startswith("mm2"))
    command = next(one for one in products if one.fields["tsk_eu_typ"] == Matrix.NT and one.fields.get("opd2_const"))
    at = 0x20000
    fields = command.fields | {"opd2_const": 0, "opd2_addr": at, "res0_w": columns, "opd1_c": columns}
    found = analysis("bm1684x", command._replace(fields=fields)).accesses()
    read = (found.lo >= at) & (found.lo < at + 64) & ~found.write
    assert [(0, columns)] == list(zip(found.row_lo[read].tolist(), found.row_hi[read].tolist()))
