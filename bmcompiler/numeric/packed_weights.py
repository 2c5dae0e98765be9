"""Weights of 4 and 8 bits with scale and zero point for each group of inputs, and products of 16-bit floats with them.

A weight is w[n, k] = (code[n, k] - zero_point[n, k // g]) * scale[n, k // g]. Arithmetic: bm1684x-llm.md 5 and 7.1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bmcompiler.errors import UnsupportedError
from bmcompiler.numeric.arrays import Array, Bits16, Bytes, Floats, Indices
from bmcompiler.numeric.floats import BF16, FP16
from bmcompiler.numeric.fused import GROUP
from bmcompiler.numeric.half_products import half_product
from bmcompiler.numeric.halves import BF16 as BF16_BITS
from bmcompiler.numeric.halves import FP16 as FP16_BITS

TYPES = {"f16": (FP16, FP16_BITS), "bf16": (BF16, BF16_BITS)}
_BLOCK = 1 << 21  # weights that are unpacked at a time
_LEAST = -128  # of a code of 4 bits less its zero point: the difference has one byte


class PackedWeights(NamedTuple):
    """Weights of N outputs by K inputs.

    Attributes:
        codes: u8 (N, row_bytes(K, bits)); of 4 bits two in a byte, that of the even k in the low half, and 0 in what
            an odd K leaves free.
        scale: floats (N, G), G = ceil(K / g). zero_point: u8 (N, G); None is 2**(bits - 1) everywhere.
        bits: 4 or 8. group_size: g; 0 is one group of all K.
    """

    codes: Bytes
    scale: Array
    zero_point: Bytes | None
    bits: int
    group_size: int


def row_bytes(depth: int, bits: int) -> int:
    """Bytes of the codes of one output."""
    return -(-depth * bits // 8)


def groups_of(depth: int, group_size: int) -> int:
    """Groups of one output."""
    return -(-depth // (group_size or max(depth, 1)))


def packed(codes: Bytes, bits: int) -> Bytes:
    """(N, K) codes as (N, `row_bytes`)."""
    if bits != 4:
        return codes
    even = np.pad(codes, [(0, 0), (0, codes.shape[1] % 2)])
    return even[:, 0::2] | even[:, 1::2] << np.uint8(4)


def unpacked(rows: Bytes, bits: int, depth: int) -> Bytes:
    """The inverse of `packed`."""
    if bits != 4:
        return rows
    codes = np.empty((len(rows), 2 * rows.shape[1]), np.uint8)
    codes[:, 0::2], codes[:, 1::2] = rows & np.uint8(15), rows >> np.uint8(4)
    return codes[:, :depth]


def quantized(weight: Floats, bits: int, group_size: int, dtype: Any, *, symmetric: bool = False) -> PackedWeights:
    """The nearest codes of f32 weights (N, K); ranges of groups are made to hold 0, so that 0 stays 0.

    Args: dtype: numpy type of the scales, to which the steps that made the codes are rounded.

    Raises:
        UnsupportedError: a weight is not finite, or a scale too large for the type.
    """
    n, depth = weight.shape
    size, top = group_size or max(depth, 1), np.float32(2**bits - 1)
    if not np.isfinite(weight).all():
        raise UnsupportedError(
            "weights that are infinite or NaN cannot be quantized", remedy="keep them as floats, or repair them"
        )
    padded = np.pad(weight.astype(np.float32, copy=False), [(0, 0), (0, -depth % size)])
    parts = padded.reshape(n, -1, size)
    least, most = np.minimum(parts.min(-1, initial=0), 0), np.maximum(parts.max(-1, initial=0), 0)
    with np.errstate(over="ignore"):
        step = (2 * np.maximum(most, -least) if symmetric else most - least) / top
    step = np.where(step == 0, np.float32(1), step)
    middle = np.full_like(step, 2 ** (bits - 1)) if symmetric else np.clip(np.rint(-least / step), 0, top)
    codes = np.clip(np.rint(parts / step[..., None]) + middle[..., None], 0, top).astype(np.uint8)
    with np.errstate(over="ignore"):
        scale = step.astype(dtype)
    if not np.isfinite(scale.astype(np.float32)).all():
        raise UnsupportedError(
            f"scales up to {step.max():g} are beyond {np.dtype(dtype).name}", remedy="choose bf16 or float32 scales"
        )
    rows = packed(codes.reshape(n, -1)[:, :depth], bits)
    return PackedWeights(rows, scale, None if symmetric else middle.astype(np.uint8), bits, group_size)


def dequantized(weights: PackedWeights, depth: int, dtype: str) -> Array:
    """(N, K) weights of an element type, as the chip makes them: half(half(code - zero point) * scale).

    Args: dtype: "f16" or "bf16", else scales are f32 and so is the product.
    """
    if dtype not in TYPES:
        return _differences(weights, depth) * _spread(weights, weights.scale.astype(np.float32), depth)
    from bmcompiler.ir.types import numpy_dtype

    return _half_weights(weights, depth, dtype).view(numpy_dtype(dtype))


def product(x: Array, weights: PackedWeights, dtype: str) -> Bits16:
    """Bits of x (M, K) by weights (N, K), (M, N): sums in f32 of groups of 32 ascending k, each fused, rounded once.

    x: elements of `dtype`, or float32 that hold such.
    """
    depth, half = x.shape[1], TYPES[dtype][1]
    left = half.widen(np.ascontiguousarray(half_bits(x, dtype).T))
    groups = [min(GROUP, depth - k) for k in range(0, depth, GROUP)]
    out = np.empty((len(x), len(weights.codes)), np.uint16)
    step = max(1, _BLOCK // max(depth, 1))
    for first in range(0, len(weights.codes), step):
        rows = slice(first, first + step)
        right = half.widen(np.ascontiguousarray(_half_weights(rows_of(weights, rows), depth, dtype).T))
        out[:, rows] = half_product(left, right, groups, np.zeros((1, 1), np.float32), half)
    return out


def rows_of(weights: PackedWeights, rows: slice | Indices) -> PackedWeights:
    """The weights of some outputs, or of all in another order."""
    zero = None if weights.zero_point is None else weights.zero_point[rows]
    return weights._replace(codes=weights.codes[rows], scale=weights.scale[rows], zero_point=zero)


def half_bits(x: Array, dtype: str) -> Bits16:
    """Elements of a 16-bit type as bits; float32 that hold such are narrowed, which is exact."""
    if x.dtype.itemsize == 2:
        return np.ascontiguousarray(x).view(np.uint16).reshape(x.shape)
    return TYPES[dtype][1].narrow(np.ascontiguousarray(x, np.float32)).reshape(x.shape)


def _half_weights(weights: PackedWeights, depth: int, dtype: str) -> Bits16:
    kind, half = TYPES[dtype]
    exact = half.narrow(_differences(weights, depth))
    return kind.multiply(exact, _spread(weights, half_bits(weights.scale, dtype), depth))


def _differences(weights: PackedWeights, depth: int) -> Floats:
    """Codes less zero points, (N, K); those of 4 bits are at least -128."""
    codes = unpacked(weights.codes, weights.bits, depth).astype(np.int16)
    if weights.zero_point is None:
        return (codes - np.int16(2 ** (weights.bits - 1))).astype(np.float32)
    found = codes - _spread(weights, weights.zero_point.astype(np.int16), depth)
    return (np.maximum(found, _LEAST) if weights.bits == 4 else found).astype(np.float32)


def _spread(weights: PackedWeights, parameter: Array, depth: int) -> Array:
    """(N, G) repeated to (N, K)."""
    size = weights.group_size or max(depth, 1)
    return np.repeat(parameter, size, axis=1)[:, :depth]
