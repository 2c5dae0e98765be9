"""Weights in the streams that the device reads, and back (dv.md 3).

Weights are [m][c][ky][kx] (depthwise: c = 1), 16-bit patterns of fp16 or 8-bit indices into a map of 256 patterns.
The unit is a block of 12 rows and 6 columns, 72 elements, row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from bmcompiler.backends.dv.formats.packing_sizes import (
    BLOCK,
    CHANNELS_OF_BLOCK,
    MAP_BYTES,
    MAX_PACKED_KERNEL,
    blocks,
    conv_size,
    dilated_size,
    fc_size,
)
from bmcompiler.errors import EncodingError
from bmcompiler.numeric.arrays import Array, Bits16, Bytes, Indices

Weights = Array  # uint16 patterns or uint8 indices

_ROWS, _COLUMNS = 12, 6
_GROUP = 8  # output channels whose biases lie together
_CHUNK = 8  # input channels after which the next output channel of the group follows, for kernels above 1x1
# Where the seventh column of a 7x7 kernel goes: (row, column) for y = 0..6.
_SEVENTH = ((2, 5), (0, 3), (1, 3), (2, 3), (0, 0), (1, 0), (2, 0))


@cache
def slots(side: int) -> Indices:
    """Element of the block for weight (channel of the block, y, x) of a side x side kernel (dv.md 3.1)."""
    channels = CHANNELS_OF_BLOCK[side]
    t, y, x = np.indices((channels, side, side))
    if side == 7:
        seventh = np.array(_SEVENTH)[y]
        row, column = np.where(x < 6, 5 + y, seventh[..., 0]), np.where(x < 6, x, seventh[..., 1])
    elif side == 5:
        row, column = np.where(t == 0, 7, 1) + y, x
    elif side == 3:
        row, column = 9 - 3 * (t // 2) + y, 3 * (t % 2) + x
    else:
        t, s = t % 8, t // 8
        row, column = 11 - 3 * (t // 2) - s // 3, 3 * (t % 2) + s % 3
    return (row * _COLUMNS + column).reshape(-1)


def _side(kx: int, ky: int) -> int:
    if not (1 <= kx <= MAX_PACKED_KERNEL and 1 <= ky <= MAX_PACKED_KERNEL):
        raise EncodingError(f"kernel {kx} x {ky} cannot be packed: 1 to {MAX_PACKED_KERNEL} columns and rows can")
    return max(kx, ky) | 1


def _to_blocks(weights: Weights, side: int) -> Weights:
    """[m][c][ky][kx] to [m][blocks][72]; a smaller kernel sits at the bottom left of its square."""
    m, c, ky, kx = weights.shape
    count, channels = blocks(c, side), CHANNELS_OF_BLOCK[side]
    square = np.zeros((m, count * channels, side, side), weights.dtype)
    square[:, :c, side - ky :, :kx] = weights
    out = np.zeros((m, count, BLOCK), weights.dtype)
    out[:, :, slots(side)] = square.reshape(m, count, -1)
    return out


def _of_blocks(data: Weights, c: int, kx: int, ky: int, side: int) -> Weights:
    m, count, _ = data.shape
    square = data[:, :, slots(side)].reshape(m, count * CHANNELS_OF_BLOCK[side], side, side)
    return square[:, :c, side - ky :, :kx]


class _Part(NamedTuple):
    """Equal groups of output channels that follow each other in a stream; blocks [groups, chunks, m, blocks, 72]."""

    channels: slice
    groups: int
    start: int  # bytes
    size: int  # bytes of one group


def _parts(m: int, count: int, element: int, vectors: int) -> Iterator[_Part]:
    """The full groups of 8 output channels, then the rest."""
    whole, rest = divmod(m, _GROUP)
    size = vectors * 16 + _GROUP * count * BLOCK * element
    if whole:
        yield _Part(slice(0, whole * _GROUP), whole, 0, size)
    if rest:
        yield _Part(slice(whole * _GROUP, m), 1, whole * size, vectors * 16 + rest * count * BLOCK * element)


def _chunk_blocks(side: int) -> int:
    return 1 if side == 1 else _CHUNK // CHANNELS_OF_BLOCK[side]


def _by_chunk(data: Weights, groups: int, chunk: int) -> Weights:
    """[groups * m][blocks][72] to one row of elements per group: chunk by chunk, in it one output channel by one."""
    per = data.reshape(groups, -1, data.shape[1], BLOCK)
    whole = per.shape[2] // chunk * chunk
    first = per[:, :, :whole].reshape(groups, per.shape[1], -1, chunk, BLOCK).transpose(0, 2, 1, 3, 4)
    return np.concatenate([first.reshape(groups, -1), per[:, :, whole:].reshape(groups, -1)], 1)


def _by_channel(rows: Weights, m: int, count: int, chunk: int) -> Weights:
    """The inverse of `_by_chunk`; `m` output channels per group."""
    groups, whole = len(rows), count // chunk * chunk
    cut = m * whole * BLOCK
    first = rows[:, :cut].reshape(groups, -1, m, chunk, BLOCK).transpose(0, 2, 1, 3, 4).reshape(groups, m, -1, BLOCK)
    return np.concatenate([first, rows[:, cut:].reshape(groups, m, -1, BLOCK)], 2).reshape(groups * m, count, BLOCK)


def _write_stream(out: Bytes, data: Weights, side: int, vectors: list[Bits16]) -> None:
    """Groups of 8 output channels: biases (and slopes), then blocks. `data` is [m][blocks][72], `out` is zero."""
    m, count, _ = data.shape
    for part in _parts(m, count, data.itemsize, len(vectors)):
        rows = np.zeros((part.groups, part.size), np.uint8)
        for index, vector in enumerate(vectors):
            values = np.ascontiguousarray(vector[part.channels].reshape(part.groups, -1)).view(np.uint8)
            rows[:, 16 * index : 16 * index + values.shape[1]] = values
        blocks_of = _by_chunk(data[part.channels], part.groups, _chunk_blocks(side))
        rows[:, 16 * len(vectors) :] = blocks_of.view(np.uint8)
        out[part.start : part.start + rows.size] = rows.reshape(-1)


def _read_stream(data: Bytes, m: int, count: int, side: int, dtype: Any, vectors: int) -> tuple[Weights, list[Bits16]]:
    """Blocks [m][blocks][72] and the vectors of m values."""
    found, heads = np.empty((m, count, BLOCK), dtype), [np.empty(m, np.uint16) for _ in range(vectors)]
    for part in _parts(m, count, np.dtype(dtype).itemsize, vectors):
        rows = data[part.start : part.start + part.groups * part.size].reshape(part.groups, part.size)
        per = (part.channels.stop - part.channels.start) // part.groups
        for index, head in enumerate(heads):
            values = np.ascontiguousarray(rows[:, 16 * index : 16 * index + 2 * per])
            head[part.channels] = values.view(np.uint16).reshape(-1)
        body = np.ascontiguousarray(rows[:, 16 * vectors :]).view(dtype)
        found[part.channels] = _by_channel(body, per, count, _chunk_blocks(side))
    return found, heads


def _start(size: int, quant_map: Bits16 | None) -> tuple[Bytes, Bytes]:
    """A zero output of `size` bytes that begins with the map, and the part after the map."""
    out = np.zeros(size, np.uint8)
    if quant_map is None:
        return out, out
    out[:MAP_BYTES] = np.ascontiguousarray(quant_map, "<u2").view(np.uint8)
    return out, out[MAP_BYTES:]


def pack_conv(weights: Weights, bias: Bits16, quant_map: Bits16 | None = None, prelu: Bits16 | None = None) -> Bytes:
    """The stream of a convolution (depthwise: c = 1; transposed: planes rotated by the caller).

    Args:
        weights: [m][c][ky][kx], uint16 patterns, or uint8 indices with `quant_map`.
        bias: m patterns.
        quant_map: 256 patterns; the first must be 0.0, because unused slots hold index 0.
        prelu: m slopes.

    Raises EncodingError for kernels above 7.
    """
    m, c, ky, kx = weights.shape
    side = _side(kx, ky)
    out, rest = _start(conv_size(c, kx, ky, m, quant_map is not None, prelu is not None), quant_map)
    _write_stream(rest, _to_blocks(weights, side), side, [bias] if prelu is None else [bias, prelu])
    return out


def pack_dilated(weights: Weights, bias: Bits16, quant_map: Bits16 | None = None, prelu: Bits16 | None = None) -> Bytes:
    """The weights of a dilated convolution: a 1x1 stream per tap, biases and slopes only in the last (dv.md 3.2)."""
    m, c, ky, kx = weights.shape
    _side(kx, ky)
    out, rest = _start(dilated_size(c, kx, ky, m, quant_map is not None, prelu is not None), quant_map)
    vectors = [bias] if prelu is None else [bias, prelu]
    for tap, part in enumerate(rest.reshape(kx * ky, -1)):
        y, x = divmod(tap, kx)
        last = tap == kx * ky - 1
        heads = vectors if last else [np.zeros_like(vector) for vector in vectors]
        _write_stream(part, _to_blocks(weights[:, :, y : y + 1, x : x + 1], 1), 1, heads)
    return out


def whc8_order(c: int, h: int, w: int) -> Indices:
    """For each element of a WHC8 map its index in the [c][h][w] array (dv.md 2)."""
    index = np.arange(c * h * w, dtype=np.intp).reshape(c, h, w)
    return np.concatenate([index[g : g + _GROUP].transpose(2, 1, 0).reshape(-1) for g in range(0, c, _GROUP)])


def pack_fc(
    weights: Weights,
    bias: Bits16,
    inputs: tuple[int, int, int],
    outputs: tuple[int, int, int],
    quant_map: Bits16 | None = None,
) -> Bytes:
    """Fully connected weights in the order in which WHC8 maps lie in memory (dv.md 3.5).

    Args:
        weights: [c_out][h_out][w_out][c_in][h_in][w_in], any shape of that many elements.
        bias: one pattern per output, copied as it is: for a map of outputs the caller brings it into WHC8 order
            (measured on the vendor's packer, which reorders only the weights).
        inputs: (c, h, w) of the input.
        outputs: (c, h, w) of the result.
    """
    rows, columns = whc8_order(*outputs), whc8_order(*inputs)
    table = weights.reshape(rows.size, columns.size)
    if inputs[1:] != (1, 1):
        table = table[:, columns]
    if outputs[1:] != (1, 1):
        table = table[rows]
    out, rest = _start(fc_size(columns.size, rows.size, quant_map is not None), quant_map)
    data = np.ascontiguousarray(table).reshape(-1).view(np.uint8)
    rest[: data.size] = data
    biases = np.ascontiguousarray(bias, "<u2").view(np.uint8)
    start = out.size - (-(-biases.size // 16) * 16)
    out[start : start + biases.size] = biases
    return out


class Unpacked(NamedTuple):
    """What a stream holds: patterns [m][c][ky][kx] (FC: [outputs][inputs]), biases, slopes if present."""

    weights: Bits16
    bias: Bits16
    prelu: Bits16 | None


def _mapped(weights: Weights, data: Bytes, quantized: bool) -> Bits16:
    return data[:MAP_BYTES].view("<u2")[weights] if quantized else weights


def unpack_conv(data: Bytes, c: int, kx: int, ky: int, m: int, quantized: bool, prelu: bool = False) -> Unpacked:
    """The inverse of `pack_conv`; `data` may be longer. Raises EncodingError when it is too short."""
    _enough(data, conv_size(c, kx, ky, m, quantized, prelu))
    side = _side(kx, ky)
    body, dtype = (data[MAP_BYTES:], np.uint8) if quantized else (data, np.uint16)
    found, heads = _read_stream(body, m, blocks(c, side), side, dtype, 2 if prelu else 1)
    return Unpacked(_mapped(_of_blocks(found, c, kx, ky, side), data, quantized), heads[0], heads[1] if prelu else None)


def unpack_dilated(data: Bytes, c: int, kx: int, ky: int, m: int, quantized: bool) -> Unpacked:
    """The inverse of `pack_dilated` without slopes, which the device does not take with a dilation."""
    size = dilated_size(c, kx, ky, m, quantized)
    _enough(data, size)
    _side(kx, ky)
    dtype = np.uint8 if quantized else np.uint16
    weights = np.empty((m, c, ky, kx), dtype)
    bias = np.zeros(m, np.uint16)
    for tap, part in enumerate(data[MAP_BYTES if quantized else 0 : size].reshape(kx * ky, -1)):
        found, heads = _read_stream(part, m, blocks(c, 1), 1, dtype, 1)
        weights[:, :, tap // kx, tap % kx] = _of_blocks(found, c, 1, 1, 1)[:, :, 0, 0]
        bias = heads[0]
    return Unpacked(_mapped(weights, data, quantized), bias, None)


def unpack_fc(data: Bytes, inputs: int, outputs: int, quantized: bool) -> Unpacked:
    """Weights [outputs][inputs] in memory order. Raises EncodingError when `data` is too short."""
    size = fc_size(inputs, outputs, quantized)
    _enough(data, size)
    start, width = (MAP_BYTES, 1) if quantized else (0, 2)
    table = data[start : start + inputs * outputs * width].view("<u2" if width == 2 else "u1")
    biases = data[size - (-(-2 * outputs // 16) * 16) :][: 2 * outputs].view("<u2")
    return Unpacked(_mapped(table, data, quantized).reshape(outputs, inputs), biases, None)


def _enough(data: Bytes, size: int) -> None:
    if data.size < size:
        raise EncodingError(f"packed weights have {data.size} bytes where {size} are needed")
