"""Nets of one op or two in floats or bytes, whose tiles planners and timing models of chips with lanes agree about."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from lane_nets import Net

from bmcompiler.ir import Quant, TensorType, Value

Make = Callable[[Net, Value], Any]


def flat(net: Net, x: Value) -> Value:
    """An image in each row."""
    return net.b.reshape(x, shape=(x.shape[0], x.type.size // x.shape[0]))


def recurrence(net: Net, x: Value) -> Value:
    """At most nine steps over rows."""
    count, width = x.type.size // x.shape[-1], x.shape[-1]
    steps = min(count, 9)
    rows = net.b.slice(net.b.reshape(x, shape=(count, width)), starts=(0, 0), ends=(steps, width), steps=(1, 1))
    gates = net.b.reshape(rows, shape=(steps, 1, width))
    y, _ = net.b.recurrence(gates, net.f32(width, width), net.f32(1, width), cell="rnn")
    return y


def best_boxes(net: Net, x: Value) -> Value:
    """Two boxes at most of each map."""
    images, classes, *sizes = x.shape
    count = prod(sizes)
    scores = net.b.reshape(x, shape=(images, classes, count))
    return net.b.best_boxes(net.f32(images, 4, count), scores, max_boxes=min(count, 2), iou_threshold=0.3)


def best_box_rows(net: Net, x: Value) -> Value:
    """Two boxes at most of each map, which has boxes of its own."""
    images, count = prod(x.shape[:-2]), prod(x.shape[-2:])
    scores = net.b.reshape(x, shape=(images, 1, count))
    return net.b.best_box_rows(net.f32(images, 4, count), scores, max_boxes=min(count, 2), iou_threshold=0.3)


def packed(net: Net, x: Value) -> Value:
    """Those of each row that are among its largest."""
    shape = (prod(x.shape[:-1]), x.shape[-1])
    rows = net.b.reshape(x, shape=shape)
    marks = net.b.leading(rows, k=-(-shape[1] // 2))
    return net.b.packed(net.f32(1, 3, shape[1]), marks, size=-(-shape[1] // 3), value=-1.0)


FLOATS: dict[str, Make] = {
    "conv": lambda t, x: t.b.conv(x, t.f32(9, x.shape[1], 3, 3), t.f32(9), pads=(1, 1, 1, 1), activation="relu6"),
    "cells": lambda t, x: t.b.conv(x, t.f32(130, x.shape[1], 3, 3), t.f32(130), pads=(1, 1, 1, 1)),
    "strided": lambda t, x: t.b.conv(x, t.f32(70, x.shape[1], 3, 2), pads=(1, 1, 1, 1), strides=(2, 2)),
    "depthwise": lambda t, x: t.b.conv(
        x, t.f32(x.shape[1], 1, 3, 3), pads=(1, 1, 1, 1), strides=(2, 2), group=x.shape[1]
    ),
    "deconv": lambda t, x: t.b.deconv(x, t.f32(x.shape[1], 5, 3, 3), strides=(2, 2)),
    "max_pool": lambda t, x: t.b.max_pool(x, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
    "avg_pool": lambda t, x: t.b.avg_pool(x, kernel=(2, 3), strides=(1, 2), pads=(0, 1, 0, 1)),
    "add": lambda t, x: t.b.add(x, t.f32(*x.shape), activation="relu"),
    "div": lambda t, x: t.b.div(x, t.f32(1, x.shape[1], 1, 1)),
    "pow": lambda t, x: t.b.pow(x, t.f32(*x.shape)),
    "sqrt": lambda t, x: t.b.sqrt(x),
    "sigmoid": lambda t, x: t.b.sigmoid(x),
    "gelu": lambda t, x: t.b.gelu(x),
    "sin": lambda t, x: t.b.sin(x),
    "softmax": lambda t, x: t.b.softmax(x, axis=1),
    "softmax of rows": lambda t, x: t.b.softmax(x, axis=3),
    "reduce": lambda t, x: t.b.reduce(x, axes=(2, 3), method="mean"),
    "cumulate": lambda t, x: t.b.cumulate(x, axis=2, method="sum"),
    "lrn": lambda t, x: t.b.lrn(x, size=3),
    "concat": lambda t, x: t.b.relu(t.b.concat(t.b.sqrt(x), t.b.relu(x), axis=1)),
    "pad": lambda t, x: t.b.relu(t.b.pad(t.b.sqrt(x), pads=(0, 0, 0, 9, 0, 0, 0, 0), value=2.0)),
    "upsample": lambda t, x: t.b.sqrt(t.b.upsample(t.b.relu(x), scale=(2, 3))),
    "square": lambda t, x: t.b.mul(x, x),
    "matmul": lambda t, x: t.b.matmul(x, t.f32(x.shape[-1], 70), t.f32(70), activation="relu"),
    "deep matmul": lambda t, x: t.b.matmul(flat(t, x), t.f32(x.type.size // x.shape[0], 9)),
    "resize": lambda t, x: t.b.resize(
        x, sizes=(*x.shape[:2], 2 * x.shape[2], 3 * x.shape[3]), scales=(1.0, 1.0, 2.0, 3.0), mode="linear"
    ),
    "compare": lambda t, x: t.b.where(t.b.compare(x, t.f32(*x.shape), method="greater"), x, t.f32(*x.shape)),
    "is_nan": lambda t, x: t.b.cast(t.b.is_nan(x), dtype="u8"),
    "arg": lambda t, x: t.b.arg(x, method="max", axis=1, keepdims=True),
    "best_boxes": best_boxes,
    "best_box_rows": best_box_rows,
    "packed": packed,
    "hardmax": lambda t, x: t.b.hardmax(x, axis=1),
    "recurrence": recurrence,
    "layer_norm": lambda t, x: t.b.layer_norm(x, axis=3, epsilon=1e-3),
    "l2_normalize": lambda t, x: t.b.l2_normalize(x, axes=(1,), epsilon=1e-10),
    "prelu": lambda t, x: t.b.prelu(x, t.f32(x.shape[1])),
    "scale": lambda t, x: t.b.scale(x, t.f32(x.shape[1]), t.f32(x.shape[1])),
    "mod": lambda t, x: t.b.mod(x, t.f32(*x.shape), fmod=True),
    "cast": lambda t, x: t.b.bit_xor(t.b.cast(x, dtype="i32"), t.b.cast(t.b.relu(x), dtype="i32")),
    "linear": lambda t, x: t.b.dequantize_linear(
        t.b.quantize_linear(x, t.b.weight(np.array([0.3], np.float32), "s"), dtype="i8"),
        t.b.weight(np.array([0.3], np.float32), "s"),
    ),
}


def _bands_of_an_input(net: Net, height: int, width: int) -> Value:
    image = net.b.input("image", TensorType((1, 3, 4 * height, width), "f32"))
    cut = {"bands": 4, "rows": height + height % 2, "top": 1, "stride": 2}
    out = TensorType((4, 3, 1 + cut["rows"], width), "i8", Quant(0.0625))
    bands = net.b.quantize_bands(image, out=out, **cut)
    return net.b.conv(bands, net.integers("i8", 70, 3, 3, 3), pads=(0, 0, 1, 1), strides=(2, 2), rshift=9)


BYTES: dict[str, Make] = {
    "add": lambda t, x: t.b.add_shift(x, t.integers("i8", *x.shape), rshift=1),
    "mac": lambda t, x: t.b.mac_shift(x, t.b.maxs(x, value=5), multipliers=(3, -5), rshift=3),
    "muls": lambda t, x: t.b.muls_shift(x, multiplier=300, rshift=9),
    "relu": lambda t, x: t.b.relu(x),
    "lut": lambda t, x: t.b.lut(x, t.integers("i8", 256)),
    "max_pool": lambda t, x: t.b.max_pool(x, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
    "avg_pool": lambda t, x: t.b.avg_pool(x, kernel=(2, 2), strides=(2, 2), multiplier=64, rshift=8),
    "scaled avg_pool": lambda t, x: t.b.avg_pool(x, kernel=x.shape[2:], scale=1 / 7),
    "concat": lambda t, x: t.b.relu(t.b.concat(t.b.maxs(x, value=3), t.b.relu(x), axis=1)),
    "pad": lambda t, x: t.b.relu(t.b.pad(t.b.maxs(x, value=3), pads=(0, 0, 1, 2, 0, 0, 0, 0), value=2.0)),
    "dequantize": lambda t, x: t.b.dequantize(x),
    "quantize": lambda t, x: t.b.quantize(t.b.dequantize(x), out=x.type),
    "word lut": lambda t, x: t.b.lut(x, t.integers("i32", 256)),
    "word avg_pool": lambda t, x: t.b.avg_pool(
        x, kernel=(17, 17), pads=(8, 8, 8, 8), count_include_pad=True, scale=1 / 289
    ),
    "quantize_bands": lambda t, x: _bands_of_an_input(t, *x.shape[2:]),
    "conv": lambda t, x: t.b.conv(x, t.integers("i8", 70, x.shape[1], 3, 3), pads=(1, 1, 1, 1), rshift=9),
    "deconv": lambda t, x: t.b.deconv(x, t.integers("i8", x.shape[1], 5, 3, 3), strides=(2, 2), rshift=9),
    "matmul": lambda t, x: t.b.matmul(x, t.integers("i8", x.shape[-1], 70), mode="high", scale=0.003),
    "matrix": lambda t, x: t.b.matmul(x, t.integers("i8", x.shape[-1], 700), rshift=9),
    "arith_shift": lambda t, x: t.b.arith_shift(x, t.integers("i8", *x.shape), direction="left"),
    "integers": lambda t, x: t.b.add(t.b.cast(x, dtype="i32"), t.integers("i32", *x.shape)),
    "lut_softmax": lambda t, x: t.b.lut_softmax(x, t.f32(256), axis=3),
}


MOVES: dict[str, Make] = {
    "images last": lambda t, x: t.b.permute(x, order=(1, 2, 3, 0)),
    "channels last": lambda t, x: t.b.permute(x, order=(0, 2, 3, 1)),
    "turned": lambda t, x: t.b.permute(x, order=(0, 1, 3, 2)),
    "heads": lambda t, x: t.b.permute(x, order=(0, 2, 1, 3)),
    "even columns": lambda t, x: t.b.slice(x, starts=(0, 0, 0, 0), ends=x.shape, steps=(1, 1, 1, 2)),
    "part": lambda t, x: t.b.slice(x, starts=(0, 1, 1, 2), ends=x.shape, steps=(1, 1, 1, 1)),
    "mirrored": lambda t, x: t.b.slice(
        x, starts=(0, 0, x.shape[2] - 1, 0), ends=(*x.shape[:2], -1, x.shape[3]), steps=(1, 1, -1, 1)
    ),
    "tiled": lambda t, x: t.b.tile(x, reps=(2, 1, 1, 3)),
    "joined rows": lambda t, x: t.b.concat(x, x, axis=2),
    "framed": lambda t, x: t.b.pad(x, pads=(0, 0, 2, 1, 0, 0, 1, 3), value=1.0),
    "rows": lambda t, x: t.b.relu(flat(t, t.b.relu(x))),
}
"""What only moves elements, of both kinds."""
