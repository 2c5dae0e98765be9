"""Transformer encoders against ONNX Runtime, in float on the chip, and in int8 against float."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.runtime import Session

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models"))
from transformers import NETS, samples, transformer


@pytest.mark.parametrize("name", NETS)
def test_encoders_are_right_in_float(name: str, tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime")
    path, data = transformer(name, tmp_path), samples(name, 4)
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    wanted = np.concatenate(
        [session.run(None, {key: value[i : i + 1] for key, value in data.items()})[0] for i in range(4)]
    )
    result = bmcompiler.compile(path, target="bm1684", quantize="f32")
    (found,) = Session(result.model).run(data).values()
    assert np.abs(found.reshape(wanted.shape) - wanted).max() < 1e-4 * np.abs(wanted).max()
    assert {row.kind for row in result.rows if row.where == "cpu"} <= {"cast", "gather"}, "ids are 64-bit integers"


@pytest.mark.parametrize("name", NETS)
def test_encoders_keep_their_answers_in_int8(name: str, tmp_path: Path) -> None:
    """Cosine of at least 0.99 with float on samples that calibration has not seen."""
    path, data = transformer(name, tmp_path), samples(name, 16, seed=1)
    result = bmcompiler.compile(path, target="bm1684", quantize="int8", data=samples(name, 32))
    (found,) = Session(result.model).run(data).values()
    network = bmcompiler.load_network(path)
    steps = [{key: value[i : i + 1] for key, value in data.items()} for i in range(16)]
    wanted = np.concatenate([only for step in steps for only in run_module(network, step).values()])
    a, b = (array.astype(np.float64).ravel() for array in (found, wanted))
    assert a @ b >= 0.99 * np.sqrt((a @ a) * (b @ b))
