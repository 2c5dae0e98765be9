"""Networks that are compiled at several levels and must not differ in more than time and memory."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from fetched import third_party

import bmcompiler
from bmcompiler.driver import Result, load_network
from bmcompiler.runtime import Session

MODELS = Path(__file__).resolve().parent.parent / "models"
IMAGE = (3, 224, 224)
SHAPES: dict[str, tuple[int, ...]] = {
    "lenet": (1, 28, 28),
    "resnet8": (1, 28, 28),
    "mtcnn_pnet": (120, 160, 3),
    "mtcnn_rnet": (24, 24, 3),
    "mtcnn_onet": (48, 48, 3),
    "ppocr_v2_cls": (3, 48, 192),
    "ppocr_v4_det": (3, 320, 320),
    "ppocr_v4_rec": (3, 48, 320),
    "mobilenetv2_160": (3, 160, 160),
    "centerface_480": (3, 480, 480),
    "res10_ssd_face": (3, 300, 300),
    "light_resnet50": IMAGE,
    "light_densenet121": IMAGE,
    "light_squeezenet": IMAGE,
    "light_shufflenet": IMAGE,
    "light_inception_v1": IMAGE,
    "light_inception_v2": IMAGE,
}
"""One sample of the input of every network."""
OURS = {"lenet": "lenet/deploy.prototxt", "resnet8": "resnet8/resnet8_mnist.onnx"}
WEIGHTS = {"lenet": MODELS / "lenet/lenet.caffemodel"}
SEEDED = ("mobilenetv2_160", "centerface_480")
MODES = (("bm1684", "f32"), ("bm1684", "int8"), ("bm1880", "int8"))
"""Targets with levels, and how they compute."""


def files_of(name: str, folder: Path) -> tuple[Path, Path | None]:
    """Model and weights; seeded ones are written to `folder`, and without a fetched one the test is skipped."""
    if name in OURS:
        return MODELS / OURS[name], WEIGHTS.get(name)
    if name in SEEDED:
        return seeded(name, folder), None
    if name == "res10_ssd_face":
        return third_party(f"{name}.prototxt"), third_party(f"{name}.caffemodel")
    return third_party(f"{name}.onnx"), None


def seeded(name: str, folder: Path) -> Path:
    """A network of models/seeded.py, which is in no package."""
    spec = importlib.util.spec_from_file_location("seeded", MODELS / "seeded.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path: Path = module.seeded_model(name, folder)
    return path


class Network:
    """A network for a chip, calibrated with noise; on the BM1684, levels share the modes chosen for its layers."""

    def __init__(self, name: str, target: str, precision: str, folder: Path, batch: int = 1) -> None:
        self.files, shape = files_of(name, folder), [batch, *SHAPES[name]]
        (self.input,) = load_network(*self.files, shapes=[shape]).main.input_names
        noise = np.random.default_rng(0).standard_normal((max(batch, 2), *shape[1:]), np.float32)
        self.images = {self.input: noise[:batch]}
        self.options: dict[str, Any] = {"target": target, "quantize": precision, "shapes": [shape]}
        if precision == "int8":
            self.options["data"] = {self.input: noise}
            if target == "bm1684":
                self.options["quant_table"] = folder / "modes"

    def at(self, level: int, **more: Any) -> Result:
        """Compiled at a level; `more`: options of `bmcompiler.compile`."""
        return bmcompiler.compile(*self.files, opt=level, **self.options, **more)

    def outputs(self, session: Session) -> dict[str, bytes]:
        """Outputs of the noise, by name."""
        return {name: array.tobytes() for name, array in session.run(self.images).items()}
