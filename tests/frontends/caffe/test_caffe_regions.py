"""Two-stage detectors: Proposal, ROIPooling and PSROIPooling against Caffe's loops, and OpenCV where it agrees."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from caffe_nets import header, layer, load, opencv, random, run

from bmcompiler.errors import BMError, RuntimeUseError

ROIS = np.array(
    [[0, 3, 5, 60, 40], [1, 0, 0, 95, 79], [1, 50, 60, 20, 10], [0, 90, 70, 200, 300], [0, 16.5, 9.4, 17, 10]],
    np.float32,
)


def pooled(folder: Path, kind: str, params: str, x: np.ndarray, rois: np.ndarray = ROIS) -> np.ndarray:
    text = header(x.shape, "x") + header(rois.shape, "rois") + layer(kind, params, "out0", "x rois", "out0")
    return run(load(folder, text), {"x": x, "rois": rois})[0]


def c_round(value: float) -> float:
    return math.copysign(math.floor(abs(value) + 0.5), value)


def bins(start: float, size: float, count: int, limit: int, whole: bool) -> list[tuple[int, int]]:
    """[begin, end) of each bin; a whole start is added after rounding."""
    step = np.float32(size) / np.float32(count)
    inner, outer = (0, start) if whole else (np.float32(start), 0)
    ranges = [(math.floor(i * step + inner) + outer, math.ceil((i + 1) * step + inner) + outer) for i in range(count)]
    return [(int(min(max(low, 0), limit)), int(min(max(high, 0), limit))) for low, high in ranges]


def test_roi_pooling_as_fast_rcnn(tmp_path: Path) -> None:
    x = random((2, 3, 10, 12))
    found = pooled(tmp_path, "ROIPooling", "roi_pooling_param { pooled_h: 3 pooled_w: 4 spatial_scale: 0.125 }", x)
    expected = np.zeros((5, 3, 3, 4), np.float32)
    for roi, out in zip(ROIS, expected):
        x0, y0, x1, y1 = (c_round(v * 0.125) for v in roi[1:])
        for i, (top, bottom) in enumerate(bins(y0, max(y1 - y0 + 1, 1), 3, 10, True)):
            for j, (left, right) in enumerate(bins(x0, max(x1 - x0 + 1, 1), 4, 12, True)):
                part = x[int(roi[0]), :, top:bottom, left:right]
                out[:, i, j] = part.max(axis=(1, 2)) if part.size else 0
    np.testing.assert_array_equal(found, expected)


def test_roi_pooling_equals_opencv_inside_the_image(tmp_path: Path) -> None:
    pytest.importorskip("cv2")
    x, rois = random((1, 3, 10, 12)), np.array([[0, 3, 5, 60, 41], [0, 0, 0, 88, 72], [0, 17, 9, 47, 71]], np.float32)
    params = "roi_pooling_param { pooled_h: 3 pooled_w: 4 spatial_scale: 0.125 }"
    text = header(x.shape, "x") + header(rois.shape, "rois") + layer("ROIPooling", params, "out0", "x rois", "out0")
    (reference,) = opencv(text, {}, {"x": x, "rois": rois})
    np.testing.assert_array_equal(pooled(tmp_path, "ROIPooling", params, x, rois), reference)


def test_position_sensitive_pooling_as_rfcn(tmp_path: Path) -> None:
    x = random((2, 18, 10, 12))
    params = "psroi_pooling_param { output_dim: 2 group_size: 3 spatial_scale: 0.125 }"
    found = pooled(tmp_path, "PSROIPooling", params, x)
    expected = np.zeros((5, 2, 3, 3), np.float32)
    for roi, out in zip(ROIS, expected):
        x0, y0 = (c_round(v) * 0.125 for v in roi[1:3])
        x1, y1 = ((c_round(v) + 1) * 0.125 for v in roi[3:])
        for i, (top, bottom) in enumerate(bins(y0, max(y1 - y0, 0.1), 3, 10, False)):
            for j, (left, right) in enumerate(bins(x0, max(x1 - x0, 0.1), 3, 12, False)):
                part = x[int(roi[0]), i * 3 + j :: 9, top:bottom, left:right]
                out[:, i, j] = part.mean(axis=(1, 2)) if part.size else 0
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_region_of_an_image_that_is_not_there(tmp_path: Path) -> None:
    rois = np.array([[2, 0, 0, 5, 5]], np.float32)
    with pytest.raises(RuntimeUseError, match="names image 2 of 2"):
        pooled(tmp_path, "ROIPooling", "roi_pooling_param { pooled_h: 1 pooled_w: 1 }", random((2, 1, 4, 4)), rois)


# -- proposals --------------------------------------------------------------------------------------------------------
def proposals(scores: np.ndarray, deltas: np.ndarray, image: np.ndarray) -> list[tuple[float, list[float]]]:
    """Faster R-CNN's steps one box at a time: ratios 0.5 and 1, scales 2 and 4, min_size 20, best 60, then best 12."""
    anchors = []
    for width, height in ((23, 12), (16, 16)):  # round(sqrt(256 / ratio)), round(that * ratio)
        for scale in (2, 4):
            half_w, half_h = (width * scale - 1) / 2, (height * scale - 1) / 2
            anchors.append((7.5 - half_w, 7.5 - half_h, 7.5 + half_w, 7.5 + half_h))
    high, wide, scale = image[0]
    boxes = []
    for y, x, k in np.ndindex(*scores.shape[2:], 4):
        left, top, right, bottom = (a + 16 * s for a, s in zip(anchors[k], (x, y, x, y)))
        w, h = right - left + 1, bottom - top + 1
        dx, dy, dw, dh = deltas[0, 4 * k : 4 * k + 4, y, x].astype(float)
        mx, my, w, h = left + w / 2 + dx * w, top + h / 2 + dy * h, w * math.exp(dw), h * math.exp(dh)
        box = [mx - w / 2, my - h / 2, mx + w / 2, my + h / 2]
        box = [min(max(v, 0), limit - 1) for v, limit in zip(box, (wide, high, wide, high))]
        if min(box[2] - box[0], box[3] - box[1]) + 1 >= 20 * scale:
            boxes.append((float(scores[0, 4 + k, y, x]), box))
    kept: list[tuple[float, list[float]]] = []
    for score, box in sorted(boxes, key=lambda pair: -pair[0])[:60]:
        if all(pixel_overlap(box, other) <= 0.6 for _, other in kept):
            kept.append((score, box))
    return kept[:12]


def pixel_overlap(a: list[float], b: list[float]) -> float:
    w = max(min(a[2], b[2]) - max(a[0], b[0]) + 1, 0)
    h = max(min(a[3], b[3]) - max(a[1], b[1]) + 1, 0)
    area = sum((box[2] - box[0] + 1) * (box[3] - box[1] + 1) for box in (a, b))
    return w * h / (area - w * h)


def proposal_net(tops: str, params: str = "") -> str:
    text = header((1, 8, 5, 6), "scores") + header((1, 16, 5, 6), "deltas") + header((1, 3), "image")
    params += " ratio: 0.5 ratio: 1 scale: 2 scale: 4 min_size: 20 pre_nms_topn: 60 nms_thresh: 0.6"
    return text + layer("Proposal", f"proposal_param {{ {params} }}", "l", "scores deltas image", tops)


@pytest.mark.parametrize("spread", [0.3, 0.01])
def test_proposals_as_faster_rcnn(spread: float, tmp_path: Path) -> None:
    inputs = {
        "scores": random((1, 8, 5, 6), 1, 0, 1),
        "deltas": random((1, 16, 5, 6), 2, -spread, spread),
        "image": np.array([[80, 96, 1.2]], np.float32),
    }
    rois, scores = run(load(tmp_path, proposal_net("rois scores_out", "post_nms_topn: 12")), inputs)
    expected = proposals(*inputs.values())
    assert rois.shape == (12, 5) and scores.shape == (12,)
    np.testing.assert_allclose(rois[: len(expected), 1:], [box for _, box in expected], atol=1e-3)
    np.testing.assert_allclose(scores[: len(expected)], [score for score, _ in expected], rtol=1e-6)
    assert not rois[len(expected) :].any() and not scores[len(expected) :].any()


def test_proposals_need_not_give_their_scores(tmp_path: Path) -> None:
    module = load(tmp_path, proposal_net("rois"))
    assert [value.shape for value in module.main.returned] == [(300, 5)]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("post_nms_topn: 0", "needs counts of 1 to 1048576"),
        ("scale: -1", "must be positive"),
        ("ratio: 3", "do not fit 24 / 4 anchors"),
        ("post_nms_topn: 99999999", "needs counts of 1 to 1048576"),
    ],
)
def test_bad_proposal_settings_are_named(params: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BMError, match=rf"layer 'l' .Proposal.: .*({message})"):
        load(tmp_path, proposal_net("rois", params))


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        ("ROIPooling", "", "cannot pool 5 regions into .0, 0. bins"),
        ("ROIPooling", "roi_pooling_param { pooled_h: 65536 pooled_w: 65536 }", "cannot pool"),
        ("ROIPooling", "roi_pooling_param { pooled_h: 2 pooled_w: 2 spatial_scale: 0 }", "must be positive"),
        (
            "PSROIPooling",
            "psroi_pooling_param { output_dim: 2 group_size: 2 spatial_scale: 1 }",
            "3 channels are not 2",
        ),
    ],
)
def test_bad_pooling_settings_are_named(kind: str, params: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BMError, match=rf"layer 'out0' .{kind}.: .*{message}"):
        pooled(tmp_path, kind, params, random((1, 3, 4, 4)))
