"""Ops that move elements: against numpy indexing and ONNX Runtime, on floats and integers, keeping quantization."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_samples import evaluate, run_onnx

from bmcompiler.ir import Quant, TensorType, verify_module
from bmcompiler.ops.builder import Builder

DTYPES = [np.float32, np.float16, np.int8, np.uint8, np.int32, np.int64, np.bool_]


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return (np.arange(np.prod(shape)).reshape(shape) % 120).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_moves(dtype: Any) -> None:
    x = numbers((2, 3, 4, 5), dtype)
    np.testing.assert_array_equal(evaluate("reshape", x, shape=(6, 20)), x.reshape(6, 20))
    np.testing.assert_array_equal(evaluate("permute", x, order=(3, 0, 2, 1)), np.transpose(x, (3, 0, 2, 1)))
    np.testing.assert_array_equal(evaluate("concat", x, x[:, :1], axis=1), np.concatenate([x, x[:, :1]], 1))
    first, second = evaluate("split", x, axis=2, sizes=(1, 3))
    np.testing.assert_array_equal(first, x[:, :, :1])
    np.testing.assert_array_equal(second, x[:, :, 1:])
    np.testing.assert_array_equal(evaluate("tile", x, reps=(1, 2, 1, 3)), np.tile(x, (1, 2, 1, 3)))
    np.testing.assert_array_equal(evaluate("upsample", x, scale=(2, 3)), np.kron(x, np.ones((2, 3))).astype(dtype))
    np.testing.assert_array_equal(evaluate("pad", x, pads=(0, 0, 0, 1, 2, 0, 1, 1))[:, :3, 2:, 1:6], x)
    if dtype is not np.bool_:
        np.testing.assert_array_equal(evaluate("relu", x), np.maximum(x, 0))
    np.testing.assert_array_equal(evaluate("max", x, x[::-1]), np.maximum(x, x[::-1]))
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(2, 3))
    np.testing.assert_array_equal(evaluate("max_pool", x, kernel=(2, 2)), windows.max(axis=(4, 5)))


@pytest.mark.parametrize("dtype", [np.int8, np.int32])
def test_padding_never_wins_in_integer_max_pool(dtype: Any) -> None:
    x = np.full((1, 1, 2, 2), -100, dtype)
    out = evaluate("max_pool", x, kernel=(2, 2), pads=(1, 1, 1, 1))
    np.testing.assert_array_equal(out, np.full((1, 1, 3, 3), -100))


@st.composite
def ranges(draw: Any) -> tuple[tuple[int, ...], list[tuple[int, int, int]]]:
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    cuts = []
    for dim in shape:
        start, step = draw(st.integers(0, dim - 1)), draw(st.integers(1, 3))
        if draw(st.booleans()):
            cuts.append((start, draw(st.integers(start + 1, dim)), step))
        else:
            cuts.append((start, draw(st.integers(-1, start - 1)), -step))
    return shape, cuts


@settings(max_examples=60, deadline=None)
@given(ranges())
def test_slice_equals_python_ranges_and_onnx(case: tuple[tuple[int, ...], list[tuple[int, int, int]]]) -> None:
    shape, cuts = case
    x = numbers(shape)
    starts, ends, steps = (tuple(column) for column in zip(*cuts))
    ours = evaluate("slice", x, starts=starts, ends=ends, steps=steps)
    np.testing.assert_array_equal(ours, x[np.ix_(*[list(range(*cut)) for cut in cuts])])
    onnx_ends = [-(10**6) if end < 0 else end for end in ends]
    arrays = [np.array(items, np.int64) for items in (starts, onnx_ends, range(len(shape)), steps)]
    np.testing.assert_array_equal(ours, run_onnx("Slice", x, *arrays))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pad_modes_equal_onnx(mode: str) -> None:
    x, pads = numbers((2, 3, 4, 5)), (0, 0, 0, 0, 1, 2, 3, 1)
    onnx_pads = np.array([*pads[::2], *pads[1::2]])
    rest = (np.float32(2.5),) if mode == "constant" else ()
    reference = run_onnx("Pad", x, onnx_pads, *[np.asarray(r) for r in rest], mode=mode)
    np.testing.assert_array_equal(evaluate("pad", x, pads=pads, mode=mode, value=2.5), reference)


def test_symmetric_pad_repeats_the_border_element() -> None:
    x = numbers((3,))
    np.testing.assert_array_equal(evaluate("pad", x, pads=(2, 3), mode="symmetric"), [1, 0, 0, 1, 2, 2, 1, 0])


def test_integer_pad_value_is_its_whole_part() -> None:
    np.testing.assert_array_equal(evaluate("pad", numbers((1,), np.int8), pads=(1, 0), value=-128.0), [-128, 0])


QUANTIZED = TensorType((1, 4, 4, 4), "i8", Quant(0.25))


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("reshape", {"shape": (4, 16)}), ("permute", {"order": (0, 2, 3, 1)}), ("split", {"axis": 1, "sizes": (2, 2)}),
        ("slice", {"starts": (0,) * 4, "ends": (1, 2, 3, 4), "steps": (1,) * 4}), ("pad", {"pads": (0, 1) * 4}),
        ("upsample", {"scale": (2, 2)}), ("tile", {"reps": (1, 1, 2, 1)}), ("max_pool", {"kernel": (2, 2)}),
        ("relu", {}), ("mins", {"value": 3}), ("maxs", {"value": 3}), ("reduce", {"method": "max", "axes": (2,)}),
    ],
)  # fmt: skip
def test_quantization_stays(op: str, attributes: dict[str, Any]) -> None:
    builder = Builder.new("net")
    made = builder.create(op, [builder.input("x", QUANTIZED)], attributes)
    verify_module(builder.outputs(made.results, [f"y{i}" for i in range(len(made.results))]))
    assert all(result.type.quant == Quant(0.25) for result in made.results)


@pytest.mark.parametrize("op", ["concat", "max", "min"])
def test_quantization_stays_only_when_all_operands_share_it(op: str) -> None:
    builder = Builder.new("net")
    x, y = builder.input("x", QUANTIZED), builder.input("y", TensorType(QUANTIZED.shape, "i8", Quant(0.5)))
    attributes = {"axis": 1} if op == "concat" else {}
    assert builder.create(op, [x, x], attributes).result.type.quant == Quant(0.25)
    assert builder.create(op, [x, y], attributes).result.type.quant is None
