"""Time of BM1880 code generation for big random int8 nets: `python benchmarks/codegen_time.py`."""

from __future__ import annotations

import time

import numpy as np

from bmcompiler.ir import Module, Quant, TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.target import find_target

QUANT = Quant(1 / 64)


def _conv(b: Builder, x: Value, channels: int, kernel: int, stride: int = 1) -> Value:
    rng = np.random.default_rng(len(b.function.ops))
    weight = rng.integers(-128, 128, (channels, x.shape[1], kernel, kernel)).astype(np.int8)
    bias = rng.integers(-999, 999, channels).astype(np.int16)
    pad = kernel // 2
    with b.at(f"conv{len(b.function.ops)}"):
        w, c = b.weight(weight, "w"), b.weight(bias, "b")
        y = b.conv(x, w, c, pads=(pad,) * 4, strides=(stride, stride), rshift=9)
        return b.relu(y)


def vgg19(size: int) -> Module:
    """All layers of VGG-19."""
    b = Builder.new("vgg19")
    x = b.input("data", TensorType((1, 3, size, size), "i8", QUANT))
    for depth, channels in ((2, 64), (2, 128), (4, 256), (4, 512), (4, 512)):
        for _ in range(depth):
            x = _conv(b, x, channels, 3)
        x = b.max_pool(x, kernel=(2, 2), strides=(2, 2))
    x = b.reshape(x, shape=(1, x.type.size))
    for width in (4096, 4096, 1000):
        weight = np.zeros((width, x.shape[1]), np.int8)
        with b.at(f"fc{width}"):
            x = b.matmul(x, b.weight(weight, "w"), transpose_right=True, rshift=9)
    return b.outputs([x], ["out"])


def residual(size: int, blocks: tuple[int, ...] = (3, 4, 23, 3)) -> Module:
    """ResNet-101 by default."""
    b = Builder.new("residual")
    x = b.input("data", TensorType((1, 3, size, size), "i8", QUANT))
    x = b.max_pool(_conv(b, x, 64, 7, 2), kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
    for stage, depth in enumerate(blocks):
        for block in range(depth):
            width, stride = 64 << stage, 2 if block == 0 and stage else 1
            y = _conv(b, _conv(b, _conv(b, x, width, 1), width, 3, stride), 4 * width, 1)
            shortcut = x if block else _conv(b, x, 4 * width, 1, stride)
            with b.at(f"add{stage}_{block}"):
                x = b.mac_shift(shortcut, y, multipliers=(64, 77), rshift=7)
    with b.at("pool"):
        x = b.avg_pool(x, kernel=x.shape[2:], multiplier=200, rshift=13)
    return b.outputs([x], ["out"])


def squeezenet(size: int) -> Module:
    """SqueezeNet 1.1."""
    b = Builder.new("squeezenet")
    x = b.input("data", TensorType((1, 3, size, size), "i8", QUANT))
    x = b.max_pool(_conv(b, x, 64, 3, 2), kernel=(3, 3), strides=(2, 2))
    for index, width in enumerate((16, 16, 32, 32, 48, 48, 64, 64)):
        x = _conv(b, x, width, 1)
        with b.at(f"concat{index}"):
            x = b.concat(_conv(b, x, 4 * width, 1), _conv(b, x, 4 * width, 3), axis=1)
        if index in (1, 3):
            x = b.max_pool(x, kernel=(3, 3), strides=(2, 2))
    return b.outputs([_conv(b, x, 1000, 1)], ["out"])


def main() -> None:
    target = find_target("bm1880")
    target.compile([squeezenet(32)], 2)  # imports
    for make in (squeezenet, vgg19, residual):
        module = make(224)
        start = time.perf_counter()
        compiled = target.compile([module], 2)
        seconds = time.perf_counter() - start
        moved = sum(row.loaded + row.stored for row in compiled.rows)
        commands, tiles = sum(r.commands for r in compiled.rows), sum(r.tiles for r in compiled.rows)
        print(
            f"{make.__name__:12} {len(compiled.rows):4} ops {tiles:5} tiles {commands:6} commands"
            f" {moved / 1e6:7.1f} MB moved {compiled.totals['neuron memory'] / 1e6:6.1f} MB neuron {seconds:6.2f} s"
        )


if __name__ == "__main__":
    main()
