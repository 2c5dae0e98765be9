"""Shortcuts around gates go into the gates: as near to the exact sums as before."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.merge_shortcuts import MergeShortcuts
from bmcompiler.passmanager import PassContext

SHAPE = (1, 24, 40, 40)


def net(
    gate: tuple[int, ...] = (1, 24, 1, 1), *, turned: bool = False, read: bool = False, relu: bool = False
) -> Module:
    """x + x * s; turned: the other way round. read: the product, too. relu: behind the sum, in the same op."""
    b = Builder.new("net")
    x, s = b.input("x", TensorType(SHAPE, "f32")), b.input("s", TensorType(gate, "f32"))
    product = b.mul(s, x) if turned else b.mul(x, s)
    attributes = {"activation": "relu"} if relu else {}
    y = b.add(product, x, **attributes) if turned else b.add(x, product, **attributes)
    return b.outputs([y, *([product] if read else [])], ["y", "z"][: 1 + read])


def sums(module: Module) -> int:
    """As large as the input, after the pass."""
    MergeShortcuts().run(module, PassContext(target=TARGET))
    verify_module(module)
    return sum(op.short_name == "add" and op.type.shape == SHAPE for op in module.main.ops)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("gate", [(1, 24, 1, 1), (1, 1, 1, 1), (1, 24, 1, 40)])
def test_one_product_is_left(gate: tuple[int, ...], turned: bool) -> None:
    module, rng = net(gate, turned=turned), np.random.default_rng(2)
    x, s = rng.standard_normal(SHAPE).astype(np.float32), rng.random(gate, np.float32)
    (before,) = run_module(module, {"x": x, "s": s}, target=TARGET).values()
    assert sums(module) == 0
    (after,) = run_module(module, {"x": x, "s": s}, target=TARGET).values()
    exact = x.astype(np.float64) * (1 + s.astype(np.float64))
    assert np.abs(before - exact).max() > 0
    np.testing.assert_allclose(after, exact, rtol=2.0**-22)


def test_what_others_read_activations_and_gates_as_large_stay() -> None:
    assert sums(net(read=True)) == sums(net(relu=True)) == sums(net(SHAPE)) == 1
