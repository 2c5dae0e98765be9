"""Warnings about samples that look wrong, and what calibration ran on in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fetched import third_party
from PIL import Image

from bmcompiler.driver import load_network
from bmcompiler.inputs import ImageOptions, open_inputs
from bmcompiler.inputs.advice import WARNING, data_notes
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder

RANDOM = np.random.default_rng(3)


def batch_norm_net(data: np.ndarray, channels: int = 3) -> Module:
    """conv, then the batch norm that training on `data` would have left, relu."""
    b = Builder.new("net")
    x = b.input("data", TensorType((1, channels, 8, 10)))
    weight = RANDOM.normal(size=(4, channels, 1, 1)).astype(np.float32)
    y = np.einsum("oi,nihw->nohw", weight[:, :, 0, 0], data)
    mean, variance = (getattr(y, name)(axis=(0, 2, 3)).astype(np.float32) for name in ("mean", "var"))
    ones = np.ones(4, np.float32)
    norm = b.batch_norm(b.conv(x, b.weight(weight)), *(b.weight(each) for each in (ones, ones, mean, variance)))
    return b.outputs([b.relu(norm)], ["out"])


def warnings_of(module: Module, data: np.ndarray) -> list[str]:
    return [note for note in data_notes(module, {"data": data}) if note.startswith(WARNING)]


PHOTOS = RANDOM.normal(100, 50, (32, 3, 8, 10)).astype(np.float32)


def test_good_data_draw_no_warning() -> None:
    assert warnings_of(batch_norm_net(PHOTOS), PHOTOS[:16]) == []
    assert warnings_of(batch_norm_net(PHOTOS), PHOTOS * 2) == []


@pytest.mark.parametrize(("factor", "words"), [(1 / 255, "closer together"), (255, "further from the mean")])
def test_a_wrong_range_is_told_by_the_first_batch_norm(factor: float, words: str) -> None:
    (warning,) = warnings_of(batch_norm_net(PHOTOS), PHOTOS * np.float32(factor))
    assert words in warning and "batch_norm" in warning and "mean and scale" in warning


def test_a_batch_norm_of_the_input_itself_tells_too() -> None:
    b = Builder.new("net")
    x = b.input("data", TensorType((2, 3, 8, 10)))
    parameters = (np.ones(3), np.zeros(3), np.full(3, 100), np.full(3, 2500))
    norm = b.batch_norm(x, *(b.weight(each.astype(np.float32)) for each in parameters))
    module = b.outputs([b.relu(norm)], ["out"])
    assert warnings_of(module, PHOTOS) == []
    assert "times further from the mean" in warnings_of(module, (PHOTOS - 100) * 255 + 100)[0]


def folded_net(data: np.ndarray) -> Module:
    """As `batch_norm_net`, as exporters write it: no norm, but weights and biases of the convolution."""
    b = Builder.new("net")
    x = b.input("data", TensorType((1, 3, 8, 10)))
    weight = RANDOM.normal(size=(4, 3, 1, 1)).astype(np.float32)
    y = np.einsum("oi,nihw->nohw", weight[:, :, 0, 0], data)
    mean, deviation = (getattr(y, name)(axis=(0, 2, 3)).astype(np.float32) for name in ("mean", "std"))
    biases = (RANDOM.normal(size=4).astype(np.float32) - mean) / deviation
    layer = b.conv(x, b.weight(weight / deviation.reshape(4, 1, 1, 1)), b.weight(biases))
    return b.outputs([b.relu(layer)], ["out"])


PIXELS = PHOTOS.clip(0, 255)


@pytest.mark.parametrize("trained", [PIXELS / 255, PIXELS / 127.5 - 1], ids=["0..1", "-1..1"])
def test_pixels_are_told_by_biases_where_the_first_norm_is_folded(trained: np.ndarray) -> None:
    (warning,) = warnings_of(folded_net(trained), PIXELS)
    assert "pixels 0..255" in warning and "times its biases" in warning and "range, mean and scale" in warning
    assert warnings_of(folded_net(trained), trained) == []
    assert warnings_of(folded_net(PIXELS), PIXELS) == []


def test_what_is_no_pixels_is_not_told_by_biases() -> None:
    net = folded_net(PIXELS / 255)
    for other in (PIXELS * 10, PIXELS - 1, PIXELS / 20):
        assert warnings_of(net, other) == []


@pytest.mark.parametrize(
    ("name", "trained_on_pixels"), [("blazeface_front", False), ("mtcnn_onet", False), ("centerface", True)]
)
def test_trained_detectors_tell_pixels(name: str, trained_on_pixels: bool, tmp_path: Path) -> None:
    photo = Image.open(third_party("astronaut.png")).convert("RGB")
    for number in range(4):
        photo.crop((20 * number, 0, 300 + 20 * number, 300)).save(tmp_path / f"{number}.png")
    module = load_network(third_party(f"{name}.onnx"))
    cases: list[tuple[dict[str, Any], bool]] = [({}, trained_on_pixels), ({"mean": 127.5, "std": 127.5}, True)]
    for options, right in cases:
        notes = data_notes(module, open_inputs(ImageOptions(tmp_path, **options)))
        assert any("times its biases" in note for note in notes) != right


def test_few_copied_and_gray_samples_are_told() -> None:
    module = batch_norm_net(PHOTOS)
    assert "3 calibration samples" in warnings_of(module, PHOTOS[:3])[0]
    assert "31 of 32" in warnings_of(module, np.repeat(PHOTOS[:1], 32, axis=0))[0]
    gray = np.repeat(PHOTOS[:, :1], 3, axis=1) * np.array([1, 1.1, 1.2], np.float32).reshape(3, 1, 1) - 7
    assert any("gray" in warning for warning in warnings_of(module, gray))


def test_notes_say_source_and_layout(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", PHOTOS)
    notes = data_notes(batch_norm_net(PHOTOS), open_inputs(tmp_path / "c.npy"))
    assert notes == [f"calibrated on 32 samples from {tmp_path / 'c.npy'}; input 'data' is NCHW"]
