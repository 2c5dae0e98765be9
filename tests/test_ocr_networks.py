"""PP-OCR in int8 on the command simulator: does it still read text? Rendered lines and pages, calibrated on others."""

from __future__ import annotations

import numpy as np
import pytest
from fetched import THIRD_PARTY, third_party
from rendered_text import found, lines, pages

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.runtime import Session

TEST_SEED, CALIBRATION_SEED = 1, 2


def only(outputs: dict[str, np.ndarray]) -> np.ndarray:
    (array,) = outputs.values()
    return array


@pytest.mark.sweep
def test_text_direction_is_told_as_well_as_in_float() -> None:
    """100 lines, half of them upside down: float is right on 99, int8 may miss two more."""
    model = third_party("ppocr_v2_cls.onnx")
    images, turned = lines(THIRD_PARTY, 100, TEST_SEED)
    network = bmcompiler.load_network(model, shapes=[images.shape])
    float_right = int((only(run_module(network, {"x": images})).argmax(axis=1) == turned).sum())
    assert float_right >= 98
    calibration, _ = lines(THIRD_PARTY, 16, CALIBRATION_SEED)
    shape = [[1, *images.shape[1:]]]
    session = Session(bmcompiler.compile(model, target="bm1880", data={"x": calibration}, shapes=[shape]).model)
    scores = np.concatenate([only(session.run({"x": image[None]})).reshape(1, 2) for image in images])
    assert (scores.argmax(axis=1) == turned).sum() >= float_right - 2


@pytest.mark.sweep
def test_text_lines_are_found() -> None:
    """12 pages of 7 lines; the float network finds all 84."""
    model = third_party("ppocr_v4_det.onnx")
    calibration = np.concatenate([page for page, _ in pages(THIRD_PARTY, 4, CALIBRATION_SEED)])
    shape = [[1, *calibration.shape[1:]]]
    session = Session(bmcompiler.compile(model, target="bm1880", data={"x": calibration}, shapes=[shape]).model)
    hits = [found(only(session.run({"x": page}))[0, 0], boxes) for page, boxes in pages(THIRD_PARTY, 12, TEST_SEED)]
    assert sum(hits) >= 80
