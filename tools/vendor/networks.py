"""Networks that this compiler compiles and the vendor's runtime judges."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

import bmcompiler
from bmcompiler.bmodel.bm168x import Bm168xModel
from vendor.small_nets import NETS, Graph

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models"))
import sequences
import transformers

MODELS = Path(__file__).resolve().parents[2] / "models"
THIRD_PARTY = MODELS / "third_party"
IMAGE = (1, 3, 224, 224)
_NARROW = {"int64": "int32"}
"""Element types of inputs in model files."""


@dataclass(frozen=True)
class Network:
    """Files of a network, the shape of its one input, and the spread of the noise it is given.

    Transformers, whose inputs are several, have no shape: their samples are their own. Networks on sequences have no
    files either.
    """

    files: tuple[Path, ...]
    shape: tuple[int, ...]
    spread: float = 1.0


NETWORKS = {
    "lenet": Network((MODELS / "lenet/deploy.prototxt", MODELS / "lenet/lenet.caffemodel"), (1, 1, 28, 28)),
    "resnet8": Network((MODELS / "resnet8/resnet8_mnist.onnx",), (1, 1, 28, 28)),
    "mtcnn_pnet": Network((THIRD_PARTY / "mtcnn_pnet.onnx",), (1, 48, 64, 3)),
    "mtcnn_rnet": Network((THIRD_PARTY / "mtcnn_rnet.onnx",), (1, 24, 24, 3)),
    "mtcnn_onet": Network((THIRD_PARTY / "mtcnn_onet.onnx",), (1, 48, 48, 3)),
    "mobilenetv2_160": Network((THIRD_PARTY / "mobilenetv2_160.onnx",), (1, 3, 160, 160)),
    "yolox": Network((THIRD_PARTY / "yolox_chars.onnx",), (1, 3, 416, 416)),
    "blazeface_front": Network((THIRD_PARTY / "blazeface_front.onnx",), (1, 128, 128, 3)),
    "ppocr_v2_cls": Network((THIRD_PARTY / "ppocr_v2_cls.onnx",), (1, 3, 48, 192)),
    "ppocr_v4_det": Network((THIRD_PARTY / "ppocr_v4_det.onnx",), (1, 3, 96, 96)),
    "ppocr_v4_rec": Network((THIRD_PARTY / "ppocr_v4_rec.onnx",), (1, 3, 48, 64)),
    **{
        f"light_{name}": Network((THIRD_PARTY / f"light_{name}.onnx",), IMAGE)
        for name in ("squeezenet", "shufflenet", "inception_v1", "inception_v2", "densenet121", "resnet50")
    },
}
NETWORKS |= {name: Network((THIRD_PARTY / f"{name}.onnx",), ()) for name in transformers.NETS}
NETWORKS |= {name: Network((), ()) for name in sequences.NETS}
DEFAULT = ("lenet", "resnet8", "mtcnn_pnet", "mtcnn_rnet", "mtcnn_onet", "light_squeezenet")


@dataclass
class Compiled:
    """A model file, an input for it, kinds of layers that went to the host CPU, and how many ops work on integers."""

    model: Bm168xModel
    inputs: dict[str, NDArray[np.float32]]
    on_cpu: list[str]
    integers: int


def compile_network(name: str, precision: str, batch: int, **options: Any) -> Compiled:
    """Compile one of `NETWORKS` with seeded noise as calibration data and input. Raises BMError.

    Args: options: of `bmcompiler.compile`, the target among them.
    """
    network = NETWORKS[name]
    if name in sequences.NETS:
        data = sequences.sample(name, 1) if precision == "int8" else None
        model = sequences.sequence_net(name)
        return _compiled((model,), sequences.sample(name), quantize=precision, data=data, **options)
    if name in transformers.NETS:
        data = transformers.samples(name, 4) if precision == "int8" else None
        given = {
            key: value.astype(_NARROW.get(value.dtype.name, value.dtype))
            for key, value in transformers.samples(name, 1, seed=1).items()
        }
        return _compiled(network.files, given, quantize=precision, data=data, **options)
    shape = (batch, *network.shape[1:])
    rng = np.random.default_rng(0)
    samples = (rng.standard_normal((4, *shape[1:])) * network.spread).astype(np.float32)
    given = (rng.standard_normal(shape) * network.spread).astype(np.float32)
    (input,) = bmcompiler.load_network(*network.files, shapes=[shape]).main.input_names
    data = {input: samples} if precision == "int8" else None
    return _compiled(network.files, {input: given}, quantize=precision, data=data, shapes=[list(shape)], **options)


def compile_small(name: str, precision: str, folder: Path, **options: Any) -> Compiled:
    """Compile a network of `small_nets.NETS` with its input as calibration data. Raises BMError."""
    graph = Graph(name)
    file = folder / f"{name}.onnx"
    onnx.save(graph.finish(NETS[name](graph)), file)
    data = graph.inputs if precision == "int8" else None
    return _compiled((file,), graph.inputs, quantize=precision, data=data, **options)


def _compiled(
    files: tuple[Path | onnx.ModelProto, ...], inputs: dict[str, NDArray[np.float32]], **options: Any
) -> Compiled:
    result = bmcompiler.compile(*files, **options)
    on_cpu = sorted({row.kind for row in result.rows if row.where == "cpu"})
    integers = sum(any(value.type.dtype[0] in "iu" for value in op.results) for op in result.module.main.ops)
    return Compiled(result.model, inputs, on_cpu, integers)
