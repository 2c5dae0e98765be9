"""Ops whose result is as long as the values say: room for the longest result, and -1 where it is shorter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import graph_model, imported, op_model, reference

from bmcompiler.api import compile as compile_model
from bmcompiler.conformance import onnx_backend
from bmcompiler.errors import UnsupportedError
from bmcompiler.frontends.onnx import import_onnx
from bmcompiler.runtime import Session

INT64 = onnx.TensorProto.INT64


def suppression(
    seed: int = 0, most: int | None = 3, images: int = 1, **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Seven boxes in two classes; their limits are constants."""
    random = np.random.default_rng(seed)
    boxes = np.abs(random.uniform(0, 4, (images, 7, 4))).astype(np.float32)
    scores = random.uniform(0, 1, (images, 2, 7)).round(1).astype(np.float32)
    limits: list[Any] = [None if most is None else np.array([most])]
    limits += [np.array([0.3], np.float32), np.array([0.25], np.float32)]
    known = [i for i in (2, 3, 4) if limits[i - 2] is not None]
    return op_model("NonMaxSuppression", [boxes, scores, *limits], known, attributes)


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("most", [2, 100])
@pytest.mark.parametrize("seed", range(4))
def test_boxes_that_stay_are_those_of_onnx_runtime(seed: int, most: int, form: int) -> None:
    model, feeds = suppression(seed, most, images=2, center_point_box=form)
    want = reference(model, feeds)["y0"]
    module, found = imported(model, feeds)
    rows = found["y0"]
    assert rows.shape == (2 * 2 * min(most, 7), 3) and rows.dtype == np.int64
    np.testing.assert_array_equal(rows[: len(want)], want)
    assert (rows[len(want) :] == -1).all() and (most < 7 or len(want) < len(rows))
    note = f"'node' (non_max_suppression): its result always has room for {len(rows)} entries; unused ones hold -1"
    assert module.attributes["notes"] == (note,)


def test_without_a_limit_nothing_stays() -> None:
    model, feeds = suppression(most=None)
    assert imported(model, feeds)[1]["y0"].shape == (0, 3)


def test_limits_must_be_constants() -> None:
    _, feeds = suppression()
    arrays = [*feeds.values(), np.array([3])]
    with pytest.raises(UnsupportedError, match=r"input 2 \('x2'\) must be a constant"):
        import_onnx(op_model("NonMaxSuppression", arrays)[0])


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4)])
def test_non_zero_elements_are_those_of_onnx_runtime(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).integers(-1, 2, shape).astype(np.float32)
    model, feeds = op_model("NonZero", [x])
    want = reference(model, feeds)["y0"]
    found = imported(model, feeds)[1]["y0"]
    assert found.shape == (max(1, x.ndim), x.size)
    np.testing.assert_array_equal(found[: want.shape[0], : want.shape[1]], want)
    assert (found[:, want.shape[1] :] == -1).all()


def test_positions_may_be_transposed_on_their_way_out() -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["n"]), helper.make_node("Transpose", ["n"], ["y"])]
    x = np.array([[0, 1, 2], [3, 0, 0]], np.float32)
    found = imported(graph_model(nodes, {"x": x.shape}, ["y"]), {"x": x})[1]["y"]
    np.testing.assert_array_equal(found, [[0, 1], [0, 2], [1, 0], *[[-1, -1]] * 3])


@pytest.mark.parametrize(
    ("reader", "reason"),
    [
        (helper.make_node("GatherND", ["x", "t"], ["y"]), "other layers compute with its result"),
        (helper.make_node("Shape", ["t"], ["y"]), "how many results 'first' has is known at run time only"),
        (helper.make_node("Size", ["t"], ["y"]), "how many results 'first' has is known at run time only"),
    ],
)
def test_what_would_take_padding_for_positions_is_refused(reader: onnx.NodeProto, reason: str) -> None:
    first = [helper.make_node("NonZero", ["x"], ["n"], name="first"), helper.make_node("Transpose", ["n"], ["t"])]
    with pytest.raises(UnsupportedError, match=f"{reason}.*with outputs"):
        import_onnx(graph_model([*first, reader], {"x": (2, 3)}, ["y"]))


def test_boxes_gathered_by_padded_indices_get_a_remark() -> None:
    model, feeds = suppression()
    pick = numpy_constant("two", np.array(2))
    model.graph.node.extend([pick, helper.make_node("Gather", ["y0", "two"], ["index"], axis=1)])
    model.graph.node.append(helper.make_node("Gather", ["x0", "index"], ["boxes"], axis=1))
    model.graph.output[0].name = "boxes"
    module, found = imported(model, feeds)
    assert found["boxes"].shape == (1, 6, 4)
    assert module.attributes["notes"][0].endswith("and what layers make of them is void")


def numpy_constant(name: str, array: np.ndarray) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(array))


def test_the_onnx_backend_cuts_results_to_their_length() -> None:
    for model, feeds in (suppression(), op_model("NonZero", [np.array([0, 3, 0, 4], np.float32)])):
        runner = onnx_backend.prepare(model)
        (found,) = runner.run(list(feeds.values()))
        np.testing.assert_array_equal(found, reference(model, feeds)["y0"])
        assert runner.inputs_kept == len(feeds)


def test_the_onnx_backend_folds_where_layers_read_a_list_of_unknown_length() -> None:
    nodes = [helper.make_node("NonMaxSuppression", ["b", "s", "m"], ["n"]), helper.make_node("Neg", ["n"], ["y"])]
    boxes, scores = np.array([[[0, 0, 1, 1], [0, 0, 1, 1]]], np.float32), np.array([[[0.5, 0.6]]], np.float32)
    model = graph_model(nodes, {"b": (1, 2, 4), "s": (1, 1, 2), "m": (1,)}, ["y"], types={"m": INT64})
    (found,) = onnx_backend.prepare(model).run([boxes, scores, np.array([2])])
    np.testing.assert_array_equal(found, [[0, 0, -1]])


def test_a_detector_with_suppression_runs_on_bm1880(tmp_path: Path) -> None:
    """The op runs on the host CPU, inside the model file."""
    model, feeds = suppression()
    table = {name: np.concatenate([array] * 4) for name, array in feeds.items()}
    onnx.save(model, tmp_path / "net.onnx")
    compiled = compile_model(tmp_path / "net.onnx", target="bm1880", data=table)
    found = Session(compiled.model).run(feeds)["y0"]
    want = reference(model, feeds)["y0"]
    np.testing.assert_array_equal(found[: len(want)], want)
    assert (found[len(want) :] == -1).all()
