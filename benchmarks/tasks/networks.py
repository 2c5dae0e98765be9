"""The networks with a task: files, one input, samples of two splits, and how outputs are judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from tasks import detections, faces, reading, text
from tasks.material import CALIBRATION, FETCHED, METRIC, MODELS, Array

Run = Callable[[Array], Sequence[Array]]
"""One sample with its batch axis -> outputs in the order of the network."""


@dataclass(frozen=True)
class Network:
    """A network and its task.

    title, task: words for the table. files: as `bmnet-compile` takes them. input, shape: of the one input, batch 1.
    count: samples of the metric. sample: (name, split, index) -> float32 of the shape, and what is true of it.
    judge: outputs and truth -> what is right, of how much; both add up over samples, and their quotient is the score.
    """

    name: str
    title: str
    task: str
    files: tuple[Path, ...]
    input: str
    shape: tuple[int, ...]
    count: int
    sample: Callable[[str, str, int], tuple[Array, Any]]
    judge: Callable[[Sequence[Array], Any], tuple[int, int]]

    @property
    def there(self) -> bool:
        """Whether its files have been fetched."""
        return all(path.exists() for path in self.files)

    def calibration(self, count: int) -> dict[str, Array]:
        """Samples on axis 0 by input name; the metric has none of them."""
        return {self.input: np.concatenate([self.sample(self.name, CALIBRATION, k)[0] for k in range(count)])}

    def metric(self, run: Run) -> float:
        """The score, 0 to 1, of whoever runs its samples."""
        right = of = 0
        for k in range(self.count):
            x, truth = self.sample(self.name, METRIC, k)
            more, among = self.judge([np.asarray(array) for array in run(x)], truth)
            right, of = right + more, of + among
        return max(0.0, right / of)


Scene = Callable[[str, str, int], tuple[Array, Any]]
"""Name, split, index -> [height, width, 3] uint8 in RGB, and what is true of it."""


def _pixels(scene: Scene, axes: str, mean: Any, scale: Any) -> Scene:
    """Scenes as inputs: (pixel - mean) / scale. axes: "HWC" in another order, then RGB or BGR."""
    order, channels = axes.split()

    def sample(name: str, split: str, index: int) -> tuple[Array, Any]:
        image, truth = scene(name, split, index)
        x = (image[..., :: 1 if channels == "RGB" else -1] - np.asarray(mean, np.float64)) / np.asarray(scale)
        return np.ascontiguousarray(x.transpose(["HWC".index(axis) for axis in order]), np.float32)[None], truth

    return sample


def _class(outputs: Sequence[Array], truth: int) -> tuple[int, int]:
    """The largest number of the last output stands at the true class."""
    return int(outputs[-1].argmax() == truth), 1


@cache
def _stored_digits() -> dict[str, Array]:
    with np.load(MODELS / "digits.npz") as stored:
        return {key: stored[key] for key in stored.files}


def _digit(_: str, split: str, index: int) -> tuple[Array, int]:
    """A digit of MNIST, 1x1x28x28 in 0..1."""
    stored = _stored_digits()
    pixels = stored["test" if split == METRIC else "calib"][index : index + 1]
    return pixels.astype(np.float32) / 255, int(stored["labels"][index]) if split == METRIC else -1


def _boxes(decode: Callable[[Sequence[Array]], list[detections.Box]]) -> Callable[[Sequence[Array], Any], Any]:
    return lambda outputs, truth: detections.f1(decode(outputs), truth)


def _mtcnn(kind: str, number: int, size: int, task: str) -> Network:
    """The three nets take pictures with height and width exchanged, as they were trained."""
    name = f"mtcnn_{kind.lower()}net"
    sample = _pixels(partial(faces.one, size=size), "WHC RGB", 127.5, 128)
    shape = (1, size, size, 3)
    return Network(name, f"MTCNN {kind}-Net", task, _fetched(name), f"input_{number}", shape, 300, sample, _class)


def _fetched(name: str, *ends: str) -> tuple[Path, ...]:
    return tuple(FETCHED / f"{name}{end}" for end in ends or (".onnx",))


def _read(outputs: Sequence[Array], truth: str) -> tuple[int, int]:
    return reading.unchanged(reading.characters(outputs[0][0], reading.alphabet(*_fetched("ppocr_v4_rec"))), truth)


def _text(name: str, title: str, task: str, shape: tuple[int, ...], count: int, scene: Scene, judge: Any) -> Network:
    """A PP-OCR net with pixels in -1..1, or the means and deviations of ImageNet for the one that finds lines."""
    mean: Any = (123.675, 116.28, 103.53) if scene is text.page else 127.5
    scale: Any = (58.395, 57.12, 57.375) if scene is text.page else 127.5
    sample = _pixels(scene, "CHW BGR", mean, scale)
    return Network(name, title, task, _fetched(name), "x", shape, count, sample, judge)


_LENET = (MODELS / "lenet/deploy.prototxt", MODELS / "lenet/lenet.caffemodel")
_RESNET8 = (MODELS / "resnet8/resnet8_mnist.onnx",)
_SSD = _fetched("res10_ssd_face", ".prototxt", ".caffemodel")
_FACES = partial(faces.several, size=300, cells=3, sides=(54, 86))
_LARGE_FACES = partial(faces.several, size=480, cells=4, sides=(64, 104))
_ONE_FACE = partial(faces.several, size=128, cells=1, sides=(56, 88))

NETWORKS = {
    net.name: net
    for net in (
        Network("lenet", "LeNet", "digits, top-1 of 500", _LENET, "data", (1, 1, 28, 28), 500, _digit, _class),
        Network("resnet8", "ResNet-8", "the same", _RESNET8, "x", (1, 1, 28, 28), 500, _digit, _class),
        _mtcnn("P", 1, 12, "faces or not, accuracy"),
        _mtcnn("R", 2, 24, "the same"),
        _mtcnn("O", 3, 48, "the same"),
        _text(
            *("ppocr_v2_cls", "PP-OCR v2 cls", "direction of text, accuracy", (1, 3, 48, 192)),
            *(200, partial(text.turned, width=192), _class),
        ),
        _text(
            *("ppocr_v4_det", "PP-OCR v4 det", "lines of text, F1", (1, 3, 320, 320)),
            *(20, text.page, lambda outputs, truth: reading.lines(outputs[0][0, 0], truth)),
        ),
        _text(
            *("ppocr_v4_rec", "PP-OCR v4 rec", "right characters", (1, 3, 48, 320)),
            *(60, partial(text.line, width=320), _read),
        ),
        Network(
            *("res10_ssd_face", "ResNet-10 SSD", "faces, F1", _SSD, "data", (1, 3, 300, 300), 24),
            *(_pixels(_FACES, "CHW BGR", (104, 177, 123), 1), _boxes(detections.ssd)),
        ),
        Network(
            *("blazeface_front", "BlazeFace front", "faces, F1", _fetched("blazeface_front"), "input:0"),
            *((1, 128, 128, 3), 200, _pixels(_ONE_FACE, "HWC RGB", 127.5, 127.5), _boxes(detections.blazeface)),
        ),
        Network(
            *("centerface", "CenterFace", "the same", _fetched("centerface"), "input.1", (1, 3, 480, 480), 14),
            *(_pixels(_LARGE_FACES, "CHW RGB", 0, 1), _boxes(detections.centerface)),
        ),
        Network(
            *("yolox_chars", "YOLOX", "characters, F1", _fetched("yolox_chars"), "images", (1, 3, 416, 416), 12),
            *(_pixels(text.characters, "CHW BGR", 0, 1), _boxes(detections.yolox)),
        ),
    )
}
"""By name, in the order of the table."""
