"""Layers as exporters write them, with weights that look trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .activations import ACTIVATIONS, written
from .graph import Graph

EXPORTERS = ("torch", "tf", "paddle")
_SPREAD = {"mild": 0.3, "trained": 1.0, "wild": 2.5}


@dataclass
class Net:
    """A graph and the habits of who wrote it.

    Attributes:
        exporter: whose idioms. folded: norms are in the layers before them. spread: how far statistics of norms are
            spread, as the standard deviation of a natural logarithm.
    """

    g: Graph
    random: np.random.Generator
    exporter: str = "torch"
    folded: bool = True
    spread: float = 1.0
    batch: int = 1
    size: tuple[int, int] = (32, 32)
    odd: bool = False
    act: str = "Relu"
    forms: dict[str, int] = field(default_factory=dict)

    def pick(self, *choices: Any) -> Any:
        """One of the choices."""
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        """True as often as said."""
        return bool(self.random.random() < share)

    def count(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return int(self.random.integers(low, high + 1))

    def width(self, wanted: int) -> int:
        """A number of channels near the wanted one; of nets with odd widths it is a multiple of nothing."""
        return max(2, wanted + self.count(-wanted // 3, wanted // 3)) if self.odd else wanted

    def channels(self, x: str) -> int:
        """Channels of a map."""
        return self.g.shape(x)[1]

    def image(self, channels: int = 3) -> str:
        """The input: smooth pictures in the range that a preprocessing gives; TensorFlow's have channels last."""
        shape = (self.batch, channels, *self.size)
        value = self.random.standard_normal(shape).cumsum(2).cumsum(3)
        value -= value.min((1, 2, 3), keepdims=True)
        value /= value.max((1, 2, 3), keepdims=True) + 1e-9
        low, high = self.pick((0, 1), (-1, 1), (-2.1, 2.6), (0, 255))
        value = (value * (high - low) + low + self.random.standard_normal(shape) * 0.02 * (high - low)).astype(
            np.float32
        )
        if self.exporter == "tf":
            return self.g.add("Transpose", self.g.input("x", value.transpose(0, 2, 3, 1).copy()), perm=[0, 3, 1, 2])
        return self.g.input("x", value)

    def given(self, outputs: list[str]) -> list[str]:
        """The outputs; maps that TensorFlow gives have channels last, as its pictures have."""
        maps = self.exporter == "tf" and self.chance(0.7)
        return [
            self.g.add("Transpose", x, perm=[0, 2, 3, 1]) if maps and self.g.values[x].ndim == 4 else x for x in outputs
        ]

    def vectors(self, shape: tuple[int, ...]) -> str:
        """An input without a picture in it."""
        return self.g.input("x", self.random.standard_normal(shape).astype(np.float32))

    def weights(self, shape: tuple[int, ...], fan_in: int) -> np.ndarray:
        """Weights with heavy tails, a scale for each output channel (axis 0), some outliers."""
        value = self.random.standard_t(4, shape) / np.sqrt(2 * fan_in)
        value *= np.exp(self.random.standard_normal((shape[0], *[1] * (len(shape) - 1))) * self.spread * 0.5)
        if self.chance(0.3):
            value.flat[self.random.integers(value.size)] *= 20
        return value.astype(np.float32)

    def statistics(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """Scale, bias, mean and variance of a norm behind values (channels on axis 1): some channels are dead.

        They are those of many pictures: other ones vary as much as places in this one, and at least as a share of it.
        """
        axes = tuple(i for i in range(values.ndim) if i != 1)
        count, mean = values.shape[1], values.mean(axes)
        variance = values.var(axes) + (0.3 * mean) ** 2
        variance = variance * np.exp(self.random.standard_normal(count) * 0.1) + 1e-4
        mean = mean + np.sqrt(variance) * self.random.standard_normal(count) * 0.3
        scale = np.clip(np.exp(self.random.standard_normal(count) * self.spread * 0.5), 1e-3, 8)
        bias = self.random.standard_normal(count) * self.pick(0.3, 0.3, 1, 4)
        dead = self.random.random(count) < self.pick(0, 0, 0.05, 0.3)
        scale[dead], bias[dead] = scale[dead] * 1e-5, -np.abs(bias[dead]) * self.pick(0.0, 0.01, 1)
        return tuple(np.asarray(each, np.float32) for each in (scale, bias, mean, variance))

    def norm(self, x: str) -> str:
        """A batch norm of its own, in one node or as a product and a sum."""
        scale, bias, mean, variance = self.statistics(self.g.values[x])
        g = self.g
        if self.exporter == "tf" and self.chance(0.5):
            factor = scale / np.sqrt(variance + 1e-3)
            one = [1, -1, *[1] * (g.values[x].ndim - 2)]
            x = g.add("Mul", x, g.constant(factor.reshape(one)))
            return g.add("Add", x, g.constant((bias - mean * factor).reshape(one)))
        operands = [g.constant(each) for each in (scale, bias, mean, variance)]
        return g.add("BatchNormalization", x, *operands, epsilon=self.pick(1e-3, 1e-5))

    def conv(
        self,
        x: str,
        out: int,
        kernel: int | tuple[int, ...] = 3,
        stride: int = 1,
        group: int = 1,
        dilation: int = 1,
        act: str | None = "",
        norm: bool = True,
        axes: int = 2,
    ) -> str:
        """A convolution, its norm, and its activation: "" for the net's own, None for none."""
        g = self.g
        kernel = (kernel,) * axes if isinstance(kernel, int) else kernel
        w = self.weights((out, self.channels(x) // group, *kernel), self.channels(x) // group * int(np.prod(kernel)))
        attributes: dict[str, Any] = {
            "kernel_shape": list(kernel),
            "strides": [stride] * axes,
            "dilations": [dilation] * axes,
            "group": group,
        }
        if self.exporter == "tf" and self.chance(0.5):
            attributes["auto_pad"] = "SAME_UPPER"
            if dilation > 1:
                del attributes["auto_pad"]
        if "auto_pad" not in attributes:
            low, high = self._pads(g.shape(x)[2:], kernel, stride, dilation)
            if stride > 1 and any(high) and self.chance(0.2):
                pads = [0, 0, *low, 0, 0, *high]
                x, low, high = g.add("Pad", x, g.constant(pads, np.int64)), [0] * axes, [0] * axes
            attributes["pads"] = [*low, *high]
        if norm and not self.folded:
            y = self.norm(g.add("Conv", x, g.constant(w), **attributes))
        else:
            y = self._folded("Conv", x, w, norm, attributes)
        return self.activation(y, self.act if act == "" else act)

    def _folded(self, kind: str, x: str, w: np.ndarray, norm: bool, attributes: dict[str, Any]) -> str:
        """A layer whose weights and bias hold its norm."""
        g = self.g
        node = len(g.nodes)
        plain = g.add(kind, x, g.constant(w), **attributes)
        scale, bias, mean, variance = self.statistics(g.values[plain])
        factor = scale / np.sqrt(variance) if norm else 1 / np.sqrt(variance.mean() + np.zeros_like(variance))
        del g.nodes[node:]
        b = bias - mean * factor if norm else bias * 0.2
        kernel = g.constant(w * factor.reshape(-1, *[1] * (w.ndim - 1)))
        if self.exporter != "torch" and self.chance(0.3):  # a bias of its own
            return g.add("Add", g.add(kind, x, kernel, **attributes), g.constant(b.reshape(1, -1, *[1] * (w.ndim - 2))))
        return g.add(kind, x, kernel, g.constant(b), **attributes)

    def _pads(
        self, size: tuple[int, ...], kernel: tuple[int, ...], stride: int, dilation: int
    ) -> tuple[list[int], ...]:
        reach = [(k - 1) * dilation for k in kernel]
        if self.exporter != "tf":
            return [r // 2 for r in reach], [r // 2 for r in reach]
        total = [max((-(-n // stride) - 1) * stride + r + 1 - n, 0) for n, r in zip(size, reach)]
        return [t // 2 for t in total], [t - t // 2 for t in total]

    def depthwise(self, x: str, kernel: int = 3, stride: int = 1, act: str | None = "", dilation: int = 1) -> str:
        """A window for each channel."""
        c = self.channels(x)
        return self.conv(x, c, kernel, stride, group=c, act=act, dilation=dilation)

    def deconv(self, x: str, out: int, kernel: int = 2, stride: int = 2) -> str:
        """An upsampling by a learned window."""
        c, pad = self.channels(x), (kernel - stride) // 2
        w = self.weights((c, out, kernel, kernel), c * kernel * kernel // stride**2)
        y = self.g.add("ConvTranspose", x, self.g.constant(w), strides=[stride] * 2, pads=[pad] * 4)
        return self.activation(self.norm(y), self.act)

    def dense(self, x: str, out: int) -> str:
        """A fully connected layer: Gemm on matrices, else a product with a sum."""
        g, last = self.g, self.g.shape(x)[-1]
        w = self.weights((out, last), last) * min(1, 2 / (g.values[x].std() + 1e-6))
        b = g.constant(self.random.standard_normal(out) * self.pick(0.1, 0.5, 2))
        if g.values[x].ndim == 2 and self.exporter != "tf":
            return g.add("Gemm", x, g.constant(w), b, transB=1)
        if self.exporter == "paddle" and g.values[x].ndim == 3 and self.chance(0.3):  # rows as a matrix
            shape = g.shape(x)
            y = g.add("MatMul", self.reshape(x, [-1, last]), g.constant(w.T.copy()))
            return self.reshape(g.add("Add", y, b), [-1, *shape[1:-1], out])
        y = g.add("MatMul", x, g.constant(w.T.copy()))
        return g.add("Add", *self.pick((y, b), (b, y)))

    def activation(self, x: str, kind: str | None) -> str:
        """A function, in the nodes that this net's exporter writes for it."""
        return x if kind is None else written(self, x, kind)

    def pool(self, x: str, kind: str = "MaxPool", kernel: int = 2, stride: int = 2, ceil: int = 0) -> str:
        """A pooling; windows larger than their stride reach over the border."""
        pad = (kernel - 1) // 2 if kernel != stride else 0
        more = {"count_include_pad": self.count(0, 1)} if kind == "AveragePool" else {}
        return self.g.add(
            kind, x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, ceil_mode=ceil, **more
        )

    def mean(self, x: str) -> str:
        """The mean of a map, with its axes."""
        if self.exporter == "tf":
            return self.g.add("ReduceMean", x, axes=[2, 3], keepdims=1)
        if self.exporter == "paddle" and self.chance(0.2):
            size = list(self.g.shape(x)[2:])
            return self.g.add("AveragePool", x, kernel_shape=size, strides=[1] * len(size))
        return self.g.add("GlobalAveragePool", x)

    def flat(self, x: str) -> str:
        """A matrix of a map: by a node for it, or by a shape that is computed; TensorFlow's channels are last."""
        g = self.g
        if self.exporter == "torch" and self.chance(0.5):
            return g.add("Flatten", x)
        if self.exporter == "tf":
            x = g.add("Transpose", x, perm=[0, 2, 3, 1])
        return self.reshape(x, [0, -1])

    def reshape(self, x: str, shape: list[int]) -> str:
        """A reshape; sometimes the batch in its shape is read from the tensor (0 stands for it)."""
        g = self.g
        if shape[0] == 0 and self.exporter != "tf" and self.chance(0.6):
            first = g.add("Gather", g.add("Shape", x), g.constant(0, np.int64), axis=0)
            first = g.add("Unsqueeze", first, g.constant([0], np.int64))
            return g.add("Reshape", x, g.add("Concat", first, g.constant(shape[1:], np.int64), axis=0))
        return g.add("Reshape", x, g.constant(shape, np.int64))

    def upsample(self, x: str, factor: int = 2, mode: str = "nearest") -> str:
        """A resize by a factor, said by scales or by a size; each exporter has coordinates of its own."""
        g = self.g
        how: dict[str, Any] = {"mode": mode}
        if mode == "nearest":
            how |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        else:
            how["coordinate_transformation_mode"] = self.pick("half_pixel", "align_corners", "asymmetric")
        if self.chance(0.5):
            return g.add("Resize", x, "", g.constant([1, 1, factor, factor]), **how)
        h, w = g.shape(x)[2:]
        return g.add("Resize", x, "", "", self.sizes(x, h * factor, w * factor), **how)

    def sizes(self, x: str, *size: int) -> str:
        """The sizes of a map like this one with other rows and columns; batch and channels may be read from it."""
        g = self.g
        if self.exporter == "torch" and self.chance(0.6):
            zero, two = (g.constant([each], np.int64) for each in (0, 2))
            first = g.add("Slice", g.add("Shape", x), zero, two, zero)
            return g.add("Concat", first, g.constant(size, np.int64), axis=0)
        return g.constant([*g.shape(x)[:2], *size], np.int64)

    def slice(self, x: str, start: int, end: int, axis: int = 1, step: int = 1) -> str:
        """A part of an axis."""
        operands = (self.g.constant([each], np.int64) for each in (start, end, axis, step))
        return self.g.add("Slice", x, *operands)

    def split(self, x: str, parts: list[int], axis: int = 1) -> list[str]:
        """Parts of an axis, by one node or by slices."""
        if len(parts) > 1 and self.chance(0.7):
            return self.g.add("Split", x, self.g.constant(parts, np.int64), axis=axis, results=len(parts))
        ends = np.cumsum(parts).tolist()
        return [self.slice(x, end - part, end, axis) for part, end in zip(parts, ends)]

    def layer_norm(self, x: str) -> str:
        """A norm over the last axis, in one node or in the nodes of its formula."""
        g, count = self.g, self.g.shape(x)[-1]
        scale = g.constant(np.exp(self.random.standard_normal(count) * self.spread * 0.3))
        bias = g.constant(self.random.standard_normal(count) * 0.3)
        if self.chance(0.4):
            return g.add("LayerNormalization", x, scale, bias, epsilon=1e-5)
        low = g.add("Sub", x, g.add("ReduceMean", x, axes=[-1]))
        variance = g.add("ReduceMean", g.add("Pow", low, g.constant(2)), axes=[-1])
        deviation = g.add("Sqrt", g.add("Add", variance, g.constant(self.pick(1e-5, 1e-6))))
        return g.add("Add", g.add("Mul", g.add("Div", low, deviation), scale), bias)

    def group_norm(self, x: str, groups: int) -> str:
        """A norm over groups of channels: PyTorch's as the instance norm of a reshape, TensorFlow's by its formula."""
        g, (n, c, h, w) = self.g, self.g.shape(x)
        scale = g.constant(np.exp(self.random.standard_normal((c, 1, 1)) * self.spread * 0.3))
        bias = g.constant(self.random.standard_normal((c, 1, 1)) * 0.3)
        if self.exporter == "tf":
            y = g.add("Reshape", g.add("Transpose", x, perm=[0, 2, 3, 1]), g.constant([n, h, w, groups, -1], np.int64))
            low = g.add("Sub", y, g.add("ReduceMean", y, axes=[1, 2, 4]))
            variance = g.add("ReduceMean", g.add("Mul", low, low), axes=[1, 2, 4])
            deviation = g.add("Sqrt", g.add("Add", variance, g.constant(1e-3)))
            y = g.add("Reshape", g.add("Div", low, deviation), g.constant([n, h, w, c], np.int64))
            y = g.add("Transpose", y, perm=[0, 3, 1, 2])
        else:
            ones = (g.constant(np.full(groups, each)) for each in (1.0, 0.0))
            y = g.add("InstanceNormalization", self.reshape(x, [0, groups, -1]), *ones, epsilon=self.pick(1e-5, 1e-6))
            read = self.chance(0.6)
            y = g.add("Reshape", y, g.add("Shape", x) if read else g.constant([n, c, h, w], np.int64))
        return g.add("Add", g.add("Mul", y, scale), bias)

    def softmax(self, x: str, axis: int = -1) -> str:
        """Shares of an axis."""
        return self.g.add("Softmax", x, axis=axis)


def drawn_net(random: np.random.Generator, sizes: tuple[tuple[int, int], ...], batches: tuple[int, ...]) -> Net:
    """An empty net with drawn habits."""

    def pick(choices: tuple[Any, ...]) -> Any:
        return choices[int(random.integers(len(choices)))]

    return Net(
        Graph(random),
        random,
        exporter=pick(EXPORTERS),
        folded=bool(random.random() < 0.6),
        spread=pick(tuple(_SPREAD.values())),
        batch=pick(batches),
        size=pick(sizes),
        odd=bool(random.random() < 0.3),
        act=pick(("Relu", "Relu", *ACTIVATIONS)),
    )
