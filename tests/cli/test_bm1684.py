"""The commands on BM1684 models: compile summary and report, run with timing, trace, race check, fast mode; listing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from cli_files import SHAPE, command, onnx_model

from bmcompiler import bmodel
from bmcompiler.backends.bm1684.asm import assemble
from bmcompiler.backends.bm1684.isa import TIU
from bmcompiler.bmodel.bm168x import Bm168xModel, CommandGroup
from bmcompiler.errors import UnsupportedError
from bmcompiler.runtime import Session

LAYERS = {"conv1+act1", "pool1", "ip1", "prob"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """net.onnx, net.bmodel, its reports, x.npz."""
    path = tmp_path_factory.mktemp("bm1684")
    onnx.save(onnx_model(), path / "net.onnx")
    np.savez(path / "x.npz", data=np.random.default_rng(0).normal(0, 1, (3, *SHAPE[1:])).astype(np.float32))
    for kind in ("json", "html"):
        report = ("--report", path / f"net.{kind}")
        net = ("compile", path / "net.onnx", "--target", "bm1684", "--quantize", "f32", "-o", path / "net.bmodel")
        assert command(*net, *report, "--quiet") == 0
    return path


def stage_of(path: Path) -> tuple[Bm168xModel, list[CommandGroup]]:
    model = bmodel.load(path)
    assert isinstance(model, Bm168xModel)
    return model, model.nets[0].stages[0].groups


def test_the_summary_counts_commands_and_bytes(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = (folder / "net.onnx", "--target", "bm1684", "--quantize", "f32", "-o", tmp_path / "net.bmodel")
    assert command("compile", *net, "--layers") == 0
    totals = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines() if "  " in line)
    _, groups = stage_of(folder / "net.bmodel")
    for name, at in (("TIU commands", 0), ("GDMA commands", 1)):
        assert totals[name].strip() == str(sum(len(group[at]) // 128 for group in groups))
    assert int(totals["weight memory"].replace(",", "")) > 0


def test_the_report_has_rows_totals_and_the_timing_model(folder: Path) -> None:
    data = json.loads((folder / "net.json").read_text())
    assert {layer["layer"] for layer in data["layers"]} >= LAYERS and data["target"] == "bm1684"
    assert data["totals"]["TIU_commands"] + data["totals"]["GDMA_commands"] == data["totals"]["commands"]
    (program,) = data["programs"]
    assert (program["inputs"][0]["scale"], program["inputs"][0]["zero_point"]) == (1.0, 0)
    timing = data["timing"]
    assert timing["clock_hz"] == 550e6 and [use["name"] for use in timing["engines"]] == ["TIU", "GDMA"]
    assert sum(layer["cycles"] for layer in data["layers"]) == timing["cycles"] > 0
    assert next(layer for layer in timing["layers"] if layer["name"] == "conv1+act1")["utilization"] > 0
    assert "550 MHz" in (folder / "net.html").read_text()


def test_run_prints_timing_writes_a_trace_and_checks_races(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.json"
    options = ("--timing", "--trace", trace, "--check-races")
    assert command("run", folder / "net.bmodel", "--data", folder / "x.npz", *options) == 0
    out = capsys.readouterr().out
    assert "3 steps in " in out and "no races" in out and "fast" not in out
    assert "Model of one run on the chip" in out and "at 550 MHz" in out and "GDMA" in out
    events = json.loads(trace.read_text())["traceEvents"]
    assert {event["name"] for event in events if event.get("cat") == "layer"} >= LAYERS


def test_a_lost_wait_is_an_error_that_names_the_layer(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, groups = stage_of(folder / "net.bmodel")
    columns = TIU.decode(np.frombuffer(groups[0].tiu, np.uint8))
    columns["cmd_id_gdma"][0] = 0
    groups[0] = CommandGroup(TIU.encode(columns).tobytes(), groups[0].gdma)
    model.nets[0].stages[0].subnets[0].groups = groups  # type: ignore[union-attr]
    bmodel.save(model, tmp_path / "racy.bmodel")
    out = tmp_path / "out.npz"
    run = ("run", tmp_path / "racy.bmodel", "--data", folder / "x.npz", "-o", out, "--check-races")
    assert command(*run) == 1
    err = capsys.readouterr().err
    assert "racy.bmodel" in err and "the result depends on timing" in err and "of layer 'conv1+act1'" in err
    assert not out.exists()


def test_fast_mode_is_labelled_and_close(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = []
    for name, flags in (("exact", ()), ("fast", ("--fast",))):
        run = ("run", folder / "net.bmodel", "--data", folder / "x.npz", "-o", tmp_path / f"{name}.npz", *flags)
        assert command(*run) == 0
        out = capsys.readouterr().out
        assert ("fast mode: sums in BLAS order: not bit-exact" in out) == (name == "fast")
        with np.load(tmp_path / f"{name}.npz", allow_pickle=False) as arrays:
            results.append(arrays["prob"])
    np.testing.assert_allclose(*results, rtol=1e-4)
    assert Session(folder / "net.bmodel").mode == ""
    assert Session(folder / "net.bmodel", fast=True).mode == "sums in BLAS order: not bit-exact"


def test_chips_with_one_way_to_sum_have_no_fast_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from bmcompiler.bmodel import TensorInfo
    from bmcompiler.bmodel.bm1880 import Bm1880Model, Command

    tensor = TensorInfo("x", (1, 1, 1, 4))
    bmodel.save(Bm1880Model("net", [Command([tensor], [tensor], b"", 4)], []), tmp_path / "net.bmodel")
    np.savez(tmp_path / "x.npz", x=np.zeros((1, 1, 1, 4), np.float32))
    assert command("run", tmp_path / "net.bmodel", "--data", tmp_path / "x.npz", "--fast") == 1
    assert (
        "net.bmodel: bm1880 has one way of running, no fast mode. Remedy: leave out --fast" in capsys.readouterr().err
    )
    with pytest.raises(UnsupportedError, match="no fast mode"):
        Session(tmp_path / "net.bmodel", fast=True)


def test_dis_lists_both_engines_under_the_names_of_layers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("tool", "dis", folder / "net.bmodel", "--net", "0") == 0
    out = capsys.readouterr().out
    assert "# 'conv1+act1' ('conv')" in out and "conv.mul" in out and "s2l.copy" in out
    assert assemble(out) == stage_of(folder / "net.bmodel")[1]
