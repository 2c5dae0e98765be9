"""bmnet-calibrate end to end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bmcompiler.cli.calibrate import cli
from bmcompiler.cli.common import run
from bmcompiler.cli.compile import cli as compile_cli
from bmcompiler.quant.table import load_table

ROOT = Path(__file__).resolve().parents[2]
LENET = [str(ROOT / "models/lenet/deploy.prototxt"), str(ROOT / "models/lenet/lenet.caffemodel")]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    digits = np.load(ROOT / "models/digits.npz")["calib"]
    np.savez(tmp_path / "calib.npz", data=(digits[:16] / 255).astype(np.float32))
    return tmp_path / "calib.npz"


@pytest.mark.parametrize("name", ["net.table", "net.pb2", "net.prototxt"])
def test_writes_a_table_of_every_kind(
    name: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(cli, "bmnet-calibrate", [*LENET, "--data", str(data), "-o", str(tmp_path / name)]) == 0
    found = load_table(tmp_path / name).thresholds
    assert found["data"] == pytest.approx(1.0, abs=0.01) and {"conv1", "pool2", "ip1", "prob"} <= set(found)
    out = capsys.readouterr()
    assert "thresholds" in out.out and "none of them is held back" in out.out and out.err == ""


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--data", "missing.npz"], 1, "missing.npz"),
        (["--data", "{data}", "--bins", "7"], 2, "multiple of 128"),
        (["--data", "{data}", "--outputs", "nothing"], 2, "nothing"),
        (["--data", "{data}", "--shapes", "[[1,3,28,28]]"], 1, ""),
    ],
)
def test_mistakes_end_in_one_line_and_no_file(
    arguments: list[str], status: int, words: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "net.table"
    filled = [a.format(data=data) for a in arguments]
    assert run(cli, "bmnet-calibrate", [*LENET, *filled, "-o", str(output)]) == status
    message = capsys.readouterr().err
    assert message.startswith("bmnet-calibrate: ") and words in message and message.count("\n") == 1
    assert not output.exists()


def test_an_unwritable_table_is_an_error(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, "bmnet-calibrate", [*LENET, "--data", str(data), "-o", "/nowhere/net.table"]) == 1
    assert "/nowhere/net.table" in capsys.readouterr().err


def test_an_error_with_a_table_is_said_to_be_on_what_calibrated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So many samples that compiling would hold some back, had it calibrated itself."""
    digits = np.load(ROOT / "models/digits.npz")["calib"][:64]
    np.savez(tmp_path / "calib.npz", data=(digits / 255).astype(np.float32))
    words = [*LENET, "--data", str(tmp_path / "calib.npz"), "-o"]
    assert run(cli, "bmnet-calibrate", [*words, str(tmp_path / "net.table")]) == 0
    compiling = [*words, str(tmp_path / "net.bmodel"), "--target", "bm1880"]
    for more, said in (
        ([], "16 samples held back from"),
        (["--calibration-table", str(tmp_path / "net.table")], "64 samples of"),
    ):
        capsys.readouterr()
        assert run(compile_cli, "bmnet-compile", [*compiling, *more]) == 0
        assert f"on {said} calibration" in " ".join(capsys.readouterr().out.split())
