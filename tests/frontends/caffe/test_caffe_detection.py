"""PriorBox and DetectionOutput against OpenCV, and against Caffe's loops where OpenCV does something else."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from caffe_nets import header, layer, load, opencv, random, run

from bmcompiler.errors import BMError

PRIORS, CLASSES = 30, 4
CELLS, IMAGE = (1, 3, 5, 6), (1, 3, 60, 70)
VARIANCES = "variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2"


def priors(params: str) -> str:
    text = header(CELLS, "cells") + header(IMAGE, "image")
    return text + layer("PriorBox", f"prior_box_param {{ {params} }}", "out0", "cells image", "out0")


@pytest.mark.parametrize(
    "params",
    [
        "min_size: 30 clip: false variance: 0.1",
        f"min_size: 30 max_size: 60 aspect_ratio: 2 aspect_ratio: 3 flip: true clip: true {VARIANCES}",
        f"min_size: 30.5 min_size: 20 aspect_ratio: 2 flip: false step: 8 offset: 0.3 clip: false {VARIANCES}",
        f"min_size: 30 min_size: 9 max_size: 50 max_size: 44 step_h: 8 step_w: 7 clip: false {VARIANCES}",
        f"min_size: 30 aspect_ratio: 1 aspect_ratio: 2 aspect_ratio: 2 clip: false {VARIANCES}",
    ],
)
def test_prior_boxes_equal_opencv(params: str, tmp_path: Path) -> None:
    text, inputs = priors(params), {"cells": random(CELLS), "image": random(IMAGE)}
    module = load(tmp_path, text)
    assert [op.short_name for op in module.main.ops] == ["weight", "return"]
    (mine,) = run(module, inputs)
    (reference,) = opencv(text, {}, inputs)
    np.testing.assert_allclose(mine, reference, atol=1e-6)


def test_prior_boxes_of_a_stated_image_size(tmp_path: Path) -> None:
    (y,) = run(
        load(tmp_path, priors("min_size: 20 img_h: 50 img_w: 120")), {"cells": random(CELLS), "image": random(IMAGE)}
    )
    assert y.shape == (1, 2, 5 * 6 * 4)
    # the first cell of 10 x 20 pixels has its middle at (10, 5)
    np.testing.assert_allclose(y[0, 0, :4], [0, -5 / 50, 20 / 120, 15 / 50], atol=1e-7)
    np.testing.assert_allclose(y[0, 1], 0.1)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("", "needs one or more min_size"),
        ("min_size: -3", "needs one or more min_size"),
        ("min_size: nan", "needs one or more min_size"),
        ("min_size: 3 max_size: 2", "must be larger than min_size"),
        ("min_size: 3 max_size: 5 max_size: 6", "has 1 min_size and 2 max_size"),
        ("min_size: 3 aspect_ratio: 0", "aspect ratios must be positive"),
        ("min_size: 3 variance: 0.1 variance: 0.1", "needs 1 or 4 positive variances"),
        ("min_size: 3 step: 3 step_h: 3", "states its step both"),
        ("min_size: 3 step: -3", "must be positive"),
        ("min_size: 3 img_size: 3 img_h: 3", "states its image size both"),
    ],
)
def test_bad_prior_settings_are_named(params: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BMError, match=rf"layer 'out0' .PriorBox.: .*{message}"):
        load(tmp_path, priors(params))


# -- detections -------------------------------------------------------------------------------------------------------
def detections(share: bool, images: int, params: str, encoded: bool = False) -> tuple[str, dict[str, np.ndarray]]:
    """Text and inputs of a net that is one DetectionOutput on random predictions."""
    sets = 1 if share else CLASSES
    rng = np.random.default_rng(images)
    middle, size = rng.uniform(0.2, 0.8, (PRIORS, 2)), rng.uniform(0.1, 0.4, (PRIORS, 2))
    boxes = np.concatenate([middle - size / 2, middle + size / 2], axis=1).ravel()
    table = np.stack([boxes, np.tile([0.1, 0.1, 0.2, 0.2], PRIORS)])[None, : 1 if encoded else 2]
    inputs = {
        "loc": rng.standard_normal((images, PRIORS * sets * 4)) * (0.15 if encoded else 1),
        "conf": rng.uniform(0, 1, (images, PRIORS * CLASSES)),
        "prior": table,
    }
    text = "".join(header(array.shape, name) for name, array in inputs.items())
    params += f" num_classes: {CLASSES} share_location: {str(share).lower()}"
    params += f" variance_encoded_in_target: {str(encoded).lower()}"
    text += layer("DetectionOutput", f"detection_output_param {{ {params} }}", "out0", "loc conf prior", "out0")
    return text, {name: array.astype(np.float32) for name, array in inputs.items()}


def ordered(rows: np.ndarray) -> np.ndarray:
    """Rows by image, class, descending score."""
    return rows[np.lexsort((-rows[:, 2], rows[:, 1], rows[:, 0]))]


SELECTIONS = (
    "keep_top_k: 20 nms_param { nms_threshold: 0.45 top_k: 15 }",
    "keep_top_k: 200 confidence_threshold: 0.2 nms_param { nms_threshold: 0.6 top_k: 400 }",
)


@pytest.mark.parametrize("params", SELECTIONS)
@pytest.mark.parametrize(("share", "encoded", "images"), [*product([True, False], [True, False], [1, 2])])
@pytest.mark.parametrize("background", [0, 2])
@pytest.mark.parametrize("code", ["CORNER", "CENTER_SIZE"])
def test_detections_equal_opencv(
    code: str, background: int, share: bool, encoded: bool, images: int, params: str, tmp_path: Path
) -> None:
    text, inputs = detections(share, images, f"code_type: {code} background_label_id: {background} {params}", encoded)
    (mine,) = run(load(tmp_path, text), inputs)
    reference = opencv(text, {}, inputs)[0].reshape(-1, 7)
    rows = mine[0, 0][mine[0, 0, :, 0] >= 0]
    np.testing.assert_array_equal(rows, ordered(rows))
    np.testing.assert_allclose(rows, ordered(reference[reference[:, 2] > 0]), atol=1e-5)


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    common = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0).prod()
    return float(common / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - common))


def caffe_loops(loc: np.ndarray, conf: np.ndarray, prior: np.ndarray, eta: float) -> np.ndarray:
    """CORNER_SIZE, all classes, threshold 0.8, top_k 25, keep_top_k 40, one image."""
    boxes, variances = prior.reshape(2, PRIORS, 4)
    size = np.tile(boxes[:, 2:] - boxes[:, :2], 2)
    decoded = boxes + variances * loc.reshape(PRIORS, 4) * size
    rows = []
    for label, scores in enumerate(conf.reshape(PRIORS, CLASSES).T):
        kept: list[int] = []
        threshold = 0.8
        for index in np.argsort(-scores, kind="stable")[:25]:
            if all(overlap(decoded[index], decoded[k]) <= threshold for k in kept):
                kept.append(index)
                threshold *= eta if threshold > 0.5 else 1
        rows += [(scores[k], label, k) for k in kept]
    best = sorted(rows, key=lambda row: -row[0])[:40]
    return ordered(np.array([[0, label, score, *decoded[k]] for score, label, k in best], np.float32))


@pytest.mark.parametrize("eta", [1.0, 0.9])
def test_detections_equal_caffe_where_opencv_differs(eta: float, tmp_path: Path) -> None:
    """OpenCV has no CORNER_SIZE, no boxes without background, and leaves eta unread."""
    params = "code_type: CORNER_SIZE background_label_id: -1 keep_top_k: 40 "
    text, inputs = detections(True, 1, params + f"nms_param {{ nms_threshold: 0.8 top_k: 25 eta: {eta} }}")
    (mine,) = run(load(tmp_path, text), inputs)
    expected = caffe_loops(*inputs.values(), eta)
    rows = mine[0, 0][mine[0, 0, :, 0] >= 0]
    assert mine.shape == (1, 1, 40, 7)
    np.testing.assert_allclose(rows, expected, atol=1e-5)


def test_no_detection_leaves_only_unused_rows(tmp_path: Path) -> None:
    text, inputs = detections(True, 2, "keep_top_k: 3 confidence_threshold: 2")
    (mine,) = run(load(tmp_path, text), inputs)
    np.testing.assert_array_equal(mine, np.broadcast_to([-1, 0, 0, 0, 0, 0, 0], (1, 1, 6, 7)))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("nms_param { nms_threshold: -1 }", "nms_threshold -1 must not be negative"),
        ("nms_param { nms_threshold: 0.5 eta: 2 }", "eta 2 must lie in 0 .. 1"),
        ("nms_threshold: nan", "nms_threshold nan"),
        ("keep_top_k: 0", "is empty"),
    ],
)
def test_bad_detection_settings_are_named(params: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BMError, match=rf"layer 'out0' .DetectionOutput.: .*{message}"):
        load(tmp_path, detections(True, 1, params)[0])


def test_predictions_that_do_not_fit_the_priors(tmp_path: Path) -> None:
    text = detections(True, 1, "")[0]
    with pytest.raises(BMError, match=r"scores must have shape \[1, 150\] for 30 priors, got \[1, 120\]"):
        load(tmp_path, text.replace(f"num_classes: {CLASSES}", "num_classes: 5"))
