"""Convolutions of one input become one: which of them, and with the same bits on the chip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.join_siblings import JoinSiblings
from bmcompiler.passmanager import PassContext
from bmcompiler.target import find_target


def net(
    outputs: Sequence[int],
    then: Sequence[str] = (),
    attributes: Sequence[dict[str, Any]] = (),
    size: int = 40,
    dtype: str = "f32",
    biased: bool = True,
) -> Module:
    """Convolutions 3x3 of a sum, each with the function of `then` at its place and its own attributes."""
    rng, b = np.random.default_rng(3), Builder.new("net")
    x = b.input("x", TensorType((1, 48, size, size), dtype))
    shared, made = b.add(x, x), []
    for number, count in enumerate(outputs):
        kernel = rng.integers(-128, 128, (count, 48, 3, 3)) if dtype == "i8" else rng.standard_normal((count, 48, 3, 3))
        bias = rng.integers(-99, 99, count).astype(np.int16) if dtype == "i8" else rng.standard_normal(count)
        vector = b.weight(bias if dtype == "i8" else bias.astype(np.float32), "bias") if biased else None
        more = {"rshift": 9} if dtype == "i8" else {}
        given = {"pads": (1, 1, 1, 1)} | more | (attributes[number] if attributes else {})
        y = b.conv(shared, b.weight(kernel.astype(x.type.numpy), "w"), vector, **given)
        y = getattr(b, then[number])(y) if then else y
        y.op.attributes["source.tensor"] = f"t{number}"
        made.append(y)
    return b.outputs(made, [f"y{number}" for number in range(len(made))])


def joined(module: Module) -> Counter[str]:
    """The ops after the pass; all results keep their bits."""
    x = np.random.default_rng(4).standard_normal(module.main.arguments[0].shape)
    inputs = {"x": x.astype(np.float32)}
    before = run_module(module, inputs, target=TARGET)
    assert JoinSiblings().run(module, PassContext(target=TARGET)).modified
    verify_module(module)
    after = run_module(module, inputs, target=TARGET)
    assert len(before) > 1
    for name, values in before.items():
        np.testing.assert_array_equal(after[name].view(np.uint32), values.view(np.uint32))
    return Counter(op.short_name for op in module.main.ops)


@pytest.mark.parametrize("biased", [True, False])
def test_siblings_are_one_convolution(biased: bool) -> None:
    ops = joined(net((24, 20), biased=biased))
    assert (ops["conv"], ops["slice"]) == (1, 2)


def test_functions_that_all_have_are_computed_once() -> None:
    module = net((24, 20, 9), ("swish", "swish", "swish"))
    ops = joined(module)
    assert (ops["conv"], ops["swish"], ops["slice"]) == (1, 1, 3)
    (conv,) = (op for op in module.main.ops if op.short_name == "conv")
    assert conv.macs() == 53 * 48 * 9 * 40 * 40 and "source.tensor" not in conv.attributes
    slices = [op for op in module.main.ops if op.short_name == "slice"]
    assert [op.attributes["source.tensor"] for op in slices] == ["t0", "t1", "t2"]


def test_other_functions_stay_where_they_are() -> None:
    ops = joined(net((24, 20), ("sigmoid", "relu")))
    assert (ops["conv"], ops["slice"], ops["sigmoid"], ops["relu"]) == (1, 2, 1, 1)


def test_what_is_not_alike_or_saves_nothing_stays() -> None:
    strided = ({}, {"strides": (2, 2)})
    nets = (
        net((24, 20), attributes=strided),
        net((64, 64)),  # full rows of lanes
        net((24, 20), size=4),  # loading the weights takes longer
        net((24, 20), dtype="i8"),
        net((24,)),
    )
    for module in nets:
        assert not JoinSiblings().run(module, PassContext(target=TARGET)).modified


def test_targets_that_have_no_time_for_it_keep_the_convs() -> None:
    for target in (None, find_target("dv700")):
        assert not JoinSiblings().run(net((24, 20)), PassContext(target=target)).modified
