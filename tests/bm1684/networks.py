"""The networks that BM1684 is tested with: files, samples, compilation, and the comparison with `evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rendered_text import pages

import bmcompiler
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.runtime import Session

MODELS = Path(__file__).resolve().parent.parent.parent / "models"
THIRD_PARTY = MODELS / "third_party"
Arrays = dict[str, np.ndarray]

NETS: dict[str, tuple[str, tuple[int, ...]]] = {
    "lenet": ("lenet/deploy.prototxt", (1, 1, 28, 28)),
    "resnet8": ("resnet8/resnet8_mnist.onnx", (1, 1, 28, 28)),
    "mtcnn_pnet": ("third_party/mtcnn_pnet.onnx", (1, 120, 160, 3)),
    "mtcnn_rnet": ("third_party/mtcnn_rnet.onnx", (1, 24, 24, 3)),
    "mtcnn_onet": ("third_party/mtcnn_onet.onnx", (1, 48, 48, 3)),
    "ppocr_v2_cls": ("third_party/ppocr_v2_cls.onnx", (1, 3, 48, 192)),
    "ppocr_v4_det": ("third_party/ppocr_v4_det.onnx", (1, 3, 320, 320)),
    "light_squeezenet": ("third_party/light_squeezenet.onnx", (1, 3, 224, 224)),
    "light_resnet50": ("third_party/light_resnet50.onnx", (1, 3, 224, 224)),
    "res10_ssd_face": ("third_party/res10_ssd_face.prototxt", (1, 3, 300, 300)),
}
WEIGHTS = {"lenet": "lenet/lenet.caffemodel", "res10_ssd_face": "third_party/res10_ssd_face.caffemodel"}
QUICK = ("lenet", "resnet8", "mtcnn_rnet")


LARGE = ("ppocr_v2_cls", "ppocr_v4_det", "light_squeezenet", "light_resnet50", "res10_ssd_face")
"""Four images of these take long: images of a batch differ in nothing that smaller networks do not show."""


def cases(quick: Sequence[str], sweep: Sequence[str] = ()) -> list[Any]:
    """(name, batch) of all networks: those not quick are slow, those of `sweep` and large batches left to CI."""
    marks = {name: () if name in quick else pytest.mark.slow for name in NETS}
    return [
        pytest.param(
            name, batch, marks=pytest.mark.sweep if name in sweep or (batch > 1 and name in LARGE) else marks[name]
        )
        for name in NETS
        for batch in (1, 4)
    ]


def files(name: str) -> tuple[Path, Path | None]:
    """The files of a network; skips the test when they are not fetched."""
    paths = [MODELS / NETS[name][0], *([MODELS / WEIGHTS[name]] if name in WEIGHTS else [])]
    for path in paths:
        if not path.exists():
            pytest.skip(f"{path.name} is not fetched: run `make models`")
    return paths[0], paths[1] if len(paths) > 1 else None


def samples(name: str, batch: int) -> np.ndarray:
    """Noise in the range that the network takes."""
    spread = 60.0 if name == "res10_ssd_face" else 1.0
    shape = (batch, *NETS[name][1][1:])
    if name == "ppocr_v4_det":  # on noise all results are tiny
        return np.concatenate([page for page, _ in pages(THIRD_PARTY, batch, seed=1)])
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32) * np.float32(spread)


def compiled(name: str, batch: int, **options: Any) -> Any:
    model, weights = files(name)
    shape = [batch, *NETS[name][1][1:]]
    return bmcompiler.compile(model, weights, target="bm1684", shapes=[shape], **options)


def assert_chip_equals_evaluate(result: Any, inputs: Arrays) -> Arrays:
    """The simulator gives the bits that the chip's arithmetic gives on the lowered IR; returns them."""
    found = Session(result.model).run(inputs, raw=True)
    for name, expected in run_module(result.module, inputs, target=TARGET).items():
        assert found[name].tobytes() == expected.tobytes(), f"output {name} differs"
    return found


def assert_on_chip(name: str, result: Any) -> None:
    rows = [row for row in result.rows if row.where == "cpu"]
    assert not rows, [(name, row.layer, row.reason) for row in rows]
