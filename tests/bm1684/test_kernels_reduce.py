"""Reductions, normalisations and softmax on the BM1684; results do not depend on how the tensor is tiled."""

from __future__ import annotations

from typing import Any

import pytest
from bm1684_nets import FULL, Net, check_op
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.ir import Value

SHAPE = st.one_of(
    st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple),
    st.sampled_from([(1, 70, 5, 7), (130, 66), (2, 3, 67), (1, 300), (5, 2, 3, 2, 4)]),
)
LANES = st.sampled_from([12000, 60000, FULL])
SEED = st.integers(0, 99)
METHODS = ["sum", "mean", "max", "min", "prod", "l1", "l2", "sum_square", "log_sum_exp"]
property_test = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@property_test
@given(st.sampled_from(METHODS), SHAPE, st.data(), st.booleans(), LANES, SEED)
def test_reduce(method: str, shape: tuple[int, ...], data: st.DataObject, keep: bool, lanes: int, seed: int) -> None:
    first = data.draw(st.integers(0, len(shape) - 1))
    last = data.draw(st.integers(first, len(shape) - 1))
    axes = tuple(range(first, last + 1))
    check_op(lambda net, x: net.b.reduce(x, method=method, axes=axes, keepdims=keep), shape, seed=seed, lanes=lanes)


@pytest.mark.parametrize("method", METHODS)
def test_every_reduction(method: str) -> None:
    check_op(lambda net, x: net.b.reduce(x, method=method, axes=(1,)), (2, 7, 5, 3))
    check_op(lambda net, x: net.b.reduce(x, method=method, axes=(2, 3), keepdims=False), (2, 70, 4, 4))


@pytest.mark.parametrize("method", ["sum", "max", "l2"])
@pytest.mark.parametrize(("shape", "axes"), [((3, 5, 7), (0, 2)), ((2, 3, 4, 5), (1, 3)), ((3, 66, 4, 5), (0, 2, 3))])
def test_two_groups_of_axes(method: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    check_op(lambda net, x: net.b.reduce(x, method=method, axes=axes), shape)


def test_logarithm_of_sums() -> None:
    check_op(lambda net, x: net.b.reduce(net.b.exp(x), method="log_sum", axes=(1,)), (3, 9, 4))


def test_long_rows_stay_precise() -> None:
    check_op(lambda net, x: net.b.reduce(x, method="mean", axes=(1,)), (2, 9000))


@property_test
@given(st.sampled_from(["max", "min"]), SHAPE, st.data(), st.booleans(), LANES, SEED)
def test_arg(method: str, shape: tuple[int, ...], data: st.DataObject, keep: bool, lanes: int, seed: int) -> None:
    axis, last = data.draw(st.integers(0, len(shape) - 1)), data.draw(st.booleans())

    def make(net: Net, x: Value) -> Value:
        rounded = net.b.round(x)  # many are equal
        return net.b.arg(rounded, method=method, axis=axis, keepdims=keep, last=last)

    check_op(make, shape, seed=seed, lanes=lanes)


@property_test
@given(st.sampled_from(["softmax", "log_softmax", "hardmax"]), SHAPE, st.data(), LANES, SEED)
def test_softmax(name: str, shape: tuple[int, ...], data: st.DataObject, lanes: int, seed: int) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    check_op(lambda net, x: getattr(net.b, name)(x, axis=axis), shape, seed=seed, lanes=lanes)


def test_softmax_of_large_numbers() -> None:
    check_op(lambda net, x: net.b.softmax(net.b.mul(x, net.f32(1, 1)), axis=-1), (3, 1000))
    check_op(lambda net, x: net.b.softmax(net.b.exp(net.b.exp(x)), axis=1), (3, 10, 4))


@property_test
@given(st.sampled_from(["sum", "prod"]), SHAPE, st.data(), st.booleans(), st.booleans(), LANES, SEED)
def test_cumulate(
    method: str,
    shape: tuple[int, ...],
    data: st.DataObject,
    exclusive: bool,
    reverse: bool,
    lanes: int,
    seed: int,
) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    modes = {"method": method, "exclusive": exclusive, "reverse": reverse}
    check_op(lambda net, x: net.b.cumulate(x, axis=axis, **modes), shape, seed=seed, lanes=lanes)


@property_test
@given(SHAPE, st.data(), st.integers(0, 2), LANES, SEED)
def test_layer_norm(shape: tuple[int, ...], data: st.DataObject, vectors: int, lanes: int, seed: int) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))

    def make(net: Net, x: Value) -> Value:
        extra = [net.f32(*shape[axis:]) for _ in range(vectors)]
        return net.b.layer_norm(x, *extra, axis=axis, epsilon=1e-3)

    check_op(make, shape, seed=seed, lanes=lanes)


@pytest.mark.parametrize("scaled", [False, True])
def test_rms_norm(scaled: bool) -> None:
    check_op(lambda net, x: net.b.rms_norm(x, *([net.f32(6, 7)] if scaled else []), axis=2), (3, 5, 6, 7))


@pytest.mark.parametrize(("shape", "axes"), [((2, 5, 4, 6), (2, 3)), ((2, 5, 4, 6), (1, 2, 3)), ((2, 5, 4), (0, 2))])
def test_mean_variance_norm(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    check_op(lambda net, x: net.b.mean_variance_norm(x, axes=axes, epsilon=1e-6), shape)
    check_op(lambda net, x: net.b.mean_variance_norm(x, axes=axes, normalize_variance=False), shape)


def test_l2_normalize() -> None:
    check_op(lambda net, x: net.b.l2_normalize(x, axes=(1,), epsilon=1e-10), (2, 70, 3, 5))


@pytest.mark.parametrize("modes", [{"size": 5}, {"size": 3, "alpha": 0.5, "beta": 1.5, "k": 2.0}, {"size": 4}])
def test_lrn(modes: dict[str, Any]) -> None:
    check_op(lambda net, x: net.b.lrn(x, **modes), (2, 21, 3, 5))
    check_op(lambda net, x: net.b.lrn(x, **modes), (1, 2, 9), lanes=FULL)


@pytest.mark.parametrize("level", [0, 1])
def test_serial_programs_compute_the_same(level: int) -> None:
    def make(net: Net, x: Value) -> list[Value]:
        return [net.b.softmax(x, axis=1), net.b.layer_norm(x, axis=1), net.b.gelu(x)]

    check_op(make, (3, 70, 5), level=level)
