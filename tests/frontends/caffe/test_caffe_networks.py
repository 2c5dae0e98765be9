"""Published Caffe networks against OpenCV: the SSD face detector, and the five deploy nets that Caffe comes with."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from caffe_nets import random, run
from fetched import third_party

from bmcompiler.frontends.caffe import import_caffe
from bmcompiler.ir import Module

cv2 = pytest.importorskip("cv2")
MODELS = Path(__file__).parents[3] / "models"
FACES = {"astronaut.png": 1, "res10_ssd_face_photo1.jpg": 5, "res10_ssd_face_photo2.jpg": 2}
DEPLOYS = [
    "googlenet",
    # of hundreds of megabytes; googlenet has all of their kinds of layers, tests of layers their groups
    *(pytest.param(name, marks=pytest.mark.sweep) for name in ("alexnet", "caffenet", "rcnn", "flickr_style")),
]


def detector() -> tuple[str, str]:
    return str(third_party("res10_ssd_face.prototxt")), str(third_party("res10_ssd_face.caffemodel"))


def photo(name: str) -> np.ndarray:
    image = cv2.imread(str(third_party(name)))
    return cv2.dnn.blobFromImage(image, 1.0, (300, 300), (104, 177, 123))


def opencv(files: tuple[str, ...], blob: np.ndarray, *names: str) -> list[np.ndarray]:
    net = cv2.dnn.readNetFromCaffe(*files)
    net.setInput(blob)
    return list(net.forward(list(names))) if names else [net.forward()]


@pytest.mark.parametrize("name", FACES)
def test_ssd_heads_equal_opencv(name: str) -> None:
    heads = ("mbox_loc", "mbox_conf_flatten", "mbox_priorbox")
    blob = photo(name)
    ours = run(import_caffe(*detector(), outputs=heads), {"data": blob})
    for mine, reference in zip(ours, opencv(detector(), blob, *heads)):
        np.testing.assert_allclose(mine.ravel(), reference.ravel(), atol=1e-4)


@pytest.mark.parametrize("name", FACES)
def test_whole_ssd_detects_what_opencv_detects(name: str) -> None:
    module: Module = import_caffe(*detector())
    assert module.main.output_names == ["detection_out"]
    blob = photo(name)
    found = run(module, {"data": blob})[0]
    assert found.shape == (1, 1, 200, 7)
    rows = found[0, 0][found[0, 0, :, 0] >= 0]
    reference = opencv(detector(), blob)[0].reshape(-1, 7)
    np.testing.assert_allclose(rows, reference[reference[:, 2] > 0], atol=1e-4)
    assert (rows[:, 2] > 0.5).sum() == FACES[name]
    assert (found[0, 0, len(rows) :] == [-1, 0, 0, 0, 0, 0, 0]).all()


def filler() -> ModuleType:
    spec = importlib.util.spec_from_file_location("caffe_fill", MODELS / "caffe_fill.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", DEPLOYS)
@pytest.mark.slow
def test_deploy_nets_with_seeded_weights_equal_opencv(name: str, tmp_path: Path) -> None:
    prototxt, weights = third_party(f"caffe_{name}.prototxt"), tmp_path / "net.caffemodel"
    weights.write_bytes(filler().filled(prototxt).SerializeToString())
    module = import_caffe(prototxt, weights)
    (value,) = module.main.arguments
    image = random(value.shape, 3, -2, 2)
    (mine,) = run(module, {module.main.input_names[0]: image})
    (reference,) = opencv((str(prototxt), str(weights)), image)
    assert mine.shape == reference.shape
    scale = np.abs(reference).max()
    np.testing.assert_allclose(mine / scale, reference / scale, atol=1e-4)
