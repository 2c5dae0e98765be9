"""Integer forms against plain Python integers: exact sum, rounding shift (bm1880.md 8.1), saturation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_samples import evaluate

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Quant, TensorType, verify_module
from bmcompiler.ops.builder import Builder

EXAMPLES = settings(max_examples=40, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
BYTES = ("i8", "u8")
ALL = ("i8", "u8", "i16", "u16", "i32")


def rounded(value: int, shift: int) -> int:
    return (value + (1 << shift >> 1)) >> shift


def saturated(value: int, dtype: str) -> int:
    limits = np.iinfo(TensorType((), dtype).numpy)
    return min(max(value, int(limits.min)), int(limits.max))


def requantize(value: int, shift: int, dtype: str) -> int:
    return saturated(rounded(value, shift), dtype)


def integers(seed: int, dtype: str, *shape: int) -> np.ndarray:
    """Values over the whole range, its ends more often than by chance."""
    rng, limits = np.random.default_rng(seed), np.iinfo(TensorType((), dtype).numpy)
    values = rng.integers(limits.min, limits.max, shape, limits.dtype, endpoint=True)
    ends = rng.choice(np.array([limits.min, limits.max, 0], limits.dtype), shape)
    return np.where(rng.random(shape) < 0.2, ends, values)


def positions(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return product(*map(range, shape))


def check(result: np.ndarray, expected: Callable[..., int]) -> None:
    """Compare every element with a function of its position."""
    for at in positions(result.shape):
        assert result[at] == expected(*at), at


@st.composite
def windows(draw: Any, max_pad: int = 1) -> dict[str, Any]:
    pair = [draw(st.tuples(st.integers(1, high), st.integers(1, high))) for high in (3, 2, 2)]
    return {
        "kernel": pair[0], "strides": pair[1], "dilations": pair[2],
        "pads": draw(st.tuples(*[st.integers(0, max_pad)] * 4)), "group": draw(st.integers(1, 2)),
        "types": draw(st.tuples(*[st.sampled_from(BYTES)] * 2)), "out": draw(st.sampled_from(ALL)),
        "bias": draw(st.sampled_from((None, "i16", "i32"))), "rshift": draw(st.integers(0, 16)), "seed": draw(SEEDS),
    }  # fmt: skip


def _run_window_op(op: str, case: dict[str, Any], weight_shape: tuple[int, ...], **more: Any) -> Any:
    group, seed = case["group"], case["seed"]
    x = integers(seed, case["types"][0], 1, 2 * group, 5, 6)
    weight = integers(seed + 1, case["types"][1], *weight_shape, *case["kernel"])
    bias = None if case["bias"] is None else integers(seed + 2, case["bias"], 2 * group)
    arrays = [x, weight] + ([] if bias is None else [bias])
    attributes = {name: case[name] for name in ("strides", "pads", "dilations", "group", "rshift")}
    out = evaluate(op, *arrays, out=_out_type(op, arrays, case["out"], {**attributes, **more}), **attributes, **more)
    return x.astype(object), weight.astype(object), None if bias is None else bias.astype(object), out


def _out_type(op: str, arrays: list[np.ndarray], dtype: str, attributes: dict[str, Any]) -> TensorType:
    builder = Builder.new("shape")
    values = [builder.weight(array, f"w{i}") for i, array in enumerate(arrays)]
    return TensorType(builder.create(op, values, attributes).result.shape, dtype)


@EXAMPLES
@given(windows())
def test_conv(case: dict[str, Any]) -> None:
    x, weight, bias, out = _run_window_op("conv", case, (2 * case["group"], 2))
    (sh, sw), (dh, dw), (top, _, left, _) = case["strides"], case["dilations"], case["pads"]

    def expected(n: int, o: int, y: int, x0: int) -> int:
        total = 0 if bias is None else bias[o]
        for i, r, s in positions(weight.shape[1:]):
            row, column = y * sh + r * dh - top, x0 * sw + s * dw - left
            if 0 <= row < 5 and 0 <= column < 6:
                total += x[n, o // 2 * 2 + i, row, column] * weight[o, i, r, s]
        return requantize(total, case["rshift"], case["out"])

    check(out, expected)


@EXAMPLES
@given(windows(), st.tuples(st.integers(0, 1), st.integers(0, 1)))
def test_deconv(case: dict[str, Any], output_pads: tuple[int, int]) -> None:
    x, weight, bias, out = _run_window_op("deconv", case, (2 * case["group"], 2), output_pads=output_pads)
    (sh, sw), (dh, dw), (top, _, left, _) = case["strides"], case["dilations"], case["pads"]
    sums = np.zeros(out.shape, object)
    if bias is not None:
        sums += bias[:, None, None]
    for c, y, x0 in positions(x.shape[1:]):
        for o, r, s in positions(weight.shape[1:]):
            row, column = y * sh + r * dh - top, x0 * sw + s * dw - left
            if 0 <= row < out.shape[2] and 0 <= column < out.shape[3]:
                sums[0, c // 2 * 2 + o, row, column] += x[0, c, y, x0] * weight[c, o, r, s]
    check(out, lambda *at: requantize(sums[at], case["rshift"], case["out"]))


@EXAMPLES
@given(SEEDS, st.tuples(*[st.sampled_from(BYTES)] * 2), st.sampled_from(ALL), st.integers(0, 14), st.booleans())
def test_matmul(seed: int, types: tuple[str, str], out: str, rshift: int, transposed: bool) -> None:
    a, b, bias = integers(seed, types[0], 3, 9), integers(seed + 1, types[1], 9, 4), integers(seed + 2, "i16", 4)
    right = np.ascontiguousarray(b.T) if transposed else b
    result = evaluate("matmul", a, right, bias, transpose_right=transposed, rshift=rshift, out=TensorType((3, 4), out))
    total = a.astype(object) @ b.astype(object) + bias.astype(object)
    check(result, lambda *at: requantize(total[at], rshift, out))


@EXAMPLES
@given(SEEDS, st.sampled_from(BYTES), st.sampled_from(ALL), st.integers(0, 10))
def test_scale(seed: int, dtype: str, out: str, rshift: int) -> None:
    x, weight, bias = integers(seed, dtype, 2, 3, 4), integers(seed + 1, "i8", 3), integers(seed + 2, "i16", 3)
    result = evaluate("scale", x, weight, bias, rshift=rshift, out=TensorType(x.shape, out))
    check(result, lambda n, c, i: requantize(int(x[n, c, i]) * int(weight[c]) + int(bias[c]), rshift, out))


@EXAMPLES
@given(windows(), st.booleans(), st.integers(0, 255))
def test_avg_pool_counts_its_zero_padding(case: dict[str, Any], ceil: bool, multiplier: int) -> None:
    (kh, kw), (sh, sw), dtype, rshift = case["kernel"], case["strides"], case["types"][0], case["rshift"]
    top, bottom, left, right = (min(pad, k - 1) for pad, k in zip(case["pads"], (kh, kh, kw, kw)))
    x = integers(case["seed"], dtype, 2, 3, 5, 6)
    result = evaluate(
        "avg_pool", x, kernel=(kh, kw), strides=(sh, sw), pads=(top, bottom, left, right), ceil_mode=ceil,
        count_include_pad=True, multiplier=multiplier, rshift=rshift,
    )  # fmt: skip

    def expected(n: int, c: int, y: int, x0: int) -> int:
        rows = range(max(y * sh - top, 0), min(y * sh - top + kh, 5))
        columns = range(max(x0 * sw - left, 0), min(x0 * sw - left + kw, 6))
        return requantize(sum(int(x[n, c, r, s]) for r, s in product(rows, columns)) * multiplier, rshift, dtype)

    check(result, expected)


@EXAMPLES
@given(SEEDS, st.integers(0, 127), st.tuples(st.integers(0, 10), st.integers(0, 10)), st.booleans())
def test_prelu(seed: int, multiplier: int, shifts: tuple[int, int], shared: bool) -> None:
    x, slope = integers(seed, "i8", 2, 4, 5), integers(seed + 1, "i8", 1 if shared else 4)
    how = {"multiplier": multiplier, "rshift": shifts[0], "slope_rshift": shifts[1]}
    result = evaluate("prelu", x, slope, **how)

    def expected(n: int, c: int, i: int) -> int:
        value, factor = int(x[n, c, i]), int(slope[0 if shared else c])
        positive = requantize(max(value, 0) * multiplier, shifts[0], "i8")
        return positive + requantize(min(value, 0) * factor, shifts[1], "i8")

    check(result, expected)


PAIRS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "add_shift": lambda a, b: a + b,
    "sub_shift": lambda a, b: a - b,
    "mul_shift": lambda a, b: a * b,
}


@EXAMPLES
@given(SEEDS, st.sampled_from(sorted(PAIRS)), st.tuples(*[st.sampled_from(ALL)] * 3), st.integers(0, 31))
def test_two_tensors(seed: int, op: str, types: tuple[str, str, str], rshift: int) -> None:
    a, b = integers(seed, types[0], 3, 1, 5), integers(seed + 1, types[1], 4, 1)
    shift = rshift if op.endswith("_shift") else 0
    attributes = {"rshift": shift} if op.endswith("_shift") else {}
    result = evaluate(op, a, b, out=TensorType((3, 4, 5), types[2]), **attributes)
    check(result, lambda i, j, k: requantize(PAIRS[op](int(a[i, 0, k]), int(b[j, 0])), shift, types[2]))


SINGLES: dict[str, tuple[str | None, Callable[[int, int], int]]] = {
    "muls_shift": ("multiplier", lambda x, v: x * v),
    "adds_shift": ("value", lambda x, v: x + v),
    "round_rshift": (None, lambda x, v: x),
}


@EXAMPLES
@given(
    SEEDS, st.sampled_from(sorted(SINGLES)), st.tuples(*[st.sampled_from(ALL)] * 2), st.integers(0, 31),
    st.one_of(st.integers(-256, 256), st.integers(-(2**31), 2**31 - 1)),
)  # fmt: skip
def test_tensor_and_scalar(seed: int, op: str, types: tuple[str, str], rshift: int, scalar: int) -> None:
    x, (name, function) = integers(seed, types[0], 40), SINGLES[op]
    attributes = {"rshift": rshift, **({} if name is None else {name: scalar})}
    result = evaluate(op, x, out=TensorType((40,), types[1]), **attributes)
    check(result, lambda i: requantize(function(int(x[i]), scalar), rshift, types[1]))


@EXAMPLES
@given(
    SEEDS, st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=4), st.integers(0, 31), st.sampled_from(ALL)
)
def test_mac_shift(seed: int, multipliers: list[int], rshift: int, out: str) -> None:
    arrays = [integers(seed + i, ("i8", "u8", "i16")[i % 3], 20) for i in range(len(multipliers))]
    result = evaluate("mac_shift", *arrays, multipliers=multipliers, rshift=rshift, out=TensorType((20,), out))
    check(result, lambda i: requantize(sum(m * int(a[i]) for m, a in zip(multipliers, arrays)), rshift, out))


@pytest.mark.parametrize("table_dtype", ["i8", "u8", "i16", "f32"])
@pytest.mark.parametrize("dtype", BYTES)
def test_lut_reads_bytes_as_unsigned(dtype: str, table_dtype: str) -> None:
    table = np.arange(256).astype(TensorType((), table_dtype).numpy)
    x = np.arange(256).astype(np.uint8).view(TensorType((), dtype).numpy).reshape(4, 64)
    result = evaluate("lut", x, table)
    assert result.dtype == table.dtype
    np.testing.assert_array_equal(result, table.reshape(4, 64))


def test_lut_takes_arrays_that_do_not_lie_row_by_row() -> None:
    table, x = np.arange(256, dtype=np.int16), np.arange(12, dtype=np.int8).reshape(3, 4).T
    np.testing.assert_array_equal(evaluate("lut", x, table), x)


@pytest.mark.parametrize("dtype", ALL)
def test_bits_and_limits(dtype: str) -> None:
    a, b = integers(1, dtype, 50), integers(2, dtype, 50)
    np.testing.assert_array_equal(evaluate("bit_and", a, b), a & b)
    np.testing.assert_array_equal(evaluate("bit_or", a, b), a | b)
    np.testing.assert_array_equal(evaluate("bit_xor", a, b), a ^ b)
    np.testing.assert_array_equal(evaluate("mins", a, value=5), np.minimum(a, 5))
    np.testing.assert_array_equal(evaluate("maxs", a, value=5), np.maximum(a, 5))


@EXAMPLES
@given(SEEDS, st.sampled_from(ALL), st.sampled_from(ALL))
def test_sum_saturates_and_extremes_keep_the_type(seed: int, dtype: str, out: str) -> None:
    x = integers(seed, dtype, 3, 4, 5)
    total = evaluate("reduce", x, method="sum", axes=(0, 2), keepdims=False, out=TensorType((4,), out))
    check(total, lambda c: saturated(sum(int(v) for v in x[:, c].flat), out))
    np.testing.assert_array_equal(evaluate("reduce", x, method="max", axes=(1,)), x.max(axis=1, keepdims=True))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=20), st.floats(2.0**-20, 2.0**20))
def test_quantize_and_dequantize(values: list[float], threshold: float) -> None:
    x, type = np.array(values, np.float32), TensorType((len(values),), "i8", Quant.from_threshold(threshold))
    builder = Builder.new("net")
    quantized = builder.quantize(builder.input("x", TensorType(x.shape)), out=type)
    module = builder.outputs([quantized, builder.dequantize(quantized)], ["q", "r"])
    verify_module(module)
    results = run_module(module, {"x": x})
    for value, q, real in zip(x, results["q"], results["r"]):
        scaled = float(value) * (128.0 / threshold)
        assert q == saturated(int(np.floor(scaled + 0.5)), "i8")
        assert real == np.float32(int(q) * (threshold / 128))


CASTABLE = (*ALL, "u32", "i64", "u64")


@EXAMPLES
@given(SEEDS, st.sampled_from(CASTABLE), st.sampled_from(CASTABLE))
def test_cast_of_integers_saturates(seed: int, dtype: str, out: str) -> None:
    x = integers(seed, dtype, 40)
    check(evaluate("cast", x, dtype=out), lambda i: saturated(int(x[i]), out))


@settings(max_examples=100, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(CASTABLE), st.sampled_from(["f64", "f32"]))
def test_cast_of_reals_rounds_half_away_from_zero(value: float, out: str, dtype: str) -> None:
    with np.errstate(over="ignore"):
        x = np.array(
            [value, -value, value / 2**900, 0.5, -0.5, 2.5, -2.5, 2**31 - 0.5, 2.0**63], TensorType((), dtype).numpy
        )
    x = x[np.isfinite(x)]
    result = evaluate("cast", x, dtype=out)
    for real, got in zip(x.tolist(), result.tolist()):
        whole = int(real)
        away = whole + (1 if real > 0 else -1) if abs(real - whole) >= 0.5 else whole
        assert got == saturated(away, out), real


def test_cast_of_what_is_no_number() -> None:
    x = np.array([np.nan, np.inf, -np.inf], np.float32)
    np.testing.assert_array_equal(evaluate("cast", x, dtype="i8"), [0, 127, -128])
    np.testing.assert_array_equal(evaluate("cast", x, dtype="i64"), [0, 2**63 - 1, -(2**63)])
    np.testing.assert_array_equal(
        evaluate("cast", np.array([0, 0.25, -2], np.float32), dtype="bool"), [False, True, True]
    )
    np.testing.assert_array_equal(evaluate("cast", np.array([True, False]), dtype="i8"), [1, 0])
    assert evaluate("cast", np.array([1.0], np.float32), dtype="f16").dtype == np.float16
