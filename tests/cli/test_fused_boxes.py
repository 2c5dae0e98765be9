"""Detectors that take a camera's bytes, letterboxed: boxes where the float network finds them, on all Sophon chips."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fetched import third_party
from PIL import Image

import bmcompiler
from bmcompiler.inputs import ImageOptions, open_inputs
from bmcompiler.runtime import Session

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from tasks.detections import Box, blazeface, overlap, yolox
from tasks.material import CALIBRATION, METRIC
from tasks.text import characters

onnxruntime = pytest.importorskip("onnxruntime")
FACES: dict[str, Any] = {"letterbox": 0, "mean": 127.5, "std": 127.5}
CHIPS = [("bm1684", "f32", "bgr-nchw"), ("bm1684x", "f16", "rgb-nhwc"), ("bm1684x", "int8", "bgr-nchw")]
CHIPS += [("bm1684", "int8", "rgb-nhwc"), ("bm1880", "int8", "rgb-nhwc")]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Folders of pictures with a face, and of more for calibration, of all kinds of sizes."""
    whole = Image.open(third_party("astronaut.png")).convert("RGB")
    shown, seen = (tmp_path_factory.mktemp(name) for name in ("shown", "seen"))
    for number, box in enumerate([(120, 0, 330, 260), (80, 20, 400, 220), (150, 0, 300, 300)]):
        whole.crop(box).save(shown / f"{number}.png")
    for number in range(16):
        left, top = 40 * (number % 4), 20 * (number // 4)
        whole.crop((left, top, left + 200 + 10 * number, top + 300 - 8 * number)).save(seen / f"{number:02}.png")
    return shown, seen


def found_by_float(folder: Path) -> list[list[Box]]:
    """What the network finds in float32, its pictures prepared by the host."""
    net = onnxruntime.InferenceSession(third_party("blazeface_front.onnx"))
    (taken,) = net.get_inputs()
    samples = np.asarray(open_inputs(ImageOptions(folder, **FACES)).bind([taken])[taken.name])
    assert samples.min() == -1 and samples.dtype == np.float32
    return [blazeface(net.run(None, {taken.name: sample[None]})) for sample in samples]


@pytest.mark.parametrize(
    ("target", "quantize", "pixels"),
    [
        pytest.param(*one, marks=[pytest.mark.sweep] if one[:2] in (("bm1684x", "int8"), ("bm1684", "int8")) else [])
        for one in CHIPS
    ],
)
def test_boxes_of_bytes_are_within_two_pixels_of_floats(
    target: str, quantize: str, pixels: str, photos: tuple[Path, Path]
) -> None:
    shown, seen = photos
    wanted = found_by_float(shown)
    assert all(wanted)
    model = third_party("blazeface_front.onnx")
    images = ImageOptions(seen, **FACES)
    result = bmcompiler.compile(model, target=target, quantize=quantize, images=images, fuse_preprocess=pixels)
    session = Session(result.to_bytes())
    (taken,) = session.inputs
    assert taken.dtype == "uint8" and np.prod(taken.shape) == 3 * 128 * 128  # a quarter of float32's bytes
    outputs = list(session.run(session.images(shown)).values())
    for number, boxes in enumerate(wanted):
        mine = blazeface([each[number : number + 1] for each in outputs])
        assert len(mine) == len(boxes)
        for box in boxes:
            near = max(mine, key=lambda each: overlap(each, box))
            distance = np.abs(np.subtract(near, box)).max()
            assert distance < 2, (number, distance)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Folders of pictures with characters in two sizes, and of more for calibration."""
    shown, seen = (tmp_path_factory.mktemp(name) for name in ("shown", "seen"))
    for folder, split, count in ((shown, METRIC, 4), (seen, CALIBRATION, 16)):
        for number in range(count):
            page = Image.fromarray(characters("boxes", split, number)[0][:312])
            page.resize((624, 468) if number % 2 else (416, 312), Image.Resampling.BILINEAR).save(
                folder / f"{number:02}.png"
            )
    return shown, seen


@pytest.mark.sweep
@pytest.mark.parametrize(("target", "quantize", "pixels"), CHIPS[1:])
def test_boxes_of_a_letterboxed_yolo(target: str, quantize: str, pixels: str, pages: tuple[Path, Path]) -> None:
    """All boxes of the float network and no others, by default options; on the BM1880 thresholds by kl lose some.

    Boxes are 30 pixels wide. The BM1880, whose choice asks for decisions and not for pixels, moves a side by two.
    """
    shown, seen = pages
    options: dict[str, Any] = {"letterbox": 114, "channel_order": "bgr"}
    model = third_party("yolox_chars.onnx")
    net = onnxruntime.InferenceSession(model)
    (taken,) = net.get_inputs()
    samples = np.asarray(open_inputs(ImageOptions(shown, **options)).bind([taken])[taken.name])
    images = ImageOptions(seen, **options)
    result = bmcompiler.compile(model, target=target, quantize=quantize, images=images, fuse_preprocess=pixels)
    session = Session(result.to_bytes())
    (found,) = session.run(session.images(shown)).values()
    distances, overlaps = [], []
    for number, sample in enumerate(samples):
        boxes = yolox(net.run(None, {taken.name: sample[None]}))
        mine = yolox([found[number : number + 1]])
        assert len(boxes) >= 8 and len(mine) == len(boxes)
        distances += [min(np.abs(np.subtract(each, box)).max() for each in mine) for box in boxes]
        overlaps += [max(overlap(each, box) for each in mine) for box in boxes]
    assert min(overlaps) > 0.85, sorted(overlaps)[:5]
    assert target == "bm1880" or max(distances) < 2, sorted(distances)[-5:]
