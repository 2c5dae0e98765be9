"""GDMA calls: loads, stores, copies and the LRN shift (bm1880.md 5)."""

from __future__ import annotations

from bmcompiler.backends.bm1880.bmkernel.checks import check_aligned, check_range, check_unaligned, fail, kernel_call
from bmcompiler.backends.bm1880.bmkernel.context import Bmk1880Context
from bmcompiler.backends.bm1880.bmkernel.sync import Op
from bmcompiler.backends.bm1880.bmkernel.tensors import packed_strides, shape_t, stride_t, tensor_gmem, tensor_lmem
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.isa import (
    CTRL_NEURON,
    CTRL_NULL,
    CTRL_TP,
    CTRL_WEIGHT,
    CTRL_WINOGRAD,
    FLAG_NEURON,
    FLAG_WEIGHT,
    WINOGRAD_SCALE_SHIFT,
    Direction,
    GdmaFunction,
)

_Dims = tuple[int, int, int, int]
_SCALE_BITS = 15 << WINOGRAD_SCALE_SHIFT
_BASES = CTRL_NEURON | CTRL_WEIGHT
_LOW = 0xFFFFFFFF
_MAX_DIM = 65535
_MAX_H_STRIDE = 65535
_MAX_LRN_STEP = 15
_FLAGS = {0: 0, CTRL_NEURON: FLAG_NEURON, CTRL_WEIGHT: FLAG_WEIGHT}
_WINO_IN, _WINO_OUT = 9, 16  # bytes of a 3x3 kernel and of its 4x4 transform


@kernel_call
def bmk1880_gdma_load(ctx: Bmk1880Context, t: tensor_lmem, gaddr: int, ctrls: int) -> Op:
    """Copy a packed tensor or matrix from global memory into `t`.

    Args:
        gaddr: device address, or offset from the neuron or weight base when `ctrls` says so.
        ctrls: CTRL_NEURON or CTRL_WEIGHT, with CTRL_TP (n and c, or rows and columns, exchanged in global memory) or
            CTRL_WINOGRAD (3x3 kernels become 4x4 ones; scale factor 0..15 in bits 31:28).
    """
    flags = _flags(ctrls, CTRL_TP | CTRL_WINOGRAD | _SCALE_BITS)
    if ctrls & CTRL_WINOGRAD:
        move = _load_winograd(t, ctrls) | _global("src", gaddr) | _local("dst", t.address)
        return ctx.emit_gdma(move, flags)
    if ctrls & _SCALE_BITS:
        fail("ctrls", hex(ctrls), "bits 31:28 need CTRL_WINOGRAD")
    move = _load_matrix(t, ctrls) if t.is_matrix else _load_tensor(t, ctrls)
    move |= _global("src", gaddr) | _local("dst", t.address)
    return ctx.emit_gdma(move, flags)


@kernel_call
def bmk1880_gdma_store(ctx: Bmk1880Context, t: tensor_lmem, gaddr: int, ctrls: int) -> Op:
    """Copy `t` to a packed tensor or matrix in global memory; `ctrls` as in load, without CTRL_WINOGRAD."""
    flags = _flags(ctrls, CTRL_TP)
    move = _store_matrix(t, ctrls) if t.is_matrix else _store_tensor(t, ctrls)
    move |= _global("dst", gaddr) | _local("src", t.address)
    return ctx.emit_gdma(move, flags)


@kernel_call
def bmk1880_gdma_load_stride(ctx: Bmk1880Context, t: tensor_lmem, gaddr: int, stride: stride_t, ctrls: int) -> Op:
    """Load with explicit strides (bytes) in global memory; the innermost stride is 1."""
    flags = _flags(ctrls, 0)
    _check_global_strides(stride)
    if t.is_matrix:
        move = _load_matrix(t, CTRL_NULL) | _strides("dst", t.strides)
        move |= {"enable_stride": 1, "src_h_str": stride.row}
    else:
        move = _plain(Direction.LOAD, t) | _strides("src", stride) | _strides("dst", t.strides)
        move["enable_stride"] = 1
    move |= _global("src", gaddr) | _local("dst", t.address)
    return ctx.emit_gdma(move, flags)


@kernel_call
def bmk1880_gdma_store_stride(ctx: Bmk1880Context, t: tensor_lmem, gaddr: int, stride: stride_t, ctrls: int) -> Op:
    """Store with explicit strides (bytes) in global memory; the innermost stride is 1."""
    flags = _flags(ctrls, 0)
    _check_global_strides(stride)
    if t.is_matrix:
        move = _store_matrix(t, CTRL_NULL) | _strides("src", t.strides)
        move |= {"enable_stride": 1, "dst_h_str": stride.row}
    else:
        move = _plain(Direction.STORE, t) | _strides("dst", stride) | _strides("src", t.strides)
        move["enable_stride"] = 1
    move |= _global("dst", gaddr) | _local("src", t.address)
    return ctx.emit_gdma(move, flags)


@kernel_call
def bmk1880_gdma_copy_gmem(ctx: Bmk1880Context, dst: tensor_gmem, src: tensor_gmem, ctrls: int) -> Op:
    """Copy a tensor or matrix inside global memory; shapes may differ when the element counts agree.

    With CTRL_TP n and c are exchanged (tensors only): `dst` has shape (C, N, H, W) of `src`.
    """
    flags = _flags(ctrls, CTRL_TP)
    if (dst.shape.dim == 2) != (src.shape.dim == 2):
        fail("dst", dst.shape, f"must be of the same kind, tensor or matrix, as src {src.shape}")
    _check_dims("dst", dst.shape.dims)
    _check_global_strides(src.stride)
    _check_global_strides(dst.stride)
    transposed = bool(ctrls & CTRL_TP)
    n, c, h, w = src.shape.dims
    if transposed and (src.shape.dim == 2 or dst.shape.dims != (c, n, h, w)):
        fail("dst", dst.shape, f"must be {(c, n, h, w)}, a tensor like src with n and c exchanged (CTRL_TP)")
    if dst.shape.elements != src.shape.elements:
        fail("dst", f"{dst.shape} of {dst.shape.elements} elements", f"src has {src.shape.elements}")
    move = _shape(Direction.GLOBAL, src.shape.dims, dst.shape.dims)
    move |= _strides("src", src.stride) | _strides("dst", dst.stride)
    move |= {"enable_stride": 1, "function": GdmaFunction.TRANSPOSE if transposed else GdmaFunction.NONE}
    move |= _global("src", src.addr) | _global("dst", dst.addr)
    return ctx.emit_gdma(move, flags)


@kernel_call
def bmk1880_gdma_copy_lmem(ctx: Bmk1880Context, dst: tensor_lmem, src: tensor_lmem) -> Op:
    """Copy an aligned tensor inside local memory; (H, W) may differ when H * W agrees."""
    for what, t in (("dst", dst), ("src", src)):
        _check_tensor(what, t)
        check_aligned(what, t)
    a, b = dst.shape, src.shape
    if (a.n, a.c, a.h * a.w) != (b.n, b.c, b.h * b.w):
        fail("dst", a, f"must have the n, c and h * w of src {b}")
    move = _shape(Direction.LOCAL, b.dims, a.dims)
    return ctx.emit_gdma(move | _local("src", src.address) | _local("dst", dst.address))


@kernel_call
def bmk1880_gdma_lrn_shift(
    ctx: Bmk1880Context, dst: tensor_lmem, src: tensor_lmem, right_shift: bool, lrn_step: int
) -> Op:
    """Move channels by `lrn_step` (0..15, less than C) towards higher (right) or lower ones; exposed ones become 0."""
    for what, t in (("dst", dst), ("src", src)):
        _check_tensor(what, t)
        check_aligned(what, t)
    if dst.shape != src.shape:
        fail("dst", dst.shape, f"must have the shape of src {src.shape}")
    n, c, h, w = src.shape.dims
    check_range("lrn_step", lrn_step, 0, min(_MAX_LRN_STEP, c - 1))
    move = _shape(Direction.LOCAL, (n, c - lrn_step, h, w), (n, c - lrn_step, h, w))
    move |= _strides("src", src.strides) | _strides("dst", dst.strides)
    move |= {"enable_stride": 1, "function": GdmaFunction.LRN_SHIFT, "copy_chw": 1}
    move |= {"lrn_step": lrn_step, "lrn_right": int(right_shift)}
    moved = lrn_step if right_shift else 0
    move |= _local("dst", _channel_address(dst, moved)) | _local("src", _channel_address(src, lrn_step - moved))
    return ctx.emit_gdma(move)


def _channel_address(t: tensor_lmem, channel: int) -> int:
    """Flat local address of a channel; past the last lane it continues in lane 0, one channel stride further."""
    wraps, lane = divmod(t.lane + channel, CHIP.lanes)
    return lane * CHIP.lmem_size + t.offset + wraps * t.strides.c


def _load_tensor(t: tensor_lmem, ctrls: int) -> dict[str, int]:
    if not ctrls & CTRL_TP:
        return _plain(Direction.LOAD, t) | _unaligned_strides("src", "dst", t)
    _check_transposed(t)
    n, c, h, w = t.shape.dims
    return _shape(Direction.LOAD, (c, n, h, w), (n, c, h, w)) | {"function": GdmaFunction.TRANSPOSE}


def _store_tensor(t: tensor_lmem, ctrls: int) -> dict[str, int]:
    if not ctrls & CTRL_TP:
        return _plain(Direction.STORE, t) | _unaligned_strides("dst", "src", t)
    _check_transposed(t)
    n, c, h, w = t.shape.dims
    return _shape(Direction.STORE, (n, c, h, w), (c, n, h, w)) | {"function": GdmaFunction.TRANSPOSE}


def _plain(direction: Direction, t: tensor_lmem) -> dict[str, int]:
    _check_tensor("t", t)
    dims = t.shape.dims
    return _shape(direction, dims, dims) | {"copy_chw": 1}


def _unaligned_strides(outside: str, inside: str, t: tensor_lmem) -> dict[str, int]:
    if t.aligned and t.stride is None:
        return {}
    return {"enable_stride": 1} | _strides(outside, packed_strides(t.shape.dims)) | _strides(inside, t.strides)


def _load_matrix(t: tensor_lmem, ctrls: int) -> dict[str, int]:
    rows, _, _, width = t.dims
    outer, inner = _matrix_in_memory(t, ctrls)
    move = _shape(Direction.LOAD, (rows, 1, outer, inner), (rows, t.dims[1], 1, width))
    return move | _matrix_bits(ctrls) | {"src_h_str": inner}


def _store_matrix(t: tensor_lmem, ctrls: int) -> dict[str, int]:
    outer, inner = _matrix_in_memory(t, ctrls)
    move = _shape(Direction.STORE, t.dims, (1, 0, outer, inner))
    return move | _matrix_bits(ctrls) | {"dst_h_str": inner}


def _matrix_in_memory(t: tensor_lmem, ctrls: int) -> tuple[int, int]:
    """(rows, columns) of the matrix in global memory."""
    _check_dims("t", t.shape.dims)
    if not t.has_aligned_layout:
        fail("strides of t", tuple(t.strides), "a matrix must have the default layout")
    rows, cols = t.shape.row, t.shape.col
    return (cols, rows) if ctrls & CTRL_TP else (rows, cols)


def _matrix_bits(ctrls: int) -> dict[str, int]:
    return {"matrix": 1, "function": GdmaFunction.TRANSPOSE if ctrls & CTRL_TP else GdmaFunction.NONE}


def _load_winograd(t: tensor_lmem, ctrls: int) -> dict[str, int]:
    """bm1880.md 5.4: `t` is unaligned (IC, OC, h, 16k); global memory holds 9 bytes for each 16 of `t`."""
    if ctrls & CTRL_TP:
        fail("ctrls", hex(ctrls), "CTRL_WINOGRAD and CTRL_TP exclude each other")
    _check_tensor("t", t)
    check_unaligned("t", t)
    n, c, h, w = t.shape.dims
    if w % _WINO_OUT:
        fail("shape of t", t.shape, f"w must be a multiple of {_WINO_OUT} for CTRL_WINOGRAD")
    source = (n, c, h, w // _WINO_OUT * _WINO_IN)
    move = _shape(Direction.LOAD, source, t.shape.dims)
    move |= _strides("src", packed_strides(source)) | _strides("dst", t.strides)
    scale = ctrls >> WINOGRAD_SCALE_SHIFT & 15
    return move | {"enable_stride": 1, "function": GdmaFunction.WINOGRAD, "lrn_step": scale}


def _shape(direction: Direction, src: _Dims, dst: _Dims) -> dict[str, int]:
    _check_dims("source", src)
    return {
        "direction": direction,
        "src_n": src[0],
        "src_c": src[1],
        "src_h": src[2],
        "src_w": src[3],
        "dst_c": dst[1],
        "dst_h": dst[2],
        "dst_w": dst[3],
    }


def _strides(side: str, stride: stride_t) -> dict[str, int]:
    return {
        f"{side}_n_str": stride.n,
        f"{side}_c_str_lo": stride.c & _MAX_DIM,
        f"{side}_c_str_hi": stride.c >> 16,
        f"{side}_h_str": stride.h,
    }


def _local(side: str, laddr: int) -> dict[str, int]:
    return {f"{side}_addr_lo": CHIP.lmem_window + laddr}


def _global(side: str, gaddr: int) -> dict[str, int]:
    address = gaddr + CHIP.global_base
    if gaddr < 0 or address >> 40:
        fail("global address", hex(gaddr), "must be 0..0xfeffffffff")
    return {f"{side}_addr_lo": address & _LOW, f"{side}_addr_hi": address >> 32}


def _flags(ctrls: int, allowed: int) -> int:
    flags = _FLAGS.get(ctrls & _BASES)
    if flags is None:
        fail("ctrls", hex(ctrls), "CTRL_NEURON and CTRL_WEIGHT exclude each other")
    if ctrls & ~(allowed | _BASES):
        fail("ctrls", hex(ctrls), "has bits this call does not take")
    return flags


def _check_tensor(what: str, t: tensor_lmem) -> None:
    if t.is_matrix:
        fail(what, f"a matrix {t.shape}", "must be a tensor")
    if t.strides.w != 1:
        fail(f"strides of {what}", tuple(t.strides), "the w stride must be 1")


def _check_dims(what: str, dims: _Dims) -> None:
    if max(dims) > _MAX_DIM or min(dims) < 1:
        fail(f"shape of {what}", dims, f"each dimension must be 1..{_MAX_DIM}")


def _check_transposed(t: tensor_lmem) -> None:
    # the engine works out the strides of a transposition itself, for the aligned layout only
    _check_tensor("t", t)
    if not t.has_aligned_layout:
        fail("t", f"{t.shape} with strides {tuple(t.strides)}", "must have the aligned layout for CTRL_TP")


def _check_global_strides(stride: stride_t) -> None:
    if stride.w not in (0, 1):
        fail("global strides", tuple(stride), "the innermost stride must be 1")
    if min(stride) < 0 or stride.h > _MAX_H_STRIDE or max(stride.n, stride.c) > _LOW:
        fail("global strides", tuple(stride), f"h (row) must be 0..{_MAX_H_STRIDE}, n and c 0..{_LOW}")


def global_tensor(addr: int, shape: shape_t) -> tensor_gmem:
    """A packed tensor or matrix in global memory."""
    strides = stride_t(0, 0, shape.col, 1) if shape.dim == 2 else packed_strides(shape.dims)
    return tensor_gmem(addr, shape, strides)
