"""Transformers of windows in drawn sizes: proven bit by bit, and near ONNX Runtime in every precision."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from window_nets import drawn, model

import bmcompiler
from bmcompiler.runtime import Session

SETTINGS = {
    ("bm1684x", "f16"): 0.01,
    ("bm1684x", "bf16"): 0.05,
    ("bm1684x", "f32"): 1e-5,
    ("bm1684", "f32"): 1e-5,
    ("bm1684x", "int8"): 0.1,
    ("bm1684", "int8"): 0.1,
}
"""Of the norm of what ONNX Runtime computes."""


def _near(seed: int, setting: tuple[str, str]) -> None:
    sizes, (chip, precision), rng = drawn(seed), setting, np.random.default_rng(seed)
    net, x = model(seed, sizes), rng.standard_normal(sizes.shape).astype(np.float32)
    data = {"x": rng.standard_normal((4 * sizes.images, *sizes.shape[1:])).astype(np.float32)}
    (want,) = onnxruntime.InferenceSession(net.SerializeToString()).run(None, {"x": x})
    samples = {"data": data} if precision == "int8" else {}
    result = bmcompiler.compile(net, target=chip, quantize=precision, check="always", **samples)
    (got,) = Session(result.to_bytes()).run({"x": x}).values()
    error = np.linalg.norm(got.astype(np.float32) - want) / np.linalg.norm(want)
    assert error <= SETTINGS[setting], f"{error:.2g} from ONNX Runtime: seed {seed}, {chip} {precision}, {sizes}"


@pytest.mark.parametrize("seed", range(6))
def test_a_transformer_of_windows_is_near_onnx_runtime(seed: int) -> None:
    _near(seed, list(SETTINGS)[seed])


@pytest.mark.sweep
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("seed", range(100, 110))
def test_transformers_of_windows_are_near_onnx_runtime(seed: int, setting: tuple[str, str]) -> None:
    _near(seed, setting)
