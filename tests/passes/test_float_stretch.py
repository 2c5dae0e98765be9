"""Where errors of single layers do not tell what ruins the outputs, a stretch of layers is in float."""

from __future__ import annotations

import numpy as np
from nets import Net

import bmcompiler
from bmcompiler.ir import Module

SAMPLES = np.random.default_rng(5).uniform(-1, 1, (16, 4, 8, 8)).astype(np.float32)


def soft_maxima() -> Module:
    """log(sum(exp(x))), the sum as a convolution, between convolutions: eight bits hold one of many powers of e."""
    n = Net()
    x = n.input(1, 4, 8, 8)
    for _ in range(2):
        x = n.conv(x, n.w(4, 4, 1, 1), n.w(4))
    powers = n.exp(n.mul(x, n.fill(12.0, 1)))
    x = n.log(n.conv(powers, n.fill(1.0, 1, 4, 1, 1)))
    for depth in (1, 2):
        x = n.conv(x, n.w(2, depth, 1, 1), n.w(2))
    return n.done(x)


def test_what_ruins_the_outputs_is_the_hosts_and_no_more() -> None:
    result = bmcompiler.compile_module(
        soft_maxima(), target="bm1880", quantize="int8", data={"data": SAMPLES}, check="always"
    )
    assert result.accuracy is not None
    assert max(output.error for output in result.accuracy.outputs) < 0.1
    kinds = {row.kind for row in result.rows if row.where == "cpu"}
    assert {"exp", "log"} & kinds
    convs = [row.where for row in result.rows if row.kind.startswith("conv")]
    assert convs.count("cpu") < len(convs)
