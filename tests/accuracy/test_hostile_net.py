"""A net that int8 used to ruin: spread channels, dead channels, boxes and scores in one output."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hostile_net import RESNET8, hostile_net

SAMPLES = np.load(RESNET8.parents[1] / "digits.npz")["test"][:20].astype(np.float32) / 255


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
