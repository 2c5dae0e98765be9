"""Detections of single-shot nets on chips with lanes: rows are those of the op, and nothing of it is the host's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType
from bmcompiler.numeric.arrays import Floats
from bmcompiler.ops.builder import Builder
from bmcompiler.result import Result
from bmcompiler.target import find_target

CHIPS = ("bm1684", "bm1684x")


class Net:
    """A net that is one detection_output of drawn priors, and predictions for it."""

    def __init__(self, images: int, priors: int, classes: int, seed: int = 0, **options: Any) -> None:
        rng, b = np.random.default_rng(seed), Builder.new("net")
        sets = 1 if options.setdefault("share_location", True) else classes
        middle, size = rng.uniform(0.2, 0.8, (priors, 2)), rng.uniform(0.05, 0.4, (priors, 2))
        boxes = np.concatenate([middle - size / 2, middle + size / 2], axis=1).ravel()
        table = np.stack([boxes, np.tile([0.1, 0.1, 0.2, 0.2], priors)])[None].astype(np.float32)
        self.priors: Floats = table[:, :1] if options.get("variance_encoded_in_target") else table
        offsets = b.input("offsets", TensorType((images, priors * sets * 4)))
        scores = b.input("scores", TensorType((images, priors * classes)))
        found = b.detection_output(offsets, scores, b.weight(self.priors, "priors"), num_classes=classes, **options)
        self.op, self.module = found.op, b.outputs([found], ["rows"])
        chances = np.exp(2 * rng.standard_normal((images, priors, classes)))
        chances /= chances.sum(-1, keepdims=True)
        self.feeds = {
            "offsets": rng.standard_normal(offsets.shape).astype(np.float32) / 2,
            "scores": chances.reshape(images, -1).astype(np.float32),
        }

    def compiled(self, chip: str, check: str = "always", precision: str = "f32") -> Result:
        return bmcompiler.compile_module(self.module, target=chip, quantize=precision, check=check)

    def same(self, chip: str, check: str = "always") -> int:
        """How many rows are found, wholly on the chip; they are those of the op, but for what an exp rounds."""
        want: Floats = self.op.evaluate(self.feeds["offsets"], self.feeds["scores"], self.priors)
        result = self.compiled(chip, check)
        assert {row.where for row in result.rows} <= {chip, "view"}
        found = result.session().run(self.feeds)["rows"]
        np.testing.assert_array_equal(found[..., :3], want[..., :3])
        np.testing.assert_allclose(found[..., 3:], want[..., 3:], atol=3e-7)
        return int((want[..., 0] >= 0).sum())


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(i, marks=pytest.mark.sweep) for i in range(8, 30))])
def test_rows_are_those_of_the_op(chip: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    images, priors, classes = int(rng.integers(1, 4)), int(rng.integers(4, 70)), int(rng.integers(2, 6))
    net = Net(
        *(images, priors, classes, seed),
        code_type=("corner", "center_size", "corner_size")[seed % 3],
        share_location=bool(rng.integers(2)),
        variance_encoded_in_target=bool(rng.integers(2)),
        background_label_id=int(rng.integers(-1, classes)),
        top_k=int(rng.choice([-1, 1, 9, 20])),
        keep_top_k=int(rng.choice([-1, 1, 7, 30])),
        nms_threshold=float(rng.choice([0.2, 0.45])),
        confidence_threshold=float(rng.choice([-np.inf, 0.1, 0.3])),
    )
    net.same(chip)


@pytest.mark.parametrize("chip", CHIPS)
def test_no_detection_leaves_unused_rows(chip: str) -> None:
    net = Net(2, 30, 3, code_type="center_size", top_k=9, keep_top_k=5, confidence_threshold=1.5)
    assert net.same(chip) == 0


@pytest.mark.parametrize("chip", CHIPS)
def test_of_equal_scores_the_first_priors_of_the_first_classes_stay(chip: str) -> None:
    net = Net(1, 40, 4, top_k=6, keep_top_k=9, nms_threshold=0.9)
    net.feeds["scores"][...] = 0.25
    assert net.same(chip) == 9


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(
    ("priors", "classes", "share"), [(8732, 3, True), (24_564, 2, True), (20_004, 3, False), (200, 120, True)]
)
def test_more_boxes_than_are_looked_at_at_once(chip: str, priors: int, classes: int, share: bool) -> None:
    """24,564 are those of SSD512; of 120 classes 12,000 boxes stay of which the best are taken."""
    most = 100 if classes > 100 else 12
    net = Net(1, priors, classes, code_type="center_size", share_location=share, top_k=most, keep_top_k=most)
    assert most / 2 < net.same(chip, "never") <= most


@pytest.mark.parametrize("precision", ["f16", "bf16", "int8"])
@pytest.mark.parametrize("chip", CHIPS)
def test_nets_of_narrow_numbers_detect_in_f32(chip: str, precision: str) -> None:
    if precision not in find_target(chip).precisions:
        pytest.skip(f"{chip} has no {precision}")
    net = Net(1, 50, 3, code_type="center_size", top_k=20, keep_top_k=10, confidence_threshold=0.1)
    result = bmcompiler.compile_module(
        net.module, target=chip, quantize=precision, check="always", data=net.feeds if precision == "int8" else None
    )
    assert {row.where for row in result.rows} <= {chip, "view"}
    assert (result.session().run(net.feeds)["rows"][..., 0] == 0).any()


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(
    ("priors", "options", "reason"),
    [
        (50, {"eta": 0.9, "nms_threshold": 0.7}, "as with eta = 0.9, are the host's"),
        (1100, {}, "'best_box_rows' could stand for it: At most 1024 boxes may be selected one after the other"),
    ],
)
def test_what_stays_on_the_host_says_why(chip: str, priors: int, options: dict[str, Any], reason: str) -> None:
    result = Net(1, priors, 2, code_type="center_size", **options).compiled(chip, "never")
    assert [reason in row.reason for row in result.rows if row.kind == "detection_output"] == [True]


def packed(b: Builder, rng: np.random.Generator) -> Module:
    """Rows of one mark or many, of one group or each of its own."""
    groups, rows, each, count = (int(n) for n in rng.integers(1, (4, 6, 40, 200)))
    x, marks = b.input("x", TensorType((groups, rows, count))), b.input("y", TensorType((groups * each, count)))
    value = float(rng.choice([0.0, -1.5]))
    return b.outputs([b.packed(x, b.round(marks), size=int(rng.integers(1, count + 1)), value=value)], ["z"])


def leading(b: Builder, rng: np.random.Generator) -> Module:
    """The largest of rows, at times with many equals."""
    shape = tuple(int(n) for n in rng.integers(1, (4, 70, 300)))
    x, y = b.input("x", TensorType(shape)), b.input("y", TensorType(shape))
    made = b.floor(b.mul(x, b.add(y, b.weight(np.full((1, 1, 1), -0.5, np.float32), "half"))))
    return b.outputs([b.leading(made, k=int(rng.integers(1, shape[2] + 1)))], ["z"])


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("make", [packed, leading])
@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(i, marks=pytest.mark.sweep) for i in range(5, 20))])
def test_rows_on_the_chip_are_those_of_numpy(chip: str, make: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    module = make(Builder.new("net"), rng)
    spread = 1 if make is packed else rng.choice([3.0, 3e4])
    drawn = (rng.uniform(0, 1, value.shape).astype(np.float32) for value in module.main.arguments)
    feeds = dict(zip(("x", "y"), drawn))
    feeds["x"] *= spread
    want = run_module(module, feeds)["z"]
    result = bmcompiler.compile_module(module, target=chip, quantize="f32", check="always")
    assert {row.where for row in result.rows} <= {chip, "view"}
    np.testing.assert_array_equal(result.session().run(feeds)["z"], want)
