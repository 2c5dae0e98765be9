"""Packing of weights (dmp_dv.h, "Weights packing"; dv.md 3.3).

`packed_weights_size` is a `size_t *`: ctypes.c_size_t, or a list or array with one element. On input it holds the size
of `packed_weights`, after every completed call the size that is needed. To ask for the size pass None and 0; weights
and biases may then be None, while a map or slopes that are given still count.
"""

from __future__ import annotations

import errno
from typing import Any

import numpy as np

from bmcompiler.backends.dv.formats.packing import pack_conv, pack_dilated, pack_fc
from bmcompiler.backends.dv.formats.packing_sizes import MAX_PACKED_KERNEL, conv_size, dilated_size, fc_size
from bmcompiler.numeric.arrays import Array, Bytes
from bmcompiler.runtime.dmp_dv.buffers import Buffer, SizeCell, get_size, is_cell, readable, set_size, writable
from bmcompiler.runtime.dmp_dv.messages import refuse
from bmcompiler.runtime.dmp_dv.prototypes import DRIVER

_ALIGN = 16


_NOT_GIVEN: Any = object()


class _MissingError(Exception):
    """A pointer that is NULL, or an array that is too short."""


@DRIVER.checked
def dmp_dv_pack_conv_weights(
    n_channels: int,
    kx: int,
    ky: int,
    n_kernels: int,
    quant_map: Buffer | None,
    weights: Buffer | None,
    bias: Buffer | None,
    prelu: Buffer | None = None,
    packed_weights: Buffer | SizeCell | None = None,
    packed_weights_size: SizeCell | None = _NOT_GIVEN,
) -> int:
    """Weights of a convolution, [n_kernels][n_channels][ky][kx]; depthwise: n_channels 1. Thread-safe.

    Args:
        quant_map: 256 fp16 patterns, or None for weights that are fp16 patterns themselves.
        weights: fp16 (uint16 patterns), or uint8 indices with `quant_map`.
        bias: fp16, one per kernel.
        prelu: fp16 slopes, one per kernel, or None; the current headers have this parameter, the wiki does not, so
            that nine arguments by position are those of the wiki.

    Returns 0; -1 for a kernel outside 1 to 7, bad counts, missing arrays, or a buffer that is too small (what fits is
    written); EINVAL when `packed_weights` is not 16-byte aligned.
    """
    if packed_weights_size is _NOT_GIVEN:
        prelu, packed_weights, packed_weights_size = None, prelu, packed_weights
    arrays = (quant_map, weights, bias, prelu)
    return _pack_kernel(False, n_channels, kx, ky, n_kernels, arrays, packed_weights, packed_weights_size)


@DRIVER.checked
def dmp_dv_pack_dil_weights(
    n_channels: int,
    kx: int,
    ky: int,
    n_kernels: int,
    quant_map: Buffer | None,
    weights: Buffer | None,
    bias: Buffer | None,
    prelu: Buffer | None = None,
    packed_weights: Buffer | SizeCell | None = None,
    packed_weights_size: SizeCell | None = _NOT_GIVEN,
) -> int:
    """Weights of a dilated convolution; as `dmp_dv_pack_conv_weights`."""
    if packed_weights_size is _NOT_GIVEN:
        prelu, packed_weights, packed_weights_size = None, prelu, packed_weights
    arrays = (quant_map, weights, bias, prelu)
    return _pack_kernel(True, n_channels, kx, ky, n_kernels, arrays, packed_weights, packed_weights_size)


def _pack_kernel(
    dilated: bool,
    c: int,
    kx: int,
    ky: int,
    m: int,
    arrays: tuple[Buffer | None, ...],
    target: Buffer | None,
    cell: SizeCell | None,
) -> int:
    quant, weights, bias, prelu = arrays
    if not (1 <= kx <= MAX_PACKED_KERNEL and 1 <= ky <= MAX_PACKED_KERNEL):
        return refuse(-1, f"kernel {kx} x {ky} is outside 1 to {MAX_PACKED_KERNEL}")
    if c <= 0 or m <= 0:
        return refuse(-1, f"{c} input and {m} output channels: both must be positive")
    if cell is None or not is_cell(cell):
        return refuse(-1, "packed_weights_size is NULL or not a cell for one number")
    if prelu is not None and readable(prelu) is None:
        return refuse(-1, "prelu is not a contiguous buffer")
    has_map, has_slopes = quant is not None, prelu is not None
    need = (dilated_size if dilated else conv_size)(c, kx, ky, m, has_map, has_slopes)
    room = get_size(cell)
    if target is None:
        return _size_only(cell, room, need)
    out = writable(target)
    if out is None or out.size < room:
        return refuse(-1, f"packed_weights cannot be written or has less than the given {room} bytes")
    if out.ctypes.data % _ALIGN:
        return refuse(errno.EINVAL, f"packed_weights is not aligned to {_ALIGN} bytes")
    try:
        table = _values("weights", weights, m * c * kx * ky, np.uint8 if has_map else np.uint16).reshape(m, c, ky, kx)
        pack = pack_dilated if dilated else pack_conv
        packed = pack(
            table,
            _values("bias", bias, m, np.uint16),
            _values("quant_map", quant, 256, np.uint16) if has_map else None,
            _values("prelu", prelu, m, np.uint16) if has_slopes else None,
        )
    except _MissingError as error:
        return refuse(-1, str(error))
    out[:room] = 0
    return _store(out, packed, cell, room)


@DRIVER.checked
def dmp_dv_pack_fc_weights(
    c_input: int,
    h_input: int,
    w_input: int,
    c_output: int,
    h_output: int,
    w_output: int,
    quant_map: Buffer | None,
    weights: Buffer | None,
    bias: Buffer | None,
    packed_weights: Buffer | None,
    packed_weights_size: SizeCell | None,
) -> int:
    """Fully connected weights [c_out][h_out][w_out][c_in][h_in][w_in], reordered for WHC8 maps. Thread-safe.

    Biases are copied in the given order. Returns 0; EINVAL for bad dimensions, missing arrays or a misaligned buffer;
    -1 for a buffer that is too small (what fits is written).
    """
    inputs, outputs = (c_input, h_input, w_input), (c_output, h_output, w_output)
    if min(*inputs, *outputs) <= 0:
        return refuse(errno.EINVAL, f"dimensions {inputs} to {outputs}: all must be positive")
    if packed_weights_size is None or not is_cell(packed_weights_size):
        return refuse(errno.EINVAL, "packed_weights_size is NULL or not a cell for one number")
    n_in, n_out = int(np.prod(inputs)), int(np.prod(outputs))
    has_map, room = quant_map is not None, get_size(packed_weights_size)
    if packed_weights is None:
        return _size_only(packed_weights_size, room, fc_size(n_in, n_out, has_map), errno.EINVAL)
    out = writable(packed_weights)
    if out is None or out.size < room:
        return refuse(errno.EINVAL, f"packed_weights cannot be written or has less than the given {room} bytes")
    if out.ctypes.data % _ALIGN:
        return refuse(errno.EINVAL, f"packed_weights is not aligned to {_ALIGN} bytes")
    try:
        packed = pack_fc(
            _values("weights", weights, n_in * n_out, np.uint8 if has_map else np.uint16),
            _values("bias", bias, n_out, np.uint16),
            inputs,
            outputs,
            _values("quant_map", quant_map, 256, np.uint16) if has_map else None,
        )
    except _MissingError as error:
        return refuse(errno.EINVAL, str(error))
    return _store(out, packed, packed_weights_size, room)


def _values(name: str, data: Buffer | None, count: int, dtype: Any) -> Array:
    """The first `count` elements behind a pointer."""
    found = readable(data)
    size = count * np.dtype(dtype).itemsize
    if found is None:
        raise _MissingError(f"{name} is NULL or not a contiguous buffer")
    if found.size < size:
        raise _MissingError(f"{name} has {found.size} bytes where {size} are needed")
    return found[:size].view(dtype)


def _size_only(cell: SizeCell, room: int, need: int, code: int = -1) -> int:
    if room:
        return refuse(code, f"packed_weights is NULL but its size is given as {room}")
    set_size(cell, need)
    return 0


def _store(out: Bytes, packed: Bytes, cell: SizeCell, room: int) -> int:
    fits = min(room, packed.size)
    out[:fits] = packed[:fits]
    set_size(cell, packed.size)
    if room < packed.size:
        return refuse(-1, f"packed_weights has {room} bytes where {packed.size} are needed")
    return 0
