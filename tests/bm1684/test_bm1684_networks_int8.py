"""Whole networks on BM1684 in int8: the chip's bits on the simulator, and accuracy that a user relies on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from networks import MODELS, THIRD_PARTY, assert_chip_equals_evaluate, assert_on_chip, cases, compiled, files, samples
from onnx import TensorProto, helper, numpy_helper
from rendered_text import found, lines, pages

import bmcompiler
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.passes.quantization.choice.clusters import Clusters
from bmcompiler.passes.quantization.choice.ways import COARSE
from bmcompiler.passes.quantization.scale.scheme import Scales
from bmcompiler.runtime import Session
from bmcompiler.runtime.simulator.bm1684.analysis import analyze

QUICK = ("lenet", "resnet8")
LONGEST = ("light_resnet50", "ppocr_v4_det", "light_squeezenet", "res10_ssd_face")
"""To choose modes for: `tests/level_nets.py` compiles them without a choice."""
CALIBRATED = ("mtcnn_rnet", "mtcnn_onet", "ppocr_v2_cls")
"""Tests below compile these with samples of what they read."""
TEST_SEED, CALIBRATION_SEED = 1, 2
Arrays = dict[str, np.ndarray]


def only(outputs: Arrays) -> np.ndarray:
    (array,) = outputs.values()
    return array


def cycles(result: bmcompiler.Result) -> int:
    return analyze(result.model, 0).timing().cycles


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    x, y = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def assert_runs_as_evaluated(name: str, result: bmcompiler.Result, inputs: Arrays) -> None:
    """On the chip, with the bits that its arithmetic gives."""
    assert_on_chip(name, result)
    assert_chip_equals_evaluate(result, inputs)


@pytest.mark.parametrize(("name", "batch"), cases(QUICK, (*LONGEST, *CALIBRATED)))
def test_int8_networks_give_the_chips_bits(name: str, batch: int) -> None:
    model, weights = files(name)
    data = samples(name, 4)
    (input_name,) = bmcompiler.load_network(model, weights, shapes=[data.shape]).main.input_names
    result = compiled(name, batch, quantize="int8", data={input_name: data})
    assert_runs_as_evaluated(name, result, {input_name: data[:batch]})
    kinds = {op.operands[0].dtype for op in result.module.main.ops if op.short_name in ("conv", "matmul")}
    if not kinds & {"i8", "u8"}:
        all_low = compiled(name, batch, quantize="int8", data={input_name: data}, max_cycles=1.0)
        exact, narrow = (Session(each.model).run({input_name: data[:batch]}) for each in (result, all_low))
        error = np.sqrt(Clusters([exact]).energies(narrow, exact).max())
        little = Scales.share * cycles(result) <= cycles(all_low)
        assert little or error > COARSE, "a net may be all float only where integers gain too little or lose too much"


@pytest.mark.parametrize("name", QUICK)
def test_shifts_of_channels_give_the_same_bits_on_all_levels(name: str) -> None:
    model, weights = files(name)
    data = samples(name, 4)
    (input_name,) = bmcompiler.load_network(model, weights, shapes=[data.shape]).main.input_names
    outputs = []
    for level in (0, 1, 2):
        passes = TARGET.pipeline("int8", level).replace("quantize{", "quantize{mode=channel,")
        result = compiled(name, 1, quantize="int8", data={input_name: data}, opt=level, pipeline=passes)
        assert any(op.attributes.get("mode") == "channel" for op in result.module.main.ops)
        assert_runs_as_evaluated(name, result, {input_name: data[:1]})
        outputs.append(only(Session(result.model).run({input_name: data[:1]})))
    np.testing.assert_array_equal(outputs[0].view(np.uint32), outputs[1].view(np.uint32))
    np.testing.assert_array_equal(outputs[0].view(np.uint32), outputs[2].view(np.uint32))


@pytest.mark.parametrize("name", ["lenet", "resnet8"])
def test_digits_keep_their_accuracy(name: str) -> None:
    """Within 0.3 points of float on 500 test digits."""
    data = np.load(MODELS / "digits.npz")
    calibration, images = (data[key].astype(np.float32) / 255 for key in ("calib", "test"))
    model, weights = files(name)
    network = bmcompiler.load_network(model, weights, shapes=[images.shape])
    (input_name,) = network.main.input_names
    session = Session(compiled(name, 4, quantize="int8", data={input_name: calibration}).model)

    def right(outputs: Arrays) -> float:
        return float((only(outputs).reshape(len(images), -1).argmax(axis=1) == data["labels"]).mean())

    assert right(session.run({input_name: images})) >= right(run_module(network, {input_name: images})) - 0.003


def face_patches(size: int) -> tuple[np.ndarray, np.ndarray]:
    """200 patches as the MTCNN nets take them (N, W, H, 3: they were trained transposed), and 1 for faces."""
    cv2 = pytest.importorskip("cv2")
    path = THIRD_PARTY / "lfw_subset.npy"
    if not path.exists():
        pytest.skip("lfw_subset.npy is not fetched: run `make models`")
    gray = np.load(path).astype(np.float32)
    resized = np.stack([cv2.resize(patch, (size, size), interpolation=cv2.INTER_LINEAR) for patch in gray]) * 255
    scaled = ((resized - 127.5) / 128).transpose(0, 2, 1)
    return np.repeat(scaled[..., None], 3, axis=3).astype(np.float32), np.repeat([1, 0], 100)


@pytest.mark.parametrize(("name", "size"), [("mtcnn_rnet", 24), ("mtcnn_onet", 48)])
@pytest.mark.slow
def test_mtcnn_still_tells_faces(name: str, size: int) -> None:
    """At least 0.995 of the patches; outputs close to float."""
    patches, labels = face_patches(size)
    model, _ = files(name)
    network = bmcompiler.load_network(model, shapes=[patches.shape])
    (input_name,) = network.main.input_names
    result = compiled(name, 4, quantize="int8", data={input_name: patches[::2]})
    assert_runs_as_evaluated(name, result, {input_name: patches[:4]})
    outputs = Session(result.model).run({input_name: patches})
    (faces,) = (out.reshape(200, 2)[:, 1] for out in outputs.values() if out.size == 400)
    assert ((faces > 0.5) == labels).mean() >= 0.995
    wanted = run_module(network, {input_name: patches})
    assert all(cosine(array, wanted[key]) >= 0.99 for key, array in outputs.items())


@pytest.mark.sweep
def test_text_direction_is_told() -> None:
    model, _ = files("ppocr_v2_cls")
    images, turned = lines(THIRD_PARTY, 100, TEST_SEED)
    calibration, _ = lines(THIRD_PARTY, 16, CALIBRATION_SEED)
    shape = [4, *images.shape[1:]]
    result = bmcompiler.compile(model, target="bm1684", quantize="int8", data={"x": calibration}, shapes=[shape])
    assert_runs_as_evaluated("ppocr_v2_cls", result, {"x": images[:4]})
    scores = only(Session(result.model).run({"x": images})).reshape(100, 2)
    assert (scores.argmax(axis=1) == turned).sum() >= 98


@pytest.mark.sweep
def test_text_lines_are_found() -> None:
    """12 pages of 7 lines; the vendor's compiler finds none in int8."""
    model, _ = files("ppocr_v4_det")
    calibration = np.concatenate([page for page, _ in pages(THIRD_PARTY, 4, CALIBRATION_SEED)])
    shape = [1, *calibration.shape[1:]]
    result = bmcompiler.compile(model, target="bm1684", quantize="int8", data={"x": calibration}, shapes=[shape])
    session = Session(result.model)
    hits = [found(only(session.run({"x": page}))[0, 0], boxes) for page, boxes in pages(THIRD_PARTY, 12, TEST_SEED)]
    assert sum(hits) >= 82


def transposed_net(path: Path) -> Path:
    """Three transposed convolutions without groups, ReLU between them."""
    rng = np.random.default_rng(3)

    def weight(name: str, *shape: int) -> Any:
        values = rng.standard_normal(shape) / np.sqrt(shape[0] * 4)
        return numpy_helper.from_array(values.astype(np.float32), name)

    modes = {"kernel_shape": [4, 4], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w0", "b0"], ["a"], **modes),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("ConvTranspose", ["b", "w1"], ["c"], **modes),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("ConvTranspose", ["d", "w2"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    ]
    weights = [weight("w0", 8, 16, 4, 4), weight("b0", 16), weight("w1", 16, 12, 4, 4), weight("w2", 12, 5, 3, 3)]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 7, 9])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5, 28, 36])]
    graph = helper.make_graph(nodes, "transposed", inputs, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_int8_transposed_convolutions_are_right(tmp_path: Path) -> None:
    path = transposed_net(tmp_path / "net.onnx")
    data = {"x": np.random.default_rng(4).standard_normal((8, 8, 7, 9)).astype(np.float32)}
    integers = TARGET.pipeline("int8", 2).replace("quantize{", "quantize{mode=low,")  # even where float is quicker
    result = bmcompiler.compile(path, target="bm1684", pipeline=integers, data=data)
    one = {"x": data["x"][:1]}
    ours = assert_chip_equals_evaluate(result, one)
    assert cosine(only(ours), only(run_module(bmcompiler.load_network(path), one))) >= 0.99
    assert {op.operands[0].dtype for op in result.module.main.ops if op.short_name == "deconv"} <= {"i8", "u8"}
