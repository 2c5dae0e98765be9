"""Integer operators against plain Python on random shapes that broadcast, extreme values, and all shifts and scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracle import expected

from bmcompiler import bmlang
from bmcompiler.bmlang import (
    COMPUTE_CPU,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    TABLE,
    UINT8,
    UINT16,
    ConvParam,
    DataType,
    MatrixMulParam,
    PoolParam,
    PoolType,
    QCalMode,
    ReduceMethodType,
    ReduceParam,
    Scalar,
    Tensor,
)
from bmcompiler.errors import BMError
from bmcompiler.frontends.bmlang.numbers import numpy_type
from bmcompiler.frontends.bmlang.typings import accepted

DTYPES = (INT8, UINT8, INT16, UINT16, INT32)
BYTES = (INT8, UINT8)
SUMS = ("add", "sub", "mul", "max", "min", "gt", "ge", "lt", "le", "eq", "ne")
SHIFTS = ("mul_shift", "add_shift", "sub_shift")
WITH_SCALAR = ("adds", "subs", "muls", "maxs", "mins", "gts", "les", "eqs")
draw_dtype = st.sampled_from(DTYPES)


def numbers(dtype: DataType) -> st.SearchStrategy[int]:
    limits = np.iinfo(numpy_type(dtype))
    low, high = int(limits.min), int(limits.max)
    return st.one_of(st.integers(low, high), st.sampled_from((low, low + 1, -1 if low else 0, 0, 1, high - 1, high)))


@st.composite
def arrays(draw: Any, shape: tuple[int, ...], dtype: DataType) -> Any:
    size = int(np.prod(shape))
    return np.array(draw(st.lists(numbers(dtype), min_size=size, max_size=size)), numpy_type(dtype)).reshape(shape)


@st.composite
def pairs(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes of one rank that broadcast."""
    full = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    ones = draw(st.lists(st.sampled_from((0, 1, 2)), min_size=len(full), max_size=len(full)))
    return (
        tuple(1 if one == 1 else size for size, one in zip(full, ones)),
        tuple(1 if one == 2 else size for size, one in zip(full, ones)),
    )


def check(name: str, out: DataType, call: dict[str, Any], args: dict[str, Any]) -> None:
    with bmlang.init(COMPUTE_CPU, "BM1684"):
        got = getattr(bmlang, name)(**call, dtype=out).get_data()
    (want,) = expected(name, args, (out,))
    np.testing.assert_array_equal(got, want, f"{name} {out.name}")
    assert got.dtype == want.dtype


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(SUMS), pairs(), draw_dtype, draw_dtype, draw_dtype)
def test_two_operands(data: Any, name: str, shapes: Any, a: DataType, b: DataType, out: DataType) -> None:
    if a == INT32 or name not in ("add", "sub", "mul"):
        b = out = a
    assume(accepted(TABLE[name].bm1684, "", (a, b), (out,), False))
    x, y = data.draw(arrays(shapes[0], a)), data.draw(arrays(shapes[1], b))
    args = {"tensor_i0": x, "tensor_i1": y}
    check(name, out, {key: Tensor(data=value) for key, value in args.items()}, args)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from(SHIFTS), st.integers(0, 31), draw_dtype, draw_dtype, draw_dtype)
def test_shifts_of_every_width(data: Any, name: str, shift: int, a: DataType, b: DataType, out: DataType) -> None:
    assume(accepted(TABLE[name].bm1684, "", (a, b), (out,), False))
    args = {"tensor_i0": data.draw(arrays((2, 3), a)), "tensor_i1": data.draw(arrays((2, 3), b))}
    check(name, out, {**{k: Tensor(data=v) for k, v in args.items()}, "shift": shift}, {**args, "shift": shift})


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from(WITH_SCALAR), draw_dtype, draw_dtype, draw_dtype)
def test_scalars(data: Any, name: str, a: DataType, b: DataType, out: DataType) -> None:
    if a == INT32 or name not in ("adds", "subs", "muls"):
        b = out = a
    assume(accepted(TABLE[name].bm1684, "", (a, b), (out,), False))
    x, scalar = data.draw(arrays((2, 3), a)), Scalar(data.draw(numbers(b)), b)
    second = TABLE[name].parameters[1].name
    check(name, out, {"tensor_i0": Tensor(data=x), second: scalar}, {"tensor_i0": x, second: scalar})


SCALES = st.one_of(
    st.floats(2**-20, 8.0),
    st.integers(-20, 3).map(lambda k: 2.0**k),
    st.integers(-20, 3).map(lambda k: float(np.nextafter(np.float32(2.0**k), np.float32(0)))),
    st.integers(-20, 3).map(lambda k: float(np.nextafter(np.float32(2.0**k), np.float32(9)))),
)


@st.composite
def quantized(draw: Any, modes: Any = QCalMode) -> dict[str, Any]:
    """Types, mode, scale and zero points of an integer product."""
    mode = draw(st.sampled_from(tuple(modes)))
    left, right = draw(st.sampled_from(BYTES)), draw(st.sampled_from(BYTES))
    low = mode == QCalMode.LowPrecisionSymmetric
    out = draw(st.sampled_from(BYTES if low else (*BYTES, INT16, UINT16)))
    bias = draw(st.sampled_from((None, INT16, UINT16) if low else (None, INT16, UINT16, INT32, FLOAT32)))
    points = [draw(numbers(d)) for d in (left, right, out)] if mode == QCalMode.HighPrecisionAsymmetric else [0, 0, 0]
    return {"mode": mode, "left": left, "right": right, "out": out, "bias": bias, "points": points}


def _bias(data: Any, dtype: DataType | None, shape: tuple[int, ...]) -> list[Any]:
    if dtype is None:
        return []
    if dtype == FLOAT32:
        return [
            np.array(data.draw(st.integers(-(2**20), 2**20)) / 8, np.float32)
            .reshape((1,) * len(shape))
            .repeat(shape[1], 1)
        ]
    limit = {INT32: 1 << 20}.get(dtype, 1 << 14)
    found = [data.draw(st.integers(0 if dtype == UINT16 else -limit, limit)) for _ in range(shape[1])]
    return [np.array(found, numpy_type(dtype)).reshape(shape)]


@settings(max_examples=150, deadline=None)
@given(st.data(), quantized(), SCALES)
def test_quantized_matrix_products(data: Any, q: dict[str, Any], scale: float) -> None:
    assume(q["bias"] != FLOAT32)
    arrays_ = [data.draw(arrays((2, 3), q["left"])), data.draw(arrays((3, 2), q["right"]))]
    arrays_ += _bias(data, q["bias"], (1, 2))
    param = MatrixMulParam(scale, q["mode"], *q["points"])
    tensors = [Tensor(data=array) for array in arrays_]
    for tensor in tensors[1:]:
        tensor.constant = True
    with bmlang.init(COMPUTE_CPU, "BM1684", relaxed=True):
        got = bmlang.matrix_mul(tensors, param, dtype=q["out"]).get_data()
    (want,) = expected("matrix_mul", {"matrix_input": arrays_, "param": param}, (q["out"],))
    np.testing.assert_array_equal(got, want)


@settings(max_examples=150, deadline=None)
@given(st.data(), quantized(), SCALES, st.integers(0, 1), st.integers(1, 2), st.booleans())
def test_quantized_convolutions(
    data: Any, q: dict[str, Any], scale: float, pad: int, stride: int, depthwise: bool
) -> None:
    groups = 2 if depthwise else 1
    arrays_ = [data.draw(arrays((1, 2, 3, 3), q["left"])), data.draw(arrays((2, 2 // groups, 2, 2), q["right"]))]
    arrays_ += _bias(data, q["bias"], (1, 2, 1, 1))
    param = ConvParam(1, 1, pad, 0, pad, pad, stride, 1, groups, scale, q["mode"], *q["points"])
    with bmlang.init(COMPUTE_CPU, "BM1684"):
        got = bmlang.conv([Tensor(data=array) for array in arrays_], param, dtype=q["out"]).get_data()
    (want,) = expected("conv", {"tensor_i": arrays_, "param": param}, (q["out"],))
    np.testing.assert_array_equal(got, want)


@settings(max_examples=60, deadline=None)
@given(st.data(), quantized((QCalMode.LowPrecisionSymmetric,)), SCALES, st.integers(1, 2))
def test_quantized_deconvolutions(data: Any, q: dict[str, Any], scale: float, stride: int) -> None:
    arrays_ = [data.draw(arrays((1, 2, 2, 3), q["left"])), data.draw(arrays((2, 2, 2, 2), q["right"]))]
    arrays_ += _bias(data, q["bias"], (1, 2, 1, 1))
    param = ConvParam(1, 1, 1, 0, 0, 1, stride, stride, 1, scale)
    with bmlang.init(COMPUTE_CPU, "BM1684"):
        got = bmlang.deconv([Tensor(data=array) for array in arrays_], param, dtype=q["out"]).get_data()
    (want,) = expected("deconv", {"tensor_i": arrays_, "param": param}, (q["out"],))
    np.testing.assert_array_equal(got, want)


@st.composite
def pools(draw: Any) -> PoolParam:
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    return PoolParam(
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
        draw(st.integers(0, kernel[0] - 1)),
        draw(st.integers(0, kernel[1] - 1)),
        draw(st.integers(0, 1)),
        draw(st.integers(0, 1)),
        *kernel,
        draw(st.sampled_from((PoolType.MAX, PoolType.AVE))),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
        True,
    )


@settings(max_examples=150, deadline=None)
@given(st.data(), pools(), st.sampled_from(BYTES))
def test_pooling_of_bytes(data: Any, param: PoolParam, dtype: DataType) -> None:
    x = data.draw(arrays((1, 2, 4, 5), dtype))
    with bmlang.init(COMPUTE_CPU, "BM1684"):
        try:
            got = bmlang.pool(Tensor(data=x), param).get_data()
        except BMError as error:
            assert "window without image data" in str(error)
            return
    (want,) = expected("pool", {"tensor_i": x, "pool_param": param}, (dtype,))
    np.testing.assert_array_equal(got, want)


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from(ReduceMethodType), st.sampled_from(BYTES), st.sets(st.integers(-3, 2), min_size=1))
def test_reductions_of_bytes(data: Any, method: ReduceMethodType, dtype: DataType, axes: set[int]) -> None:
    chosen = tuple({axis % 3 for axis in axes})
    x = data.draw(arrays((2, 3, 4), dtype))
    param = ReduceParam(method, chosen, keep_dims=data.draw(st.booleans()))
    with bmlang.init(COMPUTE_CPU, "BM1684"):
        got = bmlang.reduce(Tensor(data=x), param).get_data()
    (want,) = expected("reduce", {"tensor_i": x, "reduce_param": param}, (dtype,))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("count", range(1, 226))
def test_means_of_bytes_are_exact_for_every_sum(count: int) -> None:
    """All sums of `count` bytes: the float32 product that the chip has gives the exact mean, halves away from zero."""
    from bmcompiler.frontends.bmlang.meanings.pool import reciprocal
    from bmcompiler.numeric.quant_modes import from_real

    sums = np.arange(-128 * count, 255 * count + 1)
    got = from_real(sums.astype(np.float32) * np.float32(reciprocal(count)), "i16")
    np.testing.assert_array_equal(got, np.sign(sums) * ((2 * np.abs(sums) + count) // (2 * count)))
