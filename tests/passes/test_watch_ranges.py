"""With samples, numbers that f16 does not hold stay in f32; other nets are halved as without."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ir.copying import copy_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target

Array = np.ndarray
DATA = np.random.default_rng(3).standard_normal((4, 4, 6, 6)).astype(np.float32)


def net(body: Callable[[Builder, Value], Value]) -> Module:
    b = Builder.new("net")
    return b.outputs([body(b, b.input("x", TensorType((1, 4, 6, 6), "f32")))], ["y"])


def conv(b: Builder, x: Value, size: float) -> Value:
    weights = np.random.default_rng(5).standard_normal((4, 4, 3, 3)) / 6 * size
    return b.conv(x, b.weight(weights.astype(np.float32), "w"), pads=(1, 1, 1, 1))


def halved(module: Module, data: Array | None = DATA) -> tuple[Module, list[str]]:
    """A copy in f16, and what the passes said."""
    found = copy_module(module)
    ctx = PassContext(target=find_target("bm1684x"), data=None if data is None else {"x": data})
    run_pipeline(found, "watch-ranges,half-precision{dtype=f16},dead-code", ctx, verify_each=True)
    verify_module(found)
    return found, ctx.notes


def error(module: Module, found: Module, x: Array = DATA[:1]) -> float:
    real, got = (run_module(each, {"x": x})["y"].astype(np.float64) for each in (module, found))
    return float(np.linalg.norm(got - real) / np.linalg.norm(real))


def types(module: Module, name: str) -> list[str]:
    return [op.results[0].dtype for op in module.main.ops if op.short_name == name]


@settings(max_examples=20, deadline=None)
@given(st.integers(-40, 40), st.integers(-40, 40))
@example(20, -20)
@example(-20, 20)
@example(0, 0)
def test_answers_do_not_depend_on_the_size_of_what_is_between(first: int, second: int) -> None:
    module = net(lambda b, x: conv(b, conv(b, conv(b, x, 2.0**first), 2.0**second), 2.0 ** -(first + second)))
    found, _ = halved(module)
    assert error(module, found) < 3e-3


def test_a_net_of_usual_numbers_stays_in_f16() -> None:
    found, notes = halved(net(lambda b, x: b.relu(conv(b, conv(b, x, 1), 1))))
    assert types(found, "conv") == ["f16", "f16"]
    assert notes == ["3 ops are computed in f16, 0 in f32"]


def test_the_layer_is_named_and_the_rest_stays_in_f16() -> None:
    def body(b: Builder, x: Value) -> Value:
        with b.at("large"):
            y = conv(b, x, 1e5)
        return conv(b, conv(b, y, 1e-5), 1)

    found, notes = halved(net(body))
    assert types(found, "conv") == ["f32", "f32", "f16"]
    assert notes[0] == "f16 does not hold the numbers of 'large': there the net is computed in f32"


def test_terms_that_cancel_are_added_in_f32() -> None:
    def body(b: Builder, x: Value) -> Value:
        y = conv(b, x, 1)
        near = b.add(y, b.weight(np.float32([[[[4000]]]]), "c"))
        return conv(b, b.sub(near, b.weight(np.float32([[[[3999]]]]), "c")), 1)

    module = net(body)
    found, _ = halved(module)
    assert (types(found, "add"), types(found, "sub")) == (["f32"], ["f32"])
    assert error(module, found) < 3e-3 < error(module, halved(module, None)[0])


def test_an_input_of_large_numbers_is_read_in_f32() -> None:
    module = net(lambda b, x: conv(b, conv(b, x, 1e-6), 1))
    found, _ = halved(module, DATA * 1e6)
    assert types(found, "conv") == ["f32", "f16"]
    assert error(module, found, DATA[:1] * 1e6) < 3e-3


@pytest.mark.parametrize("data", [None, np.ones((2, 4, 8, 8), np.float32)])
def test_without_samples_of_its_inputs_nothing_is_noted(data: Array | None) -> None:
    found, _ = halved(net(lambda b, x: conv(b, conv(b, x, 3e4), 1e-3)), data)
    assert types(found, "conv") == ["f16", "f16"]


def test_masks_are_no_large_numbers() -> None:
    """The lowest float stands for "none", whatever the type."""

    def body(b: Builder, x: Value) -> Value:
        masked = b.add(conv(b, x, 1), b.weight(np.float32([[[[0, 0, 0, 0, 0, -3.4e38]]]]), "mask"))
        return conv(b, b.softmax(masked, axis=3), 1)

    assert types(halved(net(body))[0], "conv") == ["f16", "f16"]
