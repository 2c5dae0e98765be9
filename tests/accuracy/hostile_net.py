"""A trained net made hard for int8 by hand, without changing what it computes in float.

In each of three residual blocks of ResNet-8 a depthwise convolution follows the first one: the ranges of its channels
are spread over 2**8, undone by the weights behind it, and a few channels that are always 0 have its largest weights.
The head joins boxes (0..320) with scores (0..1).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RESNET8 = Path(__file__).resolve().parents[2] / "models/resnet8/resnet8_mnist.onnx"
BLOCKS = {"3": ("92", "93", "95"), "4": ("98", "99", "101"), "5": ("107", "108", "110")}
"""Of each block the numbers of the weight and bias of its first convolution, and of the weight of its second."""
SPREAD = 8
DEAD, DEAD_WEIGHT = 4, 92.0
CLASSES = 10


def hostile_net(path: Path) -> Path:
    """Write the net to `path`; input x (1, 1, 28, 28), output joined (1, 20): ten boxes, then ten scores."""
    model = onnx.load(RESNET8)
    weights = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    nodes = list(model.graph.node)
    random = np.random.default_rng(0)
    for block, (first, bias, second) in BLOCKS.items():
        names = [f"onnx::Conv_{number}" for number in (first, bias, second)]
        live = len(weights[names[1]])
        factors = np.exp2(random.permutation(np.linspace(-SPREAD / 2, SPREAD / 2, live))).astype(np.float32)
        weights[names[0]] = np.concatenate([weights[names[0]], _noise(random, (DEAD, *weights[names[0]].shape[1:]))])
        weights[names[1]] = np.concatenate([weights[names[1]], np.full(DEAD, -1000, np.float32)])
        spread = np.zeros((live + DEAD, 1, 3, 3), np.float32)
        spread[:, 0, 1, 1] = np.concatenate([factors, np.full(DEAD, DEAD_WEIGHT, np.float32)])
        weights[f"{block}.spread"] = spread
        behind = weights[names[2]] / factors[:, None, None]
        weights[names[2]] = np.concatenate([behind, _noise(random, (len(behind), DEAD, 3, 3))], axis=1)
        _insert(nodes, block, live + DEAD)
    nodes += _head(weights)
    graph = helper.make_graph(
        nodes,
        "hostile",
        list(model.graph.input),
        [helper.make_tensor_value_info("joined", TensorProto.FLOAT, [1, 2 * CLASSES])],
        [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    made.ir_version = 8
    onnx.checker.check_model(made, full_check=True)
    onnx.save(made, path)
    return path


def _noise(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return (random.standard_normal(shape) * 0.1).astype(np.float32)


def _insert(nodes: list[onnx.NodeProto], block: str, channels: int) -> None:
    """The depthwise convolution and a relu between a block's first relu and its second convolution."""
    at = next(i for i, node in enumerate(nodes) if node.name == f"/{block}/c2/Conv")
    source = nodes[at].input[0]
    geometry = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "group": channels}
    depthwise = helper.make_node("Conv", [source, f"{block}.spread"], [f"{block}.depth"], f"{block}.depth", **geometry)
    relu = helper.make_node("Relu", [f"{block}.depth"], [f"{block}.depth.relu"], f"{block}.depth.relu")
    nodes[at].input[0] = f"{block}.depth.relu"
    nodes[at:at] = [depthwise, relu]


def _head(weights: dict[str, np.ndarray]) -> list[onnx.NodeProto]:
    weights["extent"] = np.asarray(320, np.float32)
    return [
        helper.make_node("Softmax", ["logits"], ["scores"], "scores", axis=1),
        helper.make_node("Sigmoid", ["logits"], ["relative"], "relative"),
        helper.make_node("Mul", ["relative", "extent"], ["boxes"], "boxes"),
        helper.make_node("Concat", ["boxes", "scores"], ["joined"], "joined", axis=1),
    ]
