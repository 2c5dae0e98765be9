"""Conversions, comparisons, choice and logic on the BM1684."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from bm1684_nets import FULL, Net, check, check_op, local_memory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.analysis.profile import find_analyzer
from bmcompiler.ir import Quant, TensorType, Value

SHAPE = st.sampled_from([(7,), (2, 70, 3, 5), (3, 1, 4), (1, 5, 6, 2, 2)])
LANES = st.sampled_from([20000, FULL])
SEED = st.integers(0, 99)
NARROW = ["i8", "u8", "i16", "u16"]
NUMBERS = ["f32", "i32", *NARROW]
property_test = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def _bytes(net: Net, x: Value) -> Value:
    """A model has no outputs of booleans."""
    return net.b.cast(x, dtype="u8")


@property_test
@given(st.sampled_from(NARROW), st.sampled_from([0, 3, -7]), st.sampled_from(["even", "away"]), SHAPE, LANES, SEED)
def test_quantize_and_back(
    dtype: str, zero_point: int, rounding: str, shape: tuple[int, ...], lanes: int, seed: int
) -> None:
    top = np.iinfo(TensorType((), dtype).numpy).max
    zero_point = abs(zero_point) if dtype.startswith("u") else zero_point
    quant = Quant(float(np.float32(2.5 / top)), zero_point)

    def make(net: Net, x: Value) -> list[Value]:
        narrow = net.b.quantize(x, rounding=rounding, out=TensorType(shape, dtype, quant))
        return [narrow, net.b.dequantize(narrow)]

    check_op(make, shape, seed=seed, lanes=lanes)


@pytest.mark.parametrize("images", [1, 2, 4, 7])
@pytest.mark.parametrize("rounding", ["even", "away"])
@pytest.mark.parametrize(("dtype", "zero_point"), [("i8", 0), ("i8", -7), ("u8", 3), ("i16", 0), ("u16", 0)])
def test_images_that_share_words_are_converted_where_they_are(
    dtype: str, zero_point: int, rounding: str, images: int
) -> None:
    """Nothing but the input and the output crosses the bus."""
    shape = (images, 96, 12, 10)
    quant = Quant(float(np.float32(2.5 / np.iinfo(TensorType((), dtype).numpy).max)), zero_point)
    net = Net((shape,), 0, "f32")
    narrow = net.b.quantize(net.b.relu(net.inputs[0]), rounding=rounding, out=TensorType(shape, dtype, quant))
    module = net.module([net.b.relu(net.b.dequantize(narrow))])
    inputs = {module.main.input_names[0]: np.random.default_rng(1).standard_normal(shape, np.float32) * 2}
    for number, odd in enumerate((np.inf, -np.inf, 1e30, -0.0, 1e-40)):
        inputs[module.main.input_names[0]][0, number] = odd
    compiled = check(module, inputs=inputs)
    analyze = find_analyzer("bm1684")
    assert analyze is not None
    timing = analyze(compiled.model, 0).timing()
    assert (timing.loaded, timing.stored) == (4 * prod(shape), 4 * prod(shape))


@pytest.mark.parametrize(("images", "count"), [(1, 2), (2, 3), (6, 5)])
def test_bytes_are_looked_up(images: int, count: int) -> None:
    """A lookup, and a product for each byte of the words."""
    net = Net(((images, 5, 3, 3),), 0, "i8")
    compiled = check(net.module([net.b.dequantize(net.b.relu(net.inputs[0]))]))
    analyze = find_analyzer("bm1684")
    assert analyze is not None
    assert analyze(compiled.model, 0).timing().engines[0].commands == 1 + count


@pytest.mark.parametrize("truncate", [False, True])
@pytest.mark.parametrize("target", [*NUMBERS, "bool"])
@pytest.mark.parametrize("source", [*NUMBERS, "bool"])
def test_cast(source: str, target: str, truncate: bool) -> None:
    def make(net: Net, x: Value) -> Value:
        if source == "f32":
            x = net.b.mul(x, net.b.weight(np.array([1, 100, 1e4, 1e9], np.float32)))
        elif source != "i32":
            x = net.b.cast(x, dtype=source)
        y = net.b.cast(x, dtype=target, truncate=truncate)
        return _bytes(net, y) if target == "bool" else y

    check_op(make, (2, 3, 5, 4), dtype="f32" if source == "f32" else "i32")


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_integers_to_others(dtype: str) -> None:
    check_op(lambda net, x: [net.b.cast(x, dtype=t) for t in NUMBERS], (2, 70, 5), dtype=dtype)


@property_test
@given(st.sampled_from(["equal", "less", "less_equal", "greater", "greater_equal"]), SHAPE, SEED)
def test_compare_and_choose(method: str, shape: tuple[int, ...], seed: int) -> None:
    def make(net: Net, x: Value, y: Value) -> list[Value]:
        a, b = net.b.round(x), net.b.round(y)  # so that many are equal
        condition = net.b.compare(a, b, method=method)
        return [_bytes(net, condition), net.b.where(condition, x, y), net.b.where(condition, x, net.f32(1))]

    check_op(make, shape, shape, seed=seed)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("vectors", [False, True])
def test_linear_quantization_of_models(dtype: str, vectors: bool) -> None:
    shape = (3,) if vectors else (1,)

    def make(net: Net, x: Value) -> list[Value]:
        scale = net.b.weight(np.array([0.25, 0.5, 0.03125][: shape[0]], np.float32))
        zero = net.b.weight(np.array([3, 5, 7][: shape[0]], TensorType((), dtype).numpy))
        y = net.b.quantize_linear(x, scale, zero, dtype=dtype)
        return [y, net.b.dequantize_linear(y, scale, zero), net.b.quantize_linear(x, scale, dtype=dtype)]

    check_op(make, (2, 3, 4, 5))


def test_compare_words() -> None:
    def make(net: Net, x: Value, y: Value) -> list[Value]:
        methods = ["equal", "less", "less_equal", "greater", "greater_equal"]
        near = net.b.bit_xor(x, net.b.weight(np.array([0, 1, -(2**31), 0], np.int32)))
        return [_bytes(net, net.b.compare(x, other, method=method)) for method in methods for other in (y, near)]

    check_op(make, (2, 70, 3, 4), (3, 4), dtype="i32")


@pytest.mark.parametrize("dtype", NARROW)
def test_compare_integers(dtype: str) -> None:
    def make(net: Net, x: Value, y: Value) -> list[Value]:
        less = net.b.compare(x, y, method="less")
        return [_bytes(net, less), _bytes(net, net.b.compare(x, x, method="equal")), net.b.where(less, x, y)]

    check_op(make, (2, 3, 4, 5), (4, 1), dtype=dtype)


@pytest.mark.parametrize("dtype", ["i32", *NARROW])
def test_bits(dtype: str) -> None:
    def make(net: Net, x: Value, y: Value) -> list[Value]:
        return [net.b.bit_and(x, y), net.b.bit_or(x, y), net.b.bit_xor(x, y), net.b.bit_not(x)]

    check_op(make, (2, 3, 4, 5), (4, 1), dtype=dtype)


def test_logic_of_comparisons() -> None:
    def make(net: Net, x: Value, y: Value) -> list[Value]:
        a, b = net.b.compare(x, y, method="less"), net.b.compare(y, net.f32(1), method="less")
        results = [net.b.bit_and(a, b), net.b.bit_or(a, b), net.b.bit_xor(a, b), net.b.bit_not(a)]
        return [_bytes(net, result) for result in results]

    check_op(make, (2, 3, 4, 5), (4, 1))


def test_questions_about_floats() -> None:
    net = Net([(2, 9)])
    values = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 1e-40, 3e38], np.float32)
    x = net.b.mul(net.b.max(net.inputs[0], net.b.weight(values)), net.b.weight(values))
    questions = [net.b.is_nan(x), net.b.is_inf(x), net.b.is_inf(x, positive=False)]
    module = net.module([_bytes(net, question) for question in questions])
    with local_memory(FULL):
        check(module)
