"""Every option and argument with values that are wrong: one sentence, nothing left behind, no input changed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from cli_files import command, write_all
from wrong_values import Walked, complaint, prepare, run_apart

NETS = {"model": "net.onnx", "--data": "calib.npz"}
GIVEN = {
    "calibrate": {**NETS, "--output": "out.table"},
    "compile": {**NETS, "--target": "bm1684", "--output": "out.bmodel"},
    "accuracy": {**NETS, "--target": "bm1684"},
    "evaluate": {"model": "net.bmodel", "--data": "calib.npz", "--labels": "labels.npy"},
    "run": {"model": "net.bmodel", "--data": "calib.npz", "--output": "out.npz"},
}
"""What succeeds, by module of the command."""
FEW = 150
"""Of all cases, one in so many is tried in every run."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_all(tmp_path / "work")
    np.save(tmp_path / "work" / "labels.npy", np.arange(4))
    return tmp_path / "work"


@pytest.mark.parametrize("every", [FEW, pytest.param(1, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", GIVEN)
def test_what_cannot_be_is_one_sentence(name: str, every: int, folder: Path) -> None:
    prog = f"bmnet-{name.removesuffix('uate')}"
    walked = Walked(import_module(f"bmcompiler.cli.{name}").cli, prog, GIVEN[name])
    prepare(folder, folder / GIVEN[name]["model"])
    cases = list(walked.cases())
    assert len(cases) > FEW
    wrong = {" ".join(map(ascii, line)): complaint(walked, line, folder) for line in cases[::every]}
    assert not any(wrong.values()), {line: said for line, said in wrong.items() if said}


def test_the_right_values_are_right_and_a_traceback_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(folder, folder / "net.onnx")
    module = import_module("bmcompiler.cli.calibrate")
    walked = Walked(module.cli, "bmnet-calibrate", GIVEN["calibrate"])
    status, said = run_apart(walked, walked.line(), folder)
    assert status == 0 and (folder / "out.table").is_file(), said
    monkeypatch.setattr("bmcompiler.driver.load_network", lambda *args, **kwargs: 1 // 0)
    assert "ZeroDivisionError" in complaint(walked, walked.line(), folder)


def test_a_file_that_is_no_journal_is_not_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    precious = folder / "precious.bin"
    line = (folder / "net.bmodel", "--data", folder / "calib.npz", "--labels", folder / "labels.npy")
    for content in (b"no line at all", bytes(range(9))):
        precious.write_bytes(content)
        assert command("evaluate", *line, "--resume", precious) == 1
        assert "precious.bin: not a journal of an evaluation" in capsys.readouterr().err
        assert precious.read_bytes() == content
    precious.write_bytes(b'{"ab'[:1])  # what was cut off as it began
    assert command("evaluate", *line, "--resume", precious) == 0


@pytest.mark.parametrize("option", [("--limit", "9" * 400), ("--name", "\udcff")])
def test_numbers_beyond_floats_and_names_that_are_no_text(
    option: tuple[str, str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = (folder / "net.onnx", "--target", "bm1684", "--data", folder / "calib.npz", "-o", folder / "x.bmodel")
    assert command("compile", *line, *option) == 2
    assert option[0] in capsys.readouterr().err and not (folder / "x.bmodel").exists()
