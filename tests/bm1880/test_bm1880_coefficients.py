"""Constants of channels are loaded once, byte for byte, into however many tiles the channels are cut."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from chip_nets import Net, random_inputs

from bmcompiler.backends.bm1880.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Value
from bmcompiler.runtime import Session
from bmcompiler.runtime.simulator.bm1880.analysis import analyze

OPS: dict[str, tuple[Callable[[Net, Value], Value], int]] = {
    "prelu": (lambda net, x: net.b.prelu(x, net.i8(x.shape[1]), slope_rshift=7), 1),
    "prelu, scaled": (lambda net, x: net.b.prelu(x, net.i8(x.shape[1]), multiplier=3, rshift=1, slope_rshift=7), 1),
    "factor": (lambda net, x: net.b.mul_shift(x, net.i8(1, x.shape[1], 1, 1), rshift=6), 1),
    "depthwise": (
        lambda net, x: net.b.conv(x, net.i8(x.shape[1], 1, 3, 3), net.bias(x.shape[1]), group=x.shape[1], rshift=7),
        11,
    ),
}
"""An op, and bytes of its constants for a channel."""


@pytest.mark.parametrize("lane_bytes", [768, 1 << 10, 1 << 16])
@pytest.mark.parametrize("shape", [(1, 100, 8, 8), (1, 256, 6, 5), (2, 300, 5, 4)], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_each_byte_of_a_channel_is_loaded_once(name: str, shape: tuple[int, ...], lane_bytes: int) -> None:
    make, each = OPS[name]
    target, net = TARGET.planner(), Net([shape])
    target.machine.tiler.lane_bytes = lane_bytes
    module = net.module([make(net, net.inputs[0])])
    model = target.compile([module], 0).model
    assert int(analyze(model, 0).costs.weights.sum()) == each * shape[1]
    inputs = random_inputs(module)
    np.testing.assert_array_equal(Session(model).run(inputs, raw=True)["y0"], run_module(module, inputs)["y0"])
