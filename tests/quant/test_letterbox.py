"""Letterboxes equal those that detectors are trained on, and points of the input go back to the picture."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from bmcompiler.errors import UsageError
from bmcompiler.inputs import ImageOptions, open_inputs, placed
from bmcompiler.inputs.placing import drawn
from bmcompiler.ir import Function, TensorType
from bmcompiler.quant.data import bind_data

RANDOM = np.random.default_rng(32)


def reference(picture: np.ndarray, height: int, width: int, pad: str) -> np.ndarray:
    """What Ultralytics makes: one factor, whole sizes, halves of the border rounded with 0.1 taken off."""
    factor = min(height / picture.shape[0], width / picture.shape[1])
    across, down = round(picture.shape[1] * factor), round(picture.shape[0] * factor)
    right, below = width - across, height - down
    left = top = 0
    if pad == "center":
        left, top = round(right / 2 - 0.1), round(below / 2 - 0.1)
    scaled = cv2.resize(picture, (across, down), interpolation=cv2.INTER_LINEAR)
    border = (top, below - top, left, right - left)
    return cv2.copyMakeBorder(scaled, *border, cv2.BORDER_CONSTANT, value=(114,) * 3)


@pytest.mark.parametrize("pad", ["center", "bottom-right"])
@pytest.mark.parametrize(
    "size", [(480, 640), (641, 427), (31, 17), (1, 9), (128, 128), (256, 192), (97, 3), (1000, 128), (129, 127)]
)
def test_a_letterbox_is_that_of_ultralytics(size: tuple[int, int], pad: str) -> None:
    picture = RANDOM.integers(0, 256, (*size, 3), np.uint8)
    found = drawn(Image.fromarray(picture), ImageOptions("x", letterbox=114, pad=pad), (128, 160), 3)
    apart = np.abs(found.astype(int) - reference(picture, 128, 160, pad))
    assert apart.max() <= 1 and (apart > 0).mean() < 0.02


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA", "L", "P", "1"])
@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_of_every_kind_fill_their_border(mode: str, channels: int, tmp_path: Path) -> None:
    Image.fromarray(RANDOM.integers(0, 256, (9, 30, 3), np.uint8)).convert(mode).save(tmp_path / "a.png")
    Image.fromarray(RANDOM.integers(0, 256, (30, 9, 3), np.uint8)).convert(mode).save(tmp_path / "b.png")
    function = Function("net", [TensorType((1, channels, 32, 32))], ["data"])
    found = np.asarray(bind_data(function, open_inputs(ImageOptions(tmp_path, letterbox=114)))["data"])
    assert found.shape == (2, channels, 32, 32)
    assert (found[0, :, [0, -1]] == 114).all() and (found[1, :, :, [0, -1]] == 114).all()
    assert (found[0, :, 12] != 114).any()


def test_the_border_has_the_order_and_the_formula_of_the_channels(tmp_path: Path) -> None:
    Image.new("RGB", (8, 4), (10, 20, 30)).save(tmp_path / "a.png")
    options = ImageOptions(tmp_path, letterbox=(1, 2, 3), channel_order="bgr", mean=1, scale=0.5, pad="bottom-right")
    bound = bind_data(Function("net", [TensorType((1, 3, 8, 8))], ["data"]), open_inputs(options))
    found = np.asarray(bound["data"])[0]
    assert found[:, 0, 0].tolist() == [14.5, 9.5, 4.5] and found[:, -1, 0].tolist() == [0, 0.5, 1]
    assert "letterboxed to 8x8 on [1, 2, 3] (bottom-right), (pixel - 1) * 0.5" in str(bound.description)


@pytest.mark.parametrize(
    "given",
    [{}, {"letterbox": 0}, {"letterbox": 0, "pad": "bottom-right"}, {"keep_aspect": True}, {"resize": (80, 100)}],
)
@pytest.mark.parametrize("picture", [(40, 90), (333, 77), (20, 20)])
def test_points_go_back_to_the_picture(given: dict[str, object], picture: tuple[int, int]) -> None:
    """Where a bright square is found in the input, it was in the picture."""
    options = ImageOptions("x", **given)
    height, width = picture
    box = np.array([width * 0.4, height * 0.4, width * 0.6, height * 0.6]).round()
    x1, y1, x2, y2 = box.astype(int)
    pixels = np.zeros((*picture, 1), np.uint8)
    pixels[y1:y2, x1:x2] = 255
    shown = drawn(Image.fromarray(pixels[..., 0]), options, (64, 64), 1)[..., 0] > 127
    rows, columns = np.flatnonzero(shown.any(1)), np.flatnonzero(shown.any(0))
    found = [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]
    place = placed(options, (64, 64), picture)
    step = max(height / place.scaled[0], width / place.scaled[1])
    assert np.abs(place.to_image(found) - box).max() <= max(1, step)
    assert place.to_image([[-900, -900], [900, 900]]).tolist() == [[0, 0], [width, height]]
    with pytest.raises(UsageError, match="x and y in turns"):
        place.to_image([1, 2, 3])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"letterbox": 114.5}, "whole numbers from 0 to 255"),
        ({"letterbox": 256}, "whole numbers from 0 to 255"),
        ({"letterbox": (1, -1, 0)}, "whole numbers from 0 to 255"),
        ({"letterbox": float("nan")}, "whole numbers from 0 to 255"),
        ({"letterbox": ()}, "whole numbers from 0 to 255"),
        ({"letterbox": 114, "resize": (64, 64)}, "letterbox and resize exclude each other"),
        ({"letterbox": 114, "keep_aspect": True}, "letterbox and keep_aspect exclude each other"),
        ({"pad": "center"}, "pad says where letterbox fills"),
        ({"letterbox": 0, "pad": "left"}, "pad must be center or bottom-right"),
    ],
)
def test_wrong_letterboxes_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ImageOptions("x", **given)


def test_a_border_has_a_number_per_channel(tmp_path: Path) -> None:
    Image.new("RGB", (8, 4)).save(tmp_path / "a.png")
    with pytest.raises(UsageError, match="letterbox has 2 numbers"):
        bind_data(
            Function("net", [TensorType((1, 3, 8, 8))], ["data"]), open_inputs(ImageOptions(tmp_path, letterbox=(1, 2)))
        )
