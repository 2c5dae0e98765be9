"""Integer arithmetic of the targets: rounding shifts, saturation, exact integer convolution, products and pooling.

The one home of these formulas: `evaluate` of the TensorOps and the command-level simulators call the same functions,
so that the two can be compared bit for bit. Everything is vectorised over whole arrays.

Convolutions and products run through floating-point BLAS and are still exact: every partial sum is at most the norm of
what is summed over times that of the weights (Cauchy and Schwarz), and one of a block of the depth at most (largest
|x|) * (largest L1 norm of the block's weights). A block is all of the depth, or chosen so that this stays within the
integers that float32 (2**24) or float64 (2**53) represent without gaps. BLAS may then add in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np

from bmcompiler.numeric.arrays import Array, Floats, IntArray
from bmcompiler.numeric.blas import one_blas_thread

NUMPY_DTYPES: dict[str, np.dtype[Any]] = {
    "i8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "i16": np.dtype(np.int16),
    "u16": np.dtype(np.uint16),
    "i32": np.dtype(np.int32),
}
_LIMITS = {name: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) for name, dtype in NUMPY_DTYPES.items()}

_EXACT_F32 = 1 << 24
_EXACT_F64 = 1 << 53
_ROUNDED = 0.9
"""What two rounded sums of squares may be wrong by together: far less than a tenth."""
# Columns gathered at a time: small enough to stay in the second-level cache together with the product.
_COLUMN_BLOCK_VALUES = 1 << 18


def round_shift(x: IntArray, shift: int | IntArray) -> IntArray:
    """Arithmetic right shift rounding half up: floor((x + 2**(shift-1)) / 2**shift), x itself for shift 0.

    bm1880.md 8.1. Evaluated without the intermediate sum, so it cannot overflow the dtype of `x`.

    Args:
        x: signed integers of any shape.
        shift: bits, >= 0; a scalar or an array that broadcasts against `x`.
    Returns: array of the dtype of `x`. Raises ValueError for a negative shift.
    """
    x = np.asarray(x)
    if np.ndim(shift) == 0:
        bits = int(shift)
        if bits < 0:
            raise ValueError(f"shift must not be negative, got {bits}")
        if bits == 0:
            return x
        half = x >> (bits - 1)
        up = half & 1
        half >>= 1
        half += up
        return np.asarray(half)
    bits_array = np.asarray(shift).astype(x.dtype)
    if bits_array.size and int(bits_array.min()) < 0:
        raise ValueError(f"shift must not be negative, got {int(bits_array.min())}")
    half = x >> np.maximum(bits_array - 1, 0)
    return np.where(bits_array == 0, x, (half >> 1) + (half & 1))


def saturate(x: IntArray, dtype: str) -> IntArray:
    """Clip to the range of `dtype` (i8, u8, i16, u16, i32) and convert to it. `x`: integers or finite floats."""
    low, high = _LIMITS[dtype]
    x = np.asarray(x)
    target = NUMPY_DTYPES[dtype]
    if x.dtype == target:
        return x
    if x.dtype.kind in "iu":
        have = np.iinfo(x.dtype)
        if have.min < low:
            x = np.maximum(x, x.dtype.type(low))
        if have.max > high:
            x = np.minimum(x, x.dtype.type(high))
        return x.astype(target)
    return np.clip(x, low, high).astype(target)


def truncate(x: Array, target: np.dtype[Any]) -> Array:
    """Conversion as programming languages have it: reals are cut towards zero, integers keep their low bits.

    Reals outside the range of an integer `target` become its nearest value, NaN becomes 0; bool is "not zero".
    """
    x = np.asarray(x)
    if x.dtype.kind != "f" or target.kind not in "iu":
        return x.astype(target, copy=False)
    limits = np.iinfo(target)
    whole = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
    top = float(limits.max)  # 2**63 or 2**64 for the widest types, whose largest value no float is
    inside = np.clip(whole, limits.min, np.nextafter(top + 1, 0)).astype(target)
    return np.where(whole >= top, target.type(limits.max), inside)


def requantize(x: IntArray, shift: int | IntArray, dtype: str) -> IntArray:
    """saturate(round_shift(x, shift), dtype): the end of every int8 operation (bm1880.md 8.1)."""
    return saturate(round_shift(x, shift), dtype)


def quantize_real(x: Array, threshold: float, dtype: str = "i8") -> IntArray:
    """Real values to integers: saturate(floor(x * 128 / threshold + 0.5)) (bm1880.md 11.2).

    Args:
        x: floats of any shape, without NaN. threshold: positive real magnitude that maps to 128.
        dtype: i8, or another name of `saturate`.
    """
    scaled = np.asarray(x, dtype=np.float64) * (128.0 / float(threshold))
    return saturate(np.floor(scaled + 0.5), dtype)


def quantize_cut(x: Array, threshold: float) -> IntArray:
    """Real values to int8 as the vendor's plug-ins do: half a step is added and the rest cut off (bm1880.md 11.2).

    Numbers below zero are up to one more than those of `quantize_real`.

    Args:
        x: floats of any shape, without NaN. threshold: positive real magnitude that maps to 128.
    """
    scaled = np.asarray(x, dtype=np.float64) * (128.0 / float(threshold))
    return saturate(np.trunc(scaled + 0.5), "i8")


def dequantize(q: IntArray, threshold: float) -> Floats:
    """int8 to real values as float32: q * threshold / 128 (bm1880.md 11.2)."""
    return (np.asarray(q, dtype=np.float64) * (float(threshold) / 128.0)).astype(np.float32)


def matmul(a: IntArray, b: IntArray, *, floats: bool = False) -> Array:
    """Exact integer matrix product over the last two axes, numpy broadcasting on the others.

    Returns int32 when dtypes and depth guarantee that it holds every sum, else int64; or, with `floats`, float32 where
    that holds every one of these sums.
    """
    a, b = np.asarray(a), np.asarray(b)
    depth = a.shape[-1]
    result = _sum_dtype(a.dtype, b.dtype, depth)
    columns = np.moveaxis(b, -2, -1).reshape(-1, depth) if b.size else np.zeros((1, depth), b.dtype)
    blocks, real = _depth_blocks(columns, a, lambda: _energy(a, -1))
    if real is None:
        return np.asarray(np.matmul(a.astype(np.int64), b.astype(np.int64)))
    product = _block_product(a.astype(real), b.astype(real), blocks, result)
    return product if floats and product.dtype == np.float32 else product.astype(result, copy=False)


def conv2d(
    x: IntArray,
    weight: IntArray,
    *,
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilations: tuple[int, int] = (1, 1),
    groups: int = 1,
    floats: bool = False,
) -> Array:
    """Exact integer cross-correlation without bias, shift or saturation.

    out[n,o,y,x] = sum_{i,r,s} in[n, g*ICg + i, y*sh + r*dh - top, x*sw + s*dw - left] * weight[o,i,r,s]; padding is 0.

    Args:
        x: integers (N, C, H, W). weight: integers (OC, C / groups, KH, KW).
        strides, dilations: (vertical, horizontal). pads: (top, bottom, left, right).
    Returns: (N, OC, OH, OW), int32 when dtypes and depth guarantee that it holds every sum, else int64; or, with
    `floats`, float32 where that holds every one of these sums.
    Raises ValueError when the shapes do not fit.
    """
    x, weight = np.asarray(x), np.asarray(weight)
    n, channels, height, width = x.shape
    out_channels, group_channels, kh, kw = weight.shape
    if groups < 1 or channels != group_channels * groups or out_channels % groups:
        raise ValueError(f"conv2d: input {x.shape}, weight {weight.shape} and {groups} group(s) do not fit")
    oh = _window_count(height + pads[0] + pads[1], kh, strides[0], dilations[0])
    ow = _window_count(width + pads[2] + pads[3], kw, strides[1], dilations[1])
    depth = group_channels * kh * kw
    result = _sum_dtype(x.dtype, weight.dtype, depth)
    if n == 0 or out_channels == 0 or depth == 0:
        return np.zeros((n, out_channels, oh, ow), result)
    if group_channels == 1 and groups > 1:
        taps = _taps((kh, kw), strides, dilations, (oh, ow))
        exact = floats and _largest(x.dtype) * _largest(weight.dtype) * depth <= _EXACT_F32
        kind = np.dtype(np.float32) if exact else result
        return _depthwise(_pad(x, pads, 0, kind), weight.astype(kind), taps, (oh, ow))

    rows = weight.reshape(out_channels, depth)
    grouped_x = x.reshape(n, groups, group_channels, height, width)
    blocks, real = _depth_blocks(rows, x, lambda: _energy(grouped_x, 2) * kh * kw)
    padded = _pad(x, pads, 0, real or np.dtype(np.int64))
    matrix = rows.reshape(groups, out_channels // groups, depth).astype(padded.dtype)
    kind = np.dtype(np.float32) if floats and len(blocks) == 1 and real == np.float32 else result
    out = np.empty((n, groups, out_channels // groups, oh, ow), kind)
    grouped = padded.reshape(n, groups, group_channels, *padded.shape[2:])
    if kh == kw == 1 and strides == (1, 1):
        columns = grouped.reshape(n, groups, depth, oh * ow)
        product = _block_product(matrix, columns, blocks, result)
        return product.astype(kind, copy=False).reshape(n, out_channels, oh, ow)
    taps = _taps((kh, kw), strides, dilations, (oh, ow))
    parts = list(_column_blocks(n, oh, ow, depth * groups))
    area = np.empty(max(len(grouped[image]) * (y1 - y0) for image, y0, y1 in parts) * groups * depth * ow, padded.dtype)
    for image, y0, y1 in parts:
        batch = grouped[image]
        shape = (batch.shape[0], groups, group_channels, kh * kw, y1 - y0, ow)
        buffer = area[: prod(shape)].reshape(shape)
        for k, (ys, xs) in enumerate(taps):
            first = ys.start + y0 * strides[0]
            buffer[:, :, :, k] = batch[..., first : first + (y1 - y0 - 1) * strides[0] + 1 : strides[0], xs]
        columns = buffer.reshape(batch.shape[0], groups, depth, (y1 - y0) * ow)
        product = _block_product(matrix, columns, blocks, result)
        out[image, :, :, y0:y1] = product.reshape(*product.shape[:3], y1 - y0, ow)
    return out.reshape(n, out_channels, oh, ow)


def pool_sum(
    x: IntArray,
    kernel: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
) -> IntArray:
    """Sums over windows of (N, C, H, W), zero padding (top, bottom, left, right) counted. Returns int32."""
    return _pool(_pad(np.asarray(x), pads, 0, np.dtype(np.int32)), kernel, strides, np.add)


def pool_max(
    x: IntArray,
    kernel: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    pad_value: int | None = None,
) -> IntArray:
    """Maxima over windows of (N, C, H, W); padding counts as `pad_value`, by default the lowest value of the dtype."""
    x = np.asarray(x)
    low = int(np.iinfo(x.dtype).min) if pad_value is None else pad_value
    return _pool(_pad(x, pads, low, x.dtype), kernel, strides, np.maximum)


def _pool(x: IntArray, kernel: tuple[int, int], strides: tuple[int, int], combine: np.ufunc) -> IntArray:
    """Separable window reduction over the last two axes of an already padded array."""
    for axis, size, stride in ((x.ndim - 1, kernel[1], strides[1]), (x.ndim - 2, kernel[0], strides[0])):
        count = _window_count(x.shape[axis], size, stride, 1)
        index: list[slice] = [slice(None)] * x.ndim
        total: IntArray | None = None
        for k in range(size):
            index[axis] = slice(k, k + (count - 1) * stride + 1, stride)
            part = x[tuple(index)]
            total = part.copy() if total is None else combine(total, part, out=total)
        assert total is not None, "there is at least one term"
        x = total
    return x


def _window_count(size: int, kernel: int, stride: int, dilation: int) -> int:
    span = size - ((kernel - 1) * dilation + 1)
    if min(kernel, stride, dilation) < 1 or span < 0:
        raise ValueError(f"window {kernel} (dilation {dilation}, stride {stride}) does not fit in {size} elements")
    return span // stride + 1


def _pad(x: IntArray, pads: tuple[int, int, int, int], value: int, dtype: np.dtype[Any]) -> IntArray:
    """`x` in `dtype` with (top, bottom, left, right) borders of `value`; x itself when nothing changes."""
    top, bottom, left, right = pads
    if not any(pads):
        return x.astype(dtype, copy=False)
    height, width = x.shape[-2:]
    shape = (*x.shape[:-2], height + top + bottom, width + left + right)
    out = np.full(shape, value, dtype)
    out[..., top : top + height, left : left + width] = x
    return out


def _taps(
    kernel: tuple[int, int], strides: tuple[int, int], dilations: tuple[int, int], out: tuple[int, int]
) -> list[tuple[slice, slice]]:
    """For each kernel element, the padded input rows and columns it meets."""
    return [
        (
            slice(r * dilations[0], r * dilations[0] + (out[0] - 1) * strides[0] + 1, strides[0]),
            slice(s * dilations[1], s * dilations[1] + (out[1] - 1) * strides[1] + 1, strides[1]),
        )
        for r in range(kernel[0])
        for s in range(kernel[1])
    ]


def _depthwise(
    padded: IntArray, weight: IntArray, taps: list[tuple[slice, slice]], out_size: tuple[int, int]
) -> IntArray:
    """One input channel per group: multiply-add per kernel element; BLAS would idle at a depth of KH*KW."""
    n, groups = padded.shape[:2]
    multiplier = weight.shape[0] // groups
    factors = weight.reshape(groups, multiplier, len(taps))
    out = np.empty((n, groups, multiplier, *out_size), padded.dtype)
    product = np.empty((n, groups, *out_size), padded.dtype)
    for m in range(multiplier):
        total = out[:, :, m]
        for k, (ys, xs) in enumerate(taps):
            factor = factors[:, m, k, None, None]
            if k == 0:
                np.multiply(padded[:, :, ys, xs], factor, out=total)
            else:
                total += np.multiply(padded[:, :, ys, xs], factor, out=product)
    return out.reshape(n, groups * multiplier, *out_size)


def _sum_dtype(a: np.dtype[Any], b: np.dtype[Any], depth: int) -> np.dtype[Any]:
    """int32 when no sum of `depth` products of the two dtypes can leave it. A rule of types, never of the data."""
    largest = (1 << 8 * a.itemsize) * (1 << 8 * b.itemsize) * max(depth, 1)
    return np.dtype(np.int32 if largest < 1 << 31 else np.int64)


def _largest(dtype: np.dtype[Any]) -> int:
    limits = np.iinfo(dtype)
    return max(-int(limits.min), int(limits.max))


def _peak(x: IntArray) -> int:
    return max(abs(int(x.max())), abs(int(x.min()))) if x.size else 0


def _energy(x: IntArray, axis: int) -> float:
    """The largest sum of squares along an axis, rounded; of bytes and halfwords, whose squares float32 holds well."""
    if x.dtype.itemsize > 2 or not x.size:
        return np.inf
    return float(np.square(x, dtype=np.float32).sum(axis=axis).max())


def _depth_blocks(
    weights: IntArray, x: IntArray, energy: Callable[[], float]
) -> tuple[list[tuple[int, int]], np.dtype[Any] | None]:
    """Ranges of the summed axis whose partial sums are exact, and the float type they are exact in.

    None for the type: only integer arithmetic is exact.
    Args: weights: integers as (rows, depth). energy: finds what bounds the squares of what is summed over, in sum.
    """
    depth = weights.shape[1]
    whole = [(0, depth)]
    if _largest(x.dtype) * _largest(weights.dtype) * depth <= _EXACT_F32:
        return whole, np.dtype(np.float32)
    peak, heaviest = _peak(x), _peak(weights)
    bound = max(peak * heaviest, 1)
    if bound * depth <= _EXACT_F32:
        return whole, np.dtype(np.float32)
    if energy() * _energy(weights, 1) < _ROUNDED * _EXACT_F32**2:
        return whole, np.dtype(np.float32)
    step = _EXACT_F32 // bound
    if step < 16:
        return whole, np.dtype(np.float64) if bound * depth <= _EXACT_F64 else None
    chunk_sums = np.add.reduceat(np.abs(weights, dtype=np.int32), np.arange(0, depth, step), axis=1)
    blocks, low, load = [], 0, np.zeros(weights.shape[0], np.int64)
    for k in range(chunk_sums.shape[1]):
        load += chunk_sums[:, k]
        if peak * int(load.max()) > _EXACT_F32:
            blocks.append((low, k * step))
            low, load = k * step, chunk_sums[:, k].astype(np.int64)
    return [*blocks, (low, depth)], np.dtype(np.float32)


def _block_product(
    matrix: IntArray, columns: IntArray, blocks: list[tuple[int, int]], result: np.dtype[Any]
) -> IntArray:
    """matrix @ columns, one exact block of the depth at a time; of dtype `result` unless one block is all."""
    with one_blas_thread:
        if len(blocks) == 1:
            return np.asarray(np.matmul(matrix, columns))
        total: IntArray | None = None
        for low, high in blocks:
            part = np.matmul(matrix[..., low:high], columns[..., low:high, :]).astype(result)
            total = part if total is None else np.add(total, part, out=total)
    assert total is not None, "there is at least one term"
    return total


def _column_blocks(n: int, oh: int, ow: int, depth: int) -> Iterator[tuple[slice, int, int]]:
    """Ranges (images, first row, row end) that gather about _COLUMN_BLOCK_VALUES values each."""
    per_row = depth * ow
    if per_row * oh <= _COLUMN_BLOCK_VALUES:
        images = max(1, _COLUMN_BLOCK_VALUES // (per_row * oh))
        for first in range(0, n, images):
            yield slice(first, min(n, first + images)), 0, oh
        return
    rows = max(1, _COLUMN_BLOCK_VALUES // per_row)
    for image in range(n):
        for y0 in range(0, oh, rows):
            yield slice(image, image + 1), y0, min(oh, y0 + rows)
