"""Suppression of boxes, wholly on the chip: what stays is what ONNX Runtime lets stay, in its order."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import graph_model, op_model, reference

import bmcompiler
from bmcompiler.backends.lanes.recipes import overlap
from bmcompiler.backends.lanes.target import LaneTarget
from bmcompiler.conformance import onnx_backend
from bmcompiler.frontends.onnx import import_onnx
from bmcompiler.ir import TensorType
from bmcompiler.numeric.arrays import Floats
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.places.selection import BestBoxes
from bmcompiler.result import Result
from bmcompiler.target import find_target

CHIPS = ("bm1684", "bm1684x")


def compiled(boxes: Floats, scores: Floats, chip: str, limits: tuple[Any, ...], **form: int) -> tuple[Result, Any]:
    """A program without layers of the host, every bit of which is checked, and the rows of ONNX Runtime."""
    most, *others = limits
    arrays = [boxes, scores, np.array([most]), *(np.array([each], np.float32) for each in others)]
    model, feeds = op_model("NonMaxSuppression", arrays, range(2, len(arrays)), form)
    result = bmcompiler.compile_module(import_onnx(model), target=chip, quantize="f32", check="always")
    assert {row.where for row in result.rows} == {chip}
    return result, reference(model, feeds)["y0"]


def same(boxes: Floats, scores: Floats, chip: str, *limits: float, **form: int) -> int:
    """How many stay, those of ONNX Runtime; behind them is -1."""
    result, want = compiled(boxes, scores, chip, limits, **form)
    found = result.session().run({"x0": boxes, "x1": scores})["y0"]
    room = scores.shape[0] * scores.shape[1] * min(int(limits[0]), scores.shape[2])
    assert found.shape == (room, 3)
    np.testing.assert_array_equal(found[: len(want)], want)
    assert (found[len(want) :] == -1).all()
    return len(want)


def drawn(rng: np.random.Generator, images: int, classes: int, count: int) -> tuple[Floats, Floats]:
    """Often whole corners, so that boxes have no area or quotients meet thresholds, and equal scores."""
    boxes = rng.uniform(0, 4, (images, count, 4)).astype(np.float32)
    scores = rng.uniform(0, 1, (images, classes, count)).astype(np.float32)
    return (boxes.round() if rng.integers(2) else boxes), (scores.round(1) if rng.integers(2) else scores)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(i, marks=pytest.mark.sweep) for i in range(12, 150))])
def test_what_stays_is_what_onnx_runtime_lets_stay(chip: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    boxes, scores = drawn(rng, int(rng.integers(1, 3)), int(rng.integers(1, 5)), count := int(rng.integers(1, 60)))
    most = int(rng.integers(1, count + 3))  # more than there are, too
    limits = rng.choice([0, 0.3, 0.45, 0.5, 0.6, 0.7, 1]), rng.choice([-0.1, 0.25, 0.5])
    same(boxes, scores, chip, most, *limits, center_point_box=seed % 2)


@pytest.mark.parametrize("chip", CHIPS)
def test_of_equal_scores_the_first_box_stays(chip: str) -> None:
    boxes = np.tile(np.array([0, 0, 1, 1], np.float32), (1, 70, 1))
    boxes[0, 40:] += 2
    scores = np.full((1, 2, 70), 0.5, np.float32)
    scores[0, 1, 41] = 0.75
    result, want = compiled(boxes, scores, chip, (4, 0.5))
    found = result.session().run({"x0": boxes, "x1": scores})["y0"]
    assert found.tolist() == [[0, 0, 0], [0, 0, 40], [0, 1, 41], [0, 1, 0], *[[-1] * 3] * 4]
    assert found[:4].tolist() == want.tolist()


@pytest.mark.parametrize("chip", CHIPS)
def test_nothing_stays_that_is_not_above_the_score_threshold(chip: str) -> None:
    boxes, scores = drawn(np.random.default_rng(1), 2, 3, 20)
    assert same(boxes, scores, chip, 5, 0.5, 2.0) == 0
    scores[1, 1, 7] = 3.0
    scores[0, 2, 4] = 2.0  # not above it
    assert same(boxes, scores, chip, 5, 0.5, 2.0) == 1


@pytest.mark.parametrize("chip", CHIPS)
def test_boxes_of_negative_sizes_meet_none(chip: str) -> None:
    boxes = np.array([[[1, 1, 2, 2], [1, 1, -2, 2], [1, 1, -2, -2], [1, 1, 2, 2]]], np.float32)
    scores = np.array([[[0.9, 0.8, 0.7, 0.6]]], np.float32)
    for limit in (0.5, 0.3):  # an even and an odd float
        assert same(boxes, scores, chip, 4, limit, center_point_box=1) == 3


def spread(count: int, classes: int) -> tuple[Floats, Floats]:
    """Small boxes of all over a picture, by their centres."""
    rng = np.random.default_rng(count)
    places, sizes = rng.uniform(0, 1, (2, 1, count, 2)).astype(np.float32)
    scores = rng.uniform(0, 1, (1, classes, count)).astype(np.float32).round(3)
    return np.concatenate([places, sizes / 9], 2), scores


@pytest.mark.parametrize("chip", CHIPS)
def test_classes_may_be_more_than_lanes(chip: str) -> None:
    assert same(*spread(300, 70), chip, 3, 0.4, 0.6, center_point_box=1) == 210


@pytest.mark.parametrize(("chip", "count", "parts"), [("bm1684", 12000, 2), ("bm1684x", 7000, 3), ("bm1684x", 8732, 6)])
def test_boxes_that_are_computed_in_parts_are_compared_with_each_other(chip: str, count: int, parts: int) -> None:
    target, b = find_target(chip), Builder.new("net")
    corners, scores = b.input("c", TensorType((1, 4, count))), b.input("s", TensorType((1, 2, count)))
    op = b.best_boxes(corners, scores, max_boxes=9).op
    assert isinstance(target, LaneTarget) and isinstance(op, BestBoxes)
    kernel: Any = target.kernel_for(op)
    assert -(-kernel.rows(op) // kernel.part(op)) == parts
    assert same(*spread(count, 2), chip, 9, 0.1, 0.2, center_point_box=1) == 18


@pytest.mark.parametrize("limit", [0.3, 0.45, 0.5, 0.6, 0.7, 1.0, 0.1234567])
@pytest.mark.parametrize("chip", CHIPS)
def test_quotients_near_the_threshold_are_compared_as_they_are_rounded(chip: str, limit: float) -> None:
    target, rng = find_target(chip), np.random.default_rng(3)
    assert isinstance(target, LaneTarget)
    above = target.machine.recorded(overlap.quotient_above, 2, limit)
    whole = np.float32(limit)
    exact = (float(whole) + float(np.nextafter(whole, np.float32(2)))) / 2
    b = np.exp2(rng.uniform(-8, 20, 40_000)).astype(np.float32)
    a = (b.astype(np.float64) * exact).astype(np.float32)
    shares: list[float] = []
    for _ in range(6):  # next floats on both sides of what is rounded to the threshold or above it
        found = above.evaluate(*(each.reshape(1, 1, 1, -1) for each in (a, b))).view(np.uint32)[0, 0, 0] != 0
        np.testing.assert_array_equal(found, a / b > whole)
        shares.append(found.mean())
        a = np.nextafter(a, np.where(rng.integers(0, 2, a.size) == 1, np.float32(np.inf), np.float32(0)))
    assert 0.1 < np.mean(shares) < 0.9


@pytest.mark.parametrize("precision", ["f16", "bf16", "int8"])
@pytest.mark.parametrize("chip", CHIPS)
def test_boxes_of_nets_of_narrow_numbers_are_told_apart_in_f32(chip: str, precision: str) -> None:
    """Numbers of boxes beyond what these hold stay exact: the program is what `evaluate` says, and rows are numbers."""
    if precision not in find_target(chip).precisions:
        pytest.skip(f"{chip} has no {precision}")
    rng = np.random.default_rng(4)
    places = rng.integers(0, 64, (1, 5000, 2)).astype(np.float32) / 8
    boxes = np.concatenate([places, places + 1], 2)
    scores = np.zeros((1, 2, 5000), np.float32)
    scores[0, 0, [4097, 77]] = scores[0, 1, [4999, 2049]] = 1.0, 0.5
    nodes = [
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Relu", ["s"], ["t"]),
        helper.make_node("NonMaxSuppression", ["c", "t", "most", "overlap", "least"], ["y"]),
    ]
    known = {"most": np.array([2]), "overlap": np.array([0.9], np.float32), "least": np.array([0.25], np.float32)}
    model = graph_model(nodes, {"b": boxes.shape, "s": scores.shape}, ["y"], known)
    feeds = {"b": boxes, "s": scores}
    result = bmcompiler.compile_module(
        import_onnx(model), target=chip, quantize=precision, check="always", data=feeds if precision == "int8" else None
    )
    assert {row.where for row in result.rows} == {chip}
    found = result.session().run(feeds)["y"]
    assert found.tolist() == [[0, 0, 4097], [0, 0, 77], [0, 1, 4999], [0, 1, 2049]]


@pytest.mark.parametrize("chip", CHIPS)
def test_the_onnx_backend_cuts_what_a_chip_gives(chip: str) -> None:
    boxes, scores = drawn(np.random.default_rng(7), 1, 2, 9)
    arrays = [boxes, scores, np.array([9]), np.array([0.2], np.float32), np.array([0.4], np.float32)]
    model, feeds = op_model("NonMaxSuppression", arrays, range(2, 5))
    (found,) = onnx_backend.prepare(model, chip.upper()).run([boxes, scores])
    want = reference(model, feeds)["y0"]
    assert 0 < len(want) < 18 and found.dtype == want.dtype
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize(
    ("chip", "count", "most", "limit"),
    [
        ("bm1684", 2000, 2000, "At most 1024 boxes may be selected one after the other"),
        ("bm1684x", 2000, 2000, "At most 1024 boxes may be selected one after the other"),
        ("bm1684", 30_000, 5, "must fit the local memory of a lane: up to about 20000 boxes"),
        ("bm1684x", 30_000, 5, "must fit the local memory of a lane: up to about 9000 boxes"),
    ],
)
def test_what_is_too_much_is_the_hosts_and_the_reason_names_the_limit(
    chip: str, count: int, most: int, limit: str
) -> None:
    boxes, scores = spread(count, 1)
    model, _ = op_model("NonMaxSuppression", [boxes, scores, np.array([most])], [2])
    result = bmcompiler.compile_module(import_onnx(model), target=chip, quantize="f32", check="never")
    (reason,) = (row.reason for row in result.rows if row.where == "cpu" and row.kind == "non_max_suppression")
    assert reason.startswith(f"{chip} has no kernel for 'non_max_suppression'; 'best_boxes' could stand for it: ")
    assert limit in reason


def detector_tail(anchors: int, classes: int) -> onnx.ModelProto:
    """Offsets and logits of an SSD: boxes about their anchors, sigmoids without the background, and suppression."""
    rng = np.random.default_rng(3)
    centres, sizes = rng.uniform(0, 1, (1, anchors, 2)), rng.uniform(0.05, 0.3, (1, anchors, 2))
    constants = {
        "two": np.array([2, 2]), "tenth": np.float32(0.1), "fifth": np.float32(0.2), "half": np.float32(0.5),
        "centres": centres.astype(np.float32), "sizes": sizes.astype(np.float32),
        "first": np.array([1]), "end": np.array([classes + 1]), "axis": np.array([2]),
        "most": np.array([20]), "overlap": np.array([0.5], np.float32), "least": np.array([0.3], np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("Split", ["x", "two"], ["at", "extent"], axis=2),
        helper.make_node("Mul", ["at", "tenth"], ["at_scaled"]),
        helper.make_node("Mul", ["at_scaled", "sizes"], ["moved"]),
        helper.make_node("Add", ["moved", "centres"], ["centre"]),
        helper.make_node("Mul", ["extent", "fifth"], ["extent_scaled"]),
        helper.make_node("Exp", ["extent_scaled"], ["factor"]),
        helper.make_node("Mul", ["factor", "sizes"], ["size"]),
        helper.make_node("Mul", ["size", "half"], ["radius"]),
        helper.make_node("Sub", ["centre", "radius"], ["low"]),
        helper.make_node("Add", ["centre", "radius"], ["high"]),
        helper.make_node("Concat", ["low", "high"], ["boxes"], axis=2),
        helper.make_node("Sigmoid", ["logits"], ["chances"]),
        helper.make_node("Slice", ["chances", "first", "end", "axis"], ["objects"]),
        helper.make_node("Transpose", ["objects"], ["scores"], perm=[0, 2, 1]),
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["rows"]),
    ]
    inputs = {"x": (1, anchors, 4), "logits": (1, anchors, classes + 1)}
    return graph_model(nodes, inputs, ["rows", "boxes"], constants)


@pytest.mark.parametrize("chip", CHIPS)
def test_a_detector_with_its_head_is_the_chips_as_a_whole(chip: str) -> None:
    model, rng = detector_tail(300, 4), np.random.default_rng(4)
    shapes = {"x": (1, 300, 4), "logits": (1, 300, 5)}
    feeds = {name: 2 * rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    want = reference(model, feeds)
    result = bmcompiler.compile_module(import_onnx(model), target=chip, quantize="f32", check="always")
    assert {row.where for row in result.rows} == {chip}
    found = result.session().run(feeds)
    rows = found["rows"][found["rows"][:, 0] >= 0]
    assert len(rows) > 20
    np.testing.assert_array_equal(rows, want["rows"])
    np.testing.assert_allclose(found["boxes"], want["boxes"], rtol=1e-5, atol=1e-6)
