"""Whole networks against ONNX Runtime: the project's own, the fetched ones, and ImageNet graphs with seeded weights."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from fetched import third_party
from onnx_models import reference

from bmcompiler.frontends.onnx import FRONTEND, import_onnx
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, verify_module
from bmcompiler.passmanager import run_pipeline

MODELS = Path(__file__).resolve().parents[3] / "models"


def script(name: str) -> ModuleType:
    """A module of the models folder, which is no package."""
    spec = importlib.util.spec_from_file_location(name, MODELS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def random_inputs(module: Module) -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)
    main = module.main
    return {n: random.random(a.shape, np.float32) for n, a in zip(main.input_names, main.arguments)}


def scores(path: Path) -> list[str] | None:
    """What goes into a final softmax or sigmoid, which hides differences; None when the network ends otherwise."""
    graph = onnx.load(path).graph
    makers = {name: node for node in graph.node for name in node.output}
    last = makers[graph.output[0].name]
    return [last.input[0]] if last.op_type in ("Softmax", "Sigmoid") and len(graph.output) == 1 else None


def compare(path: Path, tolerance: float, **options: Any) -> Module:
    """Outputs within `tolerance` of ONNX Runtime, relative to the largest value of each output: as imported and after
    canonicalization."""
    module = import_onnx(path, **options)
    verify_module(module)
    feeds = random_inputs(module)
    imported, model = run_module(module, feeds), onnx.load(path)
    run_pipeline(module, "canonicalize")
    verify_module(module)
    if options.get("outputs"):
        del model.graph.output[:]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in options["outputs"])
    theirs = reference(model, feeds)
    for ours in (imported, run_module(module, feeds)):
        assert list(ours) == list(theirs)
        for name, want in theirs.items():
            assert ours[name].shape == want.shape
            assert np.abs(ours[name] - want).max() <= tolerance * np.abs(want).max(), name
    return module


def digits() -> tuple[np.ndarray, np.ndarray]:
    with np.load(MODELS / "digits.npz") as data:
        return data["test"].astype(np.float32) / 255, data["labels"]


def test_resnet8_keeps_its_accuracy_and_equals_onnx_runtime() -> None:
    images, labels = digits()
    path = MODELS / "resnet8" / "resnet8_mnist.onnx"
    module = FRONTEND.load(path, shapes=[(len(images), 1, 28, 28)])
    (digit_scores,) = run_module(module, {"x": images}).values()
    assert np.mean(digit_scores.argmax(1) == labels) == pytest.approx(0.964)
    one = import_onnx(path)
    (ours,) = run_module(one, {"x": images[:1]}).values()
    (theirs,) = reference(onnx.load(path), {"x": images[:1]}).values()
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert one.main.name == "resnet8_mnist" and one.main.input_names == ["x"]


FETCHED = [
    ("mtcnn_pnet", [(1, 12, 12, 3)], 1e-5),
    ("mtcnn_pnet", {"input_1": (1, 60, 40, 3)}, 1e-5),
    ("mtcnn_rnet", None, 1e-5),
    ("mtcnn_onet", None, 1e-5),
    ("mtcnn_onet", [(3, 48, 48, 3)], 1e-5),
    ("ppocr_v2_cls", [(1, 3, 48, 192)], 1e-5),
    ("ppocr_v4_det", [(1, 3, 160, 192)], 1e-4),
    ("ppocr_v4_rec", [(1, 3, 48, 320)], 1e-4),
]


@pytest.mark.parametrize(("name", "shapes", "tolerance"), FETCHED)
def test_fetched_network_equals_onnx_runtime(name: str, shapes: Any, tolerance: float) -> None:
    path = third_party(f"{name}.onnx")
    compare(path, tolerance, shapes=shapes, outputs=scores(path))


@pytest.mark.slow
def test_text_detector_at_full_size_equals_onnx_runtime() -> None:
    path = third_party("ppocr_v4_det.onnx")
    compare(path, 1e-4, shapes=[(1, 3, 320, 320)], outputs=scores(path))


LIGHT = ("squeezenet", "shufflenet", "inception_v1", "inception_v2", "densenet121", "resnet50")


@pytest.mark.slow
@pytest.mark.parametrize("name", LIGHT)
def test_imagenet_graph_equals_onnx_runtime(name: str) -> None:
    light = script("light")
    path = light.light_model(name)
    module = compare(path, 1e-4, outputs=scores(path))
    assert module.main.arguments[0].shape == light.INPUT_SHAPE


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["bvlc_alexnet", "zfnet512", "vgg19"])
def test_imagenet_graph_of_hundreds_of_megabytes_equals_onnx_runtime(name: str) -> None:
    light = script("light")
    with tempfile.TemporaryDirectory() as folder:
        path = light.light_model(name, Path(folder))
        compare(path, 1e-4, outputs=scores(path))


@pytest.mark.parametrize(("name", "size", "accuracy"), [("pnet", 12, 0.975), ("rnet", 24, 1.0), ("onet", 48, 1.0)])
def test_face_networks_keep_their_accuracy(name: str, size: int, accuracy: float) -> None:
    """200 patches, half of them faces: resized, grey as three channels, (x - 127.5) / 128, height and width swapped."""
    resize = pytest.importorskip("skimage.transform").resize
    patches = np.load(third_party("lfw_subset.npy"))
    images = np.stack([resize(patch, (size, size)) for patch in patches]).astype(np.float32)
    batch = np.repeat(((images * 255 - 127.5) / 128).transpose(0, 2, 1)[..., None], 3, axis=3)
    module = import_onnx(third_party(f"mtcnn_{name}.onnx"), shapes=[batch.shape])
    outputs = run_module(module, {module.main.input_names[0]: batch})
    (faces,) = (array.reshape(len(batch), 2) for array in outputs.values() if array.shape[-1] == 2)
    assert np.mean((faces[:, 1] > 0.5) == (np.arange(200) < 100)) >= accuracy - 0.01
