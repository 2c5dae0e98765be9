"""Small networks whose layers meet most kernels and passes, in floats with weights as training leaves them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cycle_nets import flat
from lane_nets import Net
from trained_weights import trained_layer

from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.builder import Builder

Shape = tuple[int, ...]


class Layers:
    """Layers of a network under construction."""

    def __init__(self, shape: Shape) -> None:
        self.rng = np.random.default_rng(0)
        self.b = Builder.new("net")
        self.x = self.b.input("x", TensorType(shape))

    def w(self, *shape: int, scale: float = 0.1) -> Value:
        """A constant of normal numbers."""
        return self.b.weight((self.rng.standard_normal(shape) * scale).astype(np.float32), "w")

    def trained(self, *shape: int, axis: int = 0) -> tuple[Value, Value]:
        """Weight and bias of a layer."""
        return tuple(self.b.weight(each, "w") for each in trained_layer(self.rng, shape, axis))  # type: ignore[return-value]

    def conv(self, x: Value, channels: int, size: int = 3, group: int = 1, **more: Any) -> Value:
        """Of as many rows and columns as `x`, where `more` does not say otherwise."""
        weight, bias = self.trained(channels, x.shape[1] // group, size, size)
        return self.b.conv(x, weight, bias, **{"pads": (size // 2,) * 4, "group": group, **more})

    def deconv(self, x: Value, channels: int, size: int, group: int = 1, **more: Any) -> Value:
        """With a bias."""
        weight, _ = self.trained(x.shape[1], channels // group, size, size, axis=1)
        return self.b.deconv(x, weight, self.w(channels), group=group, **more)

    def rows(self, x: Value, columns: int) -> Value:
        """A fully connected layer."""
        return self.b.matmul(x, *self.trained(x.shape[-1], columns, axis=1))

    def flat(self, x: Value) -> Value:
        """An image in each row."""
        return self.b.reshape(x, shape=(x.shape[0], x.type.size // x.shape[0]))


def classifier(t: Layers) -> Value:
    """Wide strides at first, a pooling that ends beyond the border, and a wide product."""
    x = t.b.relu(t.conv(t.x, 32, 7, strides=(2, 2)))
    x = t.b.max_pool(x, kernel=(3, 3), strides=(2, 2), ceil_mode=True)
    for channels in (96, 200):
        x = t.b.relu(t.conv(x, channels, strides=(2, 2), pads=(0, 0, 1, 1)))
    return t.b.softmax(t.rows(t.flat(x), 300), axis=1)


def mobile(t: Layers) -> Value:
    """Depthwise layers, gates, hard swish."""
    x = t.b.hard_swish(t.conv(t.x, 16, strides=(2, 2)))
    for channels, size, stride in ((24, 3, 2), (24, 5, 1), (40, 5, 2)):
        wide = t.b.clip(t.conv(x, 3 * x.shape[1], 1), min=0.0, max=6.0)
        deep = t.conv(wide, wide.shape[1], size, wide.shape[1], strides=(stride, stride))
        gate = t.b.hard_sigmoid(t.conv(t.b.reduce(deep, axes=(2, 3), method="mean", keepdims=True), deep.shape[1], 1))
        made = t.conv(t.b.hard_swish(t.b.mul(deep, gate)), channels, 1)
        x = t.b.add(x, made) if made.shape == x.shape else made
    return t.rows(t.b.reduce(x, axes=(2, 3), method="mean"), 50)


def residual(t: Layers) -> Value:
    """Sums of what was computed before, groups, dilations."""
    x = t.b.relu(t.conv(t.x, 64))
    for group, dilation in ((1, 1), (8, 1), (1, 2)):
        y = t.b.relu(t.conv(x, 64, 1))
        y = t.conv(y, 64, 3, group, dilations=(dilation,) * 2, pads=(dilation,) * 4)
        x = t.b.relu(t.b.add(x, y))
    return t.b.avg_pool(x, kernel=(2, 2), strides=(2, 2))


def branches(t: Layers) -> Value:
    """Windows of many forms, joined."""
    x = t.b.relu(t.conv(t.x, 32))
    tall, wide = t.trained(24, 32, 3, 1), t.trained(24, 32, 1, 5)
    parts = (
        t.conv(x, 20, 1), t.conv(x, 36, 5),
        t.b.conv(x, *tall, pads=(1, 1, 0, 0)), t.b.conv(x, *wide, pads=(0, 0, 2, 2)),
        t.b.max_pool(x, kernel=(3, 3), pads=(1, 1, 1, 1)),
        t.b.avg_pool(x, kernel=(3, 3), pads=(1, 1, 1, 1), count_include_pad=True),
    )  # fmt: skip
    x = t.b.relu(t.b.concat(*parts, axis=1))
    return t.b.concat(*(t.b.max_pool(x, kernel=(n, n), pads=(n // 2,) * 4) for n in (1, 5, 9)), axis=1)


def detector(t: Layers) -> Value:
    """Maps of two scales, resized and joined, and boxes of them as rows."""
    low = t.b.swish(t.conv(t.x, 24, strides=(2, 2)))
    high = t.b.swish(t.conv(low, 48, strides=(2, 2)))
    first, second = t.b.split(t.b.swish(t.conv(high, 48, 1)), axis=1, sizes=(24, 24))
    high = t.conv(t.b.concat(first, t.b.add(second, t.conv(second, 24)), axis=1), 24, 1)
    low = t.conv(t.b.concat(t.b.upsample(high, scale=(2, 2)), low, axis=1), 24)
    found = []
    for x in (low, high):
        boxes = t.b.reshape(t.conv(x, 3 * 7, 1), shape=(x.shape[0], 3, 7, x.shape[2] * x.shape[3]))
        boxes = t.b.sigmoid(t.b.permute(boxes, order=(0, 1, 3, 2)))
        found.append(t.b.reshape(boxes, shape=(x.shape[0], 3 * x.shape[2] * x.shape[3], 7)))
    return t.b.concat(*found, axis=1)


def hourglass(t: Layers) -> Value:
    """Down and up again, by transposed convolutions of several forms and linear resizing."""
    x = t.b.relu(t.conv(t.x, 16))
    y = t.b.relu(t.conv(t.b.max_pool(x, kernel=(2, 2), strides=(2, 2)), 32))
    z = t.b.leaky_relu(t.conv(t.b.max_pool(y, kernel=(2, 2), strides=(2, 2)), 48), slope=0.1)
    z = t.b.concat(t.b.relu(t.deconv(z, 24, 2, strides=(2, 2))), y, axis=1)
    z = t.deconv(t.conv(z, 16), 16, 4, 16, strides=(2, 2), pads=(1, 1, 1, 1))
    z = t.b.prelu(t.b.add(z, x), t.w(16))
    sizes = (*z.shape[:2], 2 * z.shape[2], 2 * z.shape[3])
    z = t.b.resize(z, sizes=sizes, scales=(1.0, 1.0, 2.0, 2.0), mode="linear")
    return t.deconv(z, 3, 3, strides=(1, 1), pads=(1, 1, 1, 1))


def pixels(t: Layers) -> Value:
    """Blocks of pixels to channels and back, and channels shuffled."""
    n, c, h, w = t.x.shape
    x = t.b.permute(t.b.reshape(t.x, shape=(n, c, h // 2, 2, w // 2, 2)), order=(0, 3, 5, 1, 2, 4))
    x = t.b.relu(t.conv(t.b.reshape(x, shape=(n, 4 * c, h // 2, w // 2)), 32, group=4))
    x = t.b.permute(t.b.reshape(x, shape=(n, 4, 8, h // 2, w // 2)), order=(0, 2, 1, 3, 4))
    x = t.conv(t.b.reshape(x, shape=(n, 32, h // 2, w // 2)), 12)
    x = t.b.permute(t.b.reshape(x, shape=(n, 3, 2, 2, h // 2, w // 2)), order=(0, 1, 4, 2, 5, 3))
    return t.b.clip(t.b.reshape(x, shape=(n, 3, h, w)), min=0.0, max=1.0)


def attention(t: Layers) -> Value:
    """Two layers of a transformer over patches, with heads."""
    n, width = t.x.shape[0], 64
    x = t.conv(t.x, width, 4, strides=(4, 4), pads=(0, 0, 0, 0))
    count = x.shape[2] * x.shape[3]
    x = t.b.permute(t.b.reshape(x, shape=(n, width, count)), order=(0, 2, 1))
    x = t.b.add(x, t.w(1, count, width))
    for _ in range(2):
        y = t.b.layer_norm(x, t.w(width), t.w(width), axis=2, epsilon=1e-5)
        q, k, v = (
            t.b.permute(t.b.reshape(t.rows(y, width), shape=(n, count, 4, width // 4)), order=(0, 2, 1, 3))
            for _ in range(3)
        )
        scores = t.b.mul(t.b.matmul(q, t.b.permute(k, order=(0, 1, 3, 2))), t.b.weight(np.float32([0.25]), "scale"))
        y = t.b.permute(t.b.matmul(t.b.softmax(scores, axis=3), v), order=(0, 2, 1, 3))
        x = t.b.add(x, t.rows(t.b.reshape(y, shape=(n, count, width)), width))
        y = t.b.rms_norm(x, t.w(width), axis=2, epsilon=1e-5)
        x = t.b.add(x, t.rows(t.b.gelu(t.rows(y, 2 * width)), width))
    return t.rows(t.b.reduce(x, axes=(1,), method="mean"), 10)


def windows(t: Layers) -> Value:
    """Attention in windows that are cut out of a map."""
    n, c, h, w = t.x.shape
    x = t.b.reshape(t.x, shape=(n, c, h // 4, 4, w // 4, 4))
    x = t.b.reshape(t.b.permute(x, order=(0, 2, 4, 3, 5, 1)), shape=(n * h * w // 16, 16, c))
    q, v = t.rows(x, c), t.rows(x, c)
    x = t.b.matmul(t.b.softmax(t.b.matmul(q, x, transpose_right=True), axis=2), v)
    x = t.b.permute(t.b.reshape(x, shape=(n, h // 4, w // 4, 4, 4, c)), order=(0, 5, 1, 3, 2, 4))
    return t.b.add(t.b.reshape(x, shape=t.x.shape), t.x)


def recurrent(t: Layers) -> Value:
    """Columns of a map as steps of recurrent layers, of both directions and both kinds."""
    x = t.b.relu(t.conv(t.x, 8))
    n, c, h, w = x.shape
    x = t.b.reshape(t.b.permute(x, order=(3, 0, 1, 2)), shape=(w, n, c * h))
    states = t.w(2, n, 16), t.w(2, n, 16)
    x = t.b.lstm(x, t.w(2, 64, c * h), t.w(2, 64, 16), t.w(2, 128), *states, direction="bidirectional")[0]
    x = t.b.reshape(t.b.permute(x, order=(0, 2, 1, 3)), shape=(w, n, 32))
    x = t.b.gru(x, t.w(1, 36, 32), t.w(1, 36, 12), t.w(1, 72), t.w(1, n, 12), linear_before_reset=True)[0]
    return t.b.log_softmax(t.rows(t.b.reshape(x, shape=(w, n, 12)), 20), axis=2)


def functions(t: Layers) -> Value:
    """Functions of one number, one after the other and side by side."""
    names = ("sigmoid", "tanh", "elu", "mish", "softplus", "selu", "softsign", "erf", "exp", "abs", "neg", "floor")
    x = t.conv(t.x, 16)
    parts = [getattr(t.b, name)(t.b.clip(x, min=-3.0, max=3.0)) for name in names]
    return t.b.concat(*parts, t.b.sqrt(t.b.abs(x)), t.b.log(t.b.clip(x, min=0.5, max=9.0)), axis=1)


def pairs(t: Layers) -> Value:
    """Operations of two maps of equal and of different shapes."""
    x, y = t.conv(t.x, 16), t.conv(t.x, 16)
    mean = t.b.reduce(y, axes=(2, 3), method="mean", keepdims=True)
    parts = [t.b.sub(x, mean), t.b.mul(x, y), t.b.div(x, t.b.clip(y, min=1.0, max=4.0)), t.b.max(x, mean)]
    parts += [t.b.min(x, y), t.b.where(t.b.compare(x, y, method="greater"), x, y), t.b.scale(x, t.w(16), t.w(16))]
    parts += [t.b.mod(x, t.b.clip(y, min=1.0, max=4.0), fmod=True), t.b.pow(t.b.abs(x), t.w(1, 16, 1, 1))]
    return t.b.concat(*parts, axis=1)


def norms(t: Layers) -> Value:
    """Norms over channels, maps and neighbours."""
    x = t.b.batch_norm(t.conv(t.x, 24), *(t.b.abs(t.w(24, scale=1)) for _ in range(4)), epsilon=1e-3)
    x = t.b.lrn(t.b.relu(x), size=5, alpha=1e-2)
    x = t.b.add(t.b.l2_normalize(x, axes=(1,), epsilon=1e-6), t.b.mean_variance_norm(x, axes=(2, 3), epsilon=1e-5))
    deviation = t.b.sub(x, t.b.reduce(x, axes=(1,), method="mean", keepdims=True))
    spread = t.b.sqrt(t.b.reduce(t.b.mul(deviation, deviation), axes=(1,), method="sum", keepdims=True))
    return t.b.div(deviation, t.b.clip(spread, min=1e-3, max=1e4))


def moves(t: Layers) -> Value:
    """Parts of maps cut out, mirrored, framed, gathered and joined."""
    x = t.conv(t.x, 16)
    even = t.b.slice(x, starts=(0, 0, 0, 0), ends=x.shape, steps=(1, 1, 2, 2))
    odd = t.b.slice(x, starts=(0, 0, 1, 1), ends=x.shape, steps=(1, 1, 2, 2))
    both = t.b.concat(even, odd, axis=3)
    framed = t.b.pad(both, pads=(0, 0, 1, 1, 0, 0, 1, 2), value=0.5)
    picked = t.b.gather(framed, t.b.weight(np.array([0, 3, 3, 9, 15]), "indices"), axis=1)
    last = t.b.permute(t.b.relu(picked), order=(0, 2, 3, 1))
    corner = t.b.slice(last, starts=(0, 0, 0, 0), ends=(last.shape[0], 1, 2, 5), steps=(1, 1, 1, 1))
    return t.b.concat(last, t.b.tile(corner, reps=(1, last.shape[1], 1, 1)), axis=2)


def long_rows(t: Layers) -> Value:
    """Convolutions of one row, as of sound."""
    x = t.x
    for channels, stride in ((24, 4), (48, 2), (48, 1)):
        weight = t.trained(channels, x.shape[1], 1, 9)
        x = t.b.relu(t.b.conv(x, *weight, pads=(0, 0, 4, 4), strides=(1, stride)))
    return t.b.arg(t.b.reduce(x, axes=(2,), method="max"), method="max", axis=1)


MIXED: tuple[tuple[Callable[[Layers], Value], Shape], ...] = (
    (classifier, (3, 3, 56, 56)), (mobile, (2, 3, 33, 47)), (residual, (1, 3, 28, 28)), (residual, (4, 8, 20, 26)),
    (branches, (1, 3, 24, 30)), (detector, (1, 3, 48, 64)), (hourglass, (1, 3, 32, 40)), (pixels, (1, 3, 40, 64)),
    (attention, (2, 3, 24, 32)), (functions, (1, 3, 15, 17)), (pairs, (2, 3, 14, 14)), (long_rows, (1, 1, 1, 2000)),
    (recurrent, (2, 1, 6, 9)),
)  # fmt: skip
"""Also compiled to int8."""
FLOATS = (
    *MIXED, (classifier, (1, 3, 96, 112)), (mobile, (1, 3, 64, 48)), (windows, (1, 32, 16, 16)),
    (norms, (1, 3, 17, 19)), (moves, (2, 3, 12, 16)),
)  # fmt: skip


def name_of(make: Callable[..., Value], shape: Shape) -> str:
    """What the files call a network."""
    return f"{make.__name__} {'x'.join(map(str, shape))}"


def network(make: Callable[[Layers], Value], shape: Shape) -> tuple[str, Module]:
    """A network of `MIXED` or `FLOATS` by its name."""
    layers = Layers(shape)
    return name_of(make, shape), layers.b.outputs([make(layers)], ["y"])


def _byte_conv(net: Net, x: Value, channels: int, size: int = 3, **more: Any) -> Value:
    weight = net.integers("i8", channels, x.shape[1], size, size)
    return net.b.relu(net.b.conv(x, weight, pads=(size // 2,) * 4, rshift=9, **more))


def byte_residual(net: Net, x: Value) -> Value:
    """Sums of what was computed before, by factors."""
    x = _byte_conv(net, x, 64)
    for _ in range(3):
        x = net.b.mac_shift(x, _byte_conv(net, _byte_conv(net, x, 64), 64), multipliers=(3, 5), rshift=3)
    return _byte_conv(net, x, 96, strides=(2, 2))


def byte_branches(net: Net, x: Value) -> Value:
    """Two branches, joined."""
    for _ in range(3):
        x = net.b.concat(_byte_conv(net, x, 48, 1), _byte_conv(net, _byte_conv(net, x, 24, 1), 40), axis=1)
    return net.b.max_pool(x, kernel=(2, 2), strides=(2, 2))


def byte_rows(net: Net, x: Value) -> Value:
    """Views of maps as rows and back, functions of both."""
    x = _byte_conv(net, x, 32)
    row = net.b.lut(net.b.relu(flat(net, x)), net.integers("i8", 256))
    x = _byte_conv(net, net.b.muls_shift(net.b.reshape(row, shape=x.shape), multiplier=3, rshift=2), 40)
    return net.b.matmul(flat(net, x), net.integers("i8", x.type.size // x.shape[0], 100), rshift=9)


BYTES: tuple[tuple[Callable[[Net, Value], Value], Shape], ...] = (
    (byte_residual, (1, 3, 56, 56)), (byte_residual, (4, 16, 20, 20)), (byte_branches, (2, 64, 14, 14)),
    (byte_rows, (2, 8, 12, 12)),
)  # fmt: skip
"""Of bytes as quantization leaves them."""


def byte_network(make: Callable[[Net, Value], Value], shape: Shape) -> tuple[str, Module]:
    """A network of `BYTES` by its name."""
    net = Net([shape], 0, "i8")
    return name_of(make, shape), net.module([make(net, net.inputs[0])])
