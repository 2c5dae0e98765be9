"""BM168x model files in bmnet-tool and in sessions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bmcompiler.bmodel import load, save
from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xNet, Bm168xStage, Bm168xTensor, CommandGroup, TpuSubnet
from bmcompiler.cli.common import run
from bmcompiler.cli.tool import cli
from bmcompiler.errors import UnsupportedError
from bmcompiler.runtime import Session

from .test_bm168x_file import CTX, VENDOR, stage, vendor


def tool(*args: str) -> int:
    return run(cli, "bmnet-tool", args)


def test_info_prints_what_users_of_the_vendors_tool_look_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(vendor("tiny_i8", tmp_path))
    assert tool("--info", path) == 0
    out = capsys.readouterr().out
    assert "bmodel version: B.2.2+v1.30.2" in out
    assert "chip: BM1684" in out
    assert "net 0: [tiny5]  static" in out
    assert "input: x, [5, 3, 8, 8], int8, scale: 42.3333, zero_point: 0, store mode: 4N" in out
    assert "output: y_Relu, [5, 4, 8, 8], uint8, scale: 0.0352941, zero_point: 0, store mode: 4N" in out
    assert "(weight: 8192, instruct: 1152, runtime: 12288)" in out
    assert tool("info", path) == 0
    assert capsys.readouterr().out == out


def test_chip_prints_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool("--chip", str(vendor("tiny_f32", tmp_path))) == 0
    assert capsys.readouterr().out == "BM1684\n"


def test_info_lists_subnets_and_host_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(Bm168xModel([Bm168xNet("net", [stage()])]), tmp_path / "a.bmodel")
    assert tool("info", str(tmp_path / "a.bmodel")) == 0
    out = capsys.readouterr().out
    assert "subnet number: 3\n" in out
    assert "subnet 1: host, layer 17, 4 bytes: middle -> sorted, next [2]" in out
    assert "host mem size: 32 (weight: 0, runtime: 32)" in out
    assert tool("info", "--json", str(tmp_path / "a.bmodel")) == 0
    (program,) = json.loads(capsys.readouterr().out)["programs"]
    assert (program["inputs"][0]["layout"], program["outputs"][0]["zero_point"]) == ("4N", 7)
    assert (len(program["subnets"]), program["host_size"]) == (3, 32)


def test_info_says_when_the_device_makes_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dynamic = TpuSubnet([], [], [], dynamic=True, ir_length=9)
    save(Bm168xModel([Bm168xNet("net", [replace(stage(), subnets=[dynamic], intermediate=bytes(9))])]), tmp_path / "a")
    assert tool("info", str(tmp_path / "a")) == 0
    assert "net 0: [net]  dynamic" in capsys.readouterr().out


def test_extract_and_combine_are_inverse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(vendor(name, tmp_path)) for name in ("tiny_f32", "tiny_i8")]
    both = str(tmp_path / "both.bmodel")
    assert tool("combine", *paths, "-o", both) == 0
    assert tool("extract", both, "-o", str(tmp_path / "out")) == 0
    for index, path in enumerate(paths):
        again, first = load(tmp_path / "out" / f"bm_net{index}_stage0.bmodel"), load(path)
        assert isinstance(first, Bm168xModel)
        assert isinstance(again, Bm168xModel)
        assert again.nets == first.nets


@pytest.mark.parametrize("name", ["tiny_f32", "tiny_i8"])
def test_sessions_return_what_the_vendors_runner_returned(name: str, tmp_path: Path) -> None:
    results = Session(vendor(name, tmp_path)).run({"x": VENDOR[f"{name}_x"]})
    assert np.array_equal(results["y_Relu"], VENDOR[f"{name}_y"])


def test_layers_of_the_vendors_host_library_are_refused_by_number(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="subnet 1 is layer 17 of the vendor's host library"):
        Session(vendor("cpu_f32", tmp_path)).run({"x": VENDOR["cpu_f32_x"]})


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_sessions_quantize_with_scale_and_zero_point(dtype: str) -> None:
    """A program without commands whose output is its input."""
    given = Bm168xTensor("x", dtype, (2, 8), CTX, scale=0.5, zero_point=3)
    result = replace(given, name="y", scale=0.25)
    program = Bm168xStage([given], [result], CTX, 0x1000, [TpuSubnet([CommandGroup(b"", b"")], [given], [result])])
    session = Session(Bm168xModel([Bm168xNet("copy", [program])]))
    reals = np.array([[0, 0.25, -0.25, 0.5, 1.25, -0.75, 1e9, -1e9], [2, 4, 8, 16, 32, 1, 1, 1]], np.float32)
    limits = np.iinfo(dtype)
    away = np.sign(reals) * np.floor(np.abs(reals.astype(np.float64)) / 0.5 + 0.5) + 3
    integers = np.clip(away, limits.min, limits.max)
    assert np.array_equal(session.run({"x": reals}, raw=False)["y"], ((integers - 3) * 0.25).astype(np.float32))
    assert np.array_equal(session.run({"x": integers.astype(dtype)}, raw=True)["y"], integers)
