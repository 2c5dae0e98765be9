"""The SSD face detector on BM1880: int8 finds the faces that float finds, and both executions give the same bytes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from fetched import third_party

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.numeric.arith import quantize_real
from bmcompiler.runtime import Session

cv2 = pytest.importorskip("cv2")
pytestmark = pytest.mark.sweep
FACES = {"astronaut.png": 1, "res10_ssd_face_photo1.jpg": 5, "res10_ssd_face_photo2.jpg": 2}
MEAN = (104, 177, 123)


def as_input(image: np.ndarray) -> np.ndarray:
    blob: np.ndarray = cv2.dnn.blobFromImage(np.ascontiguousarray(image), 1.0, (300, 300), MEAN)
    return blob


def photos() -> dict[str, np.ndarray]:
    return {name: cv2.imread(str(third_party(name))) for name in FACES}


def calibration() -> np.ndarray:
    """The photos and four overlapping crops of each."""
    samples = []
    for image in photos().values():
        height, width = image.shape[:2]
        samples.append(as_input(image))
        for top in (0, height // 4):
            for left in (0, width // 4):
                samples.append(as_input(image[top : top + 3 * height // 4, left : left + 3 * width // 4]))
    return np.concatenate(samples)


@cache
def compiled() -> tuple[Any, Any, Session]:
    """(float module, compilation, session)."""
    files = third_party("res10_ssd_face.prototxt"), third_party("res10_ssd_face.caffemodel")
    result = bmcompiler.compile(*files, target="bm1880", data={"data": calibration()})
    return bmcompiler.load_network(*files), result, Session(result.model)


def faces(rows: np.ndarray) -> np.ndarray:
    """Boxes of the detections above 0.5."""
    found = rows.reshape(-1, 7)
    boxes: np.ndarray = found[(found[:, 0] >= 0) & (found[:, 2] > 0.5), 3:]
    return boxes


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    common = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0).prod()
    return float(common / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - common))


@pytest.mark.parametrize("name", FACES)
def test_int8_finds_the_faces_that_float_finds(name: str) -> None:
    network, result, session = compiled()
    image = as_input(photos()[name])
    (argument,) = result.module.main.arguments
    device = {"data": quantize_real(image, argument.type.quant.threshold)}
    found = session.run(device, raw=True)["detection_out"]
    assert found.tobytes() == run_module(result.module, device)["detection_out"].tobytes()
    expected = faces(run_module(network, {"data": image})["detection_out"])
    boxes = faces(found)
    assert len(expected) == len(boxes) == FACES[name]
    assert all(max(overlap(box, other) for other in boxes) > 0.7 for box in expected)


def test_the_summary_says_what_runs_on_the_cpu_and_why() -> None:
    _, result, _ = compiled()
    reasons = {row.kind: row.reason for row in result.rows if row.where == "cpu"}
    assert {"l2_normalize", "softmax", "detection_output"} == set(reasons) - {"quantize", "dequantize"}
    assert reasons["detection_output"] == "'detection_output' has no int8 form"
    assert sum(row.macs for row in result.rows if row.where == "bm1880") > 1e9
