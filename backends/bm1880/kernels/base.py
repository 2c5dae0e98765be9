"""What BM1880 kernels share: local ops that run in tiles, global ops that move memory, and views."""

from __future__ import annotations

from math import prod

from bmcompiler.backends.bm1880.bmkernel.checks import MAX_TPU_DIM
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.kernels.base import DeviceKernel, LocalKernel, dims4, is_activation, is_constant
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.chip import Dims
from bmcompiler.codegen.memory import is_view
from bmcompiler.ir import Operation, Value
from bmcompiler.ops.base import TensorOp

BYTES = ("i8", "u8", "bool")
"""Element types of one byte; a bool is 0 or 1."""


def flat_view(machine: LaneMachine, shape: tuple[int, ...]) -> Dims:
    """A 4-D shape with the same bytes in the same order, good for element-wise work.

    4-D shapes stay unless few lanes would work. Others become (1, C, 1, W), C the divisor of the size that takes the
    fewest cycles.
    """
    return machine.decided(_flat_view, machine.cycles, shape)


def _flat_view(cycles: LaneCycles, shape: tuple[int, ...]) -> Dims:
    size = prod(shape)
    divisors = (c for c in range(1, min(size, MAX_TPU_DIM) + 1) if size % c == 0)
    flat = min(((1, c, 1, size // c) for c in divisors), key=lambda dims: (cycles.pass_cycles(dims, 1), -dims[1]))
    if len(shape) == 4:
        n, c, h, w = shape
        if cycles.pass_cycles((n, c, h, w), 1) <= 2 * cycles.pass_cycles(flat, 1):
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


__all__ = [
    "BYTES",
    "DeviceKernel",
    "LocalKernel",
    "dims4",
    "flat_view",
    "is_activation",
    "is_constant",
    "kept_view",
]
