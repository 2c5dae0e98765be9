"""Sizes of tensors, as programs ask for them beyond the vendor's manual."""

from __future__ import annotations

from math import prod

from bmcompiler.backends.bm1880.bmkernel.context import Bmk1880Context
from bmcompiler.backends.bm1880.bmkernel.prototypes import KERNEL
from bmcompiler.backends.bm1880.bmkernel.tensors import lane_bytes, shape_t, tensor_lmem
from bmcompiler.errors import EncodingError


@KERNEL.checked
def shape_equal(s1: shape_t, s2: shape_t) -> bool:
    """Whether both are the same shape."""
    return s1 == s2


@KERNEL.checked
def bmk1880_tl_shape_to_size(ctx: Bmk1880Context, s: shape_t, aligned: bool, fmt: int) -> int:
    """Bytes of a lane that a tensor takes. Raises EncodingError for formats and shapes that no tensor has."""
    return lane_bytes(tensor_lmem(0, s, fmt, bool(aligned)).shape, bool(aligned))


@KERNEL.checked
def bmk1880_tl_size(ctx: Bmk1880Context, tlp: tensor_lmem) -> int:
    """Bytes of a lane that a tensor takes."""
    return lane_bytes(tlp.shape, tlp.aligned)


@KERNEL.checked
def bmk1880_tg_shape_to_size(s: shape_t, fmt: int) -> int:
    """Bytes of a tensor in global memory. Raises EncodingError for formats and shapes that no tensor has."""
    if s.dim not in (2, 4) or min(s) < 1:
        raise EncodingError(f"bmk1880_tg_shape_to_size: s is {s}, no tensor or matrix of positive sizes")
    tensor_lmem(0, shape_t(4, 1, 1, 1, 1), fmt)
    return prod(s.dims)
