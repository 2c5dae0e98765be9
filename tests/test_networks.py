"""Whole networks on BM1880: accuracy a user relies on, and byte equality of the two executions."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from fetched import third_party
from level_nets import Network, passes_of_level
from report_forms import assert_forms_agree

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.numeric.arith import quantize_real
from bmcompiler.report.summary import layer_tables
from bmcompiler.runtime import Session

MODELS = Path(__file__).resolve().parent.parent / "models"
Arrays = Mapping[str, np.ndarray]


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Calibration images, test images (both 0..1, Nx1x28x28) and labels."""
    data = np.load(MODELS / "digits.npz")
    return data["calib"].astype(np.float32) / 255, data["test"].astype(np.float32) / 255, data["labels"]


def assert_executions_agree(result: Any, session: Session, inputs: Arrays) -> None:
    """`evaluate` on the quantized IR and the command simulator give the same bytes for one sample."""
    function = result.module.main
    device: dict[str, np.ndarray] = {}
    for name, argument in zip(function.input_names, function.arguments):
        real = np.ascontiguousarray(inputs[name][: argument.shape[0]])
        quant = argument.type.quant
        device[name] = real if quant is None else quantize_real(real, quant.threshold)
    expected = run_module(result.module, device)
    found = session.run(device, raw=True)
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        assert found[name].tobytes() == array.tobytes(), f"output {name} differs"


def compiled(model: Path, weights: Path | None, data: Arrays, **options: Any) -> tuple[Any, Session]:
    result = bmcompiler.compile(model, weights, target="bm1880", data=data, **options)
    return result, Session(result.model)


def test_lenet_keeps_its_accuracy_on_bm1880() -> None:
    calibration, images, labels = digits()
    net = MODELS / "lenet"
    result, session = compiled(net / "deploy.prototxt", net / "lenet.caffemodel", {"data": calibration})
    assert_executions_agree(result, session, {"data": images})
    found = session.run({"data": images})["prob"].reshape(len(labels), -1).argmax(axis=1)
    assert (found == labels).mean() >= 0.959


def test_resnet8_keeps_its_accuracy_on_bm1880() -> None:
    calibration, images, labels = digits()
    result, session = compiled(MODELS / "resnet8" / "resnet8_mnist.onnx", None, {"x": calibration})
    assert not [row for row in result.rows if row.where == "cpu"]
    assert_executions_agree(result, session, {"x": images})
    (scores,) = session.run({"x": images}).values()
    assert (scores.reshape(len(labels), -1).argmax(axis=1) == labels).mean() >= 0.959


@pytest.mark.parametrize("method", ["kl", "max", "percentile", "mse"])
def test_every_calibration_method_serves_lenet(method: str) -> None:
    calibration, images, labels = digits()
    net = MODELS / "lenet"
    _, session = compiled(net / "deploy.prototxt", net / "lenet.caffemodel", {"data": calibration}, method=method)
    found = session.run({"data": images[:200]})["prob"].reshape(200, -1).argmax(axis=1)
    assert (found == labels[:200]).mean() >= 0.95


def face_patches(size: int) -> tuple[np.ndarray, np.ndarray]:
    """200 patches as the MTCNN nets take them (N, W, H, 3: they were trained transposed), and 1 for faces."""
    cv2 = pytest.importorskip("cv2")
    gray = np.load(third_party("lfw_subset.npy")).astype(np.float32)
    resized = np.stack([cv2.resize(patch, (size, size), interpolation=cv2.INTER_LINEAR) for patch in gray]) * 255
    scaled = ((resized - 127.5) / 128).transpose(0, 2, 1)
    return np.repeat(scaled[..., None], 3, axis=3).astype(np.float32), np.repeat([1, 0], 100)


@pytest.mark.parametrize(("net", "size", "least"), [("pnet", 12, 0.96), ("rnet", 24, 0.99), ("onet", 48, 0.99)])
def test_mtcnn_still_tells_faces(net: str, size: int, least: float) -> None:
    model = third_party(f"mtcnn_{net}.onnx")
    patches, labels = face_patches(size)
    name = {"pnet": "input_1", "rnet": "input_2", "onet": "input_3"}[net]
    shape = [[1, size, size, 3]]
    result, session = compiled(model, None, {name: patches[::2]}, shapes=shape)
    assert_executions_agree(result, session, {name: patches})
    outputs = session.run({name: patches}).values()
    (faces,) = (out.reshape(200, 2)[:, 1] for out in outputs if out.size == 400)
    assert ((faces > 0.5) == labels).mean() >= least


def noise(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def assert_runs_byte_equal(result: Any, data: Arrays, on_cpu: str) -> None:
    """`on_cpu` lists the kinds of layers that the chip may refuse, each with a reason."""
    assert_executions_agree(result, Session(result.model), data)
    rows = [row for row in result.rows if row.where == "cpu"]
    assert {row.kind for row in rows} - {"quantize", "dequantize"} <= set(on_cpu.split())
    text = layer_tables(result)
    assert all(row.reason and row.layer in text for row in rows if row.kind in on_cpu.split())
    assert_forms_agree(result)


@pytest.mark.parametrize(
    ("net", "on_cpu"),
    [
        ("light_squeezenet", "softmax"),
        ("light_shufflenet", "softmax"),
        ("light_inception_v1", "lrn softmax"),
        pytest.param("light_inception_v2", "softmax", marks=pytest.mark.sweep),
        pytest.param("light_densenet121", "", marks=pytest.mark.sweep),
        pytest.param("light_resnet50", "softmax", marks=pytest.mark.sweep),
        ("mtcnn_pnet", "permute softmax"),
        ("mtcnn_rnet", "softmax"),
        ("mtcnn_onet", "softmax"),
        ("ppocr_v2_cls", "softmax"),
        pytest.param("ppocr_v4_det", "", marks=pytest.mark.sweep),
        ("ppocr_v4_rec", "div layer_norm softmax"),
    ],
)
@pytest.mark.slow
def test_real_networks_run_byte_equal(net: str, on_cpu: str, shared: Path) -> None:
    network = Network(net, "bm1880", "int8", shared)
    assert_runs_byte_equal(network.at(2), network.images, on_cpu)


@pytest.mark.parametrize(
    ("net", "on_cpu"), [("bvlc_alexnet", "lrn softmax"), ("zfnet512", "lrn softmax"), ("vgg19", "softmax")]
)
@pytest.mark.sweep
def test_networks_of_hundreds_of_megabytes_run_byte_equal(net: str, on_cpu: str, light: ModuleType) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = light.light_model(net, Path(folder))
        (name,) = bmcompiler.load_network(model).main.input_names
        data = {name: noise((1, 3, 224, 224))}
        assert_runs_byte_equal(compiled(model, None, data)[0], data, on_cpu)


@pytest.fixture
def light() -> ModuleType:
    """models/light.py, which is in no package."""
    spec = importlib.util.spec_from_file_location("light", MODELS / "light.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_feature_maps_far_larger_than_local_memory() -> None:
    """The first layers of VGG-19 at 224x224, at levels 0 and 2: 3.2 MB maps on 2 MB of local memory."""
    test_data = pytest.importorskip("onnx.backend.test")
    model = Path(test_data.__file__).parent / "data" / "light" / "light_vgg19.onnx"
    samples = noise((2, 3, 224, 224))
    plain, session = compiled(model, None, {"data_0": samples}, outputs=["r9"], opt=0)
    assert sum(row.tiles for row in plain.rows) > 2 * len(plain.rows)  # slices of groups are fewer
    assert_executions_agree(plain, session, {"data_0": samples})
    passes = passes_of_level("bm1880", "int8", 2)
    best = bmcompiler.compile_module(plain.module, target="bm1880", pipeline=passes, opt=2)
    assert max(row.tiles for row in best.rows) > 1
    outputs = [Session(result.model).run({"data_0": samples[:1]})["r9"].tobytes() for result in (plain, best)]
    assert outputs[0] == outputs[1]


def test_one_model_holds_several_input_shapes(tmp_path: Path) -> None:
    model = third_party("mtcnn_pnet.onnx")
    patches, _ = face_patches(24)
    path = tmp_path / "pnet.bmodel"
    shapes = [[[1, 24, 24, 3]], [[1, 40, 32, 3]]]
    result = bmcompiler.compile(model, target="bm1880", data={"input_1": patches}, shapes=shapes, output=path)
    session = Session(path)
    assert len(result.model.weight_sets) == 1
    small = session.run({"input_1": patches[:1]})
    large = session.run({"input_1": noise((1, 40, 32, 3))})
    assert [out.shape for out in small.values()] != [out.shape for out in large.values()]


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    calibration, _, _ = digits()
    net = MODELS / "lenet"
    files = [tmp_path / "a.bmodel", tmp_path / "b.bmodel"]
    for path in files:
        data = {"data": calibration[:32]}
        bmcompiler.compile(
            net / "deploy.prototxt", net / "lenet.caffemodel", target="bm1880", data=data, output=path, name="lenet"
        )
    assert files[0].read_bytes() == files[1].read_bytes()
