"""Well-known ImageNet networks with seeded weights: `light_model("resnet50")`, or `python models/light.py NAMES...`.

The onnx package carries the graphs of nine networks whose weights are constants made by ConstantOfShape. Here each such
weight becomes a seeded tensor with He's scale (and positive batch-norm scales and variances), so that activations stay
in range through the whole depth and results can be compared between implementations.
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
from onnx import numpy_helper

THIRD_PARTY = Path(__file__).resolve().parent / "third_party"
NAMES = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
INPUT_SHAPE = (1, 3, 224, 224)
_BRANCH = ("branch of a residual sum", 1)
_VIEWS = ("Unsqueeze", "Reshape", "Identity")


def light_model(name: str, folder: Path = THIRD_PARTY) -> Path:
    """Path of `light_NAME.onnx` in `folder`, written on first use; the same bytes on every machine.

    Raises ValueError for an unknown name.
    """
    if name not in NAMES:
        raise ValueError(f"no light model is called '{name}'; known: {', '.join(NAMES)}")
    path = folder / f"light_{name}.onnx"
    if not path.exists():
        source = Path(onnx.backend.test.__file__).parent / "data" / "light" / path.name
        model = with_seeded_weights(onnx.load(source))
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".part")
        partial.write_bytes(model.SerializeToString(deterministic=True))
        partial.replace(path)
    return path


def with_seeded_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with every ConstantOfShape replaced by an initializer of that shape. Changes `model` and returns it."""
    graph = model.graph
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            shapes[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    roles = _roles(graph)
    kept = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        name = node.output[0]
        shape = tuple(int(d) for d in shapes[node.input[0]])
        graph.initializer.append(numpy_helper.from_array(_seeded(name, shape, roles.get(name, ("", 0))), name))
    del graph.node[:]
    graph.node.extend(kept)
    return model


def _roles(graph: onnx.GraphProto) -> dict[str, tuple[str, int]]:
    """Tensor name -> (op type, input index) of its first reader, looked for behind ops that only change the shape."""
    roles: dict[str, tuple[str, int]] = {}
    added = {name for node in graph.node if node.op_type in ("Sum", "Add") for name in node.input}
    for node in reversed(graph.node):
        for index, name in enumerate(node.input):
            behind = roles.get(node.output[0]) if node.op_type in _VIEWS and not index else None
            roles[name] = behind or (node.op_type, index)
        if node.op_type == "BatchNormalization" and node.output[0] in added:
            roles[node.input[1]] = _BRANCH
    return roles


def _seeded(name: str, shape: tuple[int, ...], role: tuple[str, int]) -> np.ndarray:
    random = np.random.default_rng(zlib.crc32(name.encode()))
    if role == _BRANCH:  # less weight, or activations would double with every sum
        return random.uniform(0.2, 0.4, shape).astype(np.float32)
    if role in (("BatchNormalization", 1), ("BatchNormalization", 4)) or role[0] == "Mul":
        return random.uniform(0.8, 1.2, shape).astype(np.float32)
    if len(shape) < 2:
        return (random.standard_normal(shape) * 0.05).astype(np.float32)
    fan_in = int(np.prod(shape[1:]))
    return (random.standard_normal(shape, np.float32) * np.float32(np.sqrt(2 / fan_in))).astype(np.float32)


if __name__ == "__main__":
    for wanted in sys.argv[1:] or NAMES:
        print(light_model(wanted))
