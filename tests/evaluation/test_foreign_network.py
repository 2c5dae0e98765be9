"""A float network beside a model has the inputs and outputs of that model, or is refused with both names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bmcompiler
from bmcompiler.cli import common, evaluate
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder


def _saved(path: Path, name: str, output: str) -> Path:
    b = Builder.new("net")
    module = b.outputs([b.relu(b.input(name, TensorType((1, 8))))], [output])
    bmcompiler.compile_module(module, target="bm1684", output=path.with_suffix(".bmodel"), save_ir=path, check="never")
    return path


CASES = [("y", "out", "inputs are y"), ("x", "other", "outputs are other")]


@pytest.mark.parametrize(("name", "output", "words"), CASES)
def test_it_is_refused(name: str, output: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _saved(tmp_path / "own.mlir", "x", "out")
    other = _saved(tmp_path / "other.mlir", name, output)
    np.savez(tmp_path / "data.npz", x=np.ones((2, 8), np.float32) * np.arange(8, dtype=np.float32))
    given = [
        str(tmp_path / "own.bmodel"),
        "--data",
        str(tmp_path / "data.npz"),
        "--float",
        str(other),
        "--metric",
        "cosine",
    ]
    assert common.run(evaluate.cli, "bmnet-eval", given) in {1, 2}
    shown = capsys.readouterr().err
    assert words in shown and "the network that was compiled" in shown
