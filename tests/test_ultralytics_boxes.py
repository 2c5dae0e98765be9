"""examples/ultralytics_boxes.py, and that its small network means what it draws, on each chip."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

import ultralytics_boxes  # noqa: E402


def test_it_runs_from_any_folder(tmp_path: Path) -> None:
    program = [sys.executable, ROOT / "examples" / "ultralytics_boxes.py"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "class 0 1.00: 32.0, 32.0, 48.0, 48.0\n"


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x", "dv700"])
def test_boxes_are_those_of_the_picture(chip: str, tmp_path: Path) -> None:
    """Two squares of a tall picture, where the letterbox is left and right."""
    drawn = Image.new("RGB", (96, 128), "navy")
    for left, top in ((16, 48), (48, 112)):
        drawn.paste("red", (left, top, left + 16, top + 16))
    drawn.save(tmp_path / "picture.png")
    found = ultralytics_boxes.detect(ultralytics_boxes.small_network(), tmp_path / "picture.png", chip)
    wanted = [[16, 48, 32, 64], [48, 112, 64, 128]]
    assert np.abs(found[found[:, 1].argsort(), :4] - wanted).max() < 0.5


def test_the_best_of_overlapping_boxes_of_a_class_remains() -> None:
    centre, size = [[10, 11, 10, 50], [10, 10, 10, 50]], [[8] * 4, [8] * 4]
    scores = [[0.9, 0.8, 0.1, 0.2], [0.1, 0.1, 0.7, 0.1]]
    found = ultralytics_boxes.boxes(np.array([*centre, *size, *scores]))
    assert found[:, 5].tolist() == [0, 1] and found[:, 4].tolist() == [0.9, 0.7]
