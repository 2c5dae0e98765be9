"""Shapes and attributes that ops refuse: the message names the layer, the op and the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bmcompiler.errors import BMError, ShapeError, VerifyError
from bmcompiler.ir import Quant, TensorType, verify_module
from bmcompiler.ops.builder import Builder

Types = list[tuple[tuple[int, ...], str]]


def build(op: str, types: Types, attributes: dict[str, Any], out: TensorType | None = None) -> None:
    builder = Builder.new("net")
    inputs = [builder.input(f"x{i}", TensorType(shape, dtype)) for i, (shape, dtype) in enumerate(types)]
    with builder.at("my layer"):
        made = builder.create(op, inputs, attributes, None if out is None else [out])
    verify_module(builder.outputs(made.results, [f"y{i}" for i in range(len(made.results))]))


def f32(*shapes: tuple[int, ...]) -> Types:
    return [(shape, "f32") for shape in shapes]


def i8(*shapes: tuple[int, ...]) -> Types:
    return [(shape, "i8") for shape in shapes]


IMAGE = (1, 4, 6, 6)
SHAPES: list[tuple[str, Types, dict[str, Any], str]] = [
    ("conv", f32(IMAGE, (8, 3, 3, 3)), {}, "4 input channels do not fit"),
    ("conv", f32(IMAGE, (6, 1, 3, 3)), {"group": 4}, "group 4"),
    ("conv", f32(IMAGE, (8, 4, 3, 3)), {"group": 0}, "group 0"),
    ("conv", f32(IMAGE, (8, 4, 7, 3)), {}, "does not fit 6 padded elements"),
    ("conv", f32(IMAGE, (8, 4, 3, 3)), {"strides": (0, 1)}, "stride 0"),
    ("conv", f32(IMAGE, (8, 4, 3, 3)), {"dilations": (1, -1)}, "dilation -1"),
    ("conv", f32(IMAGE, (8, 4, 3, 3)), {"pads": (0, 0, -1, 0)}, "negative"),
    ("conv", f32(IMAGE, (8, 4, 3, 3), (4,)), {}, r"bias must have shape \[8\]"),
    ("conv", f32((4, 6, 6), (8, 4, 3, 3)), {}, "'input' must have 4 axes"),
    ("deconv", f32(IMAGE, (3, 4, 2, 2)), {}, "do not fit weight"),
    ("deconv", f32(IMAGE, (4, 4, 2, 2)), {"pads": (4, 4, 0, 0)}, "give no output"),
    ("deconv", f32(IMAGE, (4, 4, 2, 2)), {"output_pads": (0, -1)}, "give no output"),
    ("deconv", f32(IMAGE, (4, 4, 2, 2), (3,)), {}, "bias"),
    ("matmul", f32((3, 4), (5, 4)), {}, "inner dimensions 4 and 5"),
    ("matmul", f32((4,), (4, 5)), {}, "2 axes or more"),
    ("matmul", f32((2, 3, 4), (3, 4, 5)), {}, "do not broadcast"),
    ("matmul", f32((3, 4), (4, 5), (3,)), {}, "bias"),
    ("scale", f32(IMAGE, (3,)), {}, r"weight must have shape \[4\]"),
    ("scale", f32(IMAGE, (6,)), {"axis": 4}, "axis 4"),
    ("batch_norm", f32(IMAGE, (4,), (4,), (1,), (4,)), {}, "mean"),
    ("batch_norm", f32((3,), (3,), (3,), (3,), (3,)), {}, "axis 1"),
    ("lrn", f32(IMAGE), {"size": 0}, "size"),
    ("prelu", f32(IMAGE, (3,)), {}, "slope"),
    ("softmax", f32((2, 3)), {"axis": 2}, "axis 2"),
    ("max_pool", f32(IMAGE), {"kernel": (7, 1)}, "does not fit"),
    ("max_pool", f32(IMAGE), {"kernel": (2, 2), "pads": (2, 0, 0, 0)}, "smaller than the window"),
    ("avg_pool", f32(IMAGE), {"kernel": (2, 2), "pads": (0, 0, 0, -1)}, "smaller than the window"),
    ("avg_pool", f32(IMAGE), {"kernel": (0, 2)}, "window"),
    ("add", f32((2, 3), (2, 4)), {}, r"\[2, 3\] and \[2, 4\] do not broadcast"),
    ("mul_shift", i8((2, 3), (4,)), {}, "do not broadcast"),
    ("mac_shift", i8((2, 3), (3,)), {"multipliers": (1, 2)}, "one shape"),
    ("mac_shift", i8((2, 3), (2, 3)), {"multipliers": (1,)}, "multipliers"),
    ("mac_shift", [], {"multipliers": ()}, "no operands"),
    ("lut", i8((2, 3), (255,)), {}, "256 entries"),
    ("reshape", f32((2, 3)), {"shape": (7,)}, r"\[2, 3\] cannot become \[7\]"),
    ("reshape", f32((2, 3)), {"shape": (-2, -3)}, "cannot become"),
    ("permute", f32((2, 3)), {"order": (0, 0)}, "order"),
    ("permute", f32((2, 3)), {"order": (0,)}, "order"),
    ("concat", f32((2, 3), (2, 4)), {"axis": 0}, "differ outside axis 0"),
    ("concat", f32((2, 3), (2,)), {"axis": 0}, "differ"),
    ("concat", f32((2, 3)), {"axis": -1}, "axis -1"),
    ("concat", [], {"axis": 0}, "at least one"),
    ("split", f32((2, 5)), {"axis": 1, "sizes": (2, 2)}, "do not add up"),
    ("split", f32((2, 5)), {"axis": 1, "sizes": (6, -1)}, "sizes"),
    ("split", f32((2, 5)), {"axis": 1, "sizes": ()}, "sizes"),
    ("slice", f32((5,)), {"starts": (0,), "ends": (6,), "steps": (1,)}, "0:6:1"),
    ("slice", f32((5,)), {"starts": (2,), "ends": (1,), "steps": (1,)}, "2:1:1"),
    ("slice", f32((5,)), {"starts": (4,), "ends": (-2,), "steps": (-1,)}, "4:-2:-1"),
    ("slice", f32((5,)), {"starts": (4,), "ends": (5,), "steps": (0,)}, "4:5:0"),
    ("slice", f32((5, 2)), {"starts": (4,), "ends": (5,), "steps": (1,)}, "one entry per axis"),
    ("pad", f32((3,)), {"pads": (1,)}, "padded by"),
    ("pad", f32((3,)), {"pads": (1, 1, 1, 1)}, "per axis"),
    ("pad", f32((3,)), {"pads": (-1, 1)}, "padded by"),
    ("pad", f32((3,)), {"pads": (3, 0), "mode": "reflect"}, "reflect"),
    ("pad", f32((3,)), {"pads": (4, 0), "mode": "symmetric"}, "symmetric"),
    ("pad", f32((0,)), {"pads": (1, 0), "mode": "edge"}, "edge"),
    ("upsample", f32(IMAGE), {"scale": (2, 0)}, "scale"),
    ("tile", f32((2, 3)), {"reps": (2,)}, "reps"),
    ("tile", f32((2, 3)), {"reps": (2, 0)}, "reps"),
    ("reduce", f32((2, 3)), {"method": "sum", "axes": (2,)}, "axis 2"),
    ("reduce", f32((2, 3)), {"method": "sum", "axes": ()}, "axes"),
    ("reduce", f32((2, 3)), {"method": "sum", "axes": (1, 1)}, "different"),
    ("arg", f32((2, 3)), {"method": "max", "axis": 2}, "axis 2"),
    ("arg", f32((2, 0)), {"method": "max", "axis": 1}, "empty"),
]


@pytest.mark.parametrize(("op", "types", "attributes", "reason"), SHAPES)
def test_shape_error_names_layer_op_and_reason(op: str, types: Types, attributes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ShapeError, match=reason) as caught:
        build(op, types, attributes)
    assert f"layer 'my layer' ({op}): " in str(caught.value)


def out(dtype: str, *shape: int, quant: Quant | None = None) -> TensorType:
    return TensorType(shape, dtype, quant)


RULES: list[tuple[str, Types, dict[str, Any], TensorType | None, str]] = [
    ("relu", f32((2, 3)), {"slope": 1.0}, None, "unknown attribute 'slope'"),
    ("conv", f32(IMAGE, (8, 4, 3, 3)), {"strides": (1,)}, None, "'strides' must be two ints"),
    ("conv", f32(IMAGE, (8, 4, 3, 3)), {"strides": "12"}, None, "'strides' must be two ints"),
    ("conv", f32(IMAGE, (8, 4, 3, 3)), {"pads": (1, 1, 1.5, 1)}, None, "'pads' must be four ints"),
    ("conv", f32(IMAGE, (8, 4, 3, 3)), {"group": True}, None, "'group' must be int"),
    ("conv", f32(IMAGE, (8, 4, 3, 3)), {"rshift": 1}, None, "integer form"),
    ("conv", [(IMAGE, "f32"), ((8, 4, 3, 3), "f16")], {}, None, "one element type"),
    ("conv", [(IMAGE, "i8"), ((8, 4, 3, 3), "f32")], {}, None, "weight must be i8 or u8"),
    ("conv", [(IMAGE, "i32"), ((8, 4, 3, 3), "i8")], {}, None, "data must be i8 or u8"),
    ("conv", [*i8(IMAGE, (8, 4, 3, 3)), ((8,), "f32")], {}, None, "bias must be i16 or u16 or i32"),
    ("conv", i8(IMAGE, (8, 4, 3, 3)), {"rshift": 32}, None, "0 to 31"),
    ("conv", i8(IMAGE, (8, 4, 3, 3)), {"rshift": -1}, None, "0 to 31"),
    ("conv", f32(IMAGE, (8, 4, 3, 3)), {"mode": "low", "scale": 0.5}, None, "integer form"),
    ("conv", i8(IMAGE, (8, 4, 3, 3)), {"mode": "best", "scale": 0.5}, None, "mode must be empty or one of low, high"),
    ("conv", i8(IMAGE, (8, 4, 3, 3)), {"scale": 0.5}, None, "belong to a mode"),
    ("conv", i8(IMAGE, (8, 4, 3, 3)), {"mode": "low", "scale": 0.5, "rshift": 1}, None, "rshift must be 0"),
    ("conv", i8(IMAGE, (8, 4, 3, 3)), {"mode": "low"}, None, "a scale must be"),
    ("conv", i8(IMAGE, (8, 4, 3, 3)), {"mode": "low", "scale": 1.0}, out("i16", 1, 8, 4, 4), "must be i8 or u8"),
    ("conv", i8(IMAGE, (8, 4, 3, 3)), {"mode": "high", "scale": 1.0}, out("i32", 1, 8, 4, 4), "must be i8 or u8 or"),
    ("conv", [*i8(IMAGE, (8, 4, 3, 3)), ((8,), "i32")], {"mode": "low", "scale": 1.0}, None, "bias must be i16 or u16"),
    (
        "conv",
        i8(IMAGE, (8, 4, 3, 3)),
        {"mode": "high", "scale": 1.0, "zero_points": (0, 0, 1)},
        None,
        "zero_points belong to the modes asymmetric and channel",
    ),
    ("conv", i8(IMAGE, (8, 4, 3, 3)), {"mode": "asymmetric", "scale": 1.0}, None, "needs three numbers"),
    (
        "conv",
        i8(IMAGE, (8, 4, 3, 3)),
        {"mode": "asymmetric", "scale": 1.0, "zero_points": (0, 128, 0)},
        None,
        "the weight zero point must fit i8, got 128",
    ),
    (
        "deconv",
        i8(IMAGE, (4, 4, 3, 3)),
        {"mode": "asymmetric", "scale": 1.0, "zero_points": (0, 0, 0)},
        None,
        "belongs to conv and matmul",
    ),
    (
        "conv",
        f32(IMAGE, (8, 4, 3, 3)),
        {},
        out("f32", 1, 8, 4, 5),
        r"result shape \[1, 8, 4, 5\] should be \[1, 8, 4, 4\]",
    ),
    ("conv", f32(IMAGE, (8, 4, 3, 3)), {}, out("f16", 1, 8, 4, 4), "one element type"),
    ("conv", i8(IMAGE, (8, 4, 3, 3)), {}, out("f32", 1, 8, 4, 4), "the result must be"),
    ("conv", f32(IMAGE), {}, None, "takes 2 to 4 operands, got 1"),
    ("relu", f32((2, 3), (2, 3)), {}, None, "takes 1 operands, got 2"),
    ("relu", [((2,), "bool")], {}, None, "numbers"),
    ("relu", f32((2, 3)), {}, out("f16", 2, 3), "result type f16 should be f32"),
    ("sigmoid", i8((2, 3)), {}, None, "float"),
    ("softmax", i8((2, 3)), {}, None, "float"),
    ("lrn", f32(IMAGE), {}, None, "attribute 'size' is missing"),
    ("lrn", i8(IMAGE), {"size": 3}, None, "float"),
    ("batch_norm", i8(IMAGE, (4,), (4,), (4,), (4,)), {}, None, "float"),
    ("clip", f32((2, 3)), {"min": 2, "max": 1}, None, "above max"),
    ("clip", f32((2, 3)), {"min": float("nan")}, None, "above max"),
    ("prelu", [(IMAGE, "i8"), ((4,), "i16")], {}, None, "slope must be i8"),
    ("prelu", f32(IMAGE, (4,)), {"rshift": 1}, None, "integer form"),
    ("prelu", i8(IMAGE, (4,)), {"multiplier": 256}, None, "0 to 255"),
    ("avg_pool", i8(IMAGE), {"kernel": (2, 2), "pads": (1, 0, 0, 0)}, None, "count_include_pad"),
    ("avg_pool", f32(IMAGE), {"kernel": (2, 2), "multiplier": 2}, None, "integer form"),
    ("avg_pool", [(IMAGE, "i16")], {"kernel": (2, 2)}, None, "i8 or u8"),
    ("add", [((2,), "f32"), ((2,), "i8")], {}, None, "one element type"),
    ("add", [((2,), "i8"), ((2,), "i64")], {}, None, "b must be"),
    ("add", f32((2,), (2,)), {"wrap": True}, None, "integer form"),
    ("add", [((2,), "i8"), ((2,), "i16")], {"wrap": True}, None, "one element type"),
    ("div", [((2,), "bool"), ((2,), "bool")], {}, None, "numbers"),
    ("max", [((2,), "i8"), ((2,), "u8")], {}, None, "one element type"),
    ("bit_or", f32((2,), (2,)), {}, None, "integers or bool"),
    ("muls_shift", i8((2,)), {"multiplier": 2**31}, None, "32 bits"),
    ("muls_shift", f32((2,)), {"multiplier": 1}, None, "operand 0"),
    ("mac_shift", i8((2,)), {"multipliers": (-(2**31) - 1,)}, None, "32 bits"),
    ("adds_shift", i8((2,)), {"value": 2**40}, None, "32 bits"),
    ("lut", [((2,), "i16"), ((256,), "i8")], {}, None, "i8 or u8"),
    ("mins", i8((2,)), {"value": 128}, None, "does not fit i8"),
    ("quantize", f32((2,)), {}, None, "positive scale"),
    ("quantize", f32((2,)), {}, out("i8", 2, quant=Quant(0.0)), "positive scale"),
    ("quantize", f32((2,)), {}, out("i8", 2, quant=Quant(1.0, 3)), "zero point 0"),
    ("quantize", f32((2,)), {}, out("u8", 2, quant=Quant(1.0)), "must be i8"),
    ("quantize", f32((2,)), {"rounding": "odd"}, None, "'rounding' must be"),
    ("quantize", f32((2,)), {"rounding": "away"}, out("u8", 2, quant=Quant(0.1)), "normal float32 number"),
    ("quantize", f32((2,)), {"rounding": "away"}, out("u8", 2, quant=Quant(0.5, -1)), "must fit u8"),
    ("dequantize", i8((2,)), {}, None, "positive scale"),
    ("avg_pool", i8(IMAGE), {"kernel": (2, 2), "scale": 0.5, "rshift": 1}, None, "without multiplier and rshift"),
    ("cast", f32((2,)), {"dtype": "f8"}, None, "unknown element type 'f8'"),
    ("concat", [((2,), "f32"), ((2,), "f16")], {"axis": 0}, None, "one element type"),
    ("pad", f32((3,)), {"pads": (1, 1), "mode": "wrap"}, None, "unknown mode 'wrap'"),
    ("pad", i8((3,)), {"pads": (1, 1), "value": 128.0}, None, "does not fit i8"),
    ("pad", i8((3,)), {"pads": (1, 1), "value": float("nan")}, None, "does not fit i8"),
    ("reduce", f32((3,)), {"method": "median", "axes": (0,)}, None, "unknown method 'median'"),
    ("reduce", i8((3,)), {"method": "mean", "axes": (0,)}, None, "needs a float"),
    ("reduce", [((3,), "i64")], {"method": "sum", "axes": (0,)}, None, "the operand must be"),
    ("arg", f32((3,)), {"method": "median", "axis": 0}, None, "unknown method"),
]


@pytest.mark.parametrize(("op", "types", "attributes", "result", "reason"), RULES)
def test_verifier_refuses(
    op: str, types: Types, attributes: dict[str, Any], result: TensorType | None, reason: str
) -> None:
    with pytest.raises(VerifyError, match=reason) as caught:
        build(op, types, attributes, result)
    assert f"layer 'my layer' ({op}): " in str(caught.value)


def test_attributes_are_stored_in_their_normal_form_only() -> None:
    builder = Builder.new("net")
    x = builder.input("x", TensorType(IMAGE))
    op = builder.create("max_pool", [x], {"kernel": [np.int64(2), 2], "strides": [1, 1], "note.text": "kept"})
    assert op.attributes == {"kernel": (2, 2), "note.text": "kept"}
    assert op.strides == (1, 1) and op.input is x
    with pytest.raises(AttributeError, match="stride"):
        _ = op.stride
    op.attributes["strides"] = (1, 1)
    builder.outputs(op.results, ["y"])
    with pytest.raises(VerifyError, match="normal form"):
        verify_module(builder.module)


def test_unknown_op_names_itself_and_a_remedy() -> None:
    with pytest.raises(BMError, match=r"no TensorOp is called 'convolute'.*Remedy"):
        build("convolute", [], {})


def test_weight_must_exist_with_the_declared_type() -> None:
    builder = Builder.new("net")
    value = builder.weight(np.zeros((2, 3), np.float32), "w")
    module = builder.outputs([value], ["y"])
    verify_module(module)
    module.weights["w"] = np.zeros((3, 2), np.float32)
    with pytest.raises(VerifyError, match="'w' is float32"):
        verify_module(module)
    del module.weights["w"]
    with pytest.raises(VerifyError, match="no weight is called 'w'"):
        verify_module(module)
