"""What BM1880 kernels share: local ops that run in tiles, global ops that move memory, and views."""

from __future__ import annotations

from functools import lru_cache

from bmcompiler.backends.bm1880.bmkernel.checks import MAX_TPU_DIM, MAX_TPU_HW
from bmcompiler.backends.bm1880.build import Build, Dims, aligned_lane_bytes, extents
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.codegen.schedule import Moved, emit_tiles
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Tiler, TileWork
from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import Kernel, rule

TILER = Tiler(CHIP.lmem_size, CHIP.alignment)
MAX_CHANNELS = MAX_TPU_DIM // CHIP.lanes * CHIP.lanes


class DeviceKernel(Kernel):
    """A kernel of this chip."""

    def emit(self, op: TensorOp, build: Build) -> Moved:
        """Emit all commands of one op; returns what they move."""
        raise TypeError(f"{type(self).__name__} emits nothing")

    @rule("Results must not be empty")
    def something_to_do(self, op: TensorOp) -> bool:
        return all(v.type.size for v in (*op.operands, *op.results))


class LocalKernel(DeviceKernel):
    """An op computed in local memory tile by tile: subclasses give the grid and the work of one tile."""

    def grid(self, op: TensorOp) -> tuple[Axis, ...]:
        """Axes n, c, h, w of the result."""
        raise TypeError(f"{type(self).__name__} has no grid")

    def work(self, op: TensorOp, box: Box) -> TileWork:
        """Buffers and computation of the result's `box`."""
        raise TypeError(f"{type(self).__name__} has no work")

    def emit(self, op: TensorOp, build: Build) -> Moved:
        return emit_tiles(build, self.grid(op), lambda box: self.work(op, box), TILER, op.label)

    def fits(self, op: TensorOp) -> bool:
        """True when some tiling fits local memory."""
        return TILER.choose(self.grid(op), lambda box: self.work(op, box)) is not None


def dims4(value: Value) -> Dims:
    """Shape of a 4-D value."""
    n, c, h, w = value.shape
    return n, c, h, w


@lru_cache(maxsize=4096)
def flat_view(shape: tuple[int, ...]) -> Dims:
    """A 4-D shape with the same bytes in the same order, good for element-wise work.

    4-D shapes stay. Others become (1, C, 1, W) with the divisor C that keeps most lanes and execution units busy.
    """
    if len(shape) == 4 and shape[1] <= MAX_TPU_DIM:
        n, c, h, w = shape
        return n, c, h, w
    size = 1
    for dim in shape:
        size *= dim
    lanes, units = CHIP.lanes, CHIP.execution_units
    divisors = (c for c in range(1, min(size, MAX_TPU_DIM) + 1) if size % c == 0)
    best = min(divisors, key=lambda c: (-(-c // lanes) * -(-size // c // units), -c))
    return 1, best, 1, size // best


def elementwise_grid(view: Dims) -> tuple[Axis, ...]:
    n, c, h, w = view
    return Axis(n), Axis(c, CHIP.lanes, MAX_CHANNELS), Axis(h, 1, MAX_TPU_HW), Axis(w, 1, MAX_TPU_HW)


def activation_in(value: Value, view: Dims, box: Box, axes: str = "nchw") -> Buffer:
    """A tile of an activation to load, aligned."""
    dims = extents(box)
    return Buffer(
        aligned_lane_bytes(dims),
        axes,
        dims[0] * dims[1] * dims[2] * dims[3],
        lambda build, address: build.load_box(value, view, box, address),
    )


def activation_out(value: Value, view: Dims, box: Box, planes: int = 1) -> Buffer:
    """A tile of a result to store, aligned, in a buffer of `planes` such tiles of which the first is stored."""
    dims = extents(box)
    return Buffer(
        planes * aligned_lane_bytes(dims),
        "nchw",
        dims[0] * dims[1] * dims[2] * dims[3],
        lambda build, address: build.store_box(value, view, box, address),
    )


def is_constant(value: Value | None) -> bool:
    """True for weights, and for an absent optional operand."""
    return value is None or (value.op is not None and value.op.name == "tensorop.weight")
