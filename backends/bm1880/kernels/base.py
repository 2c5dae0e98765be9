"""What BM1880 kernels share: local ops that run in tiles, global ops that move memory, and views."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from bmcompiler.backends.bm1880.bmkernel.checks import MAX_TPU_DIM, MAX_TPU_HW
from bmcompiler.backends.bm1880.build import Build, Dims, aligned_lane_bytes, extents
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.codegen.memory import is_weight, root_of
from bmcompiler.codegen.schedule import Moved, emit_tiles
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Tiler, TileWork, Tiling
from bmcompiler.errors import UnsupportedError
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
        tiling = self.tiling(op)
        if tiling is None:
            raise UnsupportedError(f"the smallest tile exceeds {TILER.lane_bytes} bytes of local memory per lane")
        return emit_tiles(build, self.grid(op), lambda box: self.work(op, box), tiling, TILER)

    def tiling(self, op: TensorOp) -> Tiling | None:
        """The best tiling, None when nothing fits; ops that differ in their values only share one search."""
        attributes = tuple((name, value) for name, value in op.attributes.items() if "." not in name)
        shapes = tuple(v.shape for v in (*op.operands, *op.results))
        key = (op.name, attributes, shapes, tuple(map(is_activation, op.operands)))
        return TILER.choose(self.grid(op), lambda box: self.work(op, box), key)

    @rule("The smallest tile must fit local memory", last=True)
    def fits_local_memory(self, op: TensorOp) -> bool:
        return self.tiling(op) is not None


def dims4(value: Value) -> Dims:
    """Shape of a 4-D value."""
    n, c, h, w = value.shape
    return n, c, h, w


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
    dims = extents(box)
    return Buffer(
        aligned_lane_bytes(dims),
        axes,
        dims[0] * dims[1] * dims[2] * dims[3],
        lambda build, address: build.load_box(value, view, box, address),
        not is_activation(value),
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
    return value is None or is_weight(value)


def is_activation(value: Value) -> bool:
    """True for values in neuron memory; views of weights are not."""
    return not is_weight(root_of(value))
