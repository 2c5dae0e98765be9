"""Graphs of the kinds that have been slow: ops that move elements, and ops that use few lanes, at realistic sizes.

`benchmarks/bench_cliffs.py` times all of them, `tests/test_cliffs.py` asks that they stay near their bounds and compute
what `evaluate` does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.builder import Builder

Shape = tuple[int, ...]
Make = Callable[[Builder, Value], Value]


class Graph(NamedTuple):
    """What makes the result, the shape of its input at the size that is timed, and of one that is computed."""

    make: Make
    large: Shape
    small: Shape


def module_of(make: Make, shape: Shape) -> Module:
    """A net of a relu, layer "before", and what `make` makes of it, layer "op"."""
    b = Builder.new("net")
    x = b.input("x", TensorType(shape))
    with b.at("before"):
        first = b.relu(x)
    with b.at("op"):
        made = make(b, first)
    return b.outputs([made], ["y"])


# -- order of axes -----------------------------------------------------------------------------------------------------
def permuted(order: Shape, cells: Callable[[Shape], Shape] | None = None) -> Make:
    """A permute, of what is reshaped to `cells` before it."""
    return lambda b, x: b.permute(x if cells is None else b.reshape(x, shape=cells(x.shape)), order=order)


def _permuted_inside(b: Builder, x: Value, order: Shape) -> Value:
    """A softmax over the last axis behind the permute, so that it stays where it is."""
    return b.softmax(b.permute(x, order=order), axis=len(order) - 1)


def _rows_of_heads(shape: Shape) -> Shape:
    n, tokens, width = shape
    return n, tokens, width // 64, 64


def _windows(b: Builder, x: Value, size: int) -> Value:
    n, h, w, c = x.shape
    cells = b.reshape(x, shape=(n, h // size, size, w // size, size, c))
    return b.reshape(b.permute(cells, order=(0, 1, 3, 2, 4, 5)), shape=(n * h * w // size**2, size**2, c))


def _windows_back(b: Builder, x: Value, size: int) -> Value:
    windows, _, c = x.shape
    rows = round(windows**0.5)
    cells = b.reshape(x, shape=(1, rows, rows, size, size, c))
    return b.reshape(b.permute(cells, order=(0, 1, 3, 2, 4, 5)), shape=(1, rows * size, rows * size, c))


def _shifted(b: Builder, x: Value, by: int) -> Value:
    """Rows, then columns of (N, H, W, C) shifted cyclically."""
    for axis in (1, 2):
        x = b.concat(sliced(b, x, axis, by, x.shape[axis]), sliced(b, x, axis, 0, by), axis=axis)
    return x


def _shuffled(b: Builder, x: Value, groups: int) -> Value:
    n, c, h, w = x.shape
    parts = b.permute(b.reshape(x, shape=(n, groups, c // groups, h, w)), order=(0, 2, 1, 3, 4))
    return b.reshape(parts, shape=x.shape)


def _to_depth(b: Builder, x: Value, size: int, order: Shape) -> Value:
    n, c, h, w = x.shape
    cells = b.reshape(x, shape=(n, c, h // size, size, w // size, size))
    return b.reshape(b.permute(cells, order=order), shape=(n, c * size**2, h // size, w // size))


def pixels_of(order: Shape, size: int, last: bool) -> Make:
    """Depth to space, the pixels of a block the `last` or the first of its channels."""

    def make(b: Builder, x: Value) -> Value:
        n, c, h, w = x.shape
        depth = c // size**2
        shape = (n, depth, size, size, h, w) if last else (n, size, size, depth, h, w)
        made = b.permute(b.reshape(x, shape=shape), order=order)
        return b.reshape(made, shape=(n, depth, h * size, w * size))

    return make


# -- parts and repetitions ---------------------------------------------------------------------------------------------
def sliced(b: Builder, x: Value, axis: int, start: int, end: int, step: int = 1) -> Value:
    """A range of one axis."""
    starts = [start if i == axis else 0 for i in range(x.type.rank)]
    ends = [end if i == axis else size for i, size in enumerate(x.shape)]
    return b.slice(x, starts=starts, ends=ends, steps=[step if i == axis else 1 for i in range(x.type.rank)])


def every(axis: int, step: int, start: int = 0) -> Make:
    """Every so many-th index of an axis."""
    return lambda b, x: sliced(b, x, axis, start, x.shape[axis], step)


def _reversed(b: Builder, x: Value) -> Value:
    ends, steps = (*x.shape[:3], -1), (1, 1, 1, -1)
    return b.slice(x, starts=(0, 0, 0, x.shape[3] - 1), ends=ends, steps=steps)


def _focused(b: Builder, x: Value) -> Value:
    """The four phases of the pixels as channels."""
    rows = [every(2, 2, at)(b, x) for at in (0, 1)]
    return b.concat(*(every(3, 2, at)(b, part) for at in (0, 1) for part in rows), axis=1)


def _upsampled_beside(b: Builder, x: Value) -> Value:
    large = b.upsample(x, scale=(2, 2))
    return b.concat(large, b.relu(large), axis=1)


def upsampled(down: int, across: int) -> Make:
    """Pixels repeated."""
    return lambda b, x: b.upsample(x, scale=(down, across))


def resized(factor: float, mode: str, coordinates: str = "half_pixel") -> Make:
    """Rows and columns of a map resized."""

    def make(b: Builder, x: Value) -> Value:
        n, c, h, w = x.shape
        sizes = (n, c, round(h * factor), round(w * factor))
        return b.resize(x, sizes=sizes, scales=(1.0, 1.0, factor, factor), mode=mode, coordinates=coordinates)

    return make


def joined(axis: int) -> Make:
    """Two values of one size."""
    return lambda b, x: b.concat(x, b.sigmoid(x), axis=axis)


def joined_behind(channels: int) -> Make:
    """A few channels, and then the whole."""
    return lambda b, x: b.concat(sliced(b, x, 1, 0, channels), b.sigmoid(x), axis=1)


def _split_columns(b: Builder, x: Value) -> Value:
    """Three parts of the last axis, as of queries, keys and values."""
    width = x.shape[2] // 3
    first, second, third = b.split(x, axis=2, sizes=(width,) * 3)
    return b.add(b.mul(first, b.sigmoid(second)), third)


def _columns_joined(b: Builder, x: Value) -> Value:
    """The columns in another order, each behind a function of its own: what decoders of boxes do."""
    columns = [sliced(b, x, 2, at, at + 1) for at in range(x.shape[2])]
    return b.concat(*(b.sigmoid(column) for column in reversed(columns)), axis=2)


def padded(mode: str, *widths: int) -> Make:
    """Rows and columns: (above, below, left, right)."""
    return lambda b, x: b.pad(x, pads=(0, 0, 0, 0, *widths), mode=mode)


def tiled(*reps: int) -> Make:
    """The whole repeated along its axes."""
    return lambda b, x: b.tile(x, reps=reps)


def gathered(axis: int) -> Make:
    """Constant indices of an axis."""

    def make(b: Builder, x: Value) -> Value:
        indices = np.random.default_rng(0).integers(0, x.shape[axis], x.shape[axis])
        return b.gather(x, b.weight(indices.astype(np.int32), "i"), axis=axis)

    return make


# -- broadcasts and reductions -----------------------------------------------------------------------------------------
def with_constant(op: str, *axes: int) -> Make:
    """A function of the value and a constant that has its sizes on `axes`."""

    def make(b: Builder, x: Value) -> Value:
        shape = [size if axis in axes else 1 for axis, size in enumerate(x.shape)]
        constant = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        return b.create(op, [x, b.weight(constant, "c")]).results[0]

    return make


def _outer(b: Builder, x: Value) -> Value:
    """Sums of all pairs of elements of the two rows of each channel."""
    n, c, _, w = x.shape
    first = b.reshape(sliced(b, x, 2, 0, 1), shape=(n, c, w, 1))
    return b.add(first, sliced(b, x, 2, 1, 2))


def scaled_by_mean(*axes: int) -> Make:
    """A value times a function of its means."""
    return lambda b, x: b.mul(x, b.sigmoid(b.reduce(x, method="mean", axes=axes)))


def reduced(method: str, *axes: int) -> Make:
    """A reduction, twice the value's own size apart from it."""
    return lambda b, x: b.reduce(x, method=method, axes=axes)


def _instance_normed(b: Builder, x: Value) -> Value:
    return with_constant("mul", 1)(b, b.mean_variance_norm(x, axes=(2, 3), epsilon=1e-5))


def few_by_square(b: Builder, x: Value) -> Value:
    """Matrices of all but the last rows of `x` by square ones of its last rows: scores of a few tokens."""
    columns, height = x.shape[3], x.shape[2]
    return b.matmul(sliced(b, x, 2, 0, height - columns), sliced(b, x, 2, height - columns, height))


def pooled(b: Builder, x: Value, kind: str, count: int = 2) -> Value:
    """`count` x `count` windows that lie side by side."""
    size = tuple(length // count for length in x.shape[2:])
    return getattr(b, kind)(x, kernel=size, strides=size)


def _group_normed(b: Builder, x: Value, groups: int) -> Value:
    n, c, h, w = x.shape
    rows = b.reshape(x, shape=(n, groups, c // groups * h * w))
    normed = b.reshape(b.mean_variance_norm(rows, axes=(2,), epsilon=1e-5), shape=x.shape)
    return with_constant("mul", 1)(b, normed)


def _layer_normed(b: Builder, x: Value) -> Value:
    gamma = np.random.default_rng(0).standard_normal(x.shape[-1]).astype(np.float32)
    return b.layer_norm(x, b.weight(gamma, "g"), axis=x.type.rank - 1)


# -- products ----------------------------------------------------------------------------------------------------------
def _weights(shape: Shape, terms: int) -> Any:
    return (np.random.default_rng(0).standard_normal(shape) / np.sqrt(terms)).astype(np.float32)


def dilated(outputs: int, rate: int) -> Make:
    """A convolution of 3 x 3 pixels that are `rate` apart."""

    def make(b: Builder, x: Value) -> Value:
        weight = b.weight(_weights((outputs, x.shape[1], 3, 3), 9 * x.shape[1]), "w")
        return b.conv(x, weight, pads=(rate,) * 4, dilations=(rate, rate))

    return make


def stepped(outputs: int, kernel: tuple[int, int], steps: tuple[int, int], *pads: int) -> Make:
    """A convolution of long steps; pads: (above, below, left, right), or none."""

    def make(b: Builder, x: Value) -> Value:
        weight = b.weight(_weights((outputs, x.shape[1], *kernel), x.shape[1] * kernel[0] * kernel[1]), "w")
        return b.conv(x, weight, strides=steps, pads=pads or (0,) * 4)

    return make


def deconvolved(outputs: int, kernel: int, stride: int, pad: int, group: int = 1) -> Make:
    """A transposed convolution."""

    def make(b: Builder, x: Value) -> Value:
        weight = b.weight(_weights((x.shape[1], outputs // group, kernel, kernel), x.shape[1] // group), "w")
        return b.deconv(x, weight, strides=(stride, stride), pads=(pad,) * 4, group=group)

    return make


def _connected(b: Builder, x: Value, outputs: int) -> Value:
    return b.matmul(x, b.weight(_weights((x.shape[1], outputs), x.shape[1]), "w"))


def perceptron(hidden: int, activation: str) -> Make:
    """Two layers with an activation between them, and a sum: what transformers and mixers do to each token."""

    def make(b: Builder, x: Value) -> Value:
        width = x.shape[1]
        inner = b.create(activation, [_connected(b, x, hidden)]).results[0]
        return b.add(_connected(b, inner, width), x)

    return make


def _factor(b: Builder, x: Value) -> Value:
    return b.mul(x, b.weight(np.float32([0.125]), "f"))


def _small_maps(b: Builder, x: Value) -> Value:
    channels = x.shape[1]
    return b.conv(x, b.weight(_weights((channels, channels, 1, 1), channels), "w"), activation="relu")


_IMAGE, _PATCH = (0, 3, 1, 2), (0, 2, 3, 1)
_TOKENS, _FEW_TOKENS = (1, 197, 768), (1, 21, 128)

GRAPHS: dict[str, Graph] = {
    "image to channels first": Graph(permuted(_IMAGE), (1, 640, 640, 3), (1, 10, 12, 3)),
    "map to channels last": Graph(permuted(_PATCH), (1, 64, 80, 80), (1, 20, 6, 5)),
    "maps to channels last, batch 8": Graph(permuted(_PATCH), (8, 255, 20, 20), (3, 70, 5, 4)),
    "few channels last": Graph(permuted(_PATCH), (1, 3, 640, 640), (1, 3, 10, 12)),
    "map to channels first": Graph(permuted(_IMAGE), (1, 56, 56, 256), (1, 6, 5, 70)),
    "permute inside": Graph(partial(_permuted_inside, order=_PATCH), (1, 84, 80, 80), (1, 21, 6, 5)),
    "heads 0 2 1 3, 197": Graph(permuted((0, 2, 1, 3), _rows_of_heads), _TOKENS, _FEW_TOKENS),
    "heads 0 2 1 3, 8 x 384": Graph(permuted((0, 2, 1, 3), _rows_of_heads), (8, 384, 768), (2, 24, 128)),
    "heads 0 2 3 1, 197": Graph(permuted((0, 2, 3, 1), _rows_of_heads), _TOKENS, _FEW_TOKENS),
    "heads 0 2 3 1, 384": Graph(permuted((0, 2, 3, 1), _rows_of_heads), (1, 384, 768), (1, 24, 128)),
    "heads 0 1 3 2": Graph(permuted((0, 1, 3, 2)), (1, 12, 384, 64), (1, 2, 24, 16)),
    "heads 2 0 1 3": Graph(permuted((2, 0, 1, 3)), (8, 197, 12, 64), (2, 21, 3, 16)),
    "Swin windows": Graph(partial(_windows, size=7), (1, 56, 56, 96), (1, 14, 21, 24)),
    "Swin windows back": Graph(partial(_windows_back, size=7), (64, 49, 96), (4, 49, 24)),
    "Swin cyclic shift": Graph(partial(_shifted, by=3), (1, 56, 56, 96), (1, 14, 14, 24)),
    **{
        f"channel shuffle {g}": Graph(partial(_shuffled, groups=g), (1, 240, 28, 28), (2, 6 * g, 5, 4))
        for g in (2, 3, 4, 8)
    },
    "rows and columns of a map": Graph(permuted((0, 1, 3, 2)), (1, 64, 80, 80), (1, 66, 6, 5)),
    "rows and columns of an image": Graph(permuted((0, 1, 3, 2)), (1, 3, 480, 640), (1, 3, 12, 10)),
    "order 0 3 2 1": Graph(permuted((0, 3, 2, 1)), (1, 3, 480, 640), (1, 3, 12, 10)),
    "order 0 3 2 1 of a map": Graph(permuted((0, 3, 2, 1)), (1, 64, 80, 80), (1, 20, 6, 5)),
    "order 0 2 1 3 of a map": Graph(permuted((0, 2, 1, 3)), (1, 64, 80, 80), (1, 20, 6, 5)),
    "order 0 2 1": Graph(permuted((0, 2, 1)), (8, 400, 256), (2, 20, 24)),
    "order 1 0 2": Graph(permuted((1, 0, 2)), (32, 100, 256), (4, 10, 24)),
    "order 2 1 0": Graph(permuted((2, 1, 0)), (64, 100, 128), (4, 10, 24)),
    "order 2 0 1": Graph(permuted((2, 0, 1)), (64, 100, 128), (4, 10, 24)),
    "patches of MobileViT": Graph(permuted((0, 2, 1, 3)), (448, 24, 2, 2), (40, 6, 2, 2)),
    "columns of each image first": Graph(permuted((0, 2, 1)), (16, 576, 3), (3, 130, 3)),
    "split of columns": Graph(_split_columns, (64, 48, 24), (3, 44, 24)),
    "order 0 1 3 4 2, anchors": Graph(permuted((0, 1, 3, 4, 2)), (1, 3, 85, 80, 80), (1, 3, 13, 4, 5)),
    "order 0 3 4 1 2": Graph(permuted((0, 3, 4, 1, 2)), (1, 3, 85, 40, 40), (1, 3, 13, 4, 5)),
    "order 2 0 3 1 4": Graph(permuted((2, 0, 3, 1, 4)), (1, 197, 3, 12, 64), (2, 11, 3, 2, 16)),
    "order 0 2 4 3 1": Graph(permuted((0, 2, 4, 3, 1)), (1, 16, 8, 56, 56), (1, 4, 3, 5, 6)),
    "depth to space x4": Graph(pixels_of((0, 3, 4, 1, 5, 2), 4, last=False), (1, 48, 480, 640), (1, 48, 6, 8)),
    "pixel shuffle x2": Graph(pixels_of((0, 1, 4, 2, 5, 3), 2, last=True), (2, 48, 120, 160), (2, 48, 6, 9)),
    "pixel shuffle x3": Graph(pixels_of((0, 1, 4, 2, 5, 3), 3, last=True), (1, 27, 240, 320), (1, 27, 6, 9)),
    "space to depth x2": Graph(partial(_to_depth, size=2, order=(0, 3, 5, 1, 2, 4)), (1, 64, 80, 80), (1, 6, 6, 8)),
    "space to depth x4 of an image": Graph(
        partial(_to_depth, size=4, order=(0, 3, 5, 1, 2, 4)), (1, 3, 640, 640), (1, 3, 12, 8)
    ),
    "pixel unshuffle x2": Graph(partial(_to_depth, size=2, order=(0, 1, 3, 5, 2, 4)), (1, 64, 80, 80), (1, 6, 6, 8)),
    "Focus": Graph(_focused, (1, 3, 640, 640), (1, 3, 12, 10)),
    "every second row": Graph(every(2, 2), (1, 64, 80, 80), (2, 6, 8, 5)),
    "every second column": Graph(every(3, 2), (1, 64, 80, 80), (2, 6, 8, 9)),
    "every second channel": Graph(every(1, 2, 1), (1, 256, 40, 40), (2, 70, 5, 4)),
    "every third column of an image": Graph(every(3, 3, 1), (1, 3, 480, 640), (1, 3, 5, 13)),
    "columns reversed": Graph(_reversed, (1, 64, 80, 80), (1, 6, 4, 9)),
    "concat behind 3 channels": Graph(joined_behind(3), (1, 64, 80, 80), (1, 20, 6, 5)),
    "concat behind 19 channels": Graph(joined_behind(19), (4, 64, 40, 40), (2, 40, 6, 5)),
    "concat behind 65 channels": Graph(joined_behind(65), (1, 130, 80, 80), (1, 70, 6, 5)),
    "concat of rows": Graph(joined(2), (1, 64, 80, 80), (1, 20, 6, 5)),
    "concat of columns": Graph(joined(3), (1, 64, 80, 80), (1, 20, 6, 5)),
    "concat of last axis": Graph(joined(2), (1, 400, 85), (2, 30, 13)),
    "concat of single columns": Graph(_columns_joined, (1, 8400, 4), (1, 130, 3)),
    "number per row": Graph(with_constant("add", 2), (1, 64, 80, 80), (1, 20, 6, 5)),
    "number per column": Graph(with_constant("mul", 3), (1, 64, 80, 80), (1, 20, 6, 5)),
    "number per channel": Graph(with_constant("mul", 1), (1, 64, 80, 80), (1, 20, 6, 5)),
    "number per pixel": Graph(with_constant("add", 2, 3), (1, 64, 80, 80), (1, 20, 6, 5)),
    "number per token": Graph(with_constant("add", 1), _TOKENS, _FEW_TOKENS),
    "outer sum": Graph(_outer, (1, 64, 2, 160), (1, 6, 2, 9)),
    "squeeze and excite": Graph(scaled_by_mean(2, 3), (1, 256, 56, 56), (2, 20, 6, 5)),
    "scaled by means of channels": Graph(scaled_by_mean(1), (1, 64, 80, 80), (2, 20, 6, 5)),
    "upsample x2 beside another map": Graph(_upsampled_beside, (16, 128, 20, 20), (3, 70, 5, 6)),
    "upsample x2": Graph(upsampled(2, 2), (1, 256, 40, 40), (2, 20, 6, 5)),
    "upsample x3": Graph(upsampled(3, 3), (1, 64, 80, 80), (2, 20, 6, 5)),
    "upsample x4 to a large map": Graph(upsampled(4, 4), (1, 3, 480, 640), (1, 3, 12, 20)),
    "upsample of rows alone": Graph(upsampled(3, 1), (2, 64, 40, 40), (2, 66, 4, 5)),
    "bilinear x2": Graph(resized(2, "linear"), (1, 128, 40, 40), (1, 6, 6, 5)),
    "bilinear x4, align corners": Graph(resized(4, "linear", "align_corners"), (1, 64, 40, 40), (1, 6, 6, 5)),
    "bilinear x8": Graph(resized(8, "linear"), (1, 21, 64, 64), (1, 6, 6, 5)),
    "bilinear of an image": Graph(resized(0.5, "linear"), (1, 3, 480, 640), (1, 3, 12, 10)),
    "nearest x1.5": Graph(resized(1.5, "nearest", "asymmetric"), (1, 64, 40, 40), (1, 6, 6, 4)),
    **{f"dilated {rate}": Graph(dilated(64, rate), (1, 256, 33, 33), (1, 8, 9, 9)) for rate in (2, 4, 6, 12, 18, 36)},
    "spectrum of sound": Graph(stepped(201, (1, 400), (1, 160)), (1, 1, 1, 16000), (2, 1, 1, 1500)),
    "spectra of 16 short sounds": Graph(stepped(17, (1, 64), (1, 32)), (16, 1, 1, 768), (2, 1, 1, 256)),
    "wave, 80 taps": Graph(stepped(64, (1, 80), (1, 4), 0, 0, 38, 38), (1, 1, 1, 16000), (2, 1, 1, 333)),
    "patches of 16 x 16": Graph(stepped(192, (16, 16), (16, 16)), (1, 3, 224, 224), (1, 3, 35, 48)),
    "patches of 7 x 7, steps 4": Graph(stepped(64, (7, 7), (4, 4), 3, 3, 3, 3), (1, 3, 224, 224), (2, 3, 17, 22)),
    "deconv k2 s2": Graph(deconvolved(64, 2, 2, 0), (1, 128, 40, 40), (1, 8, 6, 5)),
    "deconv k3 s2": Graph(deconvolved(64, 3, 2, 1), (1, 128, 40, 40), (1, 8, 6, 5)),
    "deconv k4 s2": Graph(deconvolved(64, 4, 2, 1), (1, 128, 40, 40), (1, 8, 6, 5)),
    "deconv k16 s8": Graph(deconvolved(21, 16, 8, 4), (1, 21, 40, 40), (1, 5, 5, 4)),
    "deconv k4 s2 of channels": Graph(deconvolved(64, 4, 2, 1, 64), (1, 64, 40, 40), (1, 64, 6, 5)),
    "deconv k4 s2 of 4 groups": Graph(deconvolved(64, 4, 2, 1, 4), (1, 64, 40, 40), (1, 8, 6, 5)),
    "pad reflect": Graph(padded("reflect", 3, 3, 3, 3), (1, 64, 80, 80), (1, 6, 7, 9)),
    "pad reflect of an image": Graph(padded("reflect", 3, 3, 3, 3), (1, 3, 480, 640), (1, 3, 7, 9)),
    "pad edge": Graph(padded("edge", 1, 1, 1, 1), (1, 64, 80, 80), (1, 6, 7, 9)),
    "pad constant": Graph(padded("constant", 1, 1, 1, 1), (1, 64, 80, 80), (1, 6, 7, 9)),
    "pad asymmetric": Graph(padded("constant", 0, 1, 0, 1), (1, 64, 80, 80), (1, 6, 7, 9)),
    "tile of columns": Graph(tiled(1, 1, 1, 2), (1, 64, 40, 40), (1, 6, 5, 7)),
    "tile of single columns": Graph(tiled(1, 1, 1, 80), (1, 64, 80, 1), (1, 6, 5, 1)),
    "tile of single pixels": Graph(tiled(1, 1, 40, 40), (1, 256, 1, 1), (1, 6, 1, 1)),
    "tile of tokens": Graph(tiled(1, 64, 1), (8, 1, 768), (2, 1, 24)),
    "gather of channels": Graph(gathered(1), (1, 64, 80, 80), (1, 20, 6, 5)),
    "gather of rows": Graph(gathered(2), (1, 64, 80, 80), (1, 6, 9, 5)),
    "gather of columns": Graph(gathered(3), (1, 64, 80, 80), (1, 6, 5, 9)),
    "gather of tokens": Graph(gathered(1), _TOKENS, _FEW_TOKENS),
    "mean of channels": Graph(reduced("mean", 1), (1, 64, 80, 80), (2, 20, 6, 5)),
    "mean of 6 columns": Graph(reduced("mean", 2), (4, 4096, 6), (2, 70, 6)),
    "max of rows": Graph(reduced("max", 2), (1, 64, 80, 80), (2, 20, 6, 5)),
    "sum of columns": Graph(reduced("sum", 3), (1, 64, 80, 80), (2, 20, 6, 5)),
    "mean of tokens": Graph(reduced("mean", 1), _TOKENS, _FEW_TOKENS),
    "means of 4 large windows": Graph(partial(pooled, kind="avg_pool"), (1, 256, 60, 60), (2, 70, 34, 40)),
    "maxima of 4 large windows": Graph(partial(pooled, kind="max_pool"), (1, 256, 60, 60), (2, 70, 34, 40)),
    "cumulated columns": Graph(lambda b, x: b.cumulate(x, method="sum", axis=3), (1, 64, 80, 80), (1, 6, 5, 9)),
    "softmax of channels": Graph(lambda b, x: b.softmax(x, axis=1), (1, 21, 160, 160), (2, 21, 6, 5)),
    "softmax of columns": Graph(lambda b, x: b.softmax(x, axis=3), (1, 12, 384, 384), (1, 3, 20, 24)),
    "softmax of anchors": Graph(lambda b, x: b.softmax(x, axis=2), (1, 4, 16, 8400), (1, 4, 16, 30)),
    "softmax of rows of 706 columns": Graph(lambda b, x: b.softmax(x, axis=1), (2, 115, 706), (2, 3, 331)),
    "largest of rows of 353 columns": Graph(reduced("max", 1), (4, 100, 353), (2, 9, 706)),
    "softmax of 4 columns": Graph(lambda b, x: b.softmax(x, axis=2), (1, 36000, 4), (2, 130, 4)),
    "softmax of 3 columns, batch 16": Graph(lambda b, x: b.softmax(x, axis=2), (16, 576, 3), (3, 65, 3)),
    "argmax of 5 columns": Graph(lambda b, x: b.arg(x, method="max", axis=2), (4, 9000, 5), (2, 78, 5)),
    "argmax of channels": Graph(lambda b, x: b.arg(x, method="max", axis=1), (1, 21, 160, 160), (1, 21, 6, 5)),
    "argmax of columns": Graph(lambda b, x: b.arg(x, method="max", axis=2), (1, 1000, 1000), (1, 10, 20)),
    "instance norm": Graph(_instance_normed, (1, 64, 128, 128), (2, 20, 6, 5)),
    "group norm": Graph(partial(_group_normed, groups=32), (1, 256, 64, 64), (1, 64, 6, 5)),
    "layer norm": Graph(_layer_normed, _TOKENS, _FEW_TOKENS),
    "layer norm of 8 columns": Graph(_layer_normed, (64, 48, 8), (3, 44, 8)),
    "layer norm of 24 channels last": Graph(_layer_normed, (4, 14, 24, 24), (2, 5, 14, 24)),
    "layer norm of channels last": Graph(_layer_normed, (1, 56, 56, 96), (1, 6, 5, 24)),
    "scores of 6 rows": Graph(few_by_square, (16, 4, 30, 24), (3, 2, 26, 21)),
    "scores of a row": Graph(few_by_square, (8, 8, 65, 64), (1, 3, 65, 64)),
    "fully connected 25088": Graph(partial(_connected, outputs=4096), (1, 25088), (1, 300)),
    "fully connected 2048": Graph(partial(_connected, outputs=1000), (8, 2048), (3, 130)),
    "two classes": Graph(partial(_connected, outputs=2), (4, 12000), (3, 130)),
    "long rows, few columns": Graph(partial(_connected, outputs=20), (62, 12602), (17, 300)),
    "global mean": Graph(reduced("mean", 2, 3), (1, 2048, 7, 7), (2, 70, 6, 5)),
    "max of 13 x 13 pixels": Graph(
        lambda b, x: b.max_pool(x, kernel=(13, 13), pads=(6, 6, 6, 6)), (1, 512, 20, 20), (1, 6, 15, 14)
    ),
    "mean of 40 x 40 pixels": Graph(lambda b, x: b.avg_pool(x, kernel=(40, 40)), (1, 128, 40, 40), (1, 6, 40, 40)),
}  # fmt: skip

ROWS: dict[str, Graph] = {
    "product of 384 tokens": Graph(partial(_connected, outputs=768), (384, 768), (5, 90)),
    "product of 3072 short rows": Graph(partial(_connected, outputs=8), (3072, 16), (7, 16)),
    "product of rows that are maps": Graph(
        lambda b, x: _connected(b, b.reshape(x, shape=(x.shape[0], 16 * 7 * 7)), 100), (64, 16, 7, 7), (2, 16, 7, 7)
    ),
    "perceptron of tokens": Graph(perceptron(256, "tanh"), (1024, 64), (6, 20)),
    "sigmoid of boxes": Graph(lambda b, x: b.sigmoid(x), (3600, 4), (9, 4)),
    "factor of attention": Graph(_factor, (64, 4, 444), (3, 4, 9)),
    "sum of tokens": Graph(lambda b, x: b.add(x, b.tanh(x)), (2000, 16), (9, 16)),
    "convolution of many small maps": Graph(_small_maps, (64, 144, 2, 2), (3, 20, 2, 2)),
}
"""Many vectors or small maps, each of which was a command of its own on the DV700."""
