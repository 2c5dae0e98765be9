"""Small networks of our own for the vendor's compiler: every kind of layer it maps to the engines, seeded weights.

Each function of `NETS` gets a `Graph` and returns the names of its outputs.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

FLOATS = NDArray[np.float32]
NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


class Graph:
    """An ONNX graph under construction; numbers are drawn from a generator seeded by its name."""

    def __init__(self, name: str) -> None:
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.inputs: dict[str, FLOATS] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def input(self, *shape: int, low: float = -1.0, high: float = 1.0) -> str:
        """A new input; its random sample lies between `low` and `high`."""
        name = f"in{len(self.inputs)}"
        self.inputs[name] = self.rng.uniform(low, high, size=shape).astype(np.float32)
        return name

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        name = f"w{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(values, dtype), name))
        return name

    def random(self, *shape: int, spread: float | None = None) -> str:
        """A normal constant; weights get He's scale by default."""
        fan_in = max(1, int(np.prod(shape[1:])))
        return self.constant(self.rng.standard_normal(shape) * (spread or 1 / np.sqrt(fan_in)))

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return self.ops(kind, 1, *inputs, **attributes)[0]

    def ops(self, kind: str, results: int, *inputs: str, **attributes: Any) -> list[str]:
        """A node with several results."""
        base = f"{kind.lower()}{len(self._nodes)}"
        names = [f"{base}_{i}" if results > 1 else base for i in range(results)]
        self._nodes.append(helper.make_node(kind, list(inputs), names, name=f"{base}_n", **attributes))
        return names

    def conv(
        self,
        x: str,
        inside: int,
        out: int,
        kernel: tuple[int, int] = (3, 3),
        pads: Sequence[int] | None = None,
        *,
        stride: int = 1,
        group: int = 1,
        dilation: int = 1,
        bias: bool = True,
    ) -> str:
        """A convolution that keeps the size by default."""
        pads = [k // 2 * dilation for k in kernel] * 2 if pads is None else list(pads)
        constants = [self.random(out, inside // group, *kernel)]
        if bias:
            constants.append(self.random(out, spread=0.1))
        two = [stride, stride], [dilation, dilation]
        return self.op(
            "Conv", x, *constants, kernel_shape=kernel, strides=two[0], pads=pads, group=group, dilations=two[1]
        )

    def dense(self, x: str, inside: int, out: int) -> str:
        return self.op("Gemm", x, self.random(out, inside), self.random(out, spread=0.1), transB=1)

    def shape(self, x: str, *sizes: int) -> str:
        return self.op("Reshape", x, self.constant(sizes, np.int64))

    def finish(self, outputs: Sequence[str]) -> onnx.ModelProto:
        """The model, in the versions the vendor's importer knows."""
        floats = [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in self.inputs.items()]
        results = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self._nodes, "net", floats, results, self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 8
        return onnx.shape_inference.infer_shapes(model)


NETS: dict[str, Callable[[Graph], list[str]]] = {}


def net(make: Callable[[Graph], list[str]]) -> Callable[[Graph], list[str]]:
    NETS[make.__name__] = make
    return make


@net
def conv_basic(g: Graph) -> list[str]:
    return [g.op("Relu", g.conv(g.input(1, 3, 16, 16), 3, 16))]


@net
def conv_stride_dilation(g: Graph) -> list[str]:
    y = g.conv(g.input(4, 5, 17, 17), 5, 70, (5, 5), [1, 2, 2, 1], stride=2)
    return [g.conv(y, 70, 8, dilation=2, bias=False)]


@net
def conv_rectangular(g: Graph) -> list[str]:
    return [g.conv(g.conv(g.input(5, 7, 9, 12), 7, 9, (1, 5), [0, 0, 0, 0]), 9, 130, (3, 1))]


@net
def depthwise(g: Graph) -> list[str]:
    y = g.op("Relu", g.conv(g.input(1, 70, 9, 9), 70, 70, group=70))
    return [g.conv(y, 70, 70, stride=2, group=70, bias=False)]


@net
def depthwise_b5(g: Graph) -> list[str]:
    return [g.conv(g.conv(g.input(5, 12, 8, 8), 12, 12, (5, 5), group=12), 12, 20, (1, 1))]


@net
def group_conv(g: Graph) -> list[str]:
    return [g.op("Relu", g.conv(g.input(1, 12, 8, 8), 12, 24, group=3))]


@net
def deconv(g: Graph) -> list[str]:
    pads = {"kernel_shape": [4, 4], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    return [g.op("ConvTranspose", g.input(1, 8, 5, 6), g.random(8, 6, 4, 4), g.random(6, spread=0.1), **pads)]


@net
def deconv_b4(g: Graph) -> list[str]:
    y = g.conv(g.input(4, 6, 5, 5), 6, 8)
    constants = g.random(8, 10, 3, 3), g.random(10, spread=0.1)
    return [g.op("Relu", g.op("ConvTranspose", y, *constants, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))]


@net
def pools(g: Graph) -> list[str]:
    largest = g.op("MaxPool", g.input(1, 16, 13, 13), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    mean = g.op("AveragePool", largest, kernel_shape=[2, 2], strides=[2, 2])
    return [largest, mean, g.op("GlobalAveragePool", g.conv(largest, 16, 8))]


@net
def pools_b5(g: Graph) -> list[str]:
    y = g.conv(g.input(5, 6, 12, 12), 6, 6)
    mean = g.op("AveragePool", y, kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1], count_include_pad=1)
    return [g.op("GlobalMaxPool", mean), g.op("MaxPool", mean, kernel_shape=[2, 2], strides=[2, 2])]


@net
def mlp(g: Graph) -> list[str]:
    return [g.dense(g.op("Relu", g.dense(g.input(1, 40), 40, 70)), 70, 10)]


@net
def mlp_b5(g: Graph) -> list[str]:
    y = g.op("Relu", g.op("MatMul", g.input(5, 33), g.random(33, 50)))
    return [g.op("Add", g.op("MatMul", y, g.random(50, 12)), g.random(12, spread=0.1))]


@net
def matmul_of_inputs(g: Graph) -> list[str]:
    return [g.op("MatMul", g.input(3, 9, 20), g.input(3, 20, 11))]


@net
def activations(g: Graph) -> list[str]:
    y = g.conv(g.input(1, 10, 6, 6, low=-4, high=4), 10, 10, (1, 1))
    slopes = g.random(10, 1, 1, spread=0.3)
    clipped = g.op("Clip", y, g.constant(0.0), g.constant(6.0))
    return [g.op("LeakyRelu", y, alpha=0.1), g.op("PRelu", y, slopes), clipped, g.op("Sigmoid", y), g.op("Tanh", y)]


@net
def activations_b5(g: Graph) -> list[str]:
    y = g.conv(g.input(5, 7, 6, 5, low=-4, high=4), 7, 8, (1, 1))
    return [g.op("Sigmoid", g.op("LeakyRelu", y, alpha=0.25)), g.op("Elu", y, alpha=1.0)]


@net
def exp_log_sqrt(g: Graph) -> list[str]:
    x = g.input(1, 8, 7, 7, low=0.1, high=3)
    return [g.op("Exp", x), g.op("Log", x), g.op("Sqrt", x)]


@net
def gates(g: Graph) -> list[str]:
    y = g.conv(g.input(1, 6, 5, 5, low=-3, high=3), 6, 6, (1, 1))
    return [g.op("Mul", y, g.op("Sigmoid", y)), g.op("Softplus", y), g.op("Abs", y)]


@net
def softmax(g: Graph) -> list[str]:
    return [g.op("Softmax", g.conv(g.input(1, 10, 1, 1, low=-5, high=5), 10, 12, (1, 1)), axis=1)]


@net
def softmax_last(g: Graph) -> list[str]:
    return [g.op("Softmax", g.input(4, 6, 15, low=-5, high=5), axis=2)]


@net
def layer_norm(g: Graph) -> list[str]:
    x = g.input(2, 9, 24)
    centred = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1]))
    variance = g.op("ReduceMean", g.op("Pow", centred, g.constant(2.0)), axes=[-1])
    y = g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, g.constant(1e-5))))
    return [g.op("Add", g.op("Mul", y, g.random(24, spread=1.0)), g.random(24, spread=1.0))]


@net
def lrn(g: Graph) -> list[str]:
    y = g.conv(g.input(1, 10, 6, 6, low=0, high=3), 10, 10, (1, 1))
    return [g.op("LRN", y, size=5, alpha=1e-2, beta=0.75, bias=1.0)]


@net
def elementwise(g: Graph) -> list[str]:
    x, y = g.input(1, 9, 7, 6), g.input(1, 9, 7, 6, low=0.5, high=2.0)
    return [g.op(kind, x, y) for kind in ("Add", "Sub", "Mul", "Div", "Max", "Min")]


@net
def elementwise_b5(g: Graph) -> list[str]:
    x, y = g.input(5, 9, 4, 6), g.input(5, 9, 4, 6, low=-2, high=2)
    return [g.op("Relu", g.op("Add", x, y)), g.op("Mul", x, y), g.op("Sub", x, y)]


@net
def broadcasts(g: Graph) -> list[str]:
    x, per_channel, per_pixel = g.input(1, 9, 7, 6), g.input(1, 9, 1, 1), g.input(1, 1, 7, 6)
    first = [g.op("Add", x, per_channel), g.op("Mul", x, per_pixel), g.op("Mul", x, g.constant(0.37))]
    return [*first, g.op("Add", x, g.constant(1.5)), g.op("Sub", g.constant(1.0), x)]


@net
def batch_norm(g: Graph) -> list[str]:
    vectors = [g.random(20, spread=1.0) for _ in range(3)]
    variance = g.constant(np.abs(g.rng.standard_normal(20)) + 0.5)
    y = g.op("BatchNormalization", g.input(1, 20, 6, 6), *vectors, variance)
    return [g.op("Mul", g.op("Relu", y), g.random(1, 20, 1, 1, spread=1.0))]


@net
def concat_slice(g: Graph) -> list[str]:
    x = g.input(1, 8, 6, 6)
    y = g.conv(x, 8, 5)
    joined = g.op("Concat", x, y, axis=1)
    limits = [g.constant(values, np.int64) for values in ([2, 1], [9, 6], [1, 3], [1, 2])]
    return [joined, g.op("Slice", joined, *limits), g.op("Concat", g.conv(y, 5, 4), g.conv(y, 5, 4), axis=2)]


@net
def concat_b4(g: Graph) -> list[str]:
    x = g.input(4, 8, 6, 6)
    return [g.conv(g.op("Concat", g.conv(x, 8, 66), g.conv(x, 8, 3, (1, 1)), axis=1), 69, 5, (1, 1))]


@net
def split(g: Graph) -> list[str]:
    y = g.conv(g.input(1, 12, 6, 6), 12, 12)
    first, second = g.ops("Split", 2, y, g.constant([4, 8], np.int64), axis=1)
    return [g.op("Relu", first), g.conv(second, 8, 3)]


@net
def pad(g: Graph) -> list[str]:
    pads = g.constant([0, 0, 1, 2, 0, 0, 3, 1], np.int64)
    y = g.op("Pad", g.input(1, 5, 6, 7), pads, g.constant(0.5), mode="constant")
    return [y, g.conv(y, 5, 6)]


@net
def transposes(g: Graph) -> list[str]:
    x = g.input(1, 6, 7, 8)
    return [g.op("Transpose", x, perm=perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 1, 3, 2])]


@net
def reshapes(g: Graph) -> list[str]:
    y = g.conv(g.input(1, 4, 6, 6), 4, 6, stride=2)
    return [g.dense(g.shape(y, 1, 54), 54, 7), g.shape(y, 1, 18, 3)]


@net
def channel_shuffle(g: Graph) -> list[str]:
    y = g.shape(g.conv(g.input(1, 12, 5, 5), 12, 12, (1, 1)), 1, 3, 4, 5, 5)
    return [g.conv(g.shape(g.op("Transpose", y, perm=[0, 2, 1, 3, 4]), 1, 12, 5, 5), 12, 6, (1, 1))]


@net
def upsample_nearest(g: Graph) -> list[str]:
    return [g.conv(g.op("Resize", g.input(1, 6, 5, 6), "", g.constant([1, 1, 2, 2]), **NEAREST), 6, 4)]


@net
def upsample_bilinear(g: Graph) -> list[str]:
    x = g.input(1, 6, 5, 6)
    modes = {"half_pixel": 2, "align_corners": 3}
    return [
        g.op("Resize", x, "", g.constant([1, 1, by, by]), mode="linear", coordinate_transformation_mode=mode)
        for mode, by in modes.items()
    ]


@net
def reductions(g: Graph) -> list[str]:
    x = g.input(1, 8, 6, 10)
    total = g.op("ReduceSum", x, g.constant([3], np.int64))
    return [total, g.op("ReduceMean", x, axes=[2, 3]), g.op("ReduceMax", x, axes=[1]), g.op("ReduceMin", x, axes=[3])]


@net
def arg_max(g: Graph) -> list[str]:
    return [g.op("Cast", g.op("ArgMax", g.input(1, 12, 4, 5), axis=1), to=TensorProto.FLOAT)]


@net
def residual(g: Graph) -> list[str]:
    y = g.op("Relu", g.conv(g.input(1, 3, 24, 24), 3, 16, (7, 7), stride=2))
    y = g.op("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = g.op("Relu", g.op("Add", g.conv(g.op("Relu", g.conv(y, 16, 16)), 16, 16), y))
    branch = g.conv(g.op("Relu", g.conv(y, 16, 32, stride=2)), 32, 32)
    y = g.op("Relu", g.op("Add", branch, g.conv(y, 16, 32, (1, 1), stride=2)))
    return [g.dense(g.op("Flatten", g.op("GlobalAveragePool", y)), 32, 10)]


@net
def residual_b4(g: Graph) -> list[str]:
    y = g.op("Relu", g.conv(g.input(4, 3, 16, 16), 3, 8, stride=2))
    y = g.op("Relu", g.op("Add", g.conv(g.op("Relu", g.conv(y, 8, 8)), 8, 8), y))
    return [g.op("Softmax", g.dense(g.op("Flatten", g.op("GlobalAveragePool", y)), 8, 10), axis=1)]


@net
def squeeze_excite(g: Graph) -> list[str]:
    limits = g.constant(0.0), g.constant(6.0)
    y = g.op("Clip", g.conv(g.input(1, 4, 14, 14), 4, 24, (1, 1)), *limits)
    y = g.op("Clip", g.conv(y, 24, 24, stride=2, group=24), *limits)
    gate = g.op("Relu", g.conv(g.op("GlobalAveragePool", y), 24, 6, (1, 1)))
    return [g.conv(g.op("Mul", y, g.op("Sigmoid", g.conv(gate, 6, 24, (1, 1)))), 24, 8, (1, 1))]


@net
def pyramid_b5(g: Graph) -> list[str]:
    y = g.op("Relu", g.conv(g.input(5, 6, 8, 8), 6, 12))
    small = g.op("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    large = g.op("Resize", small, "", g.constant([1, 1, 2, 2]), **NEAREST)
    return [g.conv(small, 12, 4, (1, 1)), g.conv(g.op("Concat", large, y, axis=1), 24, 3), small]
