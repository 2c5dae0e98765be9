"""With samples, numbers that f16 does not hold are of bf16 or f32; other nets are halved as without."""

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


def halved(
    module: Module, data: Array | None = DATA, dtype: str = "f16", max_error: float = 0.01
) -> tuple[Module, list[str]]:
    """A copy in a 16-bit type, and what the passes said."""
    found = copy_module(module)
    ctx = PassContext(target=find_target("bm1684x"), data=None if data is None else {"x": data})
    watch, half = f"watch-ranges{{dtype={dtype},max_error={max_error}}}", f"half-precision{{dtype={dtype}}}"
    run_pipeline(found, f"{watch},{half},dead-code", ctx, verify_each=True)
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


@pytest.mark.parametrize(("max_error", "wanted"), [(0.5, "bf16"), (0.01, "f32")])
def test_numbers_beyond_f16_are_of_bf16_where_the_outputs_stay_near_enough(max_error: float, wanted: str) -> None:
    """Cycles say so, too: of four channels f32 is as quick."""
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 256, 14, 14), "f32"))
    draw = np.random.default_rng(5).standard_normal

    def layer(x: Value, size: float) -> Value:
        return b.conv(x, b.weight((draw((256, 256, 1, 1)) / 16 * size).astype(np.float32), "w"))

    module = b.outputs([layer(layer(layer(x, 1e6), 1e-6), 1)], ["y"])
    data = draw((2, 256, 14, 14)).astype(np.float32)
    found, notes = halved(module, data, max_error=max_error)
    assert types(found, "conv") == [wanted, wanted, "f16"]
    assert notes[1] == (
        "1 ops are computed in f16, " + {"bf16": "2 ops are computed in bf16, 0", "f32": "2"}[wanted]
    ) + (" in f32")
    assert error(module, found, data[:1]) < 6e-3


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_what_sums_had_swallowed_before_others_is_kept_however_far_before(dtype: str) -> None:
    """A sum swallows what a difference behind a relu and a move is made of; there is nothing left of it."""

    def body(b: Builder, x: Value) -> Value:
        big = b.weight(np.float32([[[[30000 if dtype == "f16" else 4000]]]]) / 2, "c")
        swallows = b.add(conv(b, x, 0.1), big)
        moved = b.relu(b.permute(b.relu(swallows), order=(0, 1, 3, 2)))
        return conv(b, b.sub(moved, big), 1)

    module = net(body)
    found, notes = halved(module, dtype=dtype)
    assert {types(found, name)[0] for name in ("add", "relu", "permute", "sub")} == {"f32"}
    assert types(found, "conv")[1] == dtype and notes[0].startswith(f"{dtype} does not hold the numbers of")
    assert error(module, found) < (3e-3 if dtype == "f16" else 2e-2)


def test_without_samples_small_nets_run_on_drawn_inputs_and_layers_are_named() -> None:
    def body(b: Builder, x: Value) -> Value:
        with b.at("tiny"):
            y = conv(b, x, 1e-6)
        return conv(b, y, 1e6)

    _, notes = halved(net(body), None)
    assert notes[0].startswith("f16 may not hold the numbers of 'tiny', by inputs that were drawn")
    ctx = PassContext(target=find_target("dv700"), data={"x": DATA})
    run_pipeline(net(body), "watch-ranges{keeps=false}", ctx)
    assert ctx.notes[0].startswith("f16 does not hold the numbers of 'tiny' on the samples, and the chip has no other")


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
