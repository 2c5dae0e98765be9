"""Networks with seeded weights that no package carries: `seeded_model(NAME)`, or `python models/seeded.py NAMES...`.

`mobilenetv2_160` is MobileNetV2 1.0 (inverted residuals, ReLU6, 1000 classes) for images of 160 x 160.
`centerface_480` is a face detector in the way of CenterFace for images of 480 x 480: that backbone, a decoder of three
steps (a deconvolution that doubles the size, plus a lateral 1 x 1 convolution) and four heads of a stride of 4; in
`centerface_resize_480` a step doubles by nearest neighbours. `unet_320` is U-Net (two 3 x 3 convolutions at each of
five sizes, skips concatenated, deconvolutions that double) of 16 to 256 channels for images of 320 x 320. Every
convolution has a batch norm behind it, or a bias with `--folded`. Weights have He's scale and branches of residual
sums less, so that activations stay in range.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

THIRD_PARTY = Path(__file__).resolve().parent / "third_party"
OPSET = 13
# Expansion, channels, repeats and first stride of the blocks: table 2 of Sandler et al., MobileNetV2 (2018).
BLOCKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
STAGES = (1, 2, 4)  # blocks whose results have strides of 4, 8 and 16: what the decoder takes beside the last
DECODER = 24
HEADS = (("heatmap", 1), ("scale", 2), ("offset", 2), ("landmarks", 10))
UNET = (16, 32, 64, 128, 256)  # channels at each size: a quarter of those of Ronneberger et al., U-Net (2015)
CLASSES = 4


class Net:
    """An ONNX graph as it grows: methods add nodes and return the name of a result."""

    def __init__(self, name: str, size: int, batch_norm: bool) -> None:
        self.name, self.size, self.batch_norm = name, size, batch_norm
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, name: str, values: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def random(self, name: str) -> np.random.Generator:
        return np.random.default_rng(zlib.crc32(f"{self.name}/{name}".encode()))

    def op(self, kind: str, name: str, *inputs: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def conv(
        self,
        name: str,
        source: str,
        shape: tuple[int, int, int, int],
        stride: int = 1,
        gain: float = 2.0,
        kind: str = "Conv",
        group: int = 1,
        norm: bool = True,
    ) -> str:
        """Convolution or deconvolution, weights of `shape` and variance gain / fan in, its norm or bias behind it."""
        kernel = shape[-1]
        fan_in = shape[1] * kernel * kernel if kind == "Conv" else shape[0]
        random = self.random(name)
        values = random.standard_normal(shape, np.float32) * np.float32(np.sqrt(gain / fan_in))
        channels = shape[0] if kind == "Conv" else shape[1] * group
        bias = (random.standard_normal(channels) * 0.05).astype(np.float32)
        inputs = [source, self.weight(f"{name}.weight", values)]
        if self.batch_norm and norm:
            name = f"{name}.conv"
        else:
            inputs.append(self.weight(f"{name}.bias", bias))
        pad = (kernel - 1) // 2
        geometry = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4, "group": group}
        result = self.op(kind, name, *inputs, **geometry)
        return self.norm(name.removesuffix(".conv"), result, bias) if self.batch_norm and norm else result

    def norm(self, name: str, source: str, bias: np.ndarray) -> str:
        random = self.random(f"{name}.norm")
        scale, variance = (random.uniform(0.8, 1.2, bias.shape).astype(np.float32) for _ in range(2))
        mean = (random.standard_normal(bias.shape) * 0.05).astype(np.float32)
        parts = {"scale": scale, "shift": bias, "mean": mean, "var": variance}
        weights = [self.weight(f"{name}.{part}", values) for part, values in parts.items()]
        return self.op("BatchNormalization", name, source, *weights, epsilon=1e-5)

    def relu6(self, name: str, source: str) -> str:
        return self.op("Clip", name, source, "zero", "six")

    def model(self, outputs: Sequence[tuple[str, Sequence[int]]]) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            self.name,
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, 3, self.size, self.size])],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)) for name, shape in outputs],
            self.weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="seeded")
        model.ir_version = 8
        onnx.checker.check_model(model, full_check=True)
        return model


def backbone(net: Net) -> list[str]:
    """The first convolution and the seven groups of inverted residuals; the result of each group."""
    net.weight("zero", np.float32(0).reshape(()))
    net.weight("six", np.float32(6).reshape(()))
    value, channels = net.relu6("stem.relu", net.conv("stem", "input", (32, 3, 3, 3), 2)), 32
    results = []
    for index, (expansion, out, repeats, first) in enumerate(BLOCKS):
        for repeat in range(repeats):
            name, stride = f"block{index}.{repeat}", 1 if repeat else first
            value = inverted_residual(net, name, value, (channels, channels * expansion, out), stride)
            channels = out
        results.append(value)
    return results


def inverted_residual(net: Net, name: str, source: str, channels: tuple[int, int, int], stride: int) -> str:
    inner, wide, outer = channels
    value = source
    if wide != inner:
        value = net.relu6(f"{name}.expand.relu", net.conv(f"{name}.expand", value, (wide, inner, 1, 1)))
    depth = net.conv(f"{name}.depth", value, (wide, 1, 3, 3), stride, group=wide)
    residual = stride == 1 and inner == outer
    gain = 0.25 if residual else 1.0  # with more, activations would grow with every sum
    value = net.conv(f"{name}.project", net.relu6(f"{name}.depth.relu", depth), (outer, wide, 1, 1), gain=gain)
    return net.op("Add", f"{name}.add", source, value) if residual else value


def mobilenetv2(net: Net) -> onnx.ModelProto:
    value = net.relu6("last.relu", net.conv("last", backbone(net)[-1], (1280, BLOCKS[-1][1], 1, 1)))
    value = net.op("Flatten", "flatten", net.op("GlobalAveragePool", "pool", value))
    random = net.random("classes")
    weight = random.standard_normal((1000, 1280), np.float32) * np.float32(np.sqrt(1 / 1280))
    bias = (random.standard_normal(1000) * 0.05).astype(np.float32)
    inputs = (value, net.weight("classes.weight", weight), net.weight("classes.bias", bias))
    return net.model([(net.op("Gemm", "classes", *inputs, transB=1), (1, 1000))])


def centerface(net: Net, resize: bool = False) -> onnx.ModelProto:
    results = backbone(net)
    value = net.op("Relu", "neck.relu", net.conv("neck", results[-1], (DECODER, BLOCKS[-1][1], 1, 1)))
    if resize:
        net.weight("twice", np.asarray([1, 1, 2, 2], np.float32))
    for stage in reversed(STAGES):
        name = f"up{stage}"
        if resize:
            modes = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
            value = net.op("Resize", name, value, "", "twice", **modes)
        else:
            deconv = net.conv(name, value, (DECODER, DECODER, 2, 2), 2, kind="ConvTranspose")
            value = net.op("Relu", f"{name}.relu", deconv)
        lateral = net.conv(f"lateral{stage}", results[stage], (DECODER, BLOCKS[stage][1], 1, 1))
        value = net.op("Add", f"add{stage}", value, net.op("Relu", f"lateral{stage}.relu", lateral))
    value = net.op("Relu", "merge.relu", net.conv("merge", value, (DECODER, DECODER, 3, 3), gain=0.5))
    outputs = []
    for name, channels in HEADS:
        head = net.conv(name, value, (channels, DECODER, 1, 1), norm=False)
        head = net.op("Sigmoid", f"{name}.sigmoid", head) if name == "heatmap" else head
        outputs.append((head, (1, channels, net.size // 4, net.size // 4)))
    return net.model(outputs)


def unet(net: Net) -> onnx.ModelProto:
    def twice(name: str, value: str, depth: int, channels: int) -> str:
        for step, count in (("a", depth), ("b", channels)):
            value = net.op("Relu", f"{name}{step}.relu", net.conv(f"{name}{step}", value, (channels, count, 3, 3)))
        return value

    value, depth, skips = "input", 3, []
    for level, channels in enumerate(UNET):
        if level:
            skips.append(value)
            value = net.op("MaxPool", f"pool{level}", value, kernel_shape=[2, 2], strides=[2, 2])
        value, depth = twice(f"down{level}", value, depth, channels), channels
    for level, channels in reversed(list(enumerate(UNET[:-1]))):
        up = net.conv(f"up{level}", value, (depth, channels, 2, 2), 2, kind="ConvTranspose", norm=False)
        joined = net.op("Concat", f"join{level}", skips[level], up, axis=1)
        value, depth = twice(f"out{level}", joined, 2 * channels, channels), channels
    scores = net.conv("scores", value, (CLASSES, depth, 1, 1), norm=False)
    return net.model([(scores, (1, CLASSES, net.size, net.size))])


NETS: dict[str, tuple[int, Callable[[Net], onnx.ModelProto]]] = {
    "mobilenetv2_160": (160, mobilenetv2),
    "centerface_480": (480, centerface),
    "centerface_resize_480": (480, lambda net: centerface(net, resize=True)),
    "unet_320": (320, unet),
}
NAMES = tuple(NETS)


def seeded_model(name: str, folder: Path = THIRD_PARTY, batch_norm: bool = True) -> Path:
    """Path of `NAME.onnx` (`NAME_folded.onnx` without batch norms) in `folder`, written on first use.

    The same bytes on every machine. Raises ValueError for an unknown name.
    """
    if name not in NETS:
        raise ValueError(f"no seeded model is called '{name}'; known: {', '.join(NAMES)}")
    path = folder / f"{name}{'' if batch_norm else '_folded'}.onnx"
    if not path.exists():
        size, build = NETS[name]
        model = build(Net(name, size, batch_norm))
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".part")
        partial.write_bytes(model.SerializeToString(deterministic=True))
        partial.replace(path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="Write networks with seeded weights as ONNX files.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--folder", type=Path, default=THIRD_PARTY, help="where to (default: models/third_party)")
    parser.add_argument("--folded", action="store_true", help="biases instead of batch norms")
    arguments = parser.parse_args()
    for name in arguments.names or NAMES:
        try:
            print(seeded_model(name, arguments.folder, not arguments.folded))
        except ValueError as error:
            parser.error(str(error))


if __name__ == "__main__":
    main()
