"""Programs with floats of 16 bits keep their types; what the chip does not compute in them is computed in f32."""

from __future__ import annotations

import numpy as np
import pytest
from nets import Net

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, copy_module, verify_module
from bmcompiler.ir.types import numpy_dtype
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target

HALVES = ("f16", "bf16")


def widened(module: Module) -> list[str]:
    """The ops that compute after the pass, as "name operands -> result" of their types."""
    run_pipeline(module, "fold-constants,widen-floats,dead-code", PassContext(target=find_target("bm1684x")))
    verify_module(module)
    ops = [op for op in module.main.ops[:-1] if op.short_name != "weight"]
    return [" ".join([op.short_name, *(v.dtype for v in op.operands), "->", op.results[0].dtype]) for op in ops]


@pytest.mark.parametrize("half", HALVES)
def test_what_the_chip_has_in_the_type_stays(half: str) -> None:
    """Rule 1: sums, products, moves; and ops without such floats."""
    n = Net()
    x, real = n.input(1, 4, 6, 6, dtype=half), n.input(1, 4, name="real")
    made = n.done(n.permute(n.add(x, x), order=(0, 2, 3, 1)), n.softmax(real, axis=1))
    text = str(made)
    widened(made)
    assert str(made) == text


@pytest.mark.parametrize("half", HALVES)
def test_a_convolution_has_its_bias_in_f32(half: str) -> None:
    """Rule 2."""
    n = Net()
    kind = numpy_dtype(half)
    x = n.input(1, 4, 6, 6, dtype=half)
    weight, bias = n.constant(np.full((3, 4, 2, 2), 0.5), kind), n.constant(np.arange(3), kind)
    made = n.done(n.conv(x, weight, bias))
    before = copy_module(made)
    assert widened(made) == [f"conv {half} {half} f32 -> {half}"]
    feed = {"data": np.arange(144).reshape(1, 4, 6, 6).astype(kind)}
    (got,), (want,) = (run_module(each, feed).values() for each in (made, before))
    np.testing.assert_array_equal(got, want)


def test_casts_between_types_that_the_chip_does_not_cast_go_through_f32() -> None:
    """Rule 3; the casts of f32 stay."""
    n = Net()
    x = n.input(2, 5, dtype="f16")
    made = n.done(n.cast(x, dtype="i8"), n.cast(x, dtype="bf16"), n.cast(n.cast(x, dtype="i32"), dtype="f16"))
    wide = ["cast f16 -> f32", "cast f32 -> i8", "cast f32 -> bf16", "cast f32 -> i32", "cast i32 -> f32"]
    assert sorted(widened(made)) == sorted([*wide, "cast f32 -> f16"])


@pytest.mark.parametrize("half", HALVES)
def test_all_else_is_computed_in_f32_and_rounded_once(half: str) -> None:
    """Rule 4: each value is cast once, whoever reads it; constants are made in f32."""
    n = Net()
    kind = numpy_dtype(half)
    x = n.input(2, 5, dtype=half)
    made = n.done(n.exp(x), n.div(x, n.constant(np.full((1, 5), 3), kind)))
    before = copy_module(made)
    assert widened(made) == [
        f"cast {half} -> f32",
        "exp f32 -> f32",
        f"cast f32 -> {half}",
        "div f32 f32 -> f32",
        f"cast f32 -> {half}",
    ]
    feed = {"data": np.linspace(-3, 3, 10).reshape(2, 5).astype(kind)}
    for got, want in zip(run_module(made, feed).values(), run_module(before, feed).values()):
        assert got.dtype == kind
        np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=2.0**-7)
