"""What every operator computes, written once more from bmlang.md as plain loops over elements.

Integers are Python integers and fractions, floats are rounded to float32 after each operation of the text. Nothing of
the package is used but its names of types and parameters.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from oracle_conveniences import CONVENIENT
from oracle_moves import arranged, interleaved, joined, pieces, reshaped
from oracle_numbers import away, broadcast, build, f32, item, rrs, sat, to_type

from bmcompiler.bmlang import ActiveType, DataType, PoolType, ReduceMethodType, SelectType
from bmcompiler.frontends.bmlang.numbers import numpy_type

Index = tuple[int, ...]
Args = dict[str, Any]
INT32 = DataType.INT32


# -- two operands ------------------------------------------------------------------------------------------------------
TWO = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "max": max, "min": min}
SCALARS = {"adds": "add", "subs": "sub", "rsubs": "sub", "muls": "mul", "divs": "div", "maxs": "max", "mins": "min"}
RELATIONS = {
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
}
BITS = {"bit_and": operator.and_, "bit_or": operator.or_, "bit_xor": operator.xor}


def computed(name: str, a: Any, b: Any, kind: DataType, out: DataType) -> Any:
    """a NAME b in the type of the result: INT32 by way of FLOAT32, other integers exact and saturated."""
    if kind == DataType.FLOAT32:
        return f32(TWO[name], a, b)
    if kind == INT32:
        return sat(away(f32(TWO[name], np.float32(a), np.float32(b))), INT32)
    return sat(TWO[name](a, b), out)


def operands(args: Args) -> tuple[Any, Any, DataType]:
    """Both operands in the order of the call, a scalar as an array of one element, and their kind."""
    found, kind = [], None
    rank = next(value.ndim for value in args.values() if isinstance(value, np.ndarray))
    for value in args.values():
        if isinstance(value, np.ndarray):
            found.append(value)
            kind = kind or value.dtype
        elif hasattr(value, "dtype"):
            found.append(np.full((1,) * rank, value.value, numpy_type(value.dtype)))
    a, b = found[:2]
    kind = {"f": DataType.FLOAT32}.get(kind.kind, INT32 if kind == np.int32 else DataType.INT8)
    return a, b, kind


def two(name: str, args: Args, out: DataType) -> Any:
    a, b, kind = operands(args)
    base = name.removesuffix("_shift")
    base = SCALARS.get(base, base)
    shape = broadcast(a, b)
    if name.endswith("_shift"):
        return build(shape, out, lambda i: sat(rrs(TWO[base](item(a, i), item(b, i)), args["shift"]), out))
    if base.removesuffix("s") in BITS:
        return build(shape, out, lambda i: BITS[base.removesuffix("s")](item(a, i), item(b, i)))
    if base.removesuffix("s") in RELATIONS:
        return build(shape, out, lambda i: int(RELATIONS[base.removesuffix("s")](item(a, i), item(b, i))))
    return build(shape, out, lambda i: computed(base, item(a, i), item(b, i), kind, out))


def strided(name: str, args: Args, out: DataType) -> Any:
    a = args["tensor_i0"] if "tensor_i0" in args else args["tensor_i"]
    b = args.get("tensor_i1", a)
    full, steps, starts = broadcast(a, b), args["stride"], args.get("offset", (0, 0, 0, 0))
    shape = [1 if size == 1 else -(-(size - start) // step) for size, step, start in zip(full, steps, starts)]
    base = name.removeprefix("stride_").removesuffix("_offset")
    kind = DataType.FLOAT32 if a.dtype.kind == "f" else DataType.INT8

    def at(array: Any, index: Index) -> Any:
        return item(array, tuple(start + i * step for i, step, start in zip(index, steps, starts)))

    if base == "cpy":
        return build(shape, out, lambda i: at(a, i))
    return build(shape, out, lambda i: computed(base, at(a, i), at(b, i), kind, out))


# -- one operand -------------------------------------------------------------------------------------------------------
REAL: dict[str, Callable[[float], float]] = {
    "ACTIVE_TANH": math.tanh,
    "ACTIVE_SIGMOID": lambda x: 1 / (1 + math.exp(-x)),
    "ACTIVE_RELU": lambda x: max(x, 0.0),
    "ACTIVE_EXP": math.exp,
    "ACTIVE_ELU": lambda x: x if x > 0 else math.expm1(x),
    "ACTIVE_SQRT": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "ACTIVE_SQUARE": lambda x: x * x,
    "ACTIVE_RSQRT": lambda x: 1 / math.sqrt(x) if x > 0 else math.nan,
    "ACTIVE_ABSVAL": abs,
    "ACTIVE_LN": lambda x: math.log(x) if x > 0 else math.nan,
    "ceil": math.ceil,
    "floor": math.floor,
    "sin": math.sin,
    "cos": math.cos,
}


def one(name: str, args: Args, out: DataType) -> Any:
    x = args["tensor_i"]
    if name == "active":
        name = ActiveType(args["active_type"]).name
    if name == "cast":
        return build(x.shape, out, lambda i: to_type(item(x, i), out))
    if name == "copy":
        return build(x.shape, out, lambda i: item(x, i))
    if name == "clamp":
        low, high = args["min"].value, args["max"].value
        if x.dtype == np.int32:
            return build(x.shape, out, lambda i: away(min(max(np.float32(item(x, i)), low), high)))
        return build(x.shape, out, lambda i: min(max(item(x, i), low), high))
    if x.dtype.kind == "f":
        return build(x.shape, out, lambda i: REAL[name](float(item(x, i))))
    return build(x.shape, out, lambda i: sat(int(REAL[name](item(x, i))), out))


def shifted(name: str, args: Args, out: DataType) -> Any:
    x, num, _ = operands(args)
    bits = out.bits

    def element(i: Index) -> int:
        value, count = item(x, i), item(num, i)
        if name.startswith("round"):
            return sat(rrs(value, max(count, 0)), out)
        left = count if "lshift" in name else -count
        moved = (value << left if left >= 0 else value >> -left) % (1 << bits)
        return moved - (1 << bits) if out.is_signed and moved >> (bits - 1) else moved

    return build(x.shape, out, element)


# -- selecting ---------------------------------------------------------------------------------------------------------
def chosen(name: str, args: Args, out: DataType) -> Any:
    if name == "condition_select":
        cond, c, d = args["tensor_cond"], args["tensor_sel0"], args["tensor_sel1"]
        return build(cond.shape, out, lambda i: item(c if item(cond, i) > 0 else d, i))
    a, b, c, d = (args[f"tensor_{letter}"] for letter in "abcd")
    holds = operator.gt if args["select_type"] == SelectType.GREATER_THAN else operator.ge
    return build(broadcast(a, b), out, lambda i: item(c if holds(item(a, i), item(b, i)) else d, i))


def looked_up(args: Args, out: DataType) -> Any:
    x, table = args["tensor_i"], args["table"]
    return build(x.shape, out, lambda i: table[int(x[i]) & 0xFF])


def listed(name: str, args: Args, out: DataType) -> Any:
    x = args["tensor_i"]
    places = list(product(*map(range, x.shape)))
    if name == "where":
        return np.array([i for i in places if x[i] != 0], numpy_type(out)).reshape(-1, x.ndim)
    if name == "masked_select":
        return np.array([x[i] for i in places if item(args["mask"], i) != 0], numpy_type(out))
    index, dim = args["index"], args["dim"]
    shape = [len(index) if n == dim else size for n, size in enumerate(x.shape)]
    return build(shape, out, lambda i: x[(*i[:dim], int(index[i[dim]]), *i[dim + 1 :])])


# -- windows and reductions --------------------------------------------------------------------------------------------
def mean(total: Any, count: int, out: DataType) -> Any:
    """Of integers exact, halves away from zero."""
    if out == DataType.FLOAT32:
        return total / count
    exact = Fraction(total, count)
    return sat(int(math.copysign(1, exact) * math.floor(abs(exact) + Fraction(1, 2))), out)


def pooled(args: Args, out: DataType) -> Any:
    x, p = args["tensor_i"], args["pool_param"]
    n, c, h, w = x.shape
    sides = [
        (h, p.kernel_h, p.stride_h, p.pad_h, p.pad_h + p.pad_h_offset),
        (w, p.kernel_w, p.stride_w, p.pad_w, p.pad_w + p.pad_w_offset),
    ]
    if p.is_global_pooling:
        sides = [(h, h, 1, 0, 0), (w, w, 1, 0, 0)]
    counts = []
    for size, kernel, stride, before, after in sides:
        steps = (size + before + after - kernel) / stride
        count = (math.ceil(steps) if p.is_ceil_mode else math.floor(steps)) + 1
        if p.ensure_pool_image and (count - 1) * stride >= size + before:
            count -= 1
        counts.append(count)

    def element(i: Index) -> Any:
        inside, padding = [], 0
        windows = []
        for place, (_, kernel, stride, before, _) in zip(i[2:], sides):
            windows.append(range(place * stride - before, place * stride - before + kernel))
        for y, z in product(*windows):
            if 0 <= y < h and 0 <= z < w:
                inside.append(item(x, (i[0], i[1], y, z)))
            elif y < h + sides[0][4] and z < w + sides[1][4]:
                padding += 1
        if p.pooling_type == PoolType.MAX:
            return max(inside)
        total = sum(map(float, inside)) if out == DataType.FLOAT32 else sum(inside)
        return mean(total, len(inside) + (padding if p.is_ave_count_zero_pad else 0), out)

    return build((n, c, *counts), out, element)


def upsampled(args: Args, out: DataType) -> Any:
    x, scale = args["tensor_i"], args["scale"]
    n, c, h, w = x.shape
    return build((n, c, h * scale, w * scale), out, lambda i: x[i[0], i[1], i[2] // scale, i[3] // scale])


def reduced(args: Args, out: DataType) -> Any:
    x, p = args["tensor_i"], args["reduce_param"]
    axes = p.axis_list[: len(p.axis_list) if p.axis_num is None else p.axis_num]
    shape = [1 if n in axes else size for n, size in enumerate(x.shape)]

    def element(i: Index) -> Any:
        ranges = [range(size) if n in axes else (i[n],) for n, size in enumerate(x.shape)]
        values = [item(x, place) for place in product(*ranges)]
        values = [float(v) for v in values] if out == DataType.FLOAT32 else values
        if p.method == ReduceMethodType.REDUCE_MEAN:
            return mean(sum(values), len(values), out)
        total = {
            ReduceMethodType.REDUCE_SUM: sum,
            ReduceMethodType.REDUCE_MAX: max,
            ReduceMethodType.REDUCE_MIN: min,
            ReduceMethodType.REDUCE_PROD: math.prod,
        }[p.method](values)
        return total if out == DataType.FLOAT32 else sat(total, out)

    found = build(shape, out, element)
    return found if p.keep_dims else found.reshape([s for n, s in enumerate(x.shape) if n not in axes])


# -- order -------------------------------------------------------------------------------------------------------------
def ordered(name: str, args: Args, outs: Sequence[DataType]) -> list[Any]:
    """Along an axis; equal elements in their order."""
    x = args["tensor_i"]
    if name == "arg":
        axis, best = args["arg_param"].axis % x.ndim, args["arg_param"].method == 0
    elif name == "topk":
        axis, best = args["param"].axis % x.ndim, args["param"].descending
    else:
        axis, best = args["dim"] % x.ndim, args["descending"]
    length = {"arg": 1, "topk": args["param"].k if name == "topk" else 0}.get(name, x.shape[axis])
    shape = [length if n == axis else size for n, size in enumerate(x.shape)]

    def place(i: Index) -> Index:
        row = [item(x, (*i[:axis], n, *i[axis + 1 :])) for n in range(x.shape[axis])]
        order = sorted(range(len(row)), key=lambda n: -float(row[n]) if best else float(row[n]))
        return (*i[:axis], order[i[axis]], *i[axis + 1 :])

    indices = build(shape, outs[-1], lambda i: place(i)[axis])
    return [indices] if name in ("arg", "argsort") else [build(shape, outs[0], lambda i: x[place(i)]), indices]


def suppressed(name: str, args: Args, out: DataType) -> Any:
    boxes, scores = args["boxes"].astype(float), args["scores"].astype(float)
    overlap = (args["threshold"] if name == "nms" else args["iou_threshold"]).value
    order = sorted(range(len(scores)), key=lambda n: -scores[n])
    if name == "nms_v2":
        order = [n for n in order if scores[n] >= args["score_threshold"].value]
    kept: list[int] = []
    for n in order:
        if all(iou(boxes[n], boxes[k]) <= overlap for k in kept):
            kept.append(n)
    return np.array(kept[: args.get("max_output_size", len(kept))], numpy_type(out))


def iou(a: Any, b: Any) -> float:
    def span(box: Any, axis: int) -> tuple[float, float]:
        return min(box[axis], box[axis + 2]), max(box[axis], box[axis + 2])

    common, areas = 1.0, [1.0, 1.0]
    for axis in (0, 1):
        (low, high), (start, end) = span(a, axis), span(b, axis)
        common *= max(min(high, end) - max(low, start), 0)
        areas = [areas[0] * (high - low), areas[1] * (end - start)]
    union = sum(areas) - common
    return common / union if union else 0.0


def expected(name: str, args: Args, outs: Sequence[DataType]) -> list[Any]:
    """The results of an operator; `args` by parameter name, tensors as arrays."""
    import oracle_numbers

    out = outs[0]
    if name in CONVENIENT:
        return [CONVENIENT[name](args, out)]
    if name in ("conv", "deconv", "matrix_mul"):
        return [getattr(oracle_numbers, name)(args, out)]
    if name == "split":
        return pieces(args, outs)
    if name in ("arg", "topk", "sort", "argsort"):
        return ordered(name, args, outs)
    if name == "customed_ops":
        return [np.clip(255 - args["tensor_i"][0].astype(float), 0, 100).astype(numpy_type(out))]
    simple: dict[str, Callable[[], Any]] = {
        "interleave": lambda: interleaved(args, out),
        "concat": lambda: joined(args, out),
        "lut": lambda: looked_up(args, out),
        "pool": lambda: pooled(args, out),
        "upsample": lambda: upsampled(args, out),
        "reduce": lambda: reduced(args, out),
    }
    if name in simple:
        return [simple[name]()]
    for names, function in _FAMILIES:
        if name in names:
            return [function(name, args, out)]
    return [strided(name, args, out) if name.startswith("stride") else two(name, args, out)]


_FAMILIES: tuple[tuple[set[str], Callable[[str, Args, DataType], Any]], ...] = (
    ({"active", "ceil", "floor", "sin", "cos", "clamp", "cast", "copy"}, one),
    ({"arith_lshift", "arith_lshifts", "arith_rshift", "arith_rshifts", "round_rshift", "round_rshifts"}, shifted),
    ({"condition_select", "select"}, chosen),
    ({"where", "masked_select", "index_select"}, listed),
    ({"nms", "nms_v2"}, suppressed),
    (
        {"squeeze", "expand_dims", "reshape", "reshape_v2", "shape_fetch", "number_like", "sequence_gen"},
        reshaped,
    ),
    (
        {
            *("permute", "tile", "tile_v2", "broadcast", "extract", "extract_v2", "pad", "pad_v2"),
            *("space_to_batch", "space_to_batch_v2", "batch_to_space", "batch_to_space_v2"),
        },
        arranged,
    ),
)
