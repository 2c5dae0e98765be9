"""Whole networks on BM1684 in f32: close to the outside references, and the chip's bits on the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from networks import QUICK, assert_chip_equals_evaluate, assert_on_chip, cases, compiled, files, samples

CLOSE = 1e-4


def reference(name: str, inputs: np.ndarray) -> list[np.ndarray]:
    """What ONNX Runtime or OpenCV computes."""
    model, weights = files(name)
    if weights is None:
        onnxruntime = pytest.importorskip("onnxruntime")
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        feed = session.get_inputs()[0]
        step = feed.shape[0] if isinstance(feed.shape[0], int) else len(inputs)  # some nets fix their batch
        parts = [session.run(None, {feed.name: inputs[i : i + step]}) for i in range(0, len(inputs), step)]
        return [np.concatenate(arrays) for arrays in zip(*parts)]
    cv2 = pytest.importorskip("cv2")
    net = cv2.dnn.readNetFromCaffe(str(model), str(weights))
    net.setInput(inputs)
    return [net.forward()]


@pytest.mark.parametrize(("name", "batch"), cases(QUICK, ("light_resnet50",)))
def test_f32_networks_are_close_to_the_references(name: str, batch: int) -> None:
    data = samples(name, batch)
    result = compiled(name, batch)
    assert_on_chip(name, result)
    (input_name,) = result.module.main.input_names
    found = assert_chip_equals_evaluate(result, {input_name: data})
    if name == "res10_ssd_face":  # OpenCV orders and pads detections in its own way: tests/test_face_detector.py
        return
    for ours, theirs in zip(found.values(), reference(name, data), strict=True):
        np.testing.assert_allclose(ours.reshape(theirs.shape), theirs, rtol=CLOSE, atol=CLOSE * np.abs(theirs).max())
