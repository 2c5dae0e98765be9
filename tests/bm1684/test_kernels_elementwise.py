"""Element-wise float ops on the BM1684: the commands compute what the chip's arithmetic says, close to the function."""

from __future__ import annotations

import numpy as np
import pytest
from bm1684_nets import FULL, Net, check, check_op
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bmcompiler.analysis.profile import find_analyzer
from bmcompiler.backends.lanes.kernels.functions.broadcast import merged_axes
from bmcompiler.ir import Value

SEED = st.integers(0, 99)
LANES = st.sampled_from([16384, 60000, FULL])
property_test = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
SHAPE = st.one_of(
    st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple),
    st.sampled_from([(1, 70, 5, 7), (2, 3, 40, 33), (1000,), (1, 1, 1, 521), (130, 66)]),
)
FOUR_AXES = SHAPE.filter(lambda shape: len(shape) < 5)
# Of each axis: full, 1 in the first operand, 1 in the second one.
PATTERN = st.lists(st.integers(0, 2), min_size=5, max_size=5)


def _broadcast(shape: tuple[int, ...], pattern: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    a = tuple(1 if kind == 1 else size for size, kind in zip(shape, pattern))
    b = tuple(1 if kind == 2 else size for size, kind in zip(shape, pattern))
    return a, b


@property_test
@given(st.sampled_from(["add", "sub", "mul", "div", "max", "min"]), FOUR_AXES, PATTERN, st.booleans(), LANES, SEED)
def test_binary(name: str, shape: tuple[int, ...], pattern: list[int], constant: bool, lanes: int, seed: int) -> None:
    a, b = _broadcast(shape, pattern)

    def two(net: Net, x: Value, y: Value) -> Value:
        return getattr(net.b, name)(x, y)

    def one(net: Net, x: Value) -> Value:
        return getattr(net.b, name)(x, net.f32(*b))

    check_op(one if constant else two, *((a,) if constant else (a, b)), seed=seed, lanes=lanes)


@property_test
@given(FOUR_AXES, PATTERN, st.sampled_from(["relu", "relu6"]), SEED)
def test_add_with_activation(shape: tuple[int, ...], pattern: list[int], activation: str, seed: int) -> None:
    operands = _broadcast(shape, pattern)
    assume(len(merged_axes(shape, operands)) <= 4)
    check_op(lambda net, x, y: net.b.add(x, y, activation=activation), *operands, seed=seed)


@pytest.mark.parametrize("lanes", [3072, 4096])
def test_an_operand_that_repeats_along_channels_is_loaded_for_each_width_of_tiles(lanes: int) -> None:
    def make(net: Net, x: Value, y: Value) -> Value:
        return net.b.where(net.b.compare(x, y, method="less"), x, y)

    check_op(make, (5, 1, 1, 3), (1, 130, 20, 1), lanes=lanes)


@pytest.mark.parametrize("shapes", [((2, 3, 4), (2, 3, 4)), ((5, 1, 7), (6, 1))])
def test_power(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    check_op(lambda net, x, y: net.b.pow(net.b.abs(x), y), *shapes)


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16"])
def test_division_of_integers(dtype: str) -> None:
    def make(net: Net, x: Value, y: Value) -> list[Value]:
        small = net.b.where(net.b.compare(y, x, method="less"), y, net.b.weight(np.array([3], x.type.numpy)))
        some = net.b.bit_and(y, net.b.weight(np.array([7], x.type.numpy)))  # now and then 0
        results = [net.b.div(x, small), net.b.div(x, some), net.b.mod(x, small), net.b.mod(x, some)]
        return [*results, net.b.mod(x, small, fmod=True), net.b.mod(x, y, fmod=True)]

    check_op(make, (2, 70, 3, 4), (2, 70, 3, 4), dtype=dtype)


@pytest.mark.parametrize("fmod", [False, True])
def test_remainders_of_floats(fmod: bool) -> None:
    def make(net: Net, x: Value, y: Value) -> Value:
        divisor = net.b.add(y, net.b.where(net.b.compare(y, net.f32(1), method="less"), net.f32(1), net.f32(1)))
        return net.b.mod(net.b.mul(x, net.b.weight(np.array([8.0], np.float32))), divisor, fmod=fmod)

    check_op(make, (2, 70, 3, 4), (2, 70, 3, 4), close=1e-3)


PLAIN = [
    "relu",
    "hard_swish",
    "mish",
    "softsign",
    "sign",
    "erf",
    "abs",
    "neg",
    "exp",
    "sigmoid",
    "tanh",
    "softplus",
    "sinh",
    "cosh",
    "asinh",
    "floor",
    "ceil",
    "round",
    "sin",
    "cos",
    "atan",
    "leaky_relu",
    "elu",
    "selu",
    "celu",
    "swish",
    "hard_sigmoid",
    "gelu",
    "thresholded_relu",
    "threshold",
    "shrink",
]


@property_test
@given(st.sampled_from(PLAIN), SHAPE, LANES, SEED)
def test_functions(name: str, shape: tuple[int, ...], lanes: int, seed: int) -> None:
    check_op(lambda net, x: getattr(net.b, name)(x), shape, seed=seed, lanes=lanes)


@pytest.mark.parametrize("name", PLAIN)
def test_every_function(name: str) -> None:
    check_op(lambda net, x: getattr(net.b, name)(net.b.mul(x, net.f32(1))), (2, 5, 9))


@pytest.mark.parametrize("name", ["log", "sqrt", "acosh"])
def test_functions_of_positive_numbers(name: str) -> None:
    check_op(lambda net, x: getattr(net.b, name)(net.b.add(net.b.exp(x), net.b.exp(net.b.neg(x)))), (3, 70))


@pytest.mark.parametrize("name", ["asin", "acos", "atanh", "tan"])
def test_functions_of_small_numbers(name: str) -> None:
    check_op(lambda net, x: getattr(net.b, name)(net.b.tanh(x)), (3, 70), close=1e-3)


def test_functions_with_attributes() -> None:
    check_op(lambda net, x: net.b.clip(x, min=-0.5, max=0.75), (3, 4, 5))
    check_op(lambda net, x: net.b.clip(x, min=-0.5), (3, 4, 5))
    check_op(lambda net, x: net.b.gelu(x, approximate="tanh"), (3, 4, 5))
    check_op(lambda net, x: net.b.celu(x, alpha=2.0), (3, 4, 5))


@property_test
@given(st.sampled_from([(2, 70, 5, 3), (3, 4), (1, 5, 6), (2, 3, 4, 2, 2)]), st.booleans(), LANES, SEED)
def test_vectors_per_channel(shape: tuple[int, ...], single: bool, lanes: int, seed: int) -> None:
    c = shape[1]
    check_op(lambda net, x: net.b.prelu(x, net.f32(1 if single else c)), shape, seed=seed, lanes=lanes)
    check_op(lambda net, x: net.b.scale(x, net.f32(c), None if single else net.f32(c)), shape, seed=seed, lanes=lanes)


@pytest.mark.parametrize(("shape", "commands"), [((2, 70, 6, 5), 1), ((1, 1, 300, 4), 1), ((2, 70, 30), 2)])
def test_channels_of_maps_are_scaled_by_one_command(shape: tuple[int, ...], commands: int) -> None:
    net = Net([shape], 0, "f32")
    c = shape[1]
    compiled = check(net.module([net.b.scale(net.inputs[0], net.f32(c), net.f32(c))]))
    analyze = find_analyzer("bm1684")
    assert analyze is not None
    assert analyze(compiled.model, 0).timing().engines[0].commands == commands


def test_scale_along_another_axis() -> None:
    check_op(lambda net, x: net.b.scale(x, net.f32(7), net.f32(7), axis=3), (2, 3, 5, 7))


def test_batch_norm() -> None:
    def make(net: Net, x: Value) -> Value:
        variance = net.b.mul(net.f32(6), net.f32(1))
        return net.b.batch_norm(x, net.f32(6), net.f32(6), net.f32(6), net.b.abs(variance))

    check_op(make, (2, 6, 5, 4), lanes=FULL - 128)
