"""Samples and judges of the tasks of trained networks, and large networks by them, as `make tasks` asks quick ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fetched import third_party

pytest.importorskip("PIL", reason="samples are drawn with Pillow")
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

from tasks import detections, material, reading, table  # noqa: E402
from tasks.networks import NETWORKS  # noqa: E402

LARGE = ("ppocr_v4_det", "ppocr_v4_rec", "res10_ssd_face", "centerface", "yolox_chars")
BOX = (10.0, 10.0, 30.0, 20.0)


@pytest.fixture
def sources() -> None:
    """What samples are made of has been fetched."""
    photos = [name for names in material.PHOTOS.values() for name in names]
    for name in (*photos, *material.FONTS, "lfw_subset.npy"):
        third_party(name)


@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize("name", NETWORKS)
def test_samples_are_of_the_network_the_same_each_time_and_of_one_split(name: str) -> None:
    net = NETWORKS[name]
    (data,) = net.calibration(4).values()
    assert data.shape == (4, *net.shape[1:]) and data.dtype == np.float32
    assert np.array_equal(data, net.calibration(4)[net.input])
    tested = np.concatenate([net.sample(name, material.METRIC, k)[0] for k in range(4)])
    assert len({sample.tobytes() for sample in (*data, *tested)}) == 8


@pytest.mark.parametrize("parts", [material.WORDS, material.PHOTOS], ids=["words", "photos"])
def test_the_splits_share_nothing(parts: dict[str, tuple[str, ...]]) -> None:
    assert not set(parts[material.CALIBRATION]) & set(parts[material.METRIC])


@pytest.mark.usefixtures("sources")
def test_a_split_has_its_own_faces(monkeypatch: pytest.MonkeyPatch) -> None:
    numbered = np.broadcast_to(np.arange(200.0)[:, None, None], (200, 25, 25))
    monkeypatch.setattr(material, "_patches", lambda: numbered)
    seen: dict[str, set[int]] = {split: set() for split in (material.CALIBRATION, material.METRIC)}
    for split, numbers in seen.items():
        for k in range(400):
            r = _Plain(material.draws("faces", split, k))
            numbers.add(int(material.patch(r, split, bool(k % 2), 25)[0, 0, 0]))
    calibration, metric = seen.values()
    assert len(calibration) > 80 and len(metric) > 80 and not calibration & metric


class _Plain:
    """A generator that leaves the light as it is."""

    def __init__(self, r: Any) -> None:
        self.randint = r.randint

    def uniform(self, low: float, high: float) -> float:
        return 1.0


@pytest.mark.parametrize(
    ("found", "counts"),
    [
        ([], (0, 1)),
        ([BOX], (2, 2)),
        ([BOX, BOX], (2, 3)),
        ([(12.0, 10.0, 32.0, 20.0)], (2, 2)),
        ([(22.0, 10.0, 42.0, 20.0)], (0, 2)),
    ],
    ids=["none", "itself", "twice", "near", "aside"],
)
def test_a_true_box_is_found_once(found: list[detections.Box], counts: tuple[int, int]) -> None:
    assert detections.f1(found, [BOX]) == counts


def test_the_best_box_of_an_object_is_kept() -> None:
    middles, sizes = np.array([[20.0, 15], [21, 15], [60, 15], [90, 15]]), np.full((4, 2), 10.0)
    kept = detections.best(middles, sizes, np.array([0.6, 0.9, 0.7, 0.2]), 0.5)
    assert [box[0] for box in kept] == [16.0, 55.0]


@pytest.mark.parametrize(
    ("read", "right"), [("carpet", 6), ("carpt", 5), ("caarpet", 5), ("carbet", 5), ("", 0), ("xyzxyzxyzxyz", -6)]
)
def test_characters_count_less_those_to_change(read: str, right: int) -> None:
    assert reading.unchanged(list(read), "carpet") == (right, 6)


def test_repeats_and_blanks_are_not_read() -> None:
    scores = np.eye(4)[[0, 1, 1, 0, 1, 2, 3, 2]]
    assert reading.characters(scores, ("", "a", "b", "")) == ["a", "a", "b", "b"]


def test_blobs_are_joined_by_corners_and_from_two_sides() -> None:
    rows = ["#..#.#", ".#.#.#", "..##.#", "......", "#.....", ".#...."]
    found = reading.blobs(np.array([[letter == "#" for letter in row] for row in rows]))
    assert sorted(int((blob[:, 2] - blob[:, 1]).sum()) for blob in found) == [2, 3, 6]


def test_a_line_is_found_by_most_of_its_width_and_a_blob_elsewhere_is_false() -> None:
    heat, truth = np.zeros((60, 100)), [(10.0, 10.0, 60.0, 20.0)]
    assert reading.lines(heat, truth) == (0, 1)
    heat[12:18, 10:30] = 1
    assert reading.lines(heat, truth) == (0, 1)
    heat[12:18, 35:55] = 1
    assert reading.lines(heat, truth) == (2, 2)
    heat[40:50, 70:80] = 1
    assert reading.lines(heat, truth) == (2, 3)


def test_the_page_has_a_row_for_each_network_and_keeps_what_is_written(tmp_path: Path) -> None:
    assert list(table.kept()) == list(NETWORKS) and all(set(row) <= set(table.CHIPS) for row in table.kept().values())
    page = tmp_path / "page.md"
    page.write_text(table.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    scores = {"bm1684": 91.0, "bm1684x": 92.0, "bm1880": 93.0}
    table.write({"lenet": table.Row(94.0, None, scores, (0.5, 1.0))}, page)
    assert table.kept(page) == {**table.kept(), "lenet": scores}


def test_what_the_page_has_no_score_of_is_held_by_float32_alone() -> None:
    assert table.complaints("lenet", "bm1684", 99.6, 100, None) == []
    assert len(table.complaints("lenet", "bm1684", 99.4, 100, None)) == 1


def test_scores_that_are_too_low_are_said() -> None:
    assert table.complaints("lenet", "bm1684", 99.6, 100, 99.8) == []
    (said,) = table.complaints("lenet", "bm1684", 99.4, 100, 99.5)
    assert "more than 0.5 points below float32, 100.0" in said
    (said,) = table.complaints("lenet", "bm1880", 99.4, 100, 99.8)
    assert "more than 0.3 points below accuracy.md, 99.8" in said


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize("chip", table.CHIPS)
@pytest.mark.parametrize("name", LARGE)
def test_int8_keeps_the_task_of_a_large_network(name: str, chip: str) -> None:
    pytest.importorskip("onnxruntime")
    for path in NETWORKS[name].files:
        third_party(path.name)
    command = [sys.executable, str(BENCHMARKS / "check_tasks.py"), chip, "--nets", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
