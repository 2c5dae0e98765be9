"""A network on standard input, a model on standard output; words of a shell."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cli_files import SHAPE, command, onnx_model
from click import Command
from click.shell_completion import ShellComplete

import bmcompiler
from bmcompiler.bmodel import load
from bmcompiler.cli import accuracy, compile


def piped(network: bytes, *words: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    main = [sys.executable, "-c", "from bmcompiler.cli.compile import main; main()", "-", "--target", "bm1684"]
    return subprocess.run([*main, *words], input=network, capture_output=True, check=False, cwd=cwd)


def test_a_network_goes_through_a_pipe(tmp_path: Path) -> None:
    network = onnx_model().SerializeToString()
    done = piped(network, "-o", "-", cwd=tmp_path)
    assert done.returncode == 0
    assert b"small for bm1684 in f32" in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert piped(network, cwd=tmp_path).returncode == 0
    assert (tmp_path / "small.bmodel").read_bytes() == done.stdout
    assert load(tmp_path / "small.bmodel").stages()[0].net == "small"


@pytest.mark.parametrize(("cut", "said"), [(0, b"is empty"), (100, b"is not an ONNX model")])
def test_what_comes_in_broken_is_said_and_nothing_goes_out(tmp_path: Path, cut: int, said: bytes) -> None:
    done = piped(onnx_model().SerializeToString()[:cut], "-o", "-", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"the network: " + said in done.stderr


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[bytes], None]:
    """What standard input has from now on; commands work in an empty folder with data.npz."""
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", data=np.random.default_rng(0).normal(0, 1, (20, *SHAPE[1:])).astype(np.float32))
    np.save("labels.npy", np.zeros(20, np.int64))
    return lambda data: monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize(
    "words",
    [
        "run - --data data.npz --timing",
        "evaluate - --data data.npz --labels labels.npy",
        "doctor -",
        "tool info -",
        "tool --chip -",
        "tool dis - -o -",
        "tool static - -o same.bmodel",
        "tool extract - -o pieces",
    ],
)
def test_a_model_comes_through_a_pipe(
    given: Callable[[bytes], None], capsys: pytest.CaptureFixture[str], words: str
) -> None:
    given(bmcompiler.compile(onnx_model(), target="bm1684").to_bytes())
    name, *rest = words.split()
    assert command(name, *rest) == 0, capsys.readouterr().err
    given(b"no model")
    assert command(name, *rest) == 1
    assert ": not a model file" in capsys.readouterr().err


def test_arrays_go_through_a_pipe_texts_beside_it(
    given: Callable[[bytes], None], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    given(bmcompiler.compile(onnx_model(), target="bm1684").to_bytes())
    Path("net.bmodel").write_bytes(sys.stdin.buffer.read())
    assert command("run", "net.bmodel", "--data", "data.npz", "--limit", "2", "--timing", "-o", "-") == 0
    through = capfdbinary.readouterr()
    assert command("run", "net.bmodel", "--data", "data.npz", "--limit", "2", "-o", "out.npz") == 0
    assert through.out == Path("out.npz").read_bytes()
    assert b"2 steps in" in through.err
    assert command("run", "net.bmodel", "--data", "none.npz", "-o", "-") != 0
    assert b"PK" not in capfdbinary.readouterr().out


def test_a_network_is_calibrated_through_a_pipe(given: Callable[[bytes], None]) -> None:
    given(onnx_model().SerializeToString())
    assert command("calibrate", "-", "--data", "data.npz", "-o", "net.table") == 0
    assert Path("net.table").read_text()


def test_a_network_is_studied_through_a_pipe(
    given: Callable[[bytes], None], capsys: pytest.CaptureFixture[str]
) -> None:
    words = (
        "accuracy",
        "-",
        "--target",
        "bm1684x",
        "--data",
        "data.npz",
        "--html",
        "net.html",
        "--suggest",
        "net.modes",
    )
    given(onnx_model().SerializeToString())
    assert command(*words, "--samples", "1") == 0, capsys.readouterr().err
    assert "<h1>the network <small>accuracy on bm1684x int8" in Path("net.html").read_text()
    given(b"no network")
    assert command(*words) == 1
    assert "the network: is not an ONNX model" in capsys.readouterr().err


@pytest.mark.parametrize("cli", [compile.cli, accuracy.cli])
@pytest.mark.parametrize(("begun", "chips"), [("bm1684", ["bm1684", "bm1684x"]), ("BM1684", ["BM1684", "BM1684X"])])
def test_a_shell_completes_chips(cli: Command, begun: str, chips: list[str]) -> None:
    complete = ShellComplete(cli, {}, "bmnet", "_BMNET_COMPLETE")
    assert [each.value for each in complete.get_completions(["net.onnx", "--target"], begun)] == chips
