"""Arguments for every operator: small tensors of chosen element types, random and extreme values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from bmcompiler import bmlang
from bmcompiler.bmlang import (
    ActiveType,
    ArgParam,
    ConvParam,
    DataType,
    ExpandDimsParam,
    LayerNormParam,
    MatrixMulParam,
    PoolParam,
    PoolType,
    QCalMode,
    ReduceParam,
    ResizeMode,
    ResizeParam,
    Scalar,
    SelectType,
    ShapeFetchParam,
    Tensor,
    TopkParam,
    UserCpuParam,
    register_cpu_function,
)
from bmcompiler.frontends.bmlang.numbers import has_reals, numpy_type
from bmcompiler.frontends.bmlang.rows import Row
from bmcompiler.frontends.bmlang.table import CONVENIENCES, TABLE
from bmcompiler.frontends.bmlang.typings import ALL

ROWS = {**TABLE, **CONVENIENCES}
NAMES = [name for name in ROWS if name != "constdata"]
"""Operators that compute."""
SHAPE = (2, 3, 4, 6)
MODES = {
    "low": QCalMode.LowPrecisionSymmetric,
    "high": QCalMode.HighPrecisionSymmetric,
    "asymmetric": QCalMode.HighPrecisionAsymmetric,
}
Types = tuple[DataType, ...]
Case = tuple[str, Types, Types]


@register_cpu_function("bmlang_sample")
def _negative(arrays: list[Any], ints: Any, floats: Any) -> Any:
    return (255 - arrays[0].astype(np.float64)).clip(0, 100).astype(arrays[0].dtype)


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: DataType) -> Any:
    """Random numbers of a type, the extreme ones among them."""
    kind = numpy_type(dtype)
    if has_reals(kind):
        return (rng.normal(0, 2, shape)).astype(kind)
    limits = np.iinfo(kind)
    bound = 1 << 20 if dtype == DataType.INT32 else limits.max
    array = rng.integers(max(limits.min, -bound), bound, shape, dtype=np.int64, endpoint=True).astype(kind)
    flat = array.reshape(-1)
    flat[rng.integers(0, flat.size, max(flat.size // 6, 1))] = rng.choice([max(limits.min, -bound), bound, 0, 1])
    return array


def constant(array: Any, dtype: DataType = DataType.INT32) -> Tensor:
    tensor = Tensor(dtype=dtype, data=array)
    tensor.constant = True
    return tensor


def variants(row: Row) -> tuple[str, ...]:
    """Modes of integer products, functions of `active`; else one without a name."""
    if row.name == "active":
        return tuple(kind.name for kind in ActiveType if kind != ActiveType.UNKNOWN_ACTIVE_TYPE)
    return tuple(MODES) if row.name in PRODUCTS else ("",)


def type_counts(row: Row) -> tuple[int, ...]:
    """How many tensors and scalars a call may have."""
    if row.name in PRODUCTS:
        return (2, 3)
    if row.name == "layer_norm":
        return (1, 2, 3)
    return (2,) if row.name == "concat" else (1,) if row.name == "customed_ops" else (len(row.typed),)


def out_count(row: Row) -> int:
    return 2 if row.name == "split" else len(row.outputs)


def combinations(row: Row, of: Types = ALL) -> Iterator[tuple[Types, Types]]:
    """Every choice of element types of inputs and outputs."""
    for count in type_counts(row):
        for dtypes in product(of, repeat=count + out_count(row)):
            yield dtypes[:count], dtypes[count:]


_FIXED: dict[str, Any] = {
    "stride": (1, 1, 2, 3),
    "offset": (0, 1, 1, 2),
    "order": (1, 3, 2, 0),
    "end": (2, 3, 4, 5),
    "start": (0, 0, 1, 0),
    "axis": 2,
    "step": 2,
    "num": 2,
    "size": (),
    "dim": 1,
    "shift": 3,
    "scale": 2,
    "max_output_size": 4,
    "reshape_param": (0, -1, 4),
    "pad_mode": 0,
    "stable": False,
    "descending": False,
    "param_size": 0,
    "transpose_left": False,
    "transpose_right": False,
    "select_type": SelectType.GREATER_EQUAL,
    "pool_param": PoolParam(2, 2, 1, 1, 0, 0, 3, 3, PoolType.AVE),
    "reduce_param": ReduceParam(axis_list=(2, 3)),
    "arg_param": ArgParam(3, 0),
    "block_size": (2, 3),
    "crop_size": (1, 0, 1, 1),
}
_OF_OPERATOR: dict[tuple[str, str], Any] = {
    ("tile", "reps"): (2, 1, 1, 2),
    ("broadcast", "times"): (1, 2, 2, 1),
    ("extract", "stride"): (1, 2, 1, 2),
    ("pad", "paddings"): (0, 0, 0, 0, 1, 0, 2, 1),
    ("space_to_batch", "pad"): (1, 1, 2, 1),
    ("topk", "param"): TopkParam(3, 3),
    ("expand_dims", "param"): ExpandDimsParam(1, 2),
    ("shape_fetch", "param"): ShapeFetchParam(1, 4, 2),
    ("squeeze", "axis"): (0,),
    ("resize", "size"): (8, 3),
    ("resize", "param"): ResizeParam(ResizeMode.LINEAR),
    ("layer_norm", "param"): LayerNormParam(2, 1e-3),
    ("customed_ops", "param"): UserCpuParam("bmlang_sample", (SHAPE,)),
}
_NUMBERS: dict[tuple[str, str], Any] = {
    ("tile_v2", "reps"): (1, 2, 1, 2),
    ("extract_v2", "start"): (0, 1, 1, 0),
    ("extract_v2", "end"): (2, 3, 4, 5),
    ("extract_v2", "stride"): (1, 1, 2, 2),
    ("pad_v2", "paddings"): (1, 0, 0, 0, 1, 0, 0, 2),
    ("space_to_batch_v2", "block_size"): (2, 3),
    ("space_to_batch_v2", "pad"): (1, 1, 2, 1),
    ("batch_to_space_v2", "block_size"): (2, 1),
    ("batch_to_space_v2", "crop_size"): (1, 0, 1, 1),
    ("reshape_v2", "shape_info"): (0, -1, 4),
    ("sequence_gen", "shape_tensor"): (2, 3, 2),
}
"""Tensors of parameters."""
_SHAPES: dict[tuple[str, str], tuple[int, ...]] = {
    ("batch_to_space", "tensor_i"): (6, 3, 4, 6),
    ("squeeze", "tensor_i"): (1, 3, 4, 6),
    ("nms", "boxes"): (6, 4),
    ("nms", "scores"): (6,),
    ("nms_v2", "boxes"): (6, 4),
    ("nms_v2", "scores"): (6,),
    ("lut", "table"): (256,),
    ("index_select", "index"): (4,),
    ("masked_select", "mask"): (1, 3, 4, 6),
}
PRODUCTS = ("conv", "deconv", "matrix_mul", "batch_matmul")
WITH_WEIGHTS = {
    "conv": ((2, 3, 5, 6), (4, 3, 3, 2), (1, 4, 1, 1)),
    "deconv": ((2, 3, 5, 6), (3, 4, 3, 2), (1, 4, 1, 1)),
    "matrix_mul": ((5, 7), (7, 4), (1, 4)),
    "batch_matmul": ((2, 3, 5, 7), (7, 4), (1, 4)),
    "layer_norm": (SHAPE, (4, 6), (4, 6)),
}


def arguments(row: Row, ins: Types, outs: Types, variant: str, rng: np.random.Generator) -> dict[str, Any]:
    """Arguments by name, without the outputs."""
    types = iter(ins)
    given: dict[str, Any] = {}
    for parameter in row.parameters:
        key = (row.name, parameter.name)
        if parameter.is_output:
            continue
        if parameter.kind == "Ts":
            rest = list(types)
            shapes = WITH_WEIGHTS.get(row.name, (SHAPE,) * len(rest))
            given[parameter.name] = [_tensor(rng, shape, d) for shape, d in zip(shapes, rest)]
            for tensor in given[parameter.name][1:] if row.name in WITH_WEIGHTS else ():
                tensor.constant = True
        elif parameter.kind == "T":
            given[parameter.name] = _operand(row, key, next(types), rng)
        elif parameter.kind == "S":
            given[parameter.name] = _scalar(row, parameter.name, next(types), rng)
        elif parameter.kind in ("ConvParam", "MatrixMulParam"):
            given[parameter.name] = _product_param(row, variant, ins, outs)
        elif row.name == "active":
            given[parameter.name] = ActiveType[variant]
        else:
            given[parameter.name] = _OF_OPERATOR.get(key, _FIXED.get(parameter.name))
    return given


def _tensor(rng: np.random.Generator, shape: tuple[int, ...], dtype: DataType) -> Tensor:
    return Tensor(data=values(rng, shape, dtype))


def _operand(row: Row, key: tuple[str, str], dtype: DataType, rng: np.random.Generator) -> Tensor:
    if key in _NUMBERS:
        return constant(np.abs(_NUMBERS[key]) if not dtype.is_signed else np.array(_NUMBERS[key]), dtype)
    shape = _SHAPES.get(key, SHAPE)
    array = values(rng, shape, dtype)
    if key[1] == "tensor_num":
        return Tensor(data=rng.integers(-3, 12, (1, 3, 1, 6)).astype(numpy_type(dtype)))
    if key == ("index_select", "index"):
        return constant(np.array((2, 0, 1, 1)), dtype)
    if key[1] == "table":
        return constant(array, dtype)
    if key[1] in ("mask", "tensor_cond") or row.name == "where":
        array = (array * (rng.random(shape) > 0.5)).astype(array.dtype)
    if key[1] == "boxes" and has_reals(array.dtype):
        array = np.abs(array)
        array[:, 2:] += array[:, :2]
    return Tensor(data=array)


def _scalar(row: Row, name: str, dtype: DataType, rng: np.random.Generator) -> Scalar:
    if name in ("scalar_num", "tensor_num"):
        return Scalar(3, dtype)
    if name in ("min", "max"):
        return Scalar(5 if name == "min" else 100, dtype)
    if name == "pad_val":
        return Scalar(3, dtype)
    if "threshold" in name:
        return Scalar(0.5 if dtype == DataType.FLOAT32 else 1, dtype)
    return Scalar(values(rng, (1,), dtype)[0], dtype)


def _product_param(row: Row, variant: str, ins: Types, outs: Types) -> Any:
    mode = {"scale": 0.0123, "mode": MODES[variant]}
    if variant == "asymmetric" and ins[0].is_integer:
        low = [0 if not d.is_signed or not d.is_integer else -1 for d in (ins[0], ins[1], outs[0])]
        mode |= dict(
            zip(("left_zero_point", "right_zero_point", "output_zero_point"), (3 + low[0], 5 + 9 * low[1], 7 + low[2]))
        )
    if "matmul" in row.name or row.name == "matrix_mul":
        return MatrixMulParam(**mode)
    return ConvParam(1, 1, 1, 1, 0, 1, 2, 1, 1, **mode)


def call(name: str, given: dict[str, Any], outs: Types) -> tuple[Tensor, ...]:
    """Call an operator with outputs of given types."""
    row = ROWS[name]
    made = [Tensor(dtype=dtype) for dtype in outs]
    named: dict[str, Any] = dict(given)
    if row.outputs[0].kind == "Os":
        named[row.outputs[0].name] = made
    else:
        named |= {parameter.name: out for parameter, out in zip(row.outputs, made)}
    function: Callable[..., Any] = getattr(bmlang, name)
    function(**named)
    return tuple(made)


def given_to(name: str, chosen: Sequence[Case], seed: int = 0) -> list[dict[str, Any]]:
    """Arguments of each call, drawn by its number from a seed on."""
    return [
        arguments(ROWS[name], ins, outs, variant, np.random.default_rng(seed + number))
        for number, (variant, ins, outs) in enumerate(chosen)
    ]


def called(name: str, given: Sequence[dict[str, Any]], chosen: Sequence[Case]) -> list[tuple[Tensor, ...]]:
    """What the calls give inside a program; a sequence is a constant by itself, which needs an input beside it."""
    made = [call(name, one, outs) for one, (_, _, outs) in zip(given, chosen)]
    if name == "sequence_gen":
        return [(bmlang.add(one, Tensor(data=one.get_data())),) for (one,) in made]
    return made
