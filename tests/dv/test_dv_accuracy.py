"""Fetched networks on the DV700 against float: faces, text direction, objects, in fp16 and with weights of 8 bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dv_nets import run_on_device
from fetched import THIRD_PARTY, third_party
from rendered_text import lines

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.runtime import Session

cv2 = pytest.importorskip("cv2")
PRECISIONS = ("f16", "int8")
LOSS = {"f16": 0.0, "int8": 0.005}
"""Share of samples that may be judged otherwise."""
Arrays = dict[str, np.ndarray]


def compiled(files: tuple[Path, ...], shape: tuple[int, ...], precision: str) -> Any:
    return bmcompiler.compile(*files, target="dv700", quantize=precision, shapes=[list(shape)])


def classes(outputs: Arrays, samples: int) -> np.ndarray:
    (scores,) = (array.reshape(samples, 2) for array in outputs.values() if array.size == 2 * samples)
    return scores.argmax(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("name", "size"), [("pnet", 12), ("rnet", 24), ("onet", 48)])
def test_faces_are_told_as_in_float(name: str, size: int, precision: str) -> None:
    """100 patches with faces and 100 without; what float says of each, and the bits of `evaluate`."""
    gray = np.load(third_party("lfw_subset.npy")).astype(np.float32)
    resized = np.stack([cv2.resize(patch, (size, size), interpolation=cv2.INTER_LINEAR) for patch in gray])
    patches = np.repeat(((resized * 255 - 127.5) / 128).transpose(0, 2, 1)[..., None], 3, axis=3).astype(np.float32)
    model = third_party(f"mtcnn_{name}.onnx")
    network = bmcompiler.load_network(model, shapes=[patches.shape])
    (source,) = network.main.input_names
    wanted = classes(run_module(network, {source: patches}), len(patches))
    result = compiled((model,), (20, *patches.shape[1:]), precision)
    run_on_device(result.module, result, {source: patches[:20]})
    found = classes(Session(result.model).run({source: patches}), len(patches))
    assert (found != wanted).mean() <= LOSS[precision]


@pytest.mark.sweep
@pytest.mark.parametrize("precision", PRECISIONS)
def test_text_direction_is_told_as_in_float(precision: str) -> None:
    """100 rendered lines, half of them upside down."""
    model = third_party("ppocr_v2_cls.onnx")
    images, _ = lines(THIRD_PARTY, 100, 1)
    network = bmcompiler.load_network(model, shapes=[images.shape])
    wanted = classes(run_module(network, {"x": images}), len(images))
    result = compiled((model,), (10, *images.shape[1:]), precision)
    found = classes(Session(result.model).run({"x": images}), len(images))
    assert (found != wanted).mean() <= 2 * LOSS[precision]  # one line of 100 is a whole point


FACES = ("astronaut.png", "res10_ssd_face_photo1.jpg", "res10_ssd_face_photo2.jpg")


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_faces_of_photos_are_found(precision: str) -> None:
    """Boxes and scores of the detections above 0.5, in pixels of 300: as in float."""
    files = third_party("res10_ssd_face.prototxt"), third_party("res10_ssd_face.caffemodel")
    result = compiled(files, (1, 3, 300, 300), precision)
    network, session = bmcompiler.load_network(*files), Session(result.model)
    for name in FACES:
        image = cv2.dnn.blobFromImage(cv2.imread(str(third_party(name))), 1.0, (300, 300), (104, 177, 123))
        (wanted,) = run_module(network, {"data": image}).values()
        (found,) = session.run({"data": image}).values()
        boxes = [rows.reshape(-1, 7)[rows.reshape(-1, 7)[:, 2] > 0.5, 2:] for rows in (wanted, found)]
        assert len(boxes[0]) == len(boxes[1]) > 0
        tolerance = 0.02 if precision == "int8" else 0.005
        ordered = [rows[np.argsort(rows[:, 1])] for rows in boxes]
        np.testing.assert_allclose(ordered[1], ordered[0], atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize(("file", "input_shape"), [("light_squeezenet.onnx", (3, 224, 224))])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_first_class_is_that_of_float(file: str, input_shape: tuple[int, ...], precision: str) -> None:
    """The photos that are fetched, scaled; weights of this network are seeded, so scores mean nothing but order."""
    model = third_party(file)
    paths = [third_party(name) for name in FACES]
    images = np.stack([cv2.resize(cv2.imread(str(path)), input_shape[:0:-1]) for path in paths])
    data = ((images.transpose(0, 3, 1, 2) - 127.5) / 64).astype(np.float32)
    network = bmcompiler.load_network(model, shapes=[[1, *input_shape]])
    (source,) = network.main.input_names
    result = compiled((model,), (1, *input_shape), precision)
    session = Session(result.model)
    for image in data:
        (wanted,) = run_module(network, {source: image[None]}).values()
        (found,) = session.run({source: image[None]}).values()
        assert found.argmax() == wanted.argmax()
