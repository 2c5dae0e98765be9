"""Accuracy of whole networks with real scales, op by op: digits and faces; text is read on the chip that has them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from fetched import third_party
from test_networks import MODELS, digits, face_patches

from bmcompiler.driver import load_network
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module
from bmcompiler.passmanager import PassContext, run_pipeline

_BEFORE = "single-precision,absorb-qdq,canonicalize,merge-reshapes,fuse-activation,calibrate{method=mse}"


def quantized(module: Module, data: np.ndarray, options: str = "") -> Module:
    """The net in integers, every op taken; its modes chosen on `data` unless `options` force them."""
    (name,) = module.main.input_names
    run_pipeline(module, f"{_BEFORE},quantize{{scheme=scale{options}}},dead-code", PassContext(data={name: data}))
    return module


def outputs(module: Module, data: np.ndarray) -> dict[str, np.ndarray]:
    (name,) = module.main.input_names
    batch = module.main.arguments[0].shape[0]
    steps = [run_module(module, {name: data[i : i + batch]}) for i in range(0, len(data), batch)]
    return {key: np.concatenate([step[key] for step in steps]) for key in steps[0]}


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    x, y = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))


@pytest.mark.parametrize("options", ["", ",mode=low", ",mode=high", ",mode=asymmetric"])
@pytest.mark.parametrize("net", ["lenet/deploy.prototxt", "resnet8/resnet8_mnist.onnx"])
def test_digits_are_read_as_in_float(net: str, options: str) -> None:
    """Chosen modes: within 0.3 points; one mode for all layers: within 0.6."""
    module = quantized(digits_net(net), digits()[0], options)
    assert right(module) >= right_in_float(net) - (0.006 if options else 0.003)


def digits_net(net: str) -> Module:
    """In float; four images at a time."""
    weights = MODELS / "lenet" / "lenet.caffemodel" if net.startswith("lenet") else None
    return load_network(MODELS / net, weights, shapes=[[4, 1, 28, 28]])


def right(module: Module) -> float:
    """Share of the digits that are read."""
    _, images, labels = digits()
    (scores,) = outputs(module, images).values()
    return float((scores.reshape(len(labels), -1).argmax(axis=1) == labels).mean())


@cache
def right_in_float(net: str) -> float:
    return right(digits_net(net))


@pytest.mark.parametrize(("net", "size"), [("rnet", 24), ("onet", 48)])
def test_faces_and_their_boxes_are_those_of_the_float_net(net: str, size: int) -> None:
    model, shape = third_party(f"mtcnn_{net}.onnx"), [[1, size, size, 3]]
    patches, _ = face_patches(size)
    want = outputs(load_network(model, shapes=shape), patches)
    got = outputs(quantized(load_network(model, shapes=shape), patches[::2]), patches)
    for name, array in want.items():
        assert cosine(got[name], array) >= 0.99, name
        if array.size == 400:
            faces = [each.reshape(200, 2)[:, 1] > 0.5 for each in (got[name], array)]
            assert np.mean(faces[0] == faces[1]) >= 0.995


@pytest.mark.parametrize("mode", ["low", "high"])
def test_transposed_convolutions_keep_their_outputs(mode: str) -> None:
    from nets import Net

    n = Net(4)
    x = n.relu(n.conv(n.input(1, 3, 12, 12), n.w(16, 3, 3, 3), n.w(16), pads=(1, 1, 1, 1)))
    x = n.relu(n.deconv(x, n.w(16, 8, 4, 4), n.w(8), strides=(2, 2), pads=(1, 1, 1, 1)))
    module = n.done(n.deconv(x, n.w(8, 2, 2, 2), strides=(2, 2)))
    data = np.random.default_rng(3).normal(0, 1, (6, 3, 12, 12)).astype(np.float32)
    want = outputs(module, data)["out0"]
    got = outputs(quantized(module, data, f",mode={mode}"), data)["out0"]
    assert cosine(got, want) >= 0.99
