"""A network on standard input, a model on standard output; words of a shell."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_files import onnx_model
from click.shell_completion import ShellComplete

from bmcompiler.bmodel import load
from bmcompiler.cli import compile


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


def test_a_shell_completes_chips() -> None:
    complete = ShellComplete(compile.cli, {}, "bmnet-compile", "_BMNET_COMPILE_COMPLETE")
    found = [each.value for each in complete.get_completions(["net.onnx", "--target"], "bm168")]
    assert found == ["bm1684", "bm1684x"]
