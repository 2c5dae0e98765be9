"""Arithmetic of every element type, comparison, logic, indexing and sorting against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import agree, graph_model, imported, op_model
from test_onnx_ops import NEWEST, data, ints, opsets

from bmcompiler.errors import BMError, RuntimeUseError, UnsupportedError
from bmcompiler.frontends.onnx import import_onnx

# op, inputs, indices of constant inputs, attributes, first opset
CASES: list[tuple[str, list[Any], tuple[int, ...], dict[str, Any], int]] = []


def case(op: str, *inputs: Any, constants: tuple[int, ...] = (), low: int = 7, **attributes: Any) -> None:
    CASES.append((op, list(inputs), constants, attributes, low))


def numbers(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    """Small integers over the range of the type; floats in -3 .. 3."""
    random = np.random.default_rng(seed)
    if dtype.startswith("float"):
        return random.uniform(-3, 3, shape).astype(dtype)
    return random.integers(0 if dtype[0] == "u" else -100, 100, shape).astype(dtype)


def flags(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape) < 0.5


WIDE = ("int32", "int64", "uint32", "uint64", "float64")
ALL = ("int8", "uint8", "int16", "uint16", *WIDE)
for dtype in WIDE:
    left, right = numbers(dtype, 2, 3, 4), numbers(dtype, 3, 1, seed=1)
    some = np.where(right == 0, np.ones_like(right), right)
    for op in ("Add", "Sub", "Mul"):
        case(op, left, right, low=14)
    case("Div", left, some, low=14)
    case("Max", left, right, left + right, low=12)
    case("Min", left, right, low=12)
    for op in ("Less", "Greater"):
        case(op, left, right, low=9)
    for op in ("LessOrEqual", "GreaterOrEqual"):
        case(op, left, right, low=12)
for dtype in ALL:
    left, right = numbers(dtype, 2, 3, 4), numbers(dtype, 3, 1, seed=1)
    some = np.where(right == 0, np.ones_like(right), right)
    if dtype != "float64":
        case("Mod", left, some, low=10)
    case("Mod", left, some, low=10, fmod=1)
    case("Abs", left, low=13)
    case("Sign", left, low=9)
for dtype in ("int8", "int32", "int64", "float64"):
    case("Neg", numbers(dtype, 2, 5), low=13)
case("Add", np.full(3, 2**31 - 1, np.int32), ints(1, 2, 3).astype(np.int32))
case("Mul", np.full(3, 2**62, np.int64), ints(1, 2, 3))
case("Equal", numbers("int64", 2, 9), numbers("int64", 9, seed=1))
case("Equal", data(2, 9), data(9), low=11)
case("Equal", flags(2, 9), flags(9, seed=1))
case("Pow", numbers("int32", 2, 5), ints(0, 1, 2, 3, 4), low=12)
case("Pow", data(2, 5), ints(0, 1, 2, 3, -2), low=12)
case("Pow", numbers("int64", 2, 3), np.asarray(2.0, np.float32), low=12, constants=(1,))
for op in ("And", "Or", "Xor"):
    case(op, flags(2, 3, 4), flags(3, 1, seed=1))
case("Not", flags(2, 5))
for dtype in ("int8", "uint8", "int32", "int64", "uint64"):
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        case(op, numbers(dtype, 2, 3, 4), numbers(dtype, 3, 1, seed=1), low=18)
    case("BitwiseNot", numbers(dtype, 2, 5), low=18)
for direction in ("LEFT", "RIGHT"):
    for dtype in ("uint8", "uint32", "uint64"):
        case("BitShift", numbers(dtype, 2, 5), np.arange(5).astype(dtype), low=11, direction=direction)
case("Where", flags(3, 1), data(3, 4), data(4), low=9)
case("Where", flags(3, 1), numbers("int64", 3, 4), ints(7), low=9)
SPECIAL = np.asarray([np.nan, np.inf, -np.inf, 0.0, 1.5], np.float32)
case("IsNaN", SPECIAL, low=9)
case("IsInf", SPECIAL, low=10)
case("IsInf", SPECIAL, low=10, detect_negative=0)
for source in ("int32", "int64", "uint8", "int8", "float32", "float64"):
    for target in ("int32", "int64", "uint8", "int8", "float32", "float64", "float16", "bool"):
        code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(target))
        values = np.abs(numbers(source, 2, 9)) if source.startswith("float") else numbers(source, 2, 9)
        case("Cast", values, low=13, to=code)
        case("CastLike", values, np.zeros(1, target), low=15)
# functions of one tensor
for op in ("Sin", "Cos", "Tan", "Sinh", "Cosh", "Asinh", "Atan", "Erf"):
    case(op, data(3, 5))
for op in ("Asin", "Acos", "Atanh"):
    case(op, data(3, 5, low=-0.9, high=0.9))
case("Acosh", data(3, 5, low=1.0, high=4.0))
case("Gelu", data(3, 5), low=20)
case("Gelu", data(3, 5), low=20, approximate="tanh")
case("ThresholdedRelu", data(3, 5), low=10, alpha=0.5)
case("Shrink", data(3, 5), low=9, lambd=0.75, bias=0.25)
case("Hardmax", data(2, 3, 4), low=13)
case("Hardmax", data(2, 3, 4), axis=1)
# reductions
for dtype in ("int32", "int64", "float64"):
    for op in ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"):
        case(op, numbers(dtype, 2, 3, 4), low=13)
for op in ("ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"):
    case(op, data(2, 3, 4), ints(), constants=(1,), low=18, keepdims=0)
case("ReduceSum", data(2, 3), ints(), constants=(1,), low=13, noop_with_empty_axes=1)
case("ReduceMax", numbers("uint8", 2, 3), low=13)
for ways in ({}, {"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}):
    case("CumSum", data(3, 5), np.asarray(-1, np.int64), constants=(1,), low=11, **ways)
case("CumSum", numbers("int32", 3, 5), np.asarray(0, np.int32), constants=(1,), low=11)
case("Det", data(2, 3, 3), low=11)
# indices
INDEX = np.asarray([[0, -1], [2, 1]], np.int64)
case("Gather", data(3, 4), INDEX, axis=1)
case("Gather", data(3, 4), INDEX.astype(np.int32), axis=0)
case("Gather", data(5, 4), np.arange(80) % 5, constants=(1,))
case("GatherElements", data(3, 4), INDEX, low=11, axis=1)
case("GatherElements", data(3, 4), INDEX, low=11, axis=0)
case("GatherND", data(3, 4, 2), INDEX, low=11)
case("GatherND", data(2, 4, 2), INDEX[..., None], low=12, batch_dims=1)
UPDATES = data(2, 2, seed=3)
case("ScatterElements", data(3, 4), INDEX, UPDATES, low=11, axis=1)
case("Scatter", data(3, 4), INDEX, UPDATES, low=9, axis=1)
for reduction, low in (("add", 16), ("mul", 16), ("max", 18), ("min", 18)):
    case("ScatterElements", data(3, 4), INDEX, UPDATES, low=low, axis=0, reduction=reduction)
    case("ScatterND", data(3, 4), np.asarray([[0], [0]]), data(2, 4, seed=3), low=low, reduction=reduction)
case("ScatterND", data(3, 4, 2), INDEX, data(2, 2, seed=3), low=11)
case("OneHot", ints(0, 2, -1, 7), ints(3), np.asarray([0.5, 2], np.float32), constants=(1,), low=9)
case("OneHot", INDEX, np.asarray(3), ints(0, 1), constants=(1, 2), low=9, axis=0)
for k in (None, -1, 1):
    for upper in (0, 1):
        case("Trilu", data(2, 3, 4), None if k is None else np.asarray(k), constants=(1,), low=14, upper=upper)
case("ReverseSequence", data(4, 3, 2), ints(1, 4, 2), low=10)
case("ReverseSequence", data(3, 4), ints(1, 4, 0), low=10, batch_axis=0, time_axis=1)
case("Compress", data(3, 4), np.asarray([False, True, True]), constants=(1,), low=9, axis=0)
case("Compress", data(3, 4), np.asarray([False, True, True]), constants=(1,), low=9)
case("TopK", np.round(data(3, 8), 1), ints(3), constants=(1,), low=10)
case("TopK", np.round(data(3, 8), 1), ints(3), constants=(1,), low=11, axis=0, largest=0)
case("TopK", numbers("int64", 3, 8), ints(2), constants=(1,), low=11)
case("TopK", data(3, 8), low=7, k=2)
# constants only
TIED = np.asarray([[3, 1, 3], [1, 1, 3], [3, 1, 3]], np.float32)
case("NonZero", TIED - 1, constants=(0,), low=9)
case("Unique", TIED, constants=(0,), low=11)
case("Unique", TIED, constants=(0,), low=11, sorted=0)
case("Unique", TIED, constants=(0,), low=11, axis=0)
case("EyeLike", data(3, 4), low=9, k=1)
case("EyeLike", data(3, 4), low=9, dtype=onnx.TensorProto.INT64)
BOXES = np.sort(data(1, 6, 2, 2, low=0, high=4), axis=2).reshape(1, 6, 4)
for form in (0, 1):
    limits = (ints(2), np.asarray([0.3], np.float32), np.asarray([0.2], np.float32))
    everything = (0, 1, 2, 3, 4)
    boxes, scores = np.abs(BOXES), data(1, 2, 6, low=0, high=1)
    case("NonMaxSuppression", boxes, scores, *limits, constants=everything, low=10, center_point_box=form)

OUTPUTS = {"TopK": 2, "Unique": 4}


def versions(op: str, attributes: dict[str, Any], low: int) -> list[int]:
    if op == "Scatter":
        return [9, 10]
    return opsets(op, low, 9 if op == "TopK" and "k" in attributes else NEWEST)


RUNS = [
    pytest.param(*entry[:4], opset, id=f"{i}-{entry[0]}-{opset}")
    for i, entry in enumerate(CASES)
    for opset in versions(entry[0], entry[3], entry[4])
]


@pytest.mark.parametrize(("op", "inputs", "constants", "attributes", "opset"), RUNS)
def test_op_agrees_with_onnx_runtime(
    op: str, inputs: list[Any], constants: tuple[int, ...], attributes: dict[str, Any], opset: int
) -> None:
    known = tuple(i for i in constants if i < len(inputs) and inputs[i] is not None)
    model, feeds = op_model(op, inputs, known, attributes, opset=opset, outputs=OUTPUTS.get(op, 1))
    half = any(getattr(v, "dtype", None) == np.float16 for v in inputs) or attributes.get("to") == 10
    agree(model, feeds, 1e-3 if half else 2e-5)


@pytest.mark.parametrize("attributes", [{}, {"threshold": 0.5}])
def test_binarizer_of_the_machine_learning_ops_agrees(attributes: dict[str, float]) -> None:
    x = np.asarray([[-1, 0, 0.25, 0.5], [0.75, 2, -np.inf, np.inf]], np.float32)
    node = onnx.helper.make_node("Binarizer", ["x"], ["y"], name="node", domain="ai.onnx.ml", **attributes)
    module = agree(graph_model([node], {"x": x.shape}, ["y"], domains={"ai.onnx.ml": 3}), {"x": x})
    assert [op.short_name for op in module.main.ops[:-1]] == ["threshold"]


def test_values_that_are_as_many_as_differ_are_refused() -> None:
    model, _ = op_model("Unique", [data(3, 4)], opset=13)
    with pytest.raises(UnsupportedError, match=r"only supported where all its inputs are constants.*outputs=..x0"):
        import_onnx(model)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "reason"),
    [
        (
            "STFT",
            [data(1, 16, 1), np.asarray(0), None, np.asarray(4)],
            {},
            "frames of 4 every 0 do not fit a signal of 16",
        ),
        ("STFT", [data(1, 16, 1), np.asarray(2), None, np.asarray(17)], {}, "frames of 17 every 2 do not fit"),
        ("Col2Im", [data(1, 4, 9), ints(4, 4), ints(2)], {}, "do not fit input"),
        ("Col2Im", [data(1, 4, 8), ints(4, 4), ints(2, 2)], {}, "does not hold blocks"),
        ("Col2Im", [data(1, 5, 9), ints(4, 4), ints(2, 2)], {}, "does not hold blocks"),
        ("DFT", [data(2, 8, 1)], {"axis": 7}, "axis 7 does not exist"),
    ],
)
def test_signals_that_do_not_fit_are_refused(
    op: str, inputs: list[Any], attributes: dict[str, Any], reason: str
) -> None:
    known = [i for i, value in enumerate(inputs) if i and value is not None]
    model, _ = op_model(op, inputs, known, attributes, opset=18)
    with pytest.raises(BMError, match=reason):
        import_onnx(model)


def test_an_index_outside_its_axis_is_reported_at_run_time() -> None:
    model, feeds = op_model("Gather", [data(3, 4), ints(0, 3)])
    with pytest.raises(RuntimeUseError, match=r"node.*index 0 or 3 is outside an axis with 3 elements"):
        imported(model, feeds)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "reason"),
    [
        ("OneHot", [ints(1), ints(0), data(2)], {}, "depth must be positive"),
        ("Compress", [data(3), ints(1, 0)], {}, "list of bool"),
        ("Compress", [data(3), np.asarray([False] * 3 + [True])], {"axis": 0}, "element 3 of 3"),
        ("CumSum", [data(3), np.asarray(1)], {}, "axis 1"),
        ("TopK", [data(3), ints(4)], {}, "cannot take 4 of the 3"),
        ("GatherND", [data(3, 4), np.zeros((2, 3), np.int64)], {}, "index tuples of 3"),
        ("ScatterND", [data(3, 4), np.zeros((2, 1), np.int64), data(2, 3)], {}, "updates"),
        ("ScatterElements", [data(3, 4), ints(1), data(1)], {}, "do not fit"),
        ("ReverseSequence", [data(3, 4), ints(1)], {}, "lengths"),
        ("Cast", [data(3)], {"to": int(onnx.TensorProto.BFLOAT16)}, "BFLOAT16"),
        ("ReduceMean", [flags(2, 3)], {"axes": [0]}, "bool"),
        ("Add", [flags(3), flags(3)], {}, "bool|BOOL|must be"),
    ],
)
def test_impossible_nodes_are_reported(op: str, inputs: list[Any], attributes: dict[str, Any], reason: str) -> None:
    outputs = OUTPUTS.get(op, 1)
    model, _ = op_model(op, inputs, tuple(range(1, len(inputs))), attributes, opset=16, outputs=outputs)
    with pytest.raises(BMError, match=reason):
        import_onnx(model)
