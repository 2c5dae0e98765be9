"""What kernels refuse: the message names the rule, the op runs on the CPU and the result is the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from chip_nets import Net, check

from bmcompiler.backends.bm1880.target import TARGET
from bmcompiler.ir import TensorType, Value

X = (1, 4, 20, 20)
Make = Callable[[Net, Value], Value]


def i32(net: Net, size: int) -> Value:
    return net.b.weight(np.arange(size, dtype=np.int32), "b")


def part(net: Net, x: Value, shape: tuple[int, ...]) -> Value:
    """The first corner of an activation."""
    return net.b.slice(x, starts=(0,) * len(shape), ends=shape, steps=(1,) * len(shape))


def wide(x: Value) -> TensorType:
    return TensorType(x.shape, "i16")


CASES: dict[str, tuple[str, tuple[int, ...], Make]] = {
    "conv stride": ("Strides must be between 1 and 15", X, lambda n, x: n.b.conv(x, n.i8(2, 4, 1, 1), strides=(16, 1))),
    "conv dilation": (
        "Dilations must be",
        (1, 1, 40, 2),
        lambda n, x: n.b.conv(x, n.i8(2, 1, 3, 1), dilations=(17, 1)),
    ),
    "conv pad": (
        "Every window must reach",
        X,
        lambda n, x: n.b.conv(x, n.i8(2, 4, 17, 1), pads=(16, 16, 0, 0), rshift=9),
    ),
    "conv bias": ("Input and weights must be int8", X, lambda n, x: n.b.conv(x, n.i8(2, 4, 1, 1), i32(n, 2))),
    "conv mode": (
        "no quantization mode",
        X,
        lambda n, x: n.b.conv(x, n.i8(2, 4, 1, 1), mode="low", scale=0.01),
    ),
    "matmul mode": ("no quantization mode", (4, 4), lambda n, x: n.b.matmul(x, n.i8(4, 4), mode="high", scale=0.01)),
    "pool scale": ("not by a real number", X, lambda n, x: n.b.avg_pool(x, kernel=(2, 2), scale=0.25)),
    "conv group": (
        "at most 4095 input channels",
        (1, 4096, 1, 1),
        lambda n, x: n.b.conv(x, n.i8(2, 4096, 1, 1), rshift=9),
    ),
    "conv constant": (
        "Weights and bias must be constants",
        X,
        lambda n, x: n.b.conv(x, part(n, x, (1, 4, 1, 1)), rshift=5),
    ),
    "deconv crop": (
        "Each pad must be below",
        X,
        lambda n, x: n.b.deconv(x, n.i8(4, 2, 2, 2), pads=(2, 0, 0, 0), rshift=5),
    ),
    "pool stride": ("Strides must be", (1, 1, 40, 2), lambda n, x: n.b.max_pool(x, kernel=(2, 2), strides=(17, 1))),
    "pool window": ("more than one element", X, lambda n, x: n.b.max_pool(x, kernel=(1, 1))),
    "pool dilation": ("Dilated pooling", X, lambda n, x: n.b.max_pool(x, kernel=(2, 2), dilations=(2, 1))),
    "pool multiplier": (
        "multiplier must be between 0 and 255",
        X,
        lambda n, x: n.b.avg_pool(x, kernel=(2, 2), multiplier=256, rshift=10),
    ),
    "matmul constant": (
        "left operand must be an activation",
        (4, 4),
        lambda n, x: n.b.matmul(n.i8(4, 4), x, rshift=4),
    ),
    "matmul batches": (
        "the same leading axes",
        (2, 4, 4),
        lambda n, x: n.b.matmul(x, part(n, x, (1, 4, 4)), rshift=4),
    ),
    "matmul right": ("must not be transposed unless", (4, 4), lambda n, x: n.b.matmul(x, x, transpose_right=True)),
    "matmul left": (
        "left operand must not be transposed",
        (4, 4),
        lambda n, x: n.b.matmul(x, n.i8(4, 3), transpose_left=True),
    ),
    "matmul depth": ("depth of the product", (1, 4099), lambda n, x: n.b.matmul(x, n.i8(4099, 3), rshift=9)),
    "elementwise type": (
        "Operands and result must be int8",
        X,
        lambda n, x: n.b.muls_shift(x, multiplier=2, out=wide(x)),
    ),
    "elementwise shape": ("must have the same shape", X, lambda n, x: n.b.max(x, part(n, x, (1, 1, 1, 20)))),
    "elementwise constant": (
        "not all of them constants",
        (2, 3),
        lambda n, x: n.b.mac_shift(n.i8(2, 3), multipliers=(3,), rshift=1),
    ),
    "concat constant": ("at most 256 runs", (300, 2), lambda n, x: n.b.concat(x, n.i8(300, 1), axis=1)),
    "muls multiplier": (
        "multiplier must be between -128 and 255",
        X,
        lambda n, x: n.b.muls_shift(x, multiplier=256, rshift=8),
    ),
    "mac multiplier": ("Multipliers must be", X, lambda n, x: n.b.mac_shift(x, x, multipliers=(1, 128), rshift=8)),
    "mac shift": (
        "right shift must be between 0 and 15",
        X,
        lambda n, x: n.b.mac_shift(x, x, multipliers=(1, 2), rshift=16),
    ),
    "mac sums": ("must fit 16 bits", X, lambda n, x: n.b.mac_shift(x, x, x, x, multipliers=(127, 127, 2, 5), rshift=2)),
    "prelu axis": ("along axis 1 of a 4-D", (2, 3), lambda n, x: n.b.prelu(x, n.i8(3), slope_rshift=7)),
    "mul shape": (
        "one be an int8 (N or 1, C, 1, 1)",
        X,
        lambda n, x: n.b.mul_shift(x, part(n, x, (1, 1, 1, 20)), rshift=7),
    ),
    "slice step": (
        "At most 256 elements",
        X,
        lambda n, x: n.b.slice(x, starts=(0, 0, 19, 19), ends=(1, 4, -1, -1), steps=(1, 1, -1, -1)),
    ),
    "pad mode": ("Only constant padding", X, lambda n, x: n.b.pad(x, pads=(0, 0, 0, 0, 1, 1, 1, 1), mode="edge")),
    "bytes": (
        "activations of bytes: int8, uint8 or bool",
        (2, 3),
        lambda n, x: n.b.permute(n.b.muls_shift(x, multiplier=3, out=wide(x)), order=(1, 0)),
    ),
    "local memory": (
        "smallest tile must fit local memory",
        (1, 4000, 30, 2),
        lambda n, x: n.b.conv(x, n.i8(1, 4000, 28, 2), rshift=12),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_names_its_rule(name: str) -> None:
    reason, shape, make = CASES[name]
    net = Net([shape])
    compiled = check(net.module([make(net, net.inputs[0])]))
    last = compiled.rows[-1]
    assert last.where == "cpu"
    assert reason in last.reason


def test_rules_are_sentences_that_begin_with_a_capital() -> None:
    for kernel in TARGET.kernels():
        for text in kernel.rules():
            assert text[0].isupper()
            assert not text.endswith(".")
