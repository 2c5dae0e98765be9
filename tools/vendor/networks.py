"""Networks that this compiler compiles and the vendor's runtime judges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bmcompiler
from bmcompiler.bmodel.bm1684 import Bm1684Model

MODELS = Path(__file__).resolve().parents[2] / "models"
THIRD_PARTY = MODELS / "third_party"
IMAGE = (1, 3, 224, 224)


@dataclass(frozen=True)
class Network:
    """Files of a network, the shape of its one input, and the spread of the noise it is given."""

    files: tuple[Path, ...]
    shape: tuple[int, ...]
    spread: float = 1.0


NETWORKS = {
    "lenet": Network((MODELS / "lenet/deploy.prototxt", MODELS / "lenet/lenet.caffemodel"), (1, 1, 28, 28)),
    "resnet8": Network((MODELS / "resnet8/resnet8_mnist.onnx",), (1, 1, 28, 28)),
    "mtcnn_pnet": Network((THIRD_PARTY / "mtcnn_pnet.onnx",), (1, 48, 64, 3)),
    "mtcnn_rnet": Network((THIRD_PARTY / "mtcnn_rnet.onnx",), (1, 24, 24, 3)),
    "mtcnn_onet": Network((THIRD_PARTY / "mtcnn_onet.onnx",), (1, 48, 48, 3)),
    "ppocr_v2_cls": Network((THIRD_PARTY / "ppocr_v2_cls.onnx",), (1, 3, 48, 192)),
    **{
        f"light_{name}": Network((THIRD_PARTY / f"light_{name}.onnx",), IMAGE)
        for name in ("squeezenet", "shufflenet", "inception_v1", "resnet50")
    },
}
DEFAULT = ("lenet", "resnet8", "mtcnn_pnet", "mtcnn_rnet", "mtcnn_onet", "light_squeezenet")


@dataclass
class Compiled:
    """A model file, an input for it, and what went to the host CPU (kinds of layers)."""

    model: Bm1684Model
    inputs: dict[str, NDArray[np.float32]]
    on_cpu: list[str]


def compile_network(name: str, precision: str, batch: int, outputs: list[str] | None) -> Compiled:
    """Compile one of `NETWORKS` with seeded noise as calibration data and input. Raises BMError."""
    network = NETWORKS[name]
    shape = (batch, *network.shape[1:])
    rng = np.random.default_rng(0)
    samples = (rng.standard_normal((4, *shape[1:])) * network.spread).astype(np.float32)
    options: dict[str, Any] = {"shapes": [list(shape)], "quantize": precision, "outputs": outputs}
    if precision != "f32":
        inputs = bmcompiler.load_network(*network.files, shapes=[shape]).main.input_names
        options["data"] = {inputs[0]: samples}
    result = bmcompiler.compile(*network.files, target="bm1684", **options)
    given = (rng.standard_normal(shape) * network.spread).astype(np.float32)
    stage = result.model.stages()[0]
    on_cpu = sorted({row.kind for row in result.rows if row.where == "cpu"})
    return Compiled(result.model, {stage.inputs[0].name: given}, on_cpu)
