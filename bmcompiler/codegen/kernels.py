"""What the kernels of lane-based chips share: ops that move memory, and ops computed in local memory tile by tile."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from math import prod
from typing import Any, ClassVar

from bmcompiler.chip import Dims
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.schedule import Moved, emit_tiles
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Contents, Runs, Tiler, TileWork, Tiling
from bmcompiler.errors import UnsupportedError
from bmcompiler.ir import Value
from bmcompiler.ir.keys import is_weight
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.places.shape import Reshape
from bmcompiler.target import Kernel, OpT, rule


class DeviceKernel(Kernel[OpT]):
    """A kernel that emits commands through its chip's build."""

    def emit(self, op: OpT, build: Any) -> Moved:
        """Emit all commands of one op; returns what they move."""
        raise TypeError(f"{type(self).__name__} emits nothing")

    def estimate(self, op: OpT) -> int | None:
        """Estimated cycles of the op, transfers and overlap included; None when the kernel has no estimate."""
        return None

    def uses_local_memory(self, op: OpT) -> bool:
        """False when the op only moves data inside global memory."""
        return True

    def whole(self, op: OpT) -> TileWork | None:
        """The op as one tile, when it can be computed so; values may then stay in local memory between ops."""
        return None

    def boxed(self, op: OpT, box: Box) -> TileWork | None:
        """What computes `box` of the 4-D result alone, from boxes of the operands; None when that cannot be.

        Buffers say what they hold (`Buffer.holds`), so that other ops may make it and read it.
        """
        return None

    @rule("Results must not be empty")
    def something_to_do(self, op: OpT) -> bool:
        return all(v.type.size for v in (*op.operands, *op.results))


class LocalKernel(DeviceKernel[OpT]):
    """An op computed in local memory tile by tile: subclasses give the grid and the work of one tile."""

    tiler: Tiler
    only_in_commands: ClassVar[tuple[str, ...]] = ()
    """Attributes that commands hold and that tilings do not depend on, but for what `tiling_facts` says of them."""

    grid_of_result: ClassVar[bool] = True
    """Whether a grid as large as the 4-D result has its axes; grids of products begin with rows, whatever the sizes."""

    def tiling_facts(self, op: OpT) -> Hashable:
        """What of the attributes `only_in_commands` decides buffers or cycles of a tile."""
        return ()

    def grid(self, op: OpT) -> tuple[Axis, ...]:
        """Axes n, c, h, w of the result."""
        raise TypeError(f"{type(self).__name__} has no grid")

    def work(self, op: OpT, box: Box) -> TileWork:
        """Buffers and computation of the result's `box`."""
        raise TypeError(f"{type(self).__name__} has no work")

    def whole_work(self, op: OpT, box: Box) -> TileWork:
        """`work` of the whole result or a part of it, best in layouts that other ops read."""
        return self.work(op, box)

    def emit(self, op: OpT, build: Any) -> Moved:
        tiling = self.tiling(op, build.overlap)
        if tiling is None:
            raise UnsupportedError(f"the smallest tile exceeds {self.tiler.lane_bytes} bytes of local memory per lane")
        return emit_tiles(build, self.grid(op), lambda box: self.work(op, box), tiling, self.tiler)

    def tiling(self, op: OpT, overlap: bool = True) -> Tiling | None:
        """The best tiling, None when nothing fits; ops that differ in their values only share one search.

        Args: overlap: whether transfers run beside computation.
        """
        return self.tiler.choose(*self._search(op), overlap)

    def _search(self, op: OpT) -> tuple[tuple[Axis, ...], Callable[[Box], TileWork], Hashable]:
        """What `Tiler` needs. Several kernels may be asked about one op, each for tiles of its own."""
        attributes = tuple(
            (name, value)
            for name, value in op.attributes.items()
            if "." not in name and name not in self.only_in_commands
        )
        types = tuple((v.shape, v.dtype) for v in (*op.operands, *op.results))
        read = tuple((is_activation(v), op.operands.index(v)) for v in op.operands)  # one buffer where it is read twice
        key = (type(self), op.name, attributes, self.tiling_facts(op), types, read)
        return self.grid(op), lambda box: self.work(op, box), key

    def estimate(self, op: OpT) -> int | None:
        return self.tiler.estimated(*self._search(op))

    def whole(self, op: OpT) -> TileWork | None:
        grid = self.grid(op)
        return self._part(op, grid, tuple((0, axis.size) for axis in grid))

    def boxed(self, op: OpT, box: Box) -> TileWork | None:
        if len(op.results) != 1 or not self.grid_of_result:
            return None
        grid = self.grid(op)
        part = self.in_grid(op, box, tuple(axis.size for axis in grid))
        work = None if part is None or not all(map(_allows, grid, part)) else self._part(op, grid, part)
        return work if work is None or part == box else replace(work, box=part)

    def in_grid(self, op: OpT, box: Box, sizes: tuple[int, ...]) -> Box | None:
        """A box of the result as one of a grid of these sizes; None where that has other axes."""
        return box if sizes == op.type.shape else None

    def _part(self, op: OpT, grid: tuple[Axis, ...], box: Box) -> TileWork | None:
        if any(hi - lo > (axis.most or axis.size) for axis, (lo, hi) in zip(grid, box)):
            return None
        if any(lo // axis.period != (hi - 1) // axis.period for axis, (lo, hi) in zip(grid, box) if axis.period):
            return None
        work = self.whole_work(op, box)
        buffers = (*work.inputs, *work.outputs)
        needed = sum(map(self.tiler.rounded, (*(buffer.lane_bytes for buffer in buffers), *work.scratch)))
        return work if needed <= self.tiler.lane_bytes else None

    @rule("The smallest tile must fit local memory", last=True)
    def fits_local_memory(self, op: OpT) -> bool:
        return self.tiler.fits(*self._search(op))


class ViewKernel(DeviceKernel[TensorOp]):
    """reshape: the result is its operand's memory."""

    ops = (Reshape,)

    def uses_local_memory(self, op: TensorOp) -> bool:
        return False

    def emit(self, op: TensorOp, build: Any) -> Moved:
        return Moved()


def _allows(axis: Axis, interval: tuple[int, int]) -> bool:
    """Whether tiles may begin and end so."""
    lo, hi = interval
    whole = (lo, hi) == (0, axis.size)
    return whole or (axis.cuts and lo % axis.step == 0 and (hi % axis.step == 0 or hi == axis.size))


def activation_in(value: Value, view: Dims, box: Box, axes: str = "nchw", *, lane_bytes: int) -> Buffer:
    """A tile to load of an activation, or of a constant stored as it stands, seen as `view`.

    The chip's build has `load_box`, which gives it `lane_bytes` bytes per lane.
    """
    return Buffer(
        lane_bytes,
        axes,
        prod(extents(box)) * value.type.numpy.itemsize,
        lambda build, address: build.load_box(value, view, box, address),
        not is_activation(value),
        contents_of(value, view, box),
        runs_of(view, box),
    )


def activation_out(value: Value, view: Dims, box: Box, *, lane_bytes: int) -> Buffer:
    """A tile to store of a result, by the `store_box` of the chip's build."""
    return Buffer(
        lane_bytes,
        "nchw",
        prod(extents(box)) * value.type.numpy.itemsize,
        lambda build, address: build.store_box(value, view, box, address),
        contents=contents_of(value, view, box),
        runs=runs_of(view, box),
    )


def runs_of(view: Dims, box: Box) -> Runs:
    """In how many runs a box of a dense tensor moves; in lanes, each channel is one."""
    sizes = extents(box)
    run = 1
    for size, whole in zip(reversed(sizes), reversed(view)):
        run *= size
        if size != whole:
            break
    return Runs(prod(sizes) // max(run, 1), sizes[0] * sizes[1])


def contents_of(value: Value, view: Dims, loaded: Box | Dims) -> Contents | None:
    """What a buffer in the aligned layout of its elements holds of an activation seen as `view`.

    Channels start at aligned addresses, so that only images, channels and the size of a channel make the layout.

    Args: loaded: a box, or the shape of what begins with the first element: then None unless it is all.
    """
    box = tuple((0, size) if isinstance(size, int) else size for size in loaded)
    if not is_activation(value) or (box != tuple(loaded) and extents(box) != view):
        return None
    n, c, h, w = view
    if extents(box) == view:
        return Contents(root_of(value), (n, c, h * w))
    return Contents(root_of(value), view, box)


def dims4(value: Value) -> Dims:
    """Shape of a 4-D value."""
    n, c, h, w = value.shape
    return n, c, h, w


def is_constant(value: Value | None) -> bool:
    """True for weights, and for an absent optional operand."""
    return value is None or is_weight(value)


def is_activation(value: Value) -> bool:
    """True for values in neuron memory; views of weights are not."""
    return not is_weight(root_of(value))
