"""Drawn float nets of a few layers to quantize: weights as training leaves them, ranges over decades, every operand.

The same seed gives the same net. Thresholds are drawn, too, so that nothing depends on sums of floats.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from trained_weights import trained_layer

from bmcompiler.errors import BMError
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ir.keys import STATED, STATED_NAMES, STATED_SCALES, STATED_TYPES, STATED_ZEROS
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.precision.calibrate import float_values, set_thresholds, tensor_names

MOST = 600
"""Elements of a tensor that more layers are made of."""
ENDS = (3.0, 4.0, 4.5, 6.0, 8.0)
"""Thresholds at which functions level off."""
Make = Callable[["Drawn", Value], Value]


class Drawn:
    """A net under construction; each op is a layer of its own."""

    def __init__(self, seed: int) -> None:
        self.rng, self.random = random.Random(seed), np.random.default_rng(seed)
        self.b, self.count = Builder.new("net"), 0
        self.values: list[Value] = []

    def constant(self, array: Any) -> Value:
        self.count += 1
        return self.b.weight(np.asarray(array, np.float32), f"w{self.count}")

    def layer(self, shape: tuple[int, ...], axis: int = 0) -> list[Value]:
        """Weight, and mostly bias: as trained, as large as it likes, or whole multiples of a scale."""
        weight, bias = trained_layer(self.random, shape, axis)
        size = np.float32(self.rng.choice((1, 1, 1, 0.01, 40)))
        if self.rng.random() < 0.25:
            weight = np.rint(np.clip(weight * 30, -127, 127)) * np.float32(2.0**-6)
        bias = bias * np.float32(self.rng.choice((1, 1e-2, 1e-4)))
        made = [weight * size, *([bias * size] if self.rng.random() < 0.7 else [])]
        return [self.constant(each) for each in made]

    def operand(self, x: Value) -> Value:
        """Something to compute `x` with: a number, one of each position of an axis, a whole constant, or a tensor."""
        like = [value for value in self.values if value.shape == x.shape]
        alone = self.rng.randrange(x.type.rank)
        along = tuple(size if axis == alone else 1 for axis, size in enumerate(x.shape))
        shapes = (1,), along, along, x.shape[1:], x.shape
        kind = self.rng.randrange(8)
        if kind >= len(shapes):
            return self.rng.choice(like)
        size = self.rng.choice((0.02, 1, 1, 30, 0))
        return self.constant(self.random.normal(self.rng.choice((0, 2)) * size, size, shapes[kind]))

    def done(self) -> Module:
        """The net, with its last value and sometimes another one as outputs, its thresholds, and formats it states."""
        more = [self.rng.choice(self.values)] if self.rng.random() < 0.2 else []
        outputs = list(dict.fromkeys([self.values[-1], *(value for value in more if value.op is not None)]))
        module = self.b.outputs(outputs, [f"out{i}" for i in range(len(outputs))])
        verify_module(module)
        around = self.rng.randint(-3, 5)
        drawn = [number(self.rng, around - 2, around + 2) for _ in float_values(module.main)]
        set_thresholds(module.main, [each if self.rng.random() < 0.8 else self.rng.choice(ENDS) for each in drawn])
        return module


def number(rng: random.Random, low: int, high: int) -> float:
    """One between these powers of two, the same on every machine."""
    return float(np.ldexp(rng.uniform(0.5, 1), rng.randint(low, high)))


def state(module: Module, rng: random.Random) -> None:
    """Say of some tensors what bytes they are, as models do that are quantized already."""
    names = [each[0] for each in tensor_names(module.main).values()]
    rows = [
        (name, 2.0, rng.choice(("i8", "u8", "u8", "")), number(rng, -8, -3), rng.choice((0, 0, 3, 100)))
        for name in names
        if rng.random() < 0.5
    ]
    if rows:
        keys = STATED_NAMES, STATED, STATED_TYPES, STATED_SCALES, STATED_ZEROS
        module.main.attributes.update(zip(keys, zip(*rows)))


def _inside(net: Drawn) -> dict[str, str]:
    """An activation that a layer has inside, or none."""
    return {"activation": net.rng.choice(("relu", "relu6"))} if net.rng.random() < 0.4 else {}


def _conv(net: Drawn, x: Value) -> Value:
    rng, channels = net.rng, x.shape[1]
    group = rng.choice((1, 1, channels, 2 if channels % 2 == 0 else 1))
    out = group * rng.choice((1, 1, 2, 5))
    kernel = tuple(rng.choice((1, 1, 2, 3)) for _ in range(2))
    window = {"strides": rng.choice(((1, 1), (2, 1))), "dilations": rng.choice(((1, 1), (1, 1), (2, 1)))}
    pads = tuple(min(rng.choice((0, 1, 1)), kernel[at // 2] - 1) for at in range(4))
    return net.b.conv(
        x, *net.layer((out, channels // group, *kernel)), group=group, pads=pads, **window, **_inside(net)
    )


def _deconv(net: Drawn, x: Value) -> Value:
    group = net.rng.choice((1, 1, x.shape[1]))
    out = 1 if group > 1 else net.rng.choice((1, 3))
    weight, *bias = net.layer((x.shape[1], out, 2, net.rng.choice((2, 3))), axis=0 if group > 1 else 1)
    return net.b.deconv(x, weight, *bias, group=group, strides=net.rng.choice(((1, 1), (2, 2))), **_inside(net))


def _matmul(net: Drawn, x: Value) -> Value:
    flat = net.b.reshape(x, shape=(x.shape[0], x.type.size // x.shape[0])) if net.rng.random() < 0.6 else x
    turned, columns = net.rng.random() < 0.4, net.rng.choice((1, 4, 7))
    shape = (columns, flat.shape[-1]) if turned else (flat.shape[-1], columns)
    return net.b.matmul(flat, *net.layer(shape, axis=0 if turned else 1), transpose_right=turned, **_inside(net))


def _products(net: Drawn, x: Value) -> Value:
    other = net.rng.choice([value for value in net.values if value.shape == x.shape])
    return net.b.matmul(x, other, transpose_right=True)


def _operands(net: Drawn, x: Value) -> Value:
    pair = [x, net.operand(x)]
    net.rng.shuffle(pair)
    name = net.rng.choice(("add", "add", "sub", "mul", "mul", "div", "max", "min"))
    return getattr(net.b, name)(*pair, **(_inside(net) if name in ("add", "sub", "mul") else {}))


def _numbers(net: Drawn, x: Value) -> Value:
    """One number, or one for each position of an axis, before or behind the values."""
    axis = net.rng.randrange(x.type.rank)
    shape = net.rng.choice(((1,), tuple(size if at == axis else 1 for at, size in enumerate(x.shape))))
    pair = [x, net.constant(net.random.normal(0, net.rng.choice((0, 0.3, 2, 2, 50)), shape))]
    net.rng.shuffle(pair)
    return getattr(net.b, net.rng.choice(("add", "sub", "mul", "mul", "div", "pow")))(*pair)


def _repeated(net: Drawn, x: Value) -> Value:
    """An operand that is one value per channel and sample."""
    pair = [x, net.b.reduce(x, axes=(2, 3), method=net.rng.choice(("mean", "sum")), keepdims=True)]
    net.rng.shuffle(pair)
    return getattr(net.b, net.rng.choice(("add", "sub", "mul", "max")))(*pair)


def _function(net: Drawn, x: Value) -> Value:
    if net.rng.random() < 0.2:
        return net.b.hard_sigmoid(x, alpha=net.rng.choice((0.1, 0.2, 1.0)), beta=net.rng.choice((0.3, 0.5, 0.9)))
    names = ("sigmoid", "tanh", "hard_swish", "swish", "gelu", "elu", "abs", "neg", "exp", "softplus", "mish", "sqrt")
    return getattr(net.b, net.rng.choice(names))(x)


def _clip(net: Drawn, x: Value) -> Value:
    low, high = net.rng.choice(((0.0, 6.0), (0.0, 6.0), (0.0, 0.7), (-1.0, 1.0), (0.0, 200.0)))
    return net.b.clip(x, min=low, max=high)


def _prelu(net: Drawn, x: Value) -> Value:
    axis = net.rng.randrange(1, x.type.rank)
    size = net.rng.choice((1, x.shape[axis], x.shape[axis]))
    return net.b.prelu(x, net.constant(net.random.normal(0, net.rng.choice((0.2, 0.2, 3, 90)), size)), axis=axis)


def _of_channels(net: Drawn, x: Value) -> Value:
    axis = net.rng.choice((1, 1, x.type.rank - 1))
    _, bias = trained_layer(net.random, (x.shape[axis], 2))
    gain = net.random.normal(0, 1, x.shape[axis])
    if axis != 1 or net.rng.random() < 0.5:
        return net.b.scale(x, net.constant(gain), *([net.constant(bias)] if net.rng.random() < 0.7 else []), axis=axis)
    parts = gain, bias, net.random.normal(0, 3, x.shape[1]), net.random.uniform(0.01, 9, x.shape[1])
    return net.b.batch_norm(x, *map(net.constant, parts), epsilon=1e-3)


def _pool(net: Drawn, x: Value) -> Value:
    kernel = min(net.rng.choice((2, 3)), x.shape[2]), min(2, x.shape[3])
    pads = net.rng.choice(((0, 0, 0, 0), (0, 0, 0, 0), (kernel[0] - 1, 0, 0, 0)))
    given = {"kernel": kernel, "pads": pads, "strides": net.rng.choice(((1, 1), (2, 2)))}
    if net.rng.random() < 0.4:
        return net.b.max_pool(x, **given)
    return net.b.avg_pool(x, **given, count_include_pad=net.rng.random() < 0.7, ceil_mode=net.rng.random() < 0.2)


def _mean(net: Drawn, x: Value) -> Value:
    method = net.rng.choice(("mean", "mean", "sum", "max"))
    return net.b.reduce(x, axes=net.rng.choice(((2, 3), (2, 3), (1,))), method=method, keepdims=net.rng.random() < 0.7)


def _moved(net: Drawn, x: Value) -> Value:
    kind = net.rng.randrange(3)
    if kind == 0:
        return net.b.permute(x, order=(0, 1, 3, 2))
    if kind == 1:
        return net.b.reshape(x, shape=(*x.shape[:2], x.type.size // (x.shape[0] * x.shape[1])))
    return net.b.pad(x, pads=(0, 0, 0, 0, 0, 0, 1, 1), value=net.rng.choice((0.0, 0.5, -2.0)))


def _joined(net: Drawn, x: Value) -> Value:
    like = [value for value in net.values if value.shape == x.shape]
    return net.b.concat(*[x, *net.rng.choices(like, k=net.rng.choice((1, 2)))], axis=1)


STEPS: tuple[Make, ...] = (
    _conv, _conv, _conv, _deconv, _matmul, _products, _operands, _operands, _numbers, _numbers, _repeated, _function,
    _clip, lambda net, x: net.b.relu(x), lambda net, x: net.b.relu(x), _prelu, _of_channels, _pool, _mean, _moved,
    _joined,
)  # fmt: skip


def drawn_layers(seed: int) -> Module:
    """A net of two to six layers, some of which read what others made."""
    net = Drawn(seed)
    rng = net.rng
    shape = rng.choice((1, 1, 2)), rng.choice((1, 3, 4, 6)), rng.choice((2, 3, 5)), rng.choice((1, 4, 5))
    net.values.append(net.b.input("x", TensorType(shape)))
    wanted = rng.randint(2, 6)
    while len(net.values) <= wanted:
        x = net.values[-1] if rng.random() < 0.8 else rng.choice(net.values)
        x = x if x.type.size <= MOST else net.values[0]
        net.count += 1
        try:
            with net.b.at(f"layer{net.count}"):
                made = rng.choice(STEPS)(net, x)
        except (BMError, ValueError, IndexError):  # a step that tensors of this rank do not have
            continue
        if isinstance(made.op, TensorOp):
            made.op.attributes["source.tensor"] = f"layer{net.count}.out"
        if made.type.size:
            net.values.append(made)
    return net.done()
