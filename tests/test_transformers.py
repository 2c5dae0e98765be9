"""Transformers against ONNX Runtime, in float and in int8."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.runtime import Session
from bmcompiler.target import find_target

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


@pytest.mark.parametrize("dtype", ["f16", pytest.param("bf16", marks=pytest.mark.sweep)])
def test_scores_of_long_sequences_stay_in_local_memory(dtype: str, tmp_path: Path) -> None:
    """They take 16 MiB, all of local memory, and a quarter of that is more than all else that an attention reads."""
    result = bmcompiler.compile(transformer("bert_1024", tmp_path), target=CHIP, quantize=dtype)
    assert {row.where for row in result.rows} <= {CHIP, "view"}
    softmax = next(i for i, row in enumerate(result.rows) if row.kind == "softmax")
    rows = result.rows[softmax - 3 : softmax + 3]
    assert sum(row.loaded + row.stored - row.weights for row in rows) <= 1 << 22


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["f16", "bf16", "int8"])
def test_long_sequences_are_right(dtype: str, tmp_path: Path) -> None:
    path, data = transformer("bert_1024", tmp_path), samples("bert_1024", 1, seed=1)
    given = {"data": samples("bert_1024", 2)} if dtype == "int8" else {}
    result = bmcompiler.compile(path, target=CHIP, quantize=dtype, **given)
    found = Session(result.model).run(data, raw=True)
    inputs = {name: array.astype(np.int32) for name, array in data.items()}
    wanted = run_module(result.module, inputs, target=find_target(CHIP))
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
    for output, real in reference(path, data).items():
        assert cosine(found[output], real) >= 0.99


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
