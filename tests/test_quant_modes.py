"""The quantization modes against a literal restatement of bmlang.md 3.3 on plain integers and single float32 steps."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Quant, TensorType, verify_module
from bmcompiler.numeric import quant_modes
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.quantization.scale.integer_layer import NoInt8Form, in_range

EXAMPLES = settings(max_examples=60, deadline=None)
f32 = np.float32
LIMITS = {"i8": (-128, 127), "u8": (0, 255), "i16": (-32768, 32767), "u16": (0, 65535)}
SCALES = st.one_of(st.floats(2.0**-20, 1.0), st.floats(1.0, 150.0), st.integers(-12, 3).map(lambda e: 2.0**e))


def sat(x: int, dtype: str) -> int:
    low, high = LIMITS[dtype]
    return min(max(x, low), high)


def test_scales_reach_from_the_smallest_to_the_largest() -> None:
    ends = quant_modes.SMALLEST_SCALE, quant_modes.LARGEST_SCALE
    for scale in ends:
        assert quant_modes.rescale(scale).scale == in_range(scale) == scale
    for scale in (np.nextafter(f32(ends[0]), f32(0)), np.nextafter(f32(ends[1]), f32(np.inf))):
        with pytest.raises(ValueError, match="a scale must be"):
            quant_modes.rescale(scale)
        with pytest.raises(NoInt8Form, match="out of the range of a right shift"):
            in_range(float(scale))


def rrs(x: int, s: int) -> int:
    return ((x >> (s - 1)) + 1) >> 1 if s > 0 else x


def c_round(x: Any) -> int:
    exact = Fraction(float(x))
    return floor(exact + Fraction(1, 2)) if exact >= 0 else ceil(exact - Fraction(1, 2))


def shift_of(scale: float, *, down: bool) -> int:
    """k by exact search: 2**k is the first power of two >= 1/s, or the last one <= 1/s."""
    s = Fraction(float(f32(scale)))
    if s > 1:
        return 0
    if down:
        return next(k for k in range(64) if 2 ** (k + 1) > 1 / s)
    return next(k for k in range(64) if 2**k >= 1 / s)


def low(total: int, scale: float, dtype: str) -> int:
    s, k = f32(scale), shift_of(scale, down=False)
    y = sat(rrs(total, k), dtype)
    r = f32(s * f32(2.0**k))
    return y if r == f32(1) else sat((y * int(r * f32(128)) + 64) >> 7, dtype)


def real_result(t: int, scale: float, k: int, wide: Any) -> Any:
    s = f32(scale)
    z = f32(f32(t) * f32(s * f32(2.0**k)))
    return z if wide is None else f32(z + f32(f32(wide) * s))


def high(total: int, scale: float, dtype: str, wide: Any = None) -> int:
    k = shift_of(scale, down=False)
    return sat(c_round(real_result(sat(rrs(total, k), "i16"), scale, k, wide)), dtype)


def asymmetric(first: int, second: int, bias2: Any, scale: float, dtype: str, zero: int, *, down: bool) -> int:
    k = shift_of(scale, down=down)
    t = sat(sat(rrs(first, k), "i16") - sat(rrs(second, k), "i16"), "i16")
    return sat(c_round(real_result(t, scale, k, bias2)) + zero, dtype)


@EXAMPLES
@given(SCALES, st.booleans())
def test_shift_and_residual_follow_from_the_logarithm(scale: float, down: bool) -> None:
    factor = quant_modes.rescale(scale, floor=down)
    assert factor.shift == shift_of(scale, down=down)
    assert factor.residual == float(f32(scale)) * 2.0**factor.shift
    assert scale > 1 or (0.5 < factor.residual <= 1 if down else 1 <= factor.residual < 2)


@pytest.mark.parametrize("scale", [0.0, -1.0, 2.0**-32, 2.0**24, float("nan"), float("inf")])
def test_a_scale_out_of_range_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="scale must be"):
        quant_modes.rescale(scale)


@EXAMPLES
@given(SCALES, st.sampled_from(("i8", "u8")), st.integers(0, 2**32 - 1))
def test_low(scale: float, dtype: str, seed: int) -> None:
    total = _sums(seed, scale)
    out = quant_modes.low(total, quant_modes.rescale(scale), dtype)
    assert out.tolist() == [low(int(v), scale, dtype) for v in total]


@EXAMPLES
@given(SCALES, st.sampled_from(tuple(LIMITS)), st.integers(0, 2**32 - 1), st.sampled_from((None, "int32", "float32")))
def test_high(scale: float, dtype: str, seed: int, wide: str | None) -> None:
    total = _sums(seed, scale)
    bias = None if wide is None else (_sums(seed + 1, scale) * 0.7).astype(wide)
    out = quant_modes.high(total, quant_modes.rescale(scale), dtype, bias)
    expected = [high(int(v), scale, dtype, None if bias is None else bias[i]) for i, v in enumerate(total)]
    assert out.tolist() == expected


@EXAMPLES
@given(st.integers(0, 2**32 - 1))
def test_reals_round_half_away_from_zero(seed: int) -> None:
    rng = np.random.default_rng(seed)
    halves = rng.integers(-300, 300, 20).astype(f32) + f32(0.5)
    near = np.nextafter(halves, rng.choice(np.array([-1e9, 1e9], f32), 20))
    values = np.concatenate([halves, near, rng.normal(0, 1e5, 9).astype(f32), f32([0.49999997, -0.49999997, -0.0])])
    for dtype in LIMITS:
        out = quant_modes.from_real(values.copy(), dtype, 3)
        assert out.tolist() == [sat(c_round(v) + 3, dtype) for v in values]


@EXAMPLES
@given(st.integers(0, 2**32 - 1), st.sampled_from((0, 3, -5)))
def test_reals_round_half_to_even_before_the_zero_point(seed: int, zero_point: int) -> None:
    rng = np.random.default_rng(seed)
    halves = rng.integers(-300, 300, 20).astype(f32) + f32(0.5)
    near = np.nextafter(halves, rng.choice(np.array([-1e9, 1e9], f32), 20))
    values = np.concatenate([halves, near, rng.normal(0, 1e5, 9).astype(f32), f32([0.49999997, -0.5, -0.0, np.inf])])
    for dtype in LIMITS:
        out = quant_modes.quantize_even(values * f32(4), 4.0, dtype, zero_point)
        whole = [round(float(v)) if np.isfinite(v) else 1 << 40 for v in values]  # Python's halves go to even
        assert out.tolist() == [sat(v + zero_point, dtype) for v in whole]
    assert quant_modes.quantize_even(f32([np.nan]), 4.0, "i8").tolist() == [-128]


def _sums(seed: int, scale: float) -> Any:
    """Integers whose results lie in and around every range, ties included."""
    rng = np.random.default_rng(seed)
    spread = rng.choice([60.0, 300.0, 40000.0])
    return np.clip(rng.normal(0, spread / scale, 40), -(2.0**31), 2.0**31 - 1).astype(np.int64)


@st.composite
def layers(draw: Any) -> dict[str, Any]:
    mode = draw(st.sampled_from(("low", "high", "asymmetric")))
    return {
        "mode": mode, "scale": draw(st.floats(2.0**-12, 0.3)), "seed": draw(st.integers(0, 2**32 - 1)),
        "types": draw(st.tuples(*[st.sampled_from(("i8", "u8"))] * 2)),
        "out": draw(st.sampled_from(("i8", "u8") if mode == "low" else tuple(LIMITS))),
        "bias": draw(st.sampled_from((None, "i16", "u16") if mode == "low" else (None, "i16", "u16", "i32", "f32"))),
        "group": draw(st.integers(1, 2)), "pads": draw(st.tuples(*[st.integers(0, 2)] * 4)),
    }  # fmt: skip


def _array(rng: Any, dtype: str, *shape: int) -> Any:
    if dtype == "f32":
        return rng.normal(0, 900, shape).astype(f32)
    limits = np.iinfo(TensorType((), dtype).numpy)
    size = 3000 if dtype == "i32" else limits.max
    return rng.integers(max(limits.min, -size), size, shape, limits.dtype, endpoint=True)


def _run(op: str, arrays: list[Any], case: dict[str, Any], shape: tuple[int, ...], **attributes: Any) -> Any:
    builder = Builder.new("net")
    inputs = [builder.input(f"x{i}", TensorType(a.shape, d)) for i, (a, d) in enumerate(zip(arrays, case["dtypes"]))]
    modes = {"mode": case["mode"], "scale": case["scale"], **attributes}
    out = getattr(builder, op)(*inputs, **modes, out=TensorType(shape, case["out"]))
    module = builder.outputs([out], ["y"])
    verify_module(module)
    return run_module(module, {f"x{i}": a for i, a in enumerate(arrays)})["y"]


def _expected(case: dict[str, Any], products: list[tuple[int, int]], bias: Any, zero: tuple[int, int, int]) -> int:
    """One result from its (data, weight) pairs."""
    down = case["op"] == "conv"
    if case["mode"] == "asymmetric":
        first = sum(x * w for x, w in products)
        second = sum(x * zero[1] for x, _ in products)
        offset = zero[0] * sum(w - zero[1] for _, w in products)
        bias2 = f32(float(bias) - offset) if case["bias"] == "f32" else (0 if bias is None else int(bias)) - offset
        return asymmetric(first, second, bias2, case["scale"], case["out"], zero[2], down=down)
    total = sum(x * w for x, w in products)
    if case["mode"] == "high" and case["bias"] in ("i32", "f32"):
        return high(total, case["scale"], case["out"], bias)
    total += 0 if bias is None else int(bias)
    return (low if case["mode"] == "low" else high)(total, case["scale"], case["out"])


def _zero_points(rng: Any, case: dict[str, Any]) -> tuple[int, int, int]:
    x, w, out = (int(_array(rng, dtype, 1)[0]) for dtype in (*case["types"], case["out"]))
    return x, w if rng.random() < 0.7 else 0, out


@EXAMPLES
@given(layers())
def test_conv(case: dict[str, Any]) -> None:
    rng, group = np.random.default_rng(case["seed"]), case["group"]
    x, w = _array(rng, case["types"][0], 1, 2 * group, 4, 5), _array(rng, case["types"][1], 2 * group, 2, 2, 3)
    bias = [] if case["bias"] is None else [_array(rng, case["bias"], 2 * group)]
    zero = _zero_points(rng, case)
    case |= {"op": "conv", "dtypes": [*case["types"], case["bias"]]}
    points = {"zero_points": zero} if case["mode"] == "asymmetric" else {}
    top, bottom, left, right = case["pads"]
    shape = (1, 2 * group, 3 + top + bottom, 3 + left + right)
    out = _run("conv", [x, w, *bias], case, shape, group=group, pads=case["pads"], **points)
    border = zero[0] if points else 0
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=border).astype(int)
    for _, o, row, column in np.ndindex(*shape):
        window = padded[0, o // 2 * 2 : o // 2 * 2 + 2, row : row + 2, column : column + 3]
        products = [(int(a), int(b)) for a, b in zip(window.ravel(), w[o].ravel())]
        assert out[0, o, row, column] == _expected(case, products, bias[0][o] if bias else None, zero)


@EXAMPLES
@given(layers())
def test_matmul(case: dict[str, Any]) -> None:
    rng = np.random.default_rng(case["seed"])
    a, b = _array(rng, case["types"][0], 3, 9), _array(rng, case["types"][1], 9, 4)
    bias = [] if case["bias"] is None else [_array(rng, case["bias"], 4)]
    zero = _zero_points(rng, case)
    case |= {"op": "matmul", "dtypes": [*case["types"], case["bias"]]}
    points = {"zero_points": zero} if case["mode"] == "asymmetric" else {}
    out = _run("matmul", [a, b, *bias], case, (3, 4), **points)
    for i, j in np.ndindex(3, 4):
        products = [(int(p), int(q)) for p, q in zip(a[i], b[:, j])]
        assert out[i, j] == _expected(case, products, bias[0][j] if bias else None, zero)


@pytest.mark.parametrize("mode", ["low", "high"])
def test_deconv_ends_like_conv(mode: str) -> None:
    """A 1x1 window without overlap is a convolution."""
    rng = np.random.default_rng(5)
    x, w, bias = _array(rng, "i8", 1, 3, 4, 4), _array(rng, "i8", 3, 2, 1, 1), _array(rng, "i16", 2)
    case = {"mode": mode, "scale": 0.0123, "out": "u8", "dtypes": ["i8", "i8", "i16"]}
    transposed = w.transpose(1, 0, 2, 3).copy()
    by_conv = _run("conv", [x, transposed, bias], case, (1, 2, 4, 4))
    np.testing.assert_array_equal(_run("deconv", [x, w, bias], case, (1, 2, 4, 4)), by_conv)


def test_relu_of_a_signed_result_cuts_at_zero() -> None:
    rng = np.random.default_rng(6)
    x, w = _array(rng, "i8", 1, 3, 4, 4), _array(rng, "i8", 2, 3, 1, 1)
    case = {"mode": "low", "scale": 0.0123, "out": "i8", "dtypes": ["i8", "i8"]}
    plain = _run("conv", [x, w], case, (1, 2, 4, 4))
    np.testing.assert_array_equal(_run("conv", [x, w], case, (1, 2, 4, 4), activation="relu"), np.maximum(plain, 0))


@EXAMPLES
@given(st.integers(0, 2**32 - 1), st.sampled_from(tuple(LIMITS)), st.floats(1e-6, 1e3))
def test_quantize_away_and_dequantize(seed: int, dtype: str, scale: float) -> None:
    rng = np.random.default_rng(seed)
    single, low_, high_ = float(f32(scale)), *LIMITS[dtype]
    zero = int(rng.integers(low_, high_, endpoint=True)) if dtype.endswith("8") else 0
    x = (rng.normal(0, high_ * single, 30)).astype(f32)
    quantized = TensorType(x.shape, dtype, Quant(single, zero))
    builder = Builder.new("net")
    q = builder.quantize(builder.input("x", TensorType(x.shape)), rounding="away", out=quantized)
    module = builder.outputs([q, builder.dequantize(q)], ["q", "r"])
    verify_module(module)
    got = run_module(module, {"x": x})
    inverse = f32(f32(1) / f32(single))
    assert got["q"].tolist() == [sat(c_round(f32(v * inverse)) + zero, dtype) for v in x]
    assert got["r"].tolist() == [float(f32(f32(int(v) - zero) * f32(single))) for v in got["q"]]


@EXAMPLES
@given(st.integers(0, 2**32 - 1), st.sampled_from(("i8", "u8")), st.floats(1e-3, 1.0))
def test_average_with_a_scale(seed: int, dtype: str, scale: float) -> None:
    x = _array(np.random.default_rng(seed), dtype, 1, 2, 4, 6)
    builder = Builder.new("net")
    out = builder.avg_pool(
        builder.input("x", TensorType(x.shape, dtype)), kernel=(2, 3), strides=(2, 3), scale=scale,
        out=TensorType((1, 2, 2, 2), dtype),
    )  # fmt: skip
    module = builder.outputs([out], ["y"])
    verify_module(module)
    got = run_module(module, {"x": x})["y"]
    for _, c, i, j in np.ndindex(*got.shape):
        total = int(x[0, c, 2 * i : 2 * i + 2, 3 * j : 3 * j + 3].astype(int).sum())
        assert got[0, c, i, j] == sat(c_round(f32(f32(total) * f32(scale))), dtype)
