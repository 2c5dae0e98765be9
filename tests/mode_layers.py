"""Layers of bytes in every mode, with every bias and activation it has, at counts of images around those of a word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from lane_nets import Net

from bmcompiler.errors import BMError
from bmcompiler.ir import Module, Quant, TensorType, Value
from bmcompiler.numeric import factors

IMAGES = (1, 2, 3, 4, 5, 6, 9)
TYPES = (("i8", "i8"), ("u8", "i8"), ("i8", "u8"))
"""Of input and result; chips that only shift have the first."""
Mode = Callable[[Net, int], tuple[list[Value | None], dict[str, Any]]]
"""Bias and factors of so many output channels, and attributes."""


def _of_rows(net: Net, rows: np.ndarray) -> Value:
    return net.b.weight(rows, "factors")


def _words(net: Net, channels: int, *offset: int) -> tuple[list[Value | None], dict[str, Any]]:
    rows = factors.apart(net.rng.uniform(0.0005, 0.01, channels))
    rows = np.concatenate([rows, np.full((channels, len(offset)), offset, np.int32)], axis=1)
    bias = net.rng.integers(-9000, 9000, channels).astype("int16" if offset else "int32")
    return [net.b.weight(bias, "bias"), _of_rows(net, rows)], {"mode": "channel"}


def _reals(net: Net, channels: int) -> tuple[list[Value | None], dict[str, Any]]:
    rows = net.rng.uniform(0.0005, 0.01, (channels, 1)).astype(np.float32)
    return [net.f32(channels), _of_rows(net, rows)], {"mode": "channel"}


def _shifts(net: Net, channels: int) -> tuple[list[Value | None], dict[str, Any]]:
    rows = net.rng.integers(0, 8, (channels, 1)).astype(np.int16)
    return [net.integers("i16", channels), _of_rows(net, rows)], {"mode": "channel", "narrow": True, "rshift": 3}


MODES: dict[str, Mode] = {
    "shift": lambda net, c: ([net.integers("i16", c)], {"rshift": 7}),
    "shift without bias": lambda net, c: ([], {"rshift": 9}),
    "low": lambda net, c: ([net.integers("i16", c)], {"mode": "low", "scale": 0.003}),
    "high": lambda net, c: ([net.f32(c)], {"mode": "high", "scale": 0.003}),
    "high without bias": lambda net, c: ([], {"mode": "high", "scale": 0.004}),
    "asymmetric": lambda net, c: ([net.f32(c)], {"mode": "asymmetric", "scale": 0.003, "zero_points": (3, 0, 5)}),
    "weights with zero point": lambda net, c: (
        [net.f32(c)], {"mode": "asymmetric", "scale": 0.003, "zero_points": (0, 2, 0)}
    ),
    "factors": _words,
    "factors with offsets": lambda net, c: _words(net, c, 7),
    "real factors": _reals,
    "shifts of channels": _shifts,
}  # fmt: skip


def _conv(net: Net, x: Value, mode: Mode, **given: Any) -> Value:
    more, attributes = mode(net, 70)
    return net.b.conv(x, net.integers("i8", 70, x.shape[1], 3, 3), *more, pads=(1, 1, 1, 1), **attributes, **given)


def _depthwise(net: Net, x: Value, mode: Mode, **given: Any) -> Value:
    more, attributes = mode(net, x.shape[1])
    weight = net.integers("i8", x.shape[1], 1, 3, 3)
    return net.b.conv(x, weight, *more, group=x.shape[1], strides=(2, 1), **attributes, **given)


def _deconv(net: Net, x: Value, mode: Mode, **given: Any) -> Value:
    more, attributes = mode(net, 5)
    return net.b.deconv(x, net.integers("i8", x.shape[1], 5, 3, 3), *more, strides=(2, 2), **attributes, **given)


def _matmul(net: Net, x: Value, mode: Mode, **given: Any) -> Value:
    more, attributes = mode(net, 70)
    return net.b.matmul(x, net.integers("i8", x.shape[-1], 70), *more, **attributes, **given)


LAYERS = {"conv": _conv, "depthwise": _depthwise, "deconv": _deconv, "matmul": _matmul}


def layers_in_modes() -> Iterator[tuple[str, Module]]:
    """Those that exist, with their names."""
    for name, make in LAYERS.items():
        for number, (word, mode) in enumerate(MODES.items()):
            for images in IMAGES:
                kind, result = TYPES[(number + images) % 3 if "shift" not in word else 0]
                net = Net([(images, 33, 6, 9)], number, kind)
                given = {"activation": "relu"} if images % 2 else {}
                try:
                    shape = make(net, net.inputs[0], mode, **given).shape
                    made = make(net, net.inputs[0], mode, out=TensorType(shape, result, Quant(1 / 32)), **given)
                    yield f"{word} {name} of {images} {kind} to {result}", net.module([made])
                except BMError:
                    continue
