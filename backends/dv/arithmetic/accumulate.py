"""Convolutions and inner products of fp16, with the accumulator of the device as one parameter (dv.md 5).

Width, order and rounding of the device's accumulator are not public. `Accumulator` names three models. The default has
no rounding inside a sum and therefore no order: results do not depend on how work is cut into tiles, on the library
that multiplies or on the number of threads, so two implementations can agree bit for bit. It lies in the middle of
what a wide accumulator may give, and equals a float32 accumulator wherever that one is exact.

Maps are [w][h][c] arrays, as WHC8 has them up to its groups. Results are float32: what activations and adds see.
"""

from __future__ import annotations

from enum import Enum
from functools import partial

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from bmcompiler.backends.dv.arithmetic.exact import exact_sums
from bmcompiler.backends.dv.driver.commands import NO_PADS, ONE, Pads, Pair
from bmcompiler.backends.dv.formats.packing_sizes import CHANNELS_OF_BLOCK
from bmcompiler.numeric.arrays import Doubles, Floats, Halves
from bmcompiler.numeric.blas import in_parallel, one_blas_thread

_PATCH_ELEMENTS = 1 << 20  # of the patch matrix that is multiplied at a time: it stays in the cache
_ROW_ELEMENTS = 1 << 22
_PIECES = 2  # at least, so that two cores have work


class Accumulator(Enum):
    """How products are added.

    EXACT: the exact sum of all products, rounded to 53 bits, plus the bias, rounded to float32.
    FLOAT32: starts from the bias; every product is added in float32, in the order of the weight stream: chunks of 8
        input channels (64 for 1x1 kernels), rows, columns, channels; dilated kernels: rows and columns outermost. Slow.
    FLOAT16_BLOCKS: starts from the bias; the exact sum of each block of the weight stream (the channels that share
        12 x 6 weights) is rounded to fp16 and added in fp16. The narrowest model.
    """

    EXACT = "exact"
    FLOAT32 = "float32"
    FLOAT16_BLOCKS = "float16-blocks"


def insert_zeros(x: Halves, stride: Pair) -> Halves:
    """The input of a transposed convolution: stride - 1 zeros between columns and rows."""
    w, h, c = x.shape
    out = np.zeros(((w - 1) * stride.x + 1, (h - 1) * stride.y + 1, c), x.dtype)
    out[:: stride.x, :: stride.y] = x
    return out


def convolve(
    x: Halves,
    weights: Halves,
    bias: Halves,
    pads: Pads = NO_PADS,
    stride: Pair = ONE,
    dilation: Pair = ONE,
    accumulator: Accumulator = Accumulator.EXACT,
) -> Floats:
    """Cross-correlation of a padded map; out[x][y][m] = bias[m] + sum of in[x*sx+i*dx][y*sy+j*dy][c] * w[m][c][j][i].

    Args:
        x: [w][h][c].
        weights: [m][c][ky][kx].
        bias: [m].
    """
    m, c, ky, kx = weights.shape
    x = np.pad(x, ((pads.left, pads.right), (pads.top, pads.bottom), (0, 0)))
    out = Pair(
        (x.shape[0] - (kx - 1) * dilation.x - 1) // stride.x + 1,
        (x.shape[1] - (ky - 1) * dilation.y - 1) // stride.y + 1,
    )
    if accumulator != Accumulator.EXACT:
        return _in_order(_patches(x, Pair(kx, ky), stride, dilation, out), weights, bias, dilation, accumulator)
    matrix = np.ascontiguousarray(weights.transpose(3, 2, 1, 0)).reshape(kx * ky * c, m)

    def product(padded: Doubles, table: Doubles) -> Doubles:
        result = np.empty((out.x, out.y, m))
        patches = _patches(padded, Pair(kx, ky), stride, dilation, out)
        step = max(1, min(-(-out.x // _PIECES), _PATCH_ELEMENTS // max(1, out.y * kx * ky * c)))

        def columns(start: int) -> None:
            piece = patches[start : start + step]
            rows = piece.reshape(-1, kx * ky * c)
            with np.errstate(invalid="ignore"):  # infinities are the chip's answer; each thread has its own state
                np.matmul(rows, table, out=result[start : start + step].reshape(-1, m))

        with one_blas_thread:
            in_parallel([partial(columns, start) for start in range(0, out.x, step)])
        return result

    return (exact_sums(x, matrix, kx * ky * c, product) + bias.astype(np.float64)).astype(np.float32)


def convolve_depthwise(
    x: Halves,
    weights: Halves,
    bias: Halves,
    pads: Pads = NO_PADS,
    stride: Pair = ONE,
    dilation: Pair = ONE,
    accumulator: Accumulator = Accumulator.EXACT,
) -> Floats:
    """As `convolve` with a kernel of its own per channel: weights [c][1][ky][kx]."""
    c, _, ky, kx = weights.shape
    x = np.pad(x, ((pads.left, pads.right), (pads.top, pads.bottom), (0, 0)))
    out = Pair(
        (x.shape[0] - (kx - 1) * dilation.x - 1) // stride.x + 1,
        (x.shape[1] - (ky - 1) * dilation.y - 1) // stride.y + 1,
    )
    taps = np.ascontiguousarray(weights[:, 0].transpose(2, 1, 0))  # [kx][ky][c]
    if accumulator == Accumulator.FLOAT32:
        patches = _patches(x, Pair(kx, ky), stride, dilation, out).astype(np.float32)
        total = np.broadcast_to(bias.astype(np.float32), (*out, c)).copy()
        for j in range(ky):
            for i in range(kx):
                total += patches[:, :, i, j] * taps[i, j].astype(np.float32)
        return total

    def product(padded: Doubles, table: Doubles) -> Doubles:
        patches = _patches(padded, Pair(kx, ky), stride, dilation, out)
        result = np.zeros((*out, c))
        for i in range(kx):
            for j in range(ky):
                result += patches[:, :, i, j] * table[i, j]
        return result

    sums = exact_sums(x, taps, kx * ky, product)
    if accumulator == Accumulator.FLOAT16_BLOCKS:
        return (bias + sums.astype(np.float16)).astype(np.float32)
    return (sums + bias.astype(np.float64)).astype(np.float32)


def inner_product(x: Halves, weights: Halves, bias: Halves, accumulator: Accumulator = Accumulator.EXACT) -> Floats:
    """bias[n] + sum over k of x[k] * weights[n][k]."""
    outputs, inputs = weights.shape
    if accumulator != Accumulator.EXACT:
        return convolve(x.reshape(1, 1, -1), weights[:, :, None, None], bias, accumulator=accumulator).reshape(-1)
    step = max(1, _ROW_ELEMENTS // inputs)
    total = np.empty(outputs)
    with one_blas_thread:
        for start in range(0, outputs, step):
            total[start : start + step] = exact_sums(x, weights[start : start + step], inputs, lambda a, b: b @ a)
    return (total + bias.astype(np.float64)).astype(np.float32)


def _patches(x: NDArray[np.floating], kernel: Pair, stride: Pair, dilation: Pair, out: Pair) -> NDArray[np.floating]:
    """A view [out.x][out.y][kx][ky][c] of the inputs of every position."""
    a, b, c = x.strides
    steps = (a * stride.x, b * stride.y, a * dilation.x, b * dilation.y, c)
    return as_strided(x, (*out, *kernel, x.shape[2]), steps, writeable=False)


def _in_order(
    patches: NDArray[np.floating], weights: Halves, bias: Halves, dilation: Pair, accumulator: Accumulator
) -> Floats:
    """The models that round on the way."""
    m, c, ky, kx = weights.shape
    side = 1 if max(dilation) > 1 else max(kx, ky) | 1
    taps = [(j, i) for j in range(ky) for i in range(kx)]
    if accumulator == Accumulator.FLOAT32:
        total = np.broadcast_to(bias.astype(np.float32), (*patches.shape[:2], m)).copy()
        wide, table = patches.astype(np.float32), weights.astype(np.float32)
        chunk = 64 if side == 1 else 8
        groups = [range(at, min(at + chunk, c)) for at in range(0, c, chunk)]
        terms = [(k, j, i) for g in groups for j, i in taps for k in g]
        if max(dilation) > 1:
            terms = [(k, j, i) for j, i in taps for k in range(c)]
        for k, j, i in terms:
            total += wide[:, :, i, j, k, None] * table[:, k, j, i]
        return total
    narrow = np.broadcast_to(bias, (*patches.shape[:2], m)).copy()
    per = CHANNELS_OF_BLOCK[side]
    for cut in [[tap] for tap in taps] if max(dilation) > 1 else [taps]:
        rows, columns = ([tap[axis] for tap in cut] for axis in (0, 1))
        for at in range(0, c, per):
            piece = patches[:, :, columns, rows, at : at + per].reshape(-1, len(cut) * min(per, c - at))
            table = weights[:, at : at + per][:, :, rows, columns].transpose(2, 1, 0).reshape(-1, m)
            sums = exact_sums(piece.astype(np.float16), table, len(table), lambda a, b: a @ b)
            with np.errstate(over="ignore", invalid="ignore"):
                narrow += sums.astype(np.float16).reshape(narrow.shape)
    return narrow.astype(np.float32)
