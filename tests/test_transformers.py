"""Transformers against ONNX Runtime, in float and in int8."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import bmcompiler
from bmcompiler.runtime import Session

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models"))
from transformers import NETS, samples, transformer

CHIP = "bm1684x"
CLOSE = {"f32": 1e-4, "f16": 1e-2, "bf16": 6e-2}
"""How far the chip may be from float, over the largest value."""


def reference(path: Path, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What ONNX Runtime makes of the samples, one after the other."""
    session = pytest.importorskip("onnxruntime").InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    count = len(next(iter(data.values())))
    steps = [session.run(None, {key: value[i : i + 1] for key, value in data.items()}) for i in range(count)]
    return dict(zip(names, map(np.concatenate, zip(*steps))))


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    x, y = (array.astype(np.float64).ravel() for array in (a, b))
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


@pytest.mark.parametrize("name", NETS)
def test_they_are_right_in_float(name: str, tmp_path: Path) -> None:
    path, data = transformer(name, tmp_path), samples(name, 4)
    result = bmcompiler.compile(path, target="bm1684", quantize="f32")
    found = Session(result.model).run(data)
    for output, wanted in reference(path, data).items():
        assert np.abs(found[output].reshape(wanted.shape) - wanted).max() < 1e-4 * np.abs(wanted).max()
    assert {row.kind for row in result.rows if row.where == "cpu"} <= {"cast", "gather"}, "its gather takes constants"


@pytest.mark.parametrize("dtype", ["f32", "f16", pytest.param("bf16", marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", NETS)
def test_they_run_wholly_on_the_bm1684x(name: str, dtype: str, tmp_path: Path) -> None:
    path, data = transformer(name, tmp_path), samples(name, 2)
    result = bmcompiler.compile(path, target=CHIP, quantize=dtype)
    assert {row.where for row in result.rows} <= {CHIP, "view"}
    found = Session(result.model).run(data)
    for output, wanted in reference(path, data).items():
        assert np.abs(found[output].reshape(wanted.shape) - wanted).max() < CLOSE[dtype] * np.abs(wanted).max()


@pytest.mark.parametrize("chip", ["bm1684", pytest.param(CHIP, marks=pytest.mark.sweep)])
@pytest.mark.parametrize(
    "name", ["bert_tiny", *(pytest.param(name, marks=pytest.mark.sweep) for name in NETS if name != "bert_tiny")]
)
def test_they_keep_their_answers_in_int8(name: str, chip: str, tmp_path: Path) -> None:
    """Cosine of at least 0.99 with float on samples that calibration has not seen."""
    path, data = transformer(name, tmp_path), samples(name, 16, seed=1)
    result = bmcompiler.compile(path, target=chip, quantize="int8", data=samples(name, 32))
    assert chip != CHIP or {row.where for row in result.rows} <= {CHIP, "view"}
    found = Session(result.model).run(data)
    for output, wanted in reference(path, data).items():
        assert cosine(found[output], wanted) >= 0.99
