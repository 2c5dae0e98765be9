"""Activations inside ops: where the pass puts them, and what all other passes make of such ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fake_target import FakeTarget
from nets import Net, apply, assert_close, names, random_inputs
from test_quantize import quantize, samples

from bmcompiler.errors import VerifyError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Operation, Value, verify_module
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.runtime import Session
from bmcompiler.target import find_target, unsupported_reason


class Without(FakeTarget):
    """A target that runs everything but some activations inside ops."""

    name = "picky"

    def __init__(self, *refused: str) -> None:
        self.refused = refused

    def kernel_for(self, op: Operation) -> Any:
        return self

    def unsupported_reason(self, op: Operation) -> str | None:
        return "no" if op.attributes.get("activation") in self.refused else None


def two_layers() -> Module:
    n = Net()
    x = n.relu(n.conv(n.input(1, 3, 6, 6), n.w(4, 3, 3, 3)))
    return n.done(n.clip(n.conv(x, n.w(2, 4, 1, 1)), min=0.0, max=6.0))


def test_a_target_has_the_last_word() -> None:
    module = two_layers()
    assert run_pipeline(module, "fuse-activation", PassContext(target=Without("relu")), verify_each=True)
    assert names(module) == ["conv", "relu", "conv"]
    assert not run_pipeline(two_layers(), "fuse-activation", PassContext(target=Without("relu", "relu6")))


def test_bm1880_fuses_nothing() -> None:
    target = find_target("bm1880")
    module = quantize(two_layers(), target=target)
    assert not run_pipeline(module, "fuse-activation", PassContext(target=target))


def test_ops_on_the_cpu_are_left_alone() -> None:
    for index in (0, 1):
        n = Net()
        y = n.relu(n.conv(n.input(1, 3, 6, 6), n.w(4, 3, 3, 3)))
        module = n.done(y)
        [op for op in module.main.ops if op.short_name in ("conv", "relu")][index].attributes["place.cpu"] = "a test"
        assert not run_pipeline(module, "fuse-activation")


def test_layers_name_and_threshold_pass_over() -> None:
    n = Net()
    module = n.done(n.relu(n.conv(n.input(1, 3, 6, 6), n.w(4, 3, 3, 3))))
    run_pipeline(module, "calibrate", PassContext(data=samples(module)))
    relu = next(op for op in module.main.ops if op.short_name == "relu")
    threshold, location = relu.attributes["calib.threshold"], (*relu.operands[0].op.location, *relu.location)
    assert run_pipeline(module, "fuse-activation", verify_each=True)
    fused = next(op for op in module.main.ops if op.short_name == "conv")
    assert fused.attributes["calib.threshold"] == threshold and fused.attributes["source.tensor"] == "relu3.out"
    assert fused.location == location == ("conv2", "relu3")


@pytest.mark.parametrize("activation", ["gelu", "relu6"])
def test_an_activation_that_is_none_is_refused(activation: str) -> None:
    n = Net()
    dtype = "i8" if activation == "relu6" else "f32"
    x = n.input(1, 2, 4, 4, dtype=dtype)
    module = n.b.outputs([n.add(x, x, activation=activation)], ["y"])
    with pytest.raises(VerifyError, match="activation"):
        verify_module(module)


NEIGHBOURS: dict[str, Callable[[Net, str], Value]] = {
    "scale-after-conv": lambda n, a: n.scale(
        n.conv(n.input(1, 3, 5, 5), n.w(4, 3, 3, 3), n.w(4), activation=a), n.w(4), n.w(4)
    ),
    "scale-before-conv": lambda n, a: n.conv(
        n.scale(n.input(1, 3, 5, 5), n.w(3), n.w(3)), n.w(4, 3, 3, 3), activation=a
    ),
    "scale-after-deconv": lambda n, a: n.scale(n.deconv(n.input(1, 3, 5, 5), n.w(3, 4, 2, 2), activation=a), n.w(4)),
    "scale-after-pool": lambda n, a: n.scale(
        n.avg_pool(n.conv(n.input(1, 3, 4, 4), n.w(4, 3, 1, 1), activation=a), kernel=(2, 2)), n.w(4), n.w(4)
    ),
    "pad-before-conv": lambda n, a: n.conv(
        n.pad(n.input(1, 3, 5, 5), pads=(0, 0, 0, 0, 1, 1, 1, 1)), n.w(4, 3, 3, 3), activation=a
    ),
    "constant-inside-add": lambda n, a: n.add(n.input(1, 3, 5, 5), n.w(3, 1, 1), activation=a),
    "zero-inside-add": lambda n, a: n.add(n.input(1, 3, 5, 5), n.fill(0.0, 1), activation=a),
    "two-sums": lambda n, a: n.add(n.add(n.input(2, 5), n.fill(0.5, 1), activation=a), n.fill(-1.0, 1), activation=a),
    "sum-of-squares": lambda n, a: n.sqrt(n.add(n.input(2, 5), n.fill(0.5, 1), activation=a)),
    "bias-after-matmul": lambda n, a: n.add(n.matmul(n.input(2, 5), n.w(5, 3), activation=a), n.w(3)),
    "activation-after-bias": lambda n, a: n.add(n.matmul(n.input(2, 5), n.w(5, 3)), n.w(3), activation=a),
    "matmul-as-conv": lambda n, a: n.permute(
        n.matmul(n.permute(n.input(2, 4, 3, 5), order=(0, 2, 3, 1)), n.w(4, 3), activation=a), order=(0, 3, 1, 2)
    ),
    "matmul-of-many-axes": lambda n, a: n.scale(
        n.matmul(n.input(2, 3, 4), n.w(1, 4, 5), activation=a), n.w(5), n.w(5), axis=2
    ),
    "scale-after-reshape": lambda n, a: n.scale(
        n.reshape(n.matmul(n.input(6, 4), n.w(4, 5), activation=a), shape=(2, 3, 5)), n.w(5), axis=2
    ),
    "permuted-sum": lambda n, a: n.permute(
        n.add(n.permute(n.input(1, 4, 3, 5), order=(0, 2, 3, 1)), n.w(4), activation=a), order=(0, 3, 1, 2)
    ),
}


def leaky(n: Net, activation: str) -> Value:
    x = n.input(1, 4, 3)
    return n.add(n.relu(x), n.mul(n.clip(x, max=0.0), n.fill(0.1, 1)), activation=activation)


def norm_plus_constant(n: Net, activation: str) -> Value:
    return n.add(n.layer_norm(n.input(2, 3, 8), axis=2), n.w(8), activation=activation)


def swish_by_clip(n: Net, activation: str) -> Value:
    x = n.input(1, 4, 3)
    return n.mul(x, n.div(n.clip(n.add(x, n.fill(3.0, 1), activation=activation), min=0.0, max=6.0), n.fill(6.0, 1)))


NEIGHBOURS |= {"leaky": leaky, "norm-plus-constant": norm_plus_constant, "swish-by-clip": swish_by_clip}


@pytest.mark.parametrize("activation", ["relu", "relu6"])
@pytest.mark.parametrize("name", NEIGHBOURS)
def test_canonicalize_keeps_the_meaning(name: str, activation: str) -> None:
    n = Net()
    module = n.done(NEIGHBOURS[name](n, activation))
    apply(module, "canonicalize")


@pytest.mark.parametrize("activation", ["relu", "relu6"])
@pytest.mark.parametrize("name", NEIGHBOURS)
def test_bm1880_takes_activations_out_again(name: str, activation: str) -> None:
    """No device op has an activation inside, the float net stays what it was, and the chip computes it."""
    n = Net()
    module = n.done(NEIGHBOURS[name](n, activation))
    target, inputs, data = find_target("bm1880"), random_inputs(module), samples(module)
    want = run_module(module, inputs)
    run_pipeline(module, "canonicalize,legalize,merge-reshapes", PassContext(target=target), verify_each=True)
    assert_close(run_module(module, inputs), want)
    quantize(module, target=target, data=data)
    on_chip = [op for op in module.main.ops if "place.cpu" not in op.attributes]
    assert not any(op.attributes.get("activation") for op in on_chip)
    fed = {
        name: np.resize(np.arange(-100, 100), value.shape).astype(value.type.numpy)
        for name, value in zip(module.main.input_names, module.main.arguments)
    }
    exact, found = run_module(module, fed), Session(target.compile([module], 2).model).run(fed, raw=True)
    assert all(found[name].tobytes() == array.tobytes() for name, array in exact.items())


def test_bm1880_says_why_it_takes_no_activation_inside() -> None:
    n = Net()
    x = n.input(1, 2, 4, 4, dtype="i8")
    y = n.conv(x, n.constant(np.ones((2, 2, 1, 1)), "int8"), activation="relu")
    reason = unsupported_reason(find_target("bm1880"), y.op)
    assert reason == "An activation inside the op is not possible, it must be an op of its own: got relu"


def test_quantize_without_legalize_keeps_the_meaning() -> None:
    """Without a target the integer op carries a relu; a sum or relu6 stays in float."""
    n = Net()
    x = n.input(1, 3, 6, 6)
    y = n.conv(x, n.w(4, 3, 3, 3), activation="relu")
    module = quantize(n.done(n.conv(y, n.w(4, 4, 1, 1), activation="relu6"), n.add(x, x, activation="relu")))
    kept = [op.attributes.get("activation", "") for op in module.main.ops if op.short_name in ("conv", "add")]
    on_cpu = [op.short_name for op in module.main.ops if "place.cpu" in op.attributes]
    assert kept == ["relu", "relu6", "relu"] and on_cpu == ["conv", "add"]
