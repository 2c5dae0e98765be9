"""One small instance of every TensorOp, and helpers to run single ops here and in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import ValueInfoProto, helper

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Quant, TensorType, Value, type_of_array, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.custom import register_cpu_function

IMAGE = TensorType((2, 4, 5, 6))
BYTES = TensorType((2, 4, 5, 6), "i8")
QUANTIZED = TensorType((2, 4, 5, 6), "i8", Quant(0.03125))
ROWS = TensorType((3, 4))
_CUT = TensorType((4, 4, 3, 6), "i8", Quant(0.0625))
CHANNEL = TensorType((4,))
BYTE_ROWS = TensorType((3, 4), "i8")

Sample = tuple[tuple[TensorType, ...], Callable[..., Any]]
"""Input types, and what builds the op from a builder and the inputs."""


def _unary(name: str, type: TensorType = IMAGE, **attributes: Any) -> Sample:
    return (type,), lambda b, x: getattr(b, name)(x, **attributes)


def _binary(name: str, type: TensorType = IMAGE, other: TensorType | None = None, **attributes: Any) -> Sample:
    return (type, other or type), lambda b, x, y: getattr(b, name)(x, y, **attributes)


def _to(type: TensorType, name: str, *inputs: TensorType, **attributes: Any) -> Sample:
    return inputs, lambda b, *values: getattr(b, name)(*values, out=type, **attributes)


def _keys(b: Builder, queries: Value, keys: Value) -> Value:
    return b.head_matmul(queries, keys, transpose_right=True)


def _recurrent(gates: int, directions: int, features: int = 3, hidden: int = 6) -> tuple[TensorType, ...]:
    """Weight, recurrence, bias and state of a recurrent layer for 2 sequences."""
    rows = gates * hidden
    return (
        TensorType((directions, rows, features)),
        TensorType((directions, rows, hidden)),
        TensorType((directions, 2 * rows)),
        TensorType((directions, 2, hidden)),
    )


_FLOAT_UNARY = [
    "relu", "sigmoid", "tanh", "hard_sigmoid", "hard_swish", "exp", "log", "sqrt", "abs",
    "neg", "floor", "ceil", "round", "softplus", "softmax", "log_softmax", "elu",
]  # fmt: skip
_FUNCTIONS = [
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "sign",
    "is_nan", "gelu", "mish", "selu", "softsign", "det",
]  # fmt: skip
_WORDS = BYTES.with_dtype("i16")
SQUARES = TensorType((2, 3, 3))
FLAGS = TensorType((3, 4), "bool")


def _indices(*rows: Any) -> Callable[[Any], Value]:
    return lambda b: b.weight(np.array(rows, np.int64), "indices")


def _indexed(name: str, indices: Callable[[Any], Value], *others: TensorType, **attributes: Any) -> Sample:
    """An op on rows, constant indices, and further operands."""
    return (ROWS, *others), lambda b, x, *more: getattr(b, name)(x, indices(b), *more, **attributes)


register_cpu_function("halve", lambda inputs, _, factors: inputs[0] * np.float32(factors[0]))

SAMPLES: dict[str, Sample] = {
    "customized": (
        (IMAGE,),
        lambda b, x: b.customized(x, sub_type="halve", output_shapes=[x.shape], f32_params=[0.5]),
    ),
    "weight": ((), lambda b: b.weight(np.arange(6, dtype=np.float32).reshape(2, 3), "w")),
    "conv": _to(
        TensorType((2, 6, 3, 3)),
        "conv",
        IMAGE,
        TensorType((6, 2, 3, 3)),
        TensorType((6,)),
        pads=(1, 1, 1, 0),
        strides=(2, 2),
        group=2,
    ),
    "deconv": _binary("deconv", other=TensorType((4, 3, 2, 2)), strides=(2, 2), output_pads=(1, 0)),
    "matmul": _to(TensorType((3, 7)), "matmul", ROWS, TensorType((7, 4)), TensorType((7,)), transpose_right=True),
    "weight_only_matmul": (
        (ROWS, TensorType((5, 2), "u8"), TensorType((5, 2)), TensorType((5, 2), "u8")),
        lambda b, *v: b.weight_only_matmul(*v, bits=4, group_size=2),
    ),
    "head_matmul": ((TensorType((2, 2, 3, 5)), TensorType((1, 4, 2, 5))), _keys),
    "scale": _binary("scale", other=CHANNEL),
    "batch_norm": ((IMAGE, *[CHANNEL] * 4), lambda b, *v: b.batch_norm(*v, epsilon=0.5)),
    "layer_norm": _to(ROWS, "layer_norm", ROWS, CHANNEL, CHANNEL, axis=1),
    "rms_norm": _to(ROWS, "rms_norm", ROWS, CHANNEL, axis=1, epsilon=0.5),
    "lrn": _unary("lrn", size=3, alpha=0.5),
    "max_pool": _unary("max_pool", kernel=(2, 3), strides=(2, 2), ceil_mode=True),
    "avg_pool": _unary("avg_pool", kernel=(3, 3), pads=(1, 1, 1, 1), count_include_pad=True),
    **{name: _unary(name) for name in _FLOAT_UNARY},
    "clip": _unary("clip", min=-0.5, max=6.0),
    "leaky_relu": _unary("leaky_relu", slope=0.125),
    "prelu": _binary("prelu", other=CHANNEL),
    **{name: _binary(name, other=TensorType((4, 1, 1))) for name in ("add", "sub", "mul", "div", "max", "min", "pow")},
    "muls_shift": _to(BYTES, "muls_shift", _WORDS, multiplier=77, rshift=7),
    "mul_shift": _to(BYTES, "mul_shift", BYTES, BYTES, rshift=7),
    "add_shift": _to(BYTES, "add_shift", BYTES, _WORDS, rshift=1),
    "sub_shift": _to(_WORDS, "sub_shift", BYTES, BYTES, rshift=1),
    "adds_shift": _to(BYTES.with_dtype("u8"), "adds_shift", BYTES, value=100, rshift=2),
    "mac_shift": _to(BYTES, "mac_shift", BYTES, BYTES, BYTES, multipliers=(3, -5, 90), rshift=5),
    "affine_sum": _to(BYTES, "affine_sum", BYTES, BYTES, multipliers=(3, -5), rshift=5, value=40),
    "round_rshift_by": _to(BYTES, "round_rshift_by", _WORDS, TensorType((1, 4, 1, 1), "i16")),
    "arith_shift": ((_WORDS, TensorType((1, 4, 1, 1), "i16")), lambda b, x, n: b.arith_shift(x, n, direction="left")),
    "round_rshift": _to(BYTES, "round_rshift", _WORDS, rshift=4),
    "lut": ((BYTES, TensorType((256,), "i16")), lambda b, x, table: b.lut(x, table)),
    "lut_softmax": ((BYTES, TensorType((256,))), lambda b, x, table: b.lut_softmax(x, table, axis=1)),
    "mins": _unary("mins", BYTES, value=0),
    "maxs": _unary("maxs", BYTES, value=-3),
    **{name: _binary(name, BYTES) for name in ("bit_and", "bit_or", "bit_xor")},
    "quantize": _to(QUANTIZED, "quantize", IMAGE),
    "dequantize": _unary("dequantize", QUANTIZED),
    "cast": _unary("cast", dtype="u8"),
    "reshape": _unary("reshape", QUANTIZED, shape=(8, 30)),
    "permute": _unary("permute", order=(0, 2, 3, 1)),
    "concat": ((IMAGE, IMAGE, IMAGE), lambda b, *v: b.concat(*v, axis=1)),
    "split": _unary("split", axis=1, sizes=(1, 3)),
    "to_bands": _unary("to_bands", TensorType((1, 4, 7, 6), "u8"), bands=4, rows=2, top=1, bottom=2, fill=200),
    "regroup_bands": _unary("regroup_bands", TensorType((4, 3, 2, 6), "i8"), height=7, rows=3, top=1, fill=-3),
    "quantize_bands": _to(_CUT, "quantize_bands", TensorType((1, 4, 7, 6)), bands=4, rows=2, top=1),
    "from_bands": _unary("from_bands", TensorType((3, 4, 3, 6)), height=7),
    "slice": _unary("slice", starts=(0, 3, 1, 0), ends=(2, -1, 5, 6), steps=(1, -2, 2, 1)),
    "pad": _unary("pad", pads=(0, 0, 0, 1, 2, 1, 0, 3), mode="reflect"),
    "upsample": _unary("upsample", scale=(2, 3)),
    "interleave": _unary("interleave", TensorType((2, 12, 5, 6)), scale=(2, 2), channels=2),
    "tile": _unary("tile", ROWS, reps=(2, 3)),
    "reduce": _unary("reduce", method="mean", axes=(2, 3)),
    "quantize_linear": (
        (IMAGE, CHANNEL, TensorType((4,), "i8")),
        lambda b, *v: b.quantize_linear(*v, dtype="i8"),
    ),
    "dequantize_linear": (
        (TensorType((3, 6), "u16"), TensorType((3, 2)), TensorType((3, 2), "u16")),
        lambda b, *v: b.dequantize_linear(*v, block_size=3),
    ),
    "resize": _unary("resize", sizes=(2, 4, 8, 5), scales=(1.0, 1.0, 1.6, 0.875), mode="cubic", antialias=True),
    "grid_sample": _binary("grid_sample", other=TensorType((2, 3, 7, 2)), mode="cubic", padding="reflection"),
    "nonzero": _unary("nonzero", ROWS),
    "non_max_suppression": _binary(
        "non_max_suppression", TensorType((2, 5, 4)), TensorType((2, 3, 5)), max_boxes=2, iou_threshold=0.4
    ),
    "packed": _binary("packed", TensorType((2, 3, 7)), TensorType((4, 7)), size=5, value=-1.0),
    "leading": _unary("leading", TensorType((2, 3, 7)), k=3),
    "best_box_rows": _binary(
        "best_box_rows", TensorType((2, 4, 5)), TensorType((2, 3, 5)), max_boxes=2, iou_threshold=0.4
    ),
    "best_boxes": _binary("best_boxes", TensorType((2, 4, 5)), TensorType((2, 3, 5)), max_boxes=2, iou_threshold=0.4),
    "roi_align": (
        (IMAGE,),
        lambda b, x: b.roi_align(
            x,
            b.weight(np.array([[0, 0, 4, 3], [1, 2, 6, 4.5], [3, 3, 3, 3]], np.float32), "rois"),
            b.weight(np.array([0, 1, 1]), "images"),
            size=(2, 3),
        ),
    ),
    "rnn": (
        (TensorType((5, 2, 3)), *_recurrent(1, 2), TensorType((5, 2))),
        lambda b, *v: b.rnn(*v, direction="bidirectional", clip=1.0),
    ),
    "gru": (
        (TensorType((5, 2, 3)), *_recurrent(3, 1)),
        lambda b, *v: b.gru(*v, activations=("hard_sigmoid", "relu"), linear_before_reset=True),
    ),
    "lstm": (
        (TensorType((5, 2, 3)), *_recurrent(4, 1), TensorType((1, 2, 6)), TensorType((1, 18))),
        lambda b, *v: b.lstm(*v, direction="reverse", input_forget=True),
    ),
    "recurrence": (
        tuple(map(TensorType, ((5, 2, 24), (24, 6), (2, 6), (2, 6)))),
        lambda b, *v: b.recurrence(*v, cell="lstm", backwards=True),
    ),
    "einsum": _binary("einsum", other=TensorType((6, 7)), equation="nchw,wk->nkc"),
    "dft": _unary("dft", TensorType((2, 8, 1)), axis=1, length=6, onesided=True),
    "arg": _unary("arg", method="max", axis=1),
    **{name: _unary(name, SQUARES) for name in _FUNCTIONS},
    "is_inf": _unary("is_inf", negative=False),
    "bit_cast": _unary("bit_cast", dtype="i32"),
    "swish": _unary("swish", alpha=1.5),
    "celu": _unary("celu", alpha=2.0),
    "thresholded_relu": _unary("thresholded_relu", alpha=0.5),
    "threshold": _unary("threshold", threshold=0.5),
    "shrink": _unary("shrink", threshold=0.25, bias=0.5),
    "hardmax": _unary("hardmax", axis=1),
    "mod": _binary("mod", fmod=True),
    "compare": _binary("compare", method="less_equal"),
    "where": ((FLAGS, ROWS, CHANNEL), lambda b, *v: b.where(*v)),
    "bit_not": _unary("bit_not", BYTES),
    "bit_shift": _binary("bit_shift", BYTES.with_dtype("u8"), direction="left"),
    "gather": _indexed("gather", _indices([0, -1], [2, 1]), axis=1),
    "gather_elements": _indexed("gather_elements", _indices([0, -1], [2, 1]), axis=1),
    "gather_nd": _indexed("gather_nd", _indices([0, -1], [2, 1])),
    "one_hot": ((CHANNEL.with_dtype("i64"), TensorType((2,))), lambda b, *v: b.one_hot(*v, depth=3, axis=1)),
    "reverse_sequence": _indexed("reverse_sequence", _indices(2, 1, 3, 0)),
    "trilu": _unary("trilu", SQUARES, k=1, upper=False),
    "scatter_elements": _indexed("scatter_elements", _indices([0], [2]), TensorType((2, 1)), axis=1, reduction="max"),
    "scatter_nd": _indexed("scatter_nd", _indices([0], [2]), TensorType((2, 4)), reduction="add"),
    "cumulate": _unary("cumulate", method="sum", axis=1, exclusive=True, reverse=True),
    "top_k": _unary("top_k", k=3, axis=2),
    "l2_normalize": _unary("l2_normalize", axes=(1,), epsilon=0.25),
    "mean_variance_norm": _unary("mean_variance_norm", axes=(2, 3), epsilon=0.25),
    "max_pool_mask": _unary("max_pool_mask", kernel=(2, 3), strides=(2, 2), pads=(1, 0, 0, 0), ceil_mode=True),
    "max_unpool": (
        (IMAGE,),
        lambda b, x: b.max_unpool(b.max_pool(x, kernel=(2, 2)), b.max_pool_mask(x, kernel=(2, 2)), size=(5, 6)),
    ),
    "roi_pool": (
        (IMAGE,),
        lambda b, x: b.roi_pool(x, b.weight(np.array([[1, 0, 1, 3, 4]], np.float32), "rois"), size=(2, 3)),
    ),
    "ps_roi_pool": (
        (IMAGE,),
        lambda b, x: b.ps_roi_pool(x, b.weight(np.array([[1, 0, 1, 3, 4]], np.float32), "rois"), group=2),
    ),
    "proposal": (
        (TensorType((2, 4, 5, 6)), TensorType((2, 8, 5, 6)), TensorType((1, 3))),
        lambda b, *v: b.proposal(*v, anchors=(0.0, 0.0, 15.0, 15.0, -8.0, -8.0, 23.0, 23.0), post_nms_count=4),
    ),
    "detection_output": (
        (TensorType((2, 12)), TensorType((2, 9)), TensorType((1, 2, 12))),
        lambda b, *v: b.detection_output(*v, num_classes=3, code_type="center_size", keep_top_k=4),
    ),
}


def build(name: str) -> Module:
    """A verified module whose function holds the sample of one op, and nothing else but weights."""
    types, make = SAMPLES[name]
    builder = Builder.new("net")
    inputs = [builder.input(f"x{i}", type) for i, type in enumerate(types)]
    with builder.at(f"layer of {name}"):
        made = make(builder, *inputs)
    values: Sequence[Value] = made if isinstance(made, tuple) else (made,)
    module = builder.outputs(values, [f"y{i}" for i in range(len(values))])
    verify_module(module)
    return module


def random_array(rng: np.random.Generator, type: TensorType) -> np.ndarray:
    """Positive floats (every op accepts them), or integers over the whole range of the element type."""
    if type.is_float:
        return rng.uniform(0.1, 3, type.shape).astype(type.numpy)
    if type.dtype == "bool":
        return rng.integers(0, 2, type.shape).astype(bool)
    limits = np.iinfo(type.numpy)
    return rng.integers(limits.min, limits.max, type.shape, type.numpy, endpoint=True)


def evaluate(op: str, *arrays: np.ndarray, out: TensorType | None = None, **attributes: Any) -> Any:
    """Result(s) of one verified op on arrays, through the interpreter."""
    builder = Builder.new("net")
    inputs = [builder.input(f"x{i}", type_of_array(array)) for i, array in enumerate(arrays)]
    made = builder.create(op, inputs, attributes, None if out is None else [out]).results
    module = builder.outputs(made, [f"y{i}" for i in range(len(made))])
    verify_module(module)
    results = run_module(module, {f"x{i}": array for i, array in enumerate(arrays)})
    return results["y0"] if len(results) == 1 else tuple(results.values())


def run_onnx(op: str, *arrays: np.ndarray, opset: int = 18, outputs: int = 1, **attributes: Any) -> Any:
    """Result(s) of one ONNX node in ONNX Runtime."""
    names = [f"x{i}" for i in range(len(arrays))]
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, **attributes)],
        "g",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays)
        ],
        [ValueInfoProto(name=name) for name in results],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    found = session.run(None, dict(zip(names, arrays)))
    return found[0] if outputs == 1 else tuple(found)


def onnx_pads(pads: Sequence[int]) -> list[int]:
    """(top, bottom, left, right) in ONNX order."""
    top, bottom, left, right = pads
    return [top, left, bottom, right]


__all__ = ["SAMPLES", "build", "evaluate", "onnx_pads", "random_array", "run_onnx"]
