"""Numbers of bmlang.md 2, and the quantized products of its section 3, in Python integers and single floats."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from bmcompiler.bmlang import DataType, QCalMode
from bmcompiler.frontends.bmlang.numbers import numpy_type

Index = tuple[int, ...]


def build(shape: Sequence[int], dtype: DataType, element: Callable[[Index], Any]) -> Any:
    """An array, element by element."""
    out = np.zeros(tuple(shape), numpy_type(dtype))
    for index in product(*map(range, shape)):
        out[index] = element(index)
    return out


def item(array: Any, index: Index) -> Any:
    """An element; axes of size 1 repeat. Integers as Python integers."""
    found = array[tuple(0 if size == 1 else i for i, size in zip(index, array.shape))]
    return int(found) if array.dtype.kind in "iu" else np.float32(found)


def broadcast(a: Any, b: Any) -> Index:
    return tuple(max(x, y) if min(x, y) else 0 for x, y in zip(a.shape, b.shape))


def sat(value: int, dtype: DataType) -> int:
    limits = np.iinfo(numpy_type(dtype))
    return min(max(value, int(limits.min)), int(limits.max))


def rrs(value: int, shift: int) -> int:
    return ((value >> (shift - 1)) + 1) >> 1 if shift > 0 else value


def f32(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """One operation in float32."""
    with np.errstate(all="ignore"):
        return np.float32(function(np.float32(a), np.float32(b)))


def away(value: Any) -> int:
    """Nearest integer, halves away from zero; NaN is 0, infinities are beyond every type."""
    value = float(value)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return 1 << 40 if value > 0 else -(1 << 40)
    exact = abs(Fraction(value))
    return int(math.copysign(math.floor(exact + Fraction(1, 2)), value))


def to_type(value: Any, dtype: DataType) -> Any:
    if dtype == DataType.FLOAT32:
        return np.float32(value)
    return sat(away(value) if isinstance(value, np.floating) else int(value), dtype)


# -- products (bmlang.md 3) --------------------------------------------------------------------------------------------
def shift_of(scale: float, floor: bool) -> int:
    """ceil or floor of log2(1 / scale), by exact powers of two; 0 for a scale above 1."""
    s = Fraction(float(np.float32(scale)))
    if s > 1:
        return 0
    k = 0
    while Fraction(1, 1 << k) > s:  # the least k with 2**-k <= s
        k += 1
    return k - 1 if floor and Fraction(1, 1 << k) != s else k


def rescaled(total: int, crossed: int, bias: Any, bias2: Any, p: Any, conv: bool, out: DataType) -> int:
    """One element from its exact sums: `total` of in * w, `crossed` of in * zp_r; `bias2` for the asymmetric mode."""
    s = np.float32(p.scale)
    k = shift_of(p.scale, conv and p.mode == QCalMode.HighPrecisionAsymmetric)
    r = np.float32(s * np.float32(2.0**k))
    if p.mode == QCalMode.LowPrecisionSymmetric:
        y = sat(rrs(total + int(bias), k), out)
        return y if r == 1 else sat((y * math.trunc(float(r) * 128) + 64) >> 7, out)
    if p.mode == QCalMode.HighPrecisionSymmetric:
        wide = isinstance(bias, (np.int32, np.floating))
        t = sat(rrs(total + (0 if wide else int(bias)), k), DataType.INT16)
        z = np.float32(t) * r
        if wide:
            z = np.float32(z + np.float32(np.float32(bias) * s))
        return sat(away(z), out)
    parts = [sat(rrs(each, k), DataType.INT16) for each in (total, crossed)]
    t = sat(parts[0] - parts[1], DataType.INT16)
    z = np.float32(np.float32(np.float32(t) * r) + np.float32(np.float32(bias2) * s))
    return sat(away(z) + p.output_zero_point, out)


def matrix_mul(args: dict[str, Any], out: DataType) -> Any:
    left, right, *rest = args["matrix_input"]
    p = args["param"]
    found = np.zeros((left.shape[0], right.shape[1]), numpy_type(out))
    for m, n in product(*map(range, found.shape)):
        terms = [(left[m, k], right[k, n]) for k in range(left.shape[1])]
        found[m, n] = _element(terms, rest[0][0, n] if rest else None, p, False, out)
    return found


def conv(args: dict[str, Any], out: DataType) -> Any:
    x, weight, *rest = args["tensor_i"]
    p = args["param"]
    n, _, h, w = x.shape
    oc, ic, kh, kw = weight.shape
    oh = (h + p.pad_h_t + p.pad_h_b - (p.dh * (kh - 1) + 1)) // p.stride_h + 1
    ow = (w + p.pad_w_l + p.pad_w_r - (p.dw * (kw - 1) + 1)) // p.stride_w + 1
    border = p.left_zero_point if x.dtype.kind in "iu" else x.dtype.type(0)
    real = p.groups == x.shape[1] == oc and p.mode != QCalMode.LowPrecisionSymmetric and x.dtype.kind in "iu"
    element = _real_element if real else _element
    found = np.zeros((n, oc, oh, ow), numpy_type(out))
    for b, o, y, z in product(*map(range, found.shape)):
        first = o // (oc // p.groups) * ic
        terms = []
        for i, r, s in product(range(ic), range(kh), range(kw)):
            row, column = y * p.stride_h + r * p.dh - p.pad_h_t, z * p.stride_w + s * p.dw - p.pad_w_l
            inside = 0 <= row < h and 0 <= column < w
            terms.append((x[b, first + i, row, column] if inside else border, weight[o, i, r, s]))
        found[b, o, y, z] = element(terms, rest[0][0, o, 0, 0] if rest else None, p, True, out)
    return found


def deconv(args: dict[str, Any], out: DataType) -> Any:
    x, weight, *rest = args["tensor_i"]
    p = args["param"]
    n, c, h, w = x.shape
    _, per_group, kh, kw = weight.shape
    oh = (h - 1) * p.stride_h + p.dh * (kh - 1) + 1 - p.pad_h_t - p.pad_h_b
    ow = (w - 1) * p.stride_w + p.dw * (kw - 1) + 1 - p.pad_w_l - p.pad_w_r
    found = np.zeros((n, per_group * p.groups, oh, ow), numpy_type(out))
    for b, o, y, z in product(*map(range, found.shape)):
        group, inner = divmod(o, per_group)
        channels = range(group * (c // p.groups), (group + 1) * (c // p.groups))
        terms = []
        for i, r, s in product(channels, range(kh), range(kw)):
            row, skip = divmod(y + p.pad_h_t - r * p.dh, p.stride_h)
            column, jump = divmod(z + p.pad_w_l - s * p.dw, p.stride_w)
            if not skip and not jump and 0 <= row < h and 0 <= column < w:
                terms.append((x[b, i, row, column], weight[i, inner, r, s]))
        found[b, o, y, z] = _element(terms, rest[0][0, o, 0, 0] if rest else None, p, True, out)
    return found


def _real_element(terms: list[tuple[Any, Any]], bias: Any, p: Any, _: bool, out: DataType) -> Any:
    """Of a depthwise convolution in a mode of high precision (seed 003: "converted to FLOAT32")."""
    total = np.float32(sum((int(a) - p.left_zero_point) * (int(b) - p.right_zero_point) for a, b in terms))
    if bias is not None:
        total = np.float32(total + np.float32(bias))
    return sat(away(np.float32(total * np.float32(p.scale))) + p.output_zero_point, out)


def _element(terms: list[tuple[Any, Any]], bias: Any, p: Any, conv: bool, out: DataType) -> Any:
    if out == DataType.FLOAT32:
        return sum(float(a) * float(b) for a, b in terms) + (0.0 if bias is None else float(bias))
    pairs = [(int(a), int(b)) for a, b in terms]
    total = sum(a * b for a, b in pairs)
    crossed = sum(a * p.right_zero_point for a, _ in pairs)
    offset = sum(p.left_zero_point * (b - p.right_zero_point) for _, b in pairs)
    given = 0 if bias is None else bias
    if isinstance(given, np.floating):
        bias2: Any = np.float32(float(given) - offset)
    else:
        bias2 = int(given) - offset
    return rescaled(total, crossed, given, bias2, p, conv, out)
