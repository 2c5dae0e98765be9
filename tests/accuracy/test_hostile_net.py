"""A net that int8 used to ruin: spread channels, dead channels, boxes and scores in one output."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hostile_net import CLASSES, RESNET8, hostile_net

import bmcompiler
from bmcompiler.runtime import Session

DIGITS = RESNET8.parents[1] / "digits.npz"
SAMPLES = np.load(DIGITS)["test"][:20].astype(np.float32) / 255


def test_it_is_resnet8_in_float(tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime")
    found, wanted = (
        np.concatenate([session.run(None, {"x": each[None]})[0] for each in SAMPLES])
        for path in (hostile_net(tmp_path / "net.onnx"), RESNET8)
        for session in [ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])]
    )
    shares = np.exp(wanted - wanted.max(axis=1, keepdims=True))
    np.testing.assert_allclose(found[:, 10:], shares / shares.sum(axis=1, keepdims=True), atol=1e-4)
    np.testing.assert_allclose(found[:, :10], 320 / (1 + np.exp(-wanted)), rtol=1e-3, atol=0.1)


@pytest.mark.parametrize("chip", ["bm1684", "bm1880"])
def test_digits_and_scores_are_those_of_float(chip: str, tmp_path: Path) -> None:
    """Top-1 within a point on 200 digits; scores are off by less than 0.01, boxes by less than 2 % of their range."""
    stored = np.load(DIGITS)
    calibration, images = (stored[key].astype(np.float32) / 255 for key in ("calib", "test"))
    images, labels = images[:200], stored["labels"][:200]
    path = hostile_net(tmp_path / "net.onnx")
    result = bmcompiler.compile(path, target=chip, quantize="int8", data={"x": calibration[:64]})
    (found,) = Session(result.model).run({"x": images}).values()
    found = found.reshape(len(images), 2 * CLASSES)
    ort = pytest.importorskip("onnxruntime")
    exact = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    wanted = np.concatenate([exact.run(None, {"x": image[None]})[0] for image in images])

    def right(outputs: np.ndarray) -> float:
        return float((outputs[:, CLASSES:].argmax(axis=1) == labels).mean())

    assert right(found) >= right(wanted) - 0.01
    assert np.abs(found - wanted)[:, CLASSES:].mean() < 0.01
    assert np.abs(found - wanted)[:, :CLASSES].mean() < 0.02 * 320
