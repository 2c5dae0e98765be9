"""What BM1880 kernels share: local ops that run in tiles, global ops that move memory, and views."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from bmcompiler.backends.bm1880.bmkernel.checks import MAX_TPU_DIM, MAX_TPU_HW
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.chip import Dims
from bmcompiler.codegen import kernels
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.kernels import DeviceKernel, dims4, is_activation, is_constant
from bmcompiler.codegen.kernels import LocalKernel as TiledKernel
from bmcompiler.codegen.memory import is_view
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Tiler
from bmcompiler.ir import Operation, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import OpT

TILER = Tiler(CHIP.lmem_size, CHIP.alignment, bytes_per_cycle=8)
MAX_CHANNELS = MAX_TPU_DIM // CHIP.lanes * CHIP.lanes


class LocalKernel(TiledKernel[OpT]):
    """An op computed in the local memory of this chip."""

    tiler = TILER


def pass_cycles(dims: Dims) -> int:
    """Cycles of one element-wise pass: 32 channels and 16 elements at a time (bm1880.md 15)."""
    n, c, h, w = dims
    return n * -(-c // CHIP.lanes) * -(-h * w // CHIP.execution_units)


@lru_cache(maxsize=4096)
def flat_view(shape: tuple[int, ...]) -> Dims:
    """A 4-D shape with the same bytes in the same order, good for element-wise work.

    4-D shapes stay unless few lanes would work. Others become (1, C, 1, W), C the divisor of the size that takes the
    fewest cycles.
    """
    size = prod(shape)
    divisors = (c for c in range(1, min(size, MAX_TPU_DIM) + 1) if size % c == 0)
    flat = min(((1, c, 1, size // c) for c in divisors), key=lambda dims: (pass_cycles(dims), -dims[1]))
    if len(shape) == 4:
        n, c, h, w = shape
        if pass_cycles((n, c, h, w)) <= 2 * pass_cycles(flat):
            return n, c, h, w
    return flat


def kept_view(value: Value) -> Dims:
    """The view of an activation that kernels use when it stays in local memory between ops.

    4-D tensors are what they are. Others have the view of what element-wise ops and reshapes made them of, if that is
    4-D, else a lane per element of a row: element-wise work takes longer than in `flat_view`, but less than moving it.
    """
    source = value
    while source.op is not None and source.type.rank != 4 and (is_view(source.op) or _is_pointwise(source.op)):
        source = source.op.operands[0]
    if source.type.rank == 4 and source.type.size == value.type.size:
        return dims4(source)
    *rows, last = value.shape or (1,)
    return prod(rows), last, 1, 1


def _is_pointwise(op: Operation) -> bool:
    return isinstance(op, TensorOp) and op.pointwise


def elementwise_grid(view: Dims) -> tuple[Axis, ...]:
    """Tiles of any size within the limits of one instruction."""
    n, c, h, w = view
    return (
        Axis(n, 1, MAX_TPU_DIM),
        Axis(c, CHIP.lanes, MAX_CHANNELS),
        Axis(h, 1, MAX_TPU_HW),
        Axis(w, 1, MAX_TPU_HW),
    )


def activation_in(value: Value, view: Dims, box: Box, axes: str = "nchw") -> Buffer:
    """A tile of an activation, or of a constant of that shape, to load, aligned."""
    return kernels.activation_in(value, view, box, axes, lane_bytes=CHIP.lane_bytes(extents(box)))


def activation_out(value: Value, view: Dims, box: Box) -> Buffer:
    """A tile of a result to store, aligned."""
    return kernels.activation_out(value, view, box, lane_bytes=CHIP.lane_bytes(extents(box)))


__all__ = [
    "MAX_CHANNELS",
    "TILER",
    "DeviceKernel",
    "LocalKernel",
    "activation_in",
    "activation_out",
    "dims4",
    "elementwise_grid",
    "flat_view",
    "is_activation",
    "is_constant",
    "kept_view",
    "pass_cycles",
]
