"""Options of a command in a TOML file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from cli_files import SHAPE, command, onnx_model

from bmcompiler.bmodel import load


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """net.onnx with calib/x.npz, and an empty folder to work in."""
    onnx.save(onnx_model(), tmp_path / "net.onnx")
    (tmp_path / "calib").mkdir()
    np.savez(tmp_path / "calib" / "x.npz", data=np.random.default_rng(0).normal(0, 1, (6, *SHAPE[1:])))
    return tmp_path


def compiled(folder: Path, text: str, *options: object) -> int:
    (folder / "calib" / "net.toml").write_text(text, "utf-8")
    return command("compile", folder / "net.onnx", "--config", folder / "calib" / "net.toml", *options)


def test_a_file_says_what_options_say(folder: Path) -> None:
    text = """
    target = "BM1684"
    quantize = "int8"
    data = "x.npz"  # beside this file
    opt = 1
    shapes = [[2, 2, 6, 6]]
    max-error = 2.5
    max_cycles = 3
    quiet = true
    output = "net.bmodel"
    [timing-profile]
    clock_hz = 5e8
    """
    assert compiled(folder, text) == 0
    model = load(folder / "calib" / "net.bmodel")
    assert model.target == "bm1684"
    assert model.stages()[0].inputs[0].shape == (2, 2, 6, 6)
    assert "precision int8, opt 1, max_error 2.5, max_cycles 3.0" in model.producer


def test_words_that_may_name_files_do_so_relative_to_the_file(folder: Path) -> None:
    (folder / "calib" / "slow.json").write_text('{"clock_hz": 1e8}')
    (folder / "calib" / "net.json").write_text("{}")  # a name that is no file's stays one
    text = 'target = "bm1684"\nquiet = true\nname = "net.json"\ntiming-profile = "slow.json"\nreport = "r.json"'
    assert compiled(folder, text, "-o", folder / "net.bmodel") == 0
    assert json.loads((folder / "calib" / "r.json").read_text())["options"]["timing_profile"] == "clock_hz=100000000"
    assert load(folder / "net.bmodel").stages()[0].net == "net.json"


def test_commands_of_a_group_take_files_and_words_of_before(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compiled(folder, 'target = "bm1684"\nquiet = true', "-o", folder / "net.bmodel") == 0
    (folder / "dis.toml").write_text('net = 0\noutput = "listing.txt"')
    assert command("tool", "dis", folder / "net.bmodel", "--config", folder / "dis.toml") == 0
    assert "conv" in (folder / "listing.txt").read_text()
    assert "--net is called --program now" in capsys.readouterr().err
    (folder / "llm.toml").write_text("lenght = 8")
    assert command("llm", "estimate", folder, "--config", folder / "llm.toml") == 2
    assert "bmnet-llm estimate has no option 'lenght'. Remedy: did you mean length?" in capsys.readouterr().err
    (folder / "capi.toml").write_text('cc = "no-such-cc"\noutput = "libraries"')
    assert command("capi", "build", "--config", folder / "capi.toml") == 1
    assert "no C compiler" in capsys.readouterr().err


def test_options_beside_the_file_win(folder: Path) -> None:
    text = 'target = "bm1684"\nopt = 0\nquiet = true\n'
    assert compiled(folder, text, "--target", "bm1684x", "-o", folder / "net.bmodel") == 0
    model = load(folder / "net.bmodel")
    assert (model.target, "opt 0" in model.producer) == ("bm1684x", True)


def test_several_programs_and_numbers_of_channels_are_lists(folder: Path) -> None:
    text = 'target = "bm1684"\nshapes = ["[[1,2,6,6]]", "[[3,2,6,6]]"]\nquiet = true\n'
    assert compiled(folder, text, "-o", folder / "a.bmodel") == 0
    assert compiled(folder, text.replace('"[', "[").replace(']"', "]"), "-o", folder / "b.bmodel") == 0
    assert (folder / "a.bmodel").read_bytes() == (folder / "b.bmodel").read_bytes()
    assert [stage.inputs[0].shape[0] for stage in load(folder / "a.bmodel").stages()] == [1, 3]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('tagret = "bm1684x"', "net.toml: bmnet-compile has no option 'tagret'. Remedy: did you mean target?"),
        ("zzz = 1", "bmnet-compile has no option 'zzz'. Remedy: choose from target, output"),
        ("quiet = 1", "net.toml: quiet takes true or false, got 1"),
        ("name = true", "net.toml: name takes a value, got true"),
        ("opt = 7", "--opt must be 0, 1 or 2, got 7"),
        ('data = "none.npz"', "calib/none.npz: No such file or directory"),
        ('output = "../net.onnx"', "net.onnx: is an input, which the output would replace"),
        ("max-error = nan", "nan is not a finite number"),
        ("opt = [", "net.toml: is not TOML: Invalid value"),
        ('name = "\x00"', "net.toml: is not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    assert compiled(folder, f'target = "bm1684"\n{line}\n') in {1, 2}
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_file_that_is_missing_or_no_text_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = folder / "net.onnx"
    assert command("compile", net, "--config", folder / "none.toml") == 1
    assert command("compile", net, "--config", folder / "calib" / "x.npz") == 1
    missing, binary = capsys.readouterr().err.splitlines()
    assert "none.toml: No such file" in missing
    assert "x.npz: is not TOML" in binary


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("compile net.onnx --target bm1684 --config /dev/null", 1, "not a regular file"),
        ("calibrate net.onnx --data /dev/null -o net.table", 1, "this is a pipe or a device"),
        ("calibrate net.onnx --data calib/x.npz -o net.table --workers 99999999999", 2, "must be at most 1,024"),
        ("opt  --pipeline canonicalize", 1, ""),
        ("compile net.onnx --target bm1684 --save-ir /dev/null -o /dev/null --quiet", 0, ""),
    ],
)
def test_devices_and_names_that_are_none_are_said(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    status: int,
    said: str,
) -> None:
    """A device need not end: /dev/full was read until memory was full."""
    monkeypatch.chdir(folder)
    name, *rest = words.split(" ")
    assert command(name, *rest) == status
    assert said in capsys.readouterr().err
    assert sorted(each.name for each in folder.iterdir()) == ["calib", "net.onnx"]
