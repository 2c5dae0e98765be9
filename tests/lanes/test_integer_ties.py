"""Integers half way between two shifted ones: every kernel that shifts rounds as `evaluate` does, at all levels of it.

Of random bytes behind a shift of nine bits one in 512 is a tie, and most of those are saturated: here every second is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lane_nets import Net

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Operation, Value
from bmcompiler.runtime import Session
from bmcompiler.target import find_target, unsupported_reason

SHAPE = (2, 20, 9, 9)


def few(net: Net, *shape: int) -> Value:
    """Weights of -1, 0 and 1, so that no sum is saturated."""
    return net.b.weight(net.rng.integers(-1, 2, shape).astype(np.int8), "w")


def rows(net: Net, x: Value) -> Value:
    """An image in each row."""
    return net.b.reshape(x, shape=(x.shape[0], x.type.size // x.shape[0]))


def halved(net: Net, channels: int, rows: int) -> list[Value]:
    """A bias of nothing, and rows of factors of a half."""
    bias = net.b.weight(np.zeros(channels, np.int32), "bias")
    return [bias, net.b.weight(np.tile(np.array([1, 1], np.int32), (rows, 1)), "factors")]


SHIFTS: dict[str, Callable[[Net, Value], Any]] = {
    "conv": lambda t, x: t.b.conv(x, few(t, 40, 20, 3, 3), pads=(1, 1, 1, 1), rshift=1),
    "conv and relu": lambda t, x: t.b.relu(t.b.conv(x, few(t, 40, 20, 1, 1), rshift=1)),
    "depthwise": lambda t, x: t.b.conv(x, few(t, 20, 1, 3, 3), group=20, pads=(1, 1, 1, 1), rshift=1),
    "deconv": lambda t, x: t.b.deconv(x, few(t, 20, 5, 3, 3), strides=(2, 2), rshift=1),
    "product": lambda t, x: t.b.matmul(rows(t, x), few(t, 20 * 81, 30), rshift=1),
    "product and relu": lambda t, x: t.b.relu(t.b.matmul(rows(t, x), few(t, 20 * 81, 30), rshift=1)),
    "rows": lambda t, x: t.b.matmul(x, few(t, 9, 30), rshift=1),
    "sum": lambda t, x: t.b.add_shift(x, few(t, *SHAPE), rshift=1),
    "difference": lambda t, x: t.b.sub_shift(x, few(t, *SHAPE), rshift=1),
    "weighted sum": lambda t, x: t.b.mac_shift(x, t.b.maxs(x, value=1), multipliers=(1, -2), rshift=1),
    "product of maps": lambda t, x: t.b.mul_shift(x, few(t, *SHAPE), rshift=1),
    "factor": lambda t, x: t.b.muls_shift(x, multiplier=3, rshift=1),
    "constant": lambda t, x: t.b.adds_shift(x, value=3, rshift=1),
    "mean": lambda t, x: t.b.avg_pool(x, kernel=(3, 3), strides=(2, 2), multiplier=1, rshift=1),
    "shift": lambda t, x: t.b.round_rshift(x, rshift=1),
    "conv by factors": lambda t, x: t.b.conv(x, few(t, 40, 20, 1, 1), *halved(t, 40, 40), mode="channel"),
    "depthwise by factors": lambda t, x: t.b.conv(x, few(t, 20, 1, 3, 3), *halved(t, 20, 20), group=20, mode="channel"),
    "deconv by factors": lambda t, x: t.b.deconv(x, few(t, 20, 5, 3, 3), *halved(t, 5, 5), mode="channel"),
    "rows by a factor": lambda t, x: t.b.matmul(x, few(t, 9, 30), *halved(t, 30, 1), mode="channel"),
    "rows by factors": lambda t, x: t.b.matmul(x, few(t, 9, 30), *halved(t, 30, 30), mode="channel"),
    "inner rows by factors": lambda t, x: t.b.matmul(rows(t, x), few(t, 1620, 30), *halved(t, 30, 30), mode="channel"),
    "inner rows by a factor": lambda t, x: t.b.matmul(rows(t, x), few(t, 1620, 30), *halved(t, 30, 1), mode="channel"),
}


def asked(op: Operation) -> bool:
    """Whether there is nothing to see where the chip leaves it to the host."""
    return "shift" in op.name or op.attributes.get("mode") == "channel"


@pytest.mark.parametrize("chip", ["bm1880", "bm1684", "bm1684x"])
@pytest.mark.parametrize("name", SHIFTS)
def test_ties_of_shifts(name: str, chip: str) -> None:
    net, target = Net([SHAPE], 3, "i8"), find_target(chip)
    module = net.module([SHIFTS[name](net, net.inputs[0])])
    if any(unsupported_reason(target, op) is not None for op in module.main.ops if asked(op)):
        pytest.skip("no kernel")
    inputs = {"x0": net.rng.integers(-6, 7, SHAPE).astype(np.int8)}
    want = run_module(module, inputs, target=target)["y0"]
    assert np.unique(want).size > 3, "nothing is left of the sums"
    for level in (0, 2):
        got = Session(target.compile([module], level).model).run(inputs, raw=True)["y0"]
        np.testing.assert_array_equal(got, want)
