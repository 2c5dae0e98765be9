"""Element types and what integers mean, whole tensors and along an axis."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from bmcompiler.errors import FileFormatError
from bmcompiler.interpreter import evaluate_op
from bmcompiler.ir import Block, Quant, TensorType, Value, type_of_array
from bmcompiler.ir.parser import parse_module
from bmcompiler.ops import find_op


def test_bf16_is_a_float_type_of_two_bytes_known_to_numpy() -> None:
    type = TensorType((3, 4), "bf16")
    assert type.is_float and type.nbytes == 24 and str(type) == "tensor<3x4xbf16>"
    assert type_of_array(np.zeros((3, 4), type.numpy)) == type


def test_scales_along_an_axis_are_text_with_the_largest_as_the_scale() -> None:
    type = TensorType((2, 3), "i8", Quant.along(1, [0.5, 2.0, 0.25]))
    assert type.quant is not None and type.quant.scale == 2.0
    assert str(type) == "tensor<2x3xi8, {axis = 1, scale = [0.5, 2.0, 0.25]}>"


@pytest.mark.parametrize(("shape", "axis"), [((2, 3), 0), ((2, 3), 2), ((2, 3), -1), ((), 0)])
def test_scales_must_fit_their_axis(shape: tuple[int, ...], axis: int) -> None:
    with pytest.raises(ValueError, match=f"3 scales along axis {axis} do not fit"):
        TensorType(shape, "i8", Quant.along(axis, [1.0, 1.0, 1.0]))


@pytest.mark.parametrize(
    ("encoding", "reason"),
    [
        ("axis = 0, scale = [0.5]", "1 scales along axis 0 do not fit a tensor of shape"),
        ("axis = 0, scale = 0.5", "a tensor encoding has the form"),
        ("scale = [0.5, 0.5]", "a tensor encoding has the form"),
        ("axis = 0, scale = []", "needs a scale for each position"),
        ("axis = 0.0, scale = [0.5, 0.5]", "a tensor encoding has the form"),
    ],
)
def test_a_text_with_odd_scales_names_line_and_reason(encoding: str, reason: str) -> None:
    text = f'"builtin.module"() ({{\n  "func.func"() <{{function_type = (tensor<2xi8, {{{encoding}}}>) -> ()}}> ('
    with pytest.raises(FileFormatError, match=f"line 2, .*{reason}"):
        parse_module(text)


def evaluate_bf16(name: str, *arrays: np.ndarray, **attributes: object) -> np.ndarray:
    operands = [Value(type_of_array(a), Block(), i) for i, a in enumerate(arrays)]
    op = find_op(name)(operands, attributes)
    return evaluate_op(op, list(arrays))[0]


def test_ops_on_bf16_compute_in_f32_and_round_once() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(0, 1, (5, 64)).astype(ml_dtypes.bfloat16) for _ in range(2))
    product = evaluate_bf16("matmul", x, y.T.copy())
    exact = x.astype(np.float32) @ y.T.astype(np.float32)
    assert product.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(product.astype(np.float32), exact, rtol=2**-8, atol=1e-5)
    np.testing.assert_array_equal(
        evaluate_bf16("add", x, y), (x.astype(np.float32) + y.astype(np.float32)).astype(ml_dtypes.bfloat16)
    )


def test_casts_and_bits_of_bf16() -> None:
    x = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, -3.4e38, np.inf], np.float32)
    narrow = evaluate_bf16("cast", x, dtype="bf16")
    np.testing.assert_array_equal(narrow.view(np.uint16), [0x3F80, 0x3F80, 0x3F82, 0xFF80, 0x7F80])
    np.testing.assert_array_equal(evaluate_bf16("bit_cast", narrow, dtype="u16"), narrow.view(np.uint16))
    assert evaluate_bf16("cast", narrow, dtype="f32").dtype == np.float32
    np.testing.assert_array_equal(evaluate_bf16("cast", narrow[:3] * 3, dtype="i8"), [3, 3, 3])


def test_each_channel_of_integers_has_its_scale() -> None:
    type = TensorType((2, 3), "i8", Quant.along(0, [0.5, 0.25], zero_point=1))
    x = np.array([[1.0, -0.5, 100.0], [1.0, -0.5, 0.125]], np.float32)
    down = find_op("quantize")([Value(TensorType((2, 3)), Block(), 0)], {"rounding": "away"}, [type])
    (integers,) = evaluate_op(down, [x])
    np.testing.assert_array_equal(integers, [[3, 0, 127], [5, -1, 2]])
    up = find_op("dequantize")([Value(type, Block(), 0)])
    np.testing.assert_array_equal(evaluate_op(up, [integers])[0], [[1.0, -0.5, 63.0], [1.0, -0.5, 0.25]])
