"""Nets of half and double precision become f32, and then run on the chip."""

from __future__ import annotations

import numpy as np
import pytest
from nets import Net

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target


def layers(n: Net, dtype: str) -> Module:
    """float in, layers in `dtype`, float out: what mixed-precision exporters write."""
    x = n.cast(n.input(1, 3, 8, 8), dtype=dtype)
    weight, bias = (
        n.constant(n.random.uniform(-1, 1, shape), np.dtype(NUMPY[dtype]).name) for shape in ((4, 3, 3, 3), 4)
    )
    x = n.relu(n.conv(x, weight, bias))
    half = n.add(x, n.constant([0.5], np.dtype(NUMPY[dtype]).name))
    return n.done(n.cast(half, dtype="f32"), half)


NUMPY = {"f16": "float16", "f64": "float64"}


@pytest.mark.parametrize("dtype", ["f16", "f64"])
def test_the_same_values_within_rounding_in_f32(dtype: str) -> None:
    module, changed = layers(Net(3), dtype), layers(Net(3), dtype)
    notes: list[str] = []
    run_pipeline(changed, "single-precision", PassContext(log=notes.append), verify_each=True)
    assert notes == ["7 tensors of half or double precision are computed as f32"]
    assert {v.dtype for op in changed.main.ops for v in op.results} == {"f32"}
    feeds = {"data": np.random.default_rng(1).uniform(-1, 1, (1, 3, 8, 8)).astype(np.float32)}
    want, got = run_module(module, feeds), run_module(changed, feeds)
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=0, atol=0.02 if dtype == "f16" else 1e-5)


def test_half_precision_layers_run_on_the_chip() -> None:
    module, target = layers(Net(3), "f16"), find_target("bm1880")
    data = {"data": np.random.default_rng(1).uniform(-1, 1, (4, 3, 8, 8)).astype(np.float32)}
    run_pipeline(module, target.pipeline("int8", 2), PassContext(data=data, target=target), verify_each=True)
    assert {row.where for row in target.compile([module], 2).rows if row.kind == "conv"} == {"bm1880"}


def test_nets_of_f32_and_nets_that_look_at_bits_stay() -> None:
    n = Net()
    plain = n.done(n.relu(n.input(1, 4)))
    n = Net()
    bits = n.done(n.bit_cast(n.cast(n.input(1, 4), dtype="f16"), dtype="i16"))
    for module in (plain, bits):
        text = str(module)
        run_pipeline(module, "single-precision", PassContext(), verify_each=True)
        assert str(module) == text
