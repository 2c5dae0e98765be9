"""Float ops against ONNX Runtime, one node each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from op_samples import evaluate, onnx_pads, run_onnx

EXAMPLES = settings(max_examples=40, deadline=None)
RNG_SEEDS = st.integers(0, 2**32 - 1)


def floats(seed: int, *shape: int, low: float = -3, high: float = 3) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def close(ours: np.ndarray, reference: np.ndarray, tolerance: float = 2e-5) -> None:
    assert ours.dtype == reference.dtype and ours.shape == reference.shape
    np.testing.assert_allclose(ours, reference, rtol=tolerance, atol=tolerance)


@st.composite
def conv_cases(draw: Any) -> dict[str, Any]:
    group, i, o = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kernel, dilations, strides, pads = (
        draw(st.tuples(*[st.integers(low, high)] * count))
        for low, high, count in ((1, 3, 2), (1, 2, 2), (1, 3, 2), (0, 2, 4))
    )
    return {
        "n": draw(st.integers(1, 2)), "group": group, "i": i, "o": o, "kernel": kernel, "dilations": dilations,
        "strides": strides, "pads": pads, "size": draw(st.tuples(st.integers(5, 8), st.integers(5, 8))),
        "bias": draw(st.booleans()), "seed": draw(RNG_SEEDS),
    }  # fmt: skip


@EXAMPLES
@given(conv_cases())
def test_conv(case: dict[str, Any]) -> None:
    group, seed = case["group"], case["seed"]
    x = floats(seed, case["n"], group * case["i"], *case["size"])
    weight = floats(seed + 1, group * case["o"], case["i"], *case["kernel"])
    rest = (floats(seed + 2, group * case["o"]),) if case["bias"] else ()
    shared = {"strides": case["strides"], "dilations": case["dilations"], "group": group}
    ours = evaluate("conv", x, weight, *rest, pads=case["pads"], **shared)
    close(ours, run_onnx("Conv", x, weight, *rest, pads=onnx_pads(case["pads"]), **shared))


def test_conv_in_many_row_blocks_equals_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = floats(1, 2, 6, 17, 13), floats(2, 4, 3, 3, 3)
    how = {"strides": (2, 1), "pads": (1, 0, 2, 1), "group": 2}
    whole = evaluate("conv", x, weight, **how)
    monkeypatch.setattr("bmcompiler.ops.layers.nn._COLUMN_VALUES", 1500)
    close(evaluate("conv", x, weight, **how), whole, 1e-6)


@EXAMPLES
@given(conv_cases(), st.tuples(st.integers(0, 1), st.integers(0, 1)))
def test_deconv(case: dict[str, Any], output_pads: tuple[int, int]) -> None:
    group, seed = case["group"], case["seed"]
    assume(all(extra < stride for extra, stride in zip(output_pads, case["strides"])))
    x = floats(seed, case["n"], group * case["i"], *case["size"])
    weight = floats(seed + 1, group * case["i"], case["o"], *case["kernel"])
    rest = (floats(seed + 2, group * case["o"]),) if case["bias"] else ()
    shared = {"strides": case["strides"], "dilations": case["dilations"], "group": group}
    ours = evaluate("deconv", x, weight, *rest, pads=case["pads"], output_pads=output_pads, **shared)
    pads = onnx_pads(case["pads"])
    close(ours, run_onnx("ConvTranspose", x, weight, *rest, pads=pads, output_padding=output_pads, **shared))


@pytest.mark.parametrize(("left", "right"), [((4, 3), (3, 5)), ((2, 1, 4, 3), (6, 3, 5)), ((1, 3), (2, 3, 1))])
@pytest.mark.parametrize("transposed", ["", "left", "right"])
def test_matmul(left: tuple[int, ...], right: tuple[int, ...], transposed: str) -> None:
    a, b = floats(1, *left), floats(2, *right)
    reference = run_onnx("MatMul", a, b)
    if transposed == "left":
        ours = evaluate("matmul", np.ascontiguousarray(a.swapaxes(-1, -2)), b, transpose_left=True)
    elif transposed == "right":
        ours = evaluate("matmul", a, np.ascontiguousarray(b.swapaxes(-1, -2)), transpose_right=True)
    else:
        ours = evaluate("matmul", a, b)
    close(ours, reference)


def test_matmul_with_bias_is_gemm() -> None:
    a, b, bias = floats(1, 4, 3), floats(2, 5, 3), floats(3, 5)
    close(evaluate("matmul", a, b, bias, transpose_right=True), run_onnx("Gemm", a, b, bias, transB=1))


@st.composite
def pool_cases(draw: Any) -> dict[str, Any]:
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    ends = [draw(st.integers(0, kernel[i // 2] - 1)) for i in range(4)]
    return {
        "kernel": kernel, "pads": ends, "strides": draw(st.tuples(st.integers(1, 4), st.integers(1, 4))),
        "size": draw(st.tuples(st.integers(4, 9), st.integers(4, 9))), "ceil": draw(st.booleans()),
        "seed": draw(RNG_SEEDS),
    }  # fmt: skip


@EXAMPLES
@given(pool_cases(), st.integers(1, 2))
def test_max_pool(case: dict[str, Any], dilation: int) -> None:
    x = floats(case["seed"], 2, 3, *case["size"])
    reach = [dilation * (k - 1) + 1 for k in case["kernel"]]
    assume(all(s + sum(case["pads"][2 * i : 2 * i + 2]) >= reach[i] for i, s in enumerate(case["size"])))
    shared = {"strides": case["strides"], "dilations": (dilation, dilation)}
    ours = evaluate("max_pool", x, kernel=case["kernel"], pads=case["pads"], ceil_mode=case["ceil"], **shared)
    pads = onnx_pads(case["pads"])
    reference = run_onnx("MaxPool", x, kernel_shape=case["kernel"], pads=pads, ceil_mode=int(case["ceil"]), **shared)
    np.testing.assert_array_equal(ours, reference)


@EXAMPLES
@given(pool_cases(), st.booleans())
def test_avg_pool(case: dict[str, Any], include: bool) -> None:
    x = floats(case["seed"], 2, 3, *case["size"])
    how = {"kernel": case["kernel"], "pads": case["pads"], "strides": case["strides"], "ceil_mode": case["ceil"]}
    ours = evaluate("avg_pool", x, count_include_pad=include, **how)
    reference = run_onnx(
        "AveragePool", x, opset=19, kernel_shape=case["kernel"], pads=onnx_pads(case["pads"]), strides=case["strides"],
        ceil_mode=int(case["ceil"]), count_include_pad=int(include),
    )  # fmt: skip
    close(ours, reference)


def test_pool_window_that_begins_in_the_trailing_padding_is_dropped() -> None:
    x = floats(1, 1, 1, 3, 3)
    out = evaluate("max_pool", x, kernel=(2, 2), strides=(3, 3), pads=(1, 1, 1, 1), ceil_mode=True)
    assert out.shape == (1, 1, 2, 2)
    np.testing.assert_array_equal(out[0, 0, 1, 1], x[0, 0, 2, 2])


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 30])
def test_lrn(size: int) -> None:
    x = floats(size, 2, 7, 3, 2)
    ours = evaluate("lrn", x, size=size, alpha=0.3, beta=0.6, k=1.5)
    if size % 2:
        close(ours, run_onnx("LRN", x, size=size, alpha=0.3, beta=0.6, bias=1.5))
    sums = np.zeros_like(x)
    for c in range(7):
        low, high = max(0, c - (size - 1) // 2), min(7, c + -(-(size - 1) // 2) + 1)
        sums[:, c] = (x[:, low:high] ** 2).sum(axis=1)
    close(ours, x / (1.5 + np.float32(0.3 / size) * sums) ** np.float32(0.6))


def test_batch_norm_and_scale() -> None:
    x, gamma, beta, mean = floats(1, 2, 4, 3, 3), floats(2, 4), floats(3, 4), floats(4, 4)
    variance = floats(5, 4, low=0.1)
    ours = evaluate("batch_norm", x, gamma, beta, mean, variance, epsilon=1e-3)
    close(ours, run_onnx("BatchNormalization", x, gamma, beta, mean, variance, epsilon=1e-3))
    close(evaluate("scale", x, gamma, beta), x * gamma[:, None, None] + beta[:, None, None])
    close(evaluate("scale", x[0, 0], gamma[:3], axis=0), x[0, 0] * gamma[:3, None])


UNARY: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "relu": ("Relu", {}, {}),
    "leaky_relu": ("LeakyRelu", {"slope": 0.2}, {"alpha": 0.2}),
    "elu": ("Elu", {"alpha": 0.7}, {"alpha": 0.7}),
    "sigmoid": ("Sigmoid", {}, {}),
    "tanh": ("Tanh", {}, {}),
    "hard_sigmoid": ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}, {"alpha": 0.3, "beta": 0.4}),
    "hard_swish": ("HardSwish", {}, {}),
    "exp": ("Exp", {}, {}),
    "abs": ("Abs", {}, {}),
    "neg": ("Neg", {}, {}),
    "floor": ("Floor", {}, {}),
    "ceil": ("Ceil", {}, {}),
    "round": ("Round", {}, {}),
    "softplus": ("Softplus", {}, {}),
    "softmax": ("Softmax", {"axis": 1}, {"axis": 1}),
    "log_softmax": ("LogSoftmax", {"axis": -2}, {"axis": -2}),
    "log": ("Log", {}, {}),
    "sqrt": ("Sqrt", {}, {}),
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    op, ours, theirs = UNARY[name]
    x = floats(7, 2, 5, 6, low=0.01 if name in ("log", "sqrt") else -6, high=6)
    x.flat[:6] = 0.5, 1.5, 2.5, 3, 100, 1e-6
    close(evaluate(name, x, **ours), run_onnx(op, x, **theirs))


@pytest.mark.parametrize("name", UNARY)
def test_unary_survives_extreme_values(name: str) -> None:
    x = np.array([[-np.inf, -1e30, -200, -0.0, 0, 200, 1e30, np.inf]], np.float32)
    if name in ("softmax", "log_softmax"):
        x = x[:, 1:-1]
    out = evaluate(
        name, x, **({**UNARY[name][1], "axis": 1} if "soft" in name and "plus" not in name else UNARY[name][1])
    )
    bad = {"log": 3, "sqrt": 3, "hard_swish": 1}.get(name, 0)
    assert out.dtype == np.float32 and np.isnan(out).sum() <= bad


def test_half_precision_is_summed_in_single() -> None:
    x, weight = floats(1, 1, 64, 6, 6).astype(np.float16), floats(2, 8, 64, 3, 3).astype(np.float16)
    ours = evaluate("conv", x, weight)
    single = evaluate("conv", x.astype(np.float32), weight.astype(np.float32))
    np.testing.assert_array_equal(ours, single.astype(np.float16))


def test_clip_and_prelu() -> None:
    x, slope = floats(1, 2, 4, 3, 3), floats(2, 4)
    limits = np.float32(-1), np.float32(2)
    np.testing.assert_array_equal(evaluate("clip", x, min=-1, max=2), np.clip(x, *limits))
    np.testing.assert_array_equal(evaluate("clip", x), x)
    close(evaluate("prelu", x, slope), run_onnx("PRelu", x, slope.reshape(4, 1, 1)))
    close(evaluate("prelu", x, slope[:1]), run_onnx("PRelu", x, slope[:1]))


@pytest.mark.parametrize("shapes", [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (3, 1)), ((1, 4), (5, 1, 1)), ((), (2, 2))])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "max", "min", "pow"])
def test_binary(op: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = floats(1, *shapes[0], low=0.2), floats(2, *shapes[1], low=0.2)
    close(evaluate(op, a, b), run_onnx(op.capitalize(), a, b))


REDUCTIONS = {
    "sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd",
    "l1": "ReduceL1", "l2": "ReduceL2", "sum_square": "ReduceSumSquare",
}  # fmt: skip


@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("axes", [(1,), (0, 2), (0, 1, 2, 3)])
@pytest.mark.parametrize("method", REDUCTIONS)
def test_reduce(method: str, axes: tuple[int, ...], keepdims: bool) -> None:
    x = floats(1, 2, 3, 4, 5, low=-1.4, high=1.4)
    reference = run_onnx(REDUCTIONS[method], x, np.array(axes), keepdims=int(keepdims))
    close(evaluate("reduce", x, method=method, axes=axes, keepdims=keepdims), reference)


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("method", ["max", "min"])
def test_arg_takes_the_first_or_the_last_of_equal_values(method: str, keepdims: bool, last: bool) -> None:
    x = np.random.default_rng(1).integers(0, 3, (3, 6, 4)).astype(np.float32)
    ours = evaluate("arg", x, method=method, axis=1, keepdims=keepdims, last=last)
    how = {"axis": 1, "keepdims": int(keepdims), "select_last_index": int(last)}
    reference = run_onnx(f"Arg{method.capitalize()}", x, **how, opset=13)
    assert ours.dtype == np.int32
    np.testing.assert_array_equal(ours, reference)
