"""Every converter against ONNX Runtime, at each opset where the op's definition changes."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import agree, op_model

NEWEST = 21  # newest opset that every supported ONNX Runtime runs


def data(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.asarray(values, np.int64)


def opsets(op: str, low: int = 7, high: int = NEWEST) -> list[int]:
    """Opsets in low..high at which a definition of the op begins, and both ends."""
    begun = versions()[op]
    first = max(low, min(begun))
    return sorted({first, high, *(v for v in begun if first <= v <= high)})


@cache
def versions() -> dict[str, list[int]]:
    """Opsets at which definitions of the ops begin, by name."""
    found: dict[str, list[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            found.setdefault(schema.name, []).append(schema.since_version)
    return found


X4, X3, X2 = data(2, 4, 7, 6), data(2, 4, 9), data(3, 5)
W, B = data(6, 4, 3, 3, seed=1), data(6, seed=2)

# op, inputs, indices of constant inputs, attributes, first and last opset
CASES: list[tuple[str, list[Any], tuple[int, ...], dict[str, Any], int, int]] = []


def case(
    op: str, *inputs: Any, constants: tuple[int, ...] = (), low: int = 7, high: int = NEWEST, **attributes: Any
) -> None:
    CASES.append((op, list(inputs), constants, attributes, low, high))


# convolution
case("Conv", X4, W, constants=(1,))
case("Conv", X4, W, B, constants=(1, 2), pads=[1, 0, 2, 1], strides=[2, 1])
case("Conv", X4, W, B, constants=(1, 2), auto_pad="SAME_UPPER", strides=[2, 3])
case("Conv", X4, W, constants=(1,), auto_pad="SAME_LOWER", strides=[3, 2])
case("Conv", X4, W, constants=(1,), auto_pad="VALID", dilations=[2, 1], kernel_shape=[3, 3])
case("Conv", X4, data(8, 2, 3, 3), constants=(1,), group=2)
case("Conv", X4, data(4, 1, 3, 3), constants=(1,), group=4, pads=[1, 1, 1, 1])
case("Conv", X3, data(6, 4, 3), B, constants=(1, 2), pads=[2, 1], strides=[2])
case("Conv", X4, W, B)
case("Conv", X3, data(6, 4, 3))
case("ConvTranspose", X4, data(4, 5, 3, 3), constants=(1,))
case("ConvTranspose", X4, data(4, 2, 3, 2), data(4), constants=(1, 2), group=2, strides=[2, 3], pads=[1, 0, 0, 1])
case("ConvTranspose", X4, data(4, 5, 3, 3), constants=(1,), strides=[2, 2], output_padding=[1, 1], pads=[1, 1, 1, 1])
case("ConvTranspose", X4, data(4, 5, 3, 3), constants=(1,), strides=[2, 2], output_shape=[14, 12])
case(
    "ConvTranspose", X4, data(4, 5, 3, 3), constants=(1,), strides=[2, 2], output_shape=[14, 11], auto_pad="SAME_LOWER"
)
case("ConvTranspose", X4, data(4, 5, 4, 3), constants=(1,), strides=[2, 2], auto_pad="SAME_UPPER")
case("ConvTranspose", X4, data(4, 5, 2, 3), constants=(1,), dilations=[2, 2])
case("ConvTranspose", X3, data(4, 5, 3), constants=(1,), strides=[3], pads=[1, 1])
# pooling
for pool in ("MaxPool", "AveragePool"):
    case(pool, X4, kernel_shape=[2, 2], strides=[2, 2])
    case(pool, X4, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 2, 1])
    case(pool, X4, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    case(pool, X4, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER")
    case(pool, X4, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, low=10)
    case(pool, X4, kernel_shape=[3, 3], strides=[3, 3], pads=[1, 1, 1, 1], ceil_mode=1, low=10)
    case(pool, X3, kernel_shape=[3], strides=[2], pads=[1, 1])
case("MaxPool", X4, kernel_shape=[2, 2], dilations=[2, 3], low=10)
case("GlobalLpPool", X4, p=3)
case("AveragePool", X4, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
case(
    "AveragePool", X4, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1, ceil_mode=1, low=19
)
for pool in ("GlobalAveragePool", "GlobalMaxPool"):
    case(pool, X4)
    case(pool, X3)
# matrix products
case("Gemm", X2, data(5, 4), data(4), constants=(1, 2))
case("Gemm", X2, data(4, 5), data(1, 4), constants=(1, 2), transB=1, alpha=0.5, beta=2.0)
case("Gemm", data(5, 3), data(5, 4), data(3, 4), constants=(1, 2), transA=1, beta=0.25)
case("Gemm", X2, data(5, 4), np.float32(3), constants=(1, 2))
case("Gemm", X2, data(5, 4), data(3, 1), alpha=0.5, beta=0.5)
case("Gemm", X2, data(5, 4), low=11)
case("MatMul", X2, data(5, 4), constants=(1,))
case("MatMul", data(2, 3, 4, 5), data(3, 5, 2))
case("MatMul", data(5), data(2, 5, 3))
case("MatMul", data(2, 4, 5), data(5))
case("MatMul", data(5), data(5))
# normalization
case("BatchNormalization", X4, *(data(4, seed=s, low=0.5) for s in range(4)), constants=(1, 2, 3, 4), epsilon=1e-3)
case("BatchNormalization", X2, *(data(5, seed=s, low=0.5) for s in range(4)), constants=(1, 2, 3, 4))
case("LRN", X4, size=3, alpha=0.5, beta=0.6, bias=1.5)
case("LRN", X4, size=5)
case("InstanceNormalization", X4, data(4), data(4, seed=3), constants=(1, 2))
case("LayerNormalization", X4, data(6), data(6, seed=3), constants=(1, 2), low=17)
case("LayerNormalization", X4, data(7, 6), constants=(1,), low=17, axis=2, epsilon=0.01)
# functions of one tensor
for unary in ("Relu", "Sigmoid", "Tanh", "Exp", "Abs", "Neg", "Floor", "Ceil", "Softplus", "Softsign", "Identity"):
    case(unary, X4)
for unary in ("Sqrt", "Log", "Reciprocal"):
    case(unary, data(3, 4, low=0.1))
case("Round", np.asarray([-2.5, -1.5, -0.5, 0.5, 1.5, 2.4, 2.6], np.float32), low=11)
case("HardSwish", data(3, 8, low=-5, high=5), low=14)
case("Mish", X2, low=18)
for kind, attributes in (
    ("LeakyRelu", {"alpha": 0.2}),
    ("Elu", {"alpha": 1.5}),
    ("Selu", {"alpha": 1.2, "gamma": 1.1}),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
    ("Softmax", {"axis": 2}),
    ("Softmax", {"axis": -1}),
    ("Softmax", {"axis": 0}),
    ("LogSoftmax", {"axis": 1}),
):
    case(kind, X4, **attributes)
    if kind != "Softmax":
        case(kind, X4)
case("Celu", X2, alpha=0.7, low=12)
case("Clip", X4, min=-0.5, max=1.0, high=10)
case("Clip", X4, max=1.0, high=10)
case("Clip", X4, np.float32(-0.5), np.float32(1.0), constants=(1, 2), low=11)
case("Clip", X4, None, np.float32(1.0), constants=(2,), low=11)
case("Clip", X4, np.float32(-0.5), np.float32(1.0), low=11)
case("Clip", X4, low=11)
case("Clip", np.arange(8, dtype=np.int8), np.int8(2), np.int8(5), constants=(1, 2), low=12)
for slope in (data(4, 1, 1), data(1), data(1, 1, 6), data(4, 7, 6), np.float32(0.1)):
    case("PRelu", X4, slope, constants=(1,))
case("PRelu", X4, data(4, 1, 1))
# functions of several tensors
for binary in ("Add", "Sub", "Mul", "Div"):
    case(binary, X4, data(2, 4, 7, 6, seed=5, low=0.5), low=7)
    case(binary, X4, data(4, 1, 1, low=0.5), constants=(1,))
    case(binary, data(1, 5, low=0.5), data(3, 1, low=0.5))
    case(binary, np.float32(2), X4 + 3, constants=(0,))
case("Add", np.asarray([3, -4], np.int32), np.asarray([5, 6], np.int32))
for variadic in ("Sum", "Max", "Min", "Mean"):
    case(variadic, X4)
    case(variadic, X4, X4 * 0.5, data(4, 1, 1), low=8)
case("Pow", data(3, 4, low=0.1), np.float32(2.5), constants=(1,))
case("Pow", X2, np.asarray([2], np.int64), constants=(1,), low=12)
case("Pow", data(3, 4, low=0.1), data(4))
case("Pow", data(3, 4, low=0.1), np.float32(0.5), constants=(1,))
case("Pow", data(3, 4), np.full((1, 1, 1), 2, np.float32), constants=(1,), low=12)
for code in (onnx.TensorProto.INT32, onnx.TensorProto.INT64, onnx.TensorProto.FLOAT16, onnx.TensorProto.BOOL):
    case("Cast", X4 * 3, to=code)
case("Cast", np.arange(6, dtype=np.uint8), to=onnx.TensorProto.FLOAT)
# layout
case("Reshape", X4, ints(0, -1, 6), constants=(1,))
case("Reshape", X4, ints(56, 6), constants=(1,))
for axis in (0, 1, 2, 4, -1):
    case("Flatten", X4, axis=axis, low=7 if axis >= 0 else 11)
case("Squeeze", data(1, 3, 1, 4), axes=[0, 2], high=12)
case("Squeeze", data(1, 3, 1, 4), axes=[-2], low=11, high=12)
case("Squeeze", data(1, 3, 1, 4), ints(0, -2), constants=(1,), low=13)
case("Squeeze", data(1, 3, 1, 4))
case("Unsqueeze", X2, axes=[0, 3], high=12)
case("Unsqueeze", X2, ints(-1, 0), constants=(1,), low=13)
case("Transpose", X4)
case("Transpose", X4, perm=[0, 2, 3, 1])
case("Concat", X4, X4 * 2, X4[:, :2], axis=1)
case("Concat", X2, X2, axis=-1, low=11)
case("Slice", X4, starts=[1, -3], ends=[3, 100], axes=[1, 2], high=9)
case("Slice", X4, starts=[0, 1], ends=[1, -1], high=9)
case("Slice", X4, ints(1, -1), ints(4, -100), ints(1, -1), ints(2, -2), constants=(1, 2, 3, 4), low=10)
case("Slice", X4, ints(1, 1), ints(2, 3), constants=(1, 2), low=10)
case("Gather", X4, ints(2), constants=(1,), axis=1)
case("Gather", X4, np.asarray(-1, np.int64), constants=(1,), axis=2)
case("Gather", X4, np.asarray([[0, 3], [1, 1]], np.int64), constants=(1,), axis=1)
case("Gather", X4, ints(4, 2, 0), constants=(1,), axis=2)
case("Pad", X4, pads=[0, 0, 1, 2, 0, 1, 3, 0], value=1.5, high=10)
case("Pad", X4, pads=[0, 0, 1, 2, 0, 0, 3, 1], mode="reflect", high=10)
case("Pad", X4, pads=[0, 0, -1, 2, 0, 0, 0, -2], high=10)
case("Pad", X4, ints(0, 0, 1, 2, 0, 1, 3, 0), np.float32(2), constants=(1, 2), low=11)
case("Pad", X4, ints(0, 0, 1, 2, 0, 1, 3, 0), constants=(1,), low=11, mode="edge")
case("Pad", X4, ints(1, 2, 3, 0), None, ints(-1, 2), constants=(1, 3), low=18)
case("Tile", X2, ints(2, 3), constants=(1,))
case("Expand", data(3, 1), ints(2, 1, 4), constants=(1,), low=8)
case("Expand", X2, ints(1, 1), constants=(1,), low=8)
case("DepthToSpace", data(2, 8, 3, 4), blocksize=2)
case("DepthToSpace", data(2, 8, 3, 4), blocksize=2, mode="CRD", low=11)
case("SpaceToDepth", data(2, 3, 4, 6), blocksize=2)
case("Upsample", X4, scales=[1.0, 1.0, 2.0, 3.0], mode="nearest", high=8)
case("Upsample", X4, np.asarray([1, 1, 2, 2], np.float32), constants=(1,), low=9, high=9)
case("Resize", X4, np.asarray([1, 1, 2, 3], np.float32), constants=(1,), low=10, high=10, mode="nearest")
case("Resize", X4, np.asarray([1, 1, 1, 0.5], np.float32), constants=(1,), low=10, high=10, mode="nearest")
NO_ROI = np.zeros(0, np.float32)
for coordinates, rounding in (
    ("asymmetric", "floor"),
    ("half_pixel", "round_prefer_floor"),
    ("half_pixel", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"),
):
    how = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    case("Resize", X4, NO_ROI, np.asarray([1, 1, 3, 3], np.float32), constants=(1, 2), low=11, **how)
how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
case("Resize", X4, None, None, ints(2, 4, 14, 18), constants=(3,), low=13, **how)
case("Resize", data(1, 4, 5, 3), NO_ROI, np.asarray([1, 2, 2, 1], np.float32), constants=(1, 2), low=11)
case("Resize", X4, None, np.asarray([2, 2], np.float32), constants=(2,), low=18, axes=[2, 3])
# reductions
for method in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"):
    last, name = (12 if method == "Sum" else 17), f"Reduce{method}"
    positive = np.abs(X4) + 0.1
    case(name, positive, axes=[1, 3], high=last)
    case(name, positive, axes=[2], keepdims=0, high=last)
    case(name, positive, high=last)
    case(name, positive, ints(1, -1), constants=(1,), low=last + 1)
    case(name, positive, low=last + 1, keepdims=0)
case("ReduceSum", X4, low=13, noop_with_empty_axes=1)
TIED = np.asarray([[3, 1, 3], [2, 5, 5]], np.float32)
for extreme in ("ArgMax", "ArgMin"):
    case(extreme, X4, axis=1)
    case(extreme, X4, axis=-1, keepdims=0, low=11)
    case(extreme, TIED, axis=1, select_last_index=1, low=12)

RUNS = [
    pytest.param(*entry[:4], opset, id=f"{i}-{entry[0]}-{opset}")
    for i, entry in enumerate(CASES)
    for opset in opsets(entry[0], entry[4], entry[5])
]


@pytest.mark.parametrize(("op", "inputs", "constants", "attributes", "opset"), RUNS)
def test_op_agrees_with_onnx_runtime(
    op: str, inputs: list[Any], constants: tuple[int, ...], attributes: dict[str, Any], opset: int
) -> None:
    arrays = [None if value is None else np.asarray(value) for value in inputs]
    model, feeds = op_model(op, arrays, constants, attributes, opset=opset)
    agree(model, feeds, 1e-3 if attributes.get("to") == onnx.TensorProto.FLOAT16 else 2e-5)


@pytest.mark.parametrize("opset", opsets("Split"))
@pytest.mark.parametrize("even", [True, False])
def test_split_agrees_with_onnx_runtime(opset: int, even: bool) -> None:
    sizes = [] if even else [3, 1, 2]
    constants: list[Any] = [ints(*sizes)] if opset >= 13 and sizes else []
    attributes: dict[str, Any] = {"axis": -1}
    if sizes and opset < 13:
        attributes["split"] = sizes
    if even and opset >= 18:
        attributes["num_outputs"] = 3
    model, feeds = op_model(
        "Split", [X4, *constants], tuple(range(1, 1 + len(constants))), attributes, opset=opset, outputs=3
    )
    agree(model, feeds)


@pytest.mark.parametrize("opset", [7, 10, 12, 13])
def test_dropout_passes_its_input_through(opset: int) -> None:
    model, feeds = op_model("Dropout", [X2], opset=opset)
    module = agree(model, feeds)
    assert len(module.main.ops) == 1  # nothing but the return


@pytest.mark.slow
def test_every_converter_has_a_case() -> None:
    """Here, in the other tables, or where ONNX Runtime lags behind in the suite of the onnx package."""
    import test_onnx_numbers

    from bmcompiler.frontends.onnx.registry import known_types

    covered = {entry[0] for entry in (*CASES, *test_onnx_numbers.CASES)} | {"Split", "Dropout"}
    covered.add("SimplifiedLayerNormalization")  # ONNX Runtime's own, in test_onnx_transformer_ops.py
    # read from its sources: loading the suite computes what all of its cases give
    sources = (Path(onnx.__file__).parent / "backend/test/case/node").glob("*.py")
    suite = {
        name for each in sources for name in re.findall(r'make_node\(\s*"(\w+)"', each.read_text(encoding="utf-8"))
    }
    assert len(suite) > 100
    assert set(known_types()) <= covered | suite
