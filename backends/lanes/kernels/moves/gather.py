"""Elements picked or replaced by constant indices: a copy per evenly spaced run of them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from bmcompiler.backends.lanes.build import LaneTransfers
from bmcompiler.backends.lanes.kernels.base import DeviceKernel, is_constant, item_bytes
from bmcompiler.backends.lanes.kernels.moves.global_copies import MOST_COMMANDS, move
from bmcompiler.codegen.pieces import Fill, Piece, dense, selected_pieces, whole
from bmcompiler.codegen.runs import runs
from bmcompiler.codegen.schedule import Moved
from bmcompiler.codegen.strided_copy import Dim
from bmcompiler.ir import Value
from bmcompiler.ops.places.index import (
    Gather,
    GatherElements,
    GatherNd,
    ReverseSequence,
    ScatterElements,
    ScatterNd,
    places,
)
from bmcompiler.target import OpT, rule


class IndexKernel(DeviceKernel[OpT]):
    """Ops with a constant second operand that says where elements come from or go to.

    Whether the device runs them must not depend on values, so the number of indices is limited, not that of runs.
    """

    def uses_local_memory(self, op: OpT) -> bool:
        return False

    @rule("Indices must be constants")
    def constant_indices(self, op: OpT) -> bool:
        return is_constant(op.operands[1])

    @rule(f"There must be at most {MOST_COMMANDS} elements or blocks to pick")
    def few_indices(self, op: OpT) -> bool:
        return self.blocks(op) <= MOST_COMMANDS

    def blocks(self, op: OpT) -> int:
        """Copies if no indices are evenly spaced."""
        return op.operands[1].type.size

    def pieces(self, op: OpT, indices: np.ndarray) -> Iterator[Piece | Fill]:
        """Copies, to be made in order."""
        raise TypeError(f"{type(self).__name__} copies nothing")

    def moving_cycles(self, op: OpT) -> int | None:
        """As if no indices were evenly spaced, and all of one axis."""
        blocks, rows = self.blocks(op), prod(op.type.shape[: getattr(op, "axis", 0)])
        run = max(op.type.size // (blocks * rows), 1)
        return blocks * self.machine.cycles.global_copy(rows, run * item_bytes(op.result))

    def emit(self, op: OpT, build: LaneTransfers) -> Moved:
        return move(build, self.pieces(op, build.coefficients.array(op.operands[1])))


class GatherKernel(IndexKernel[Gather]):
    """gather: runs of indices along one axis."""

    ops = (Gather,)

    def pieces(self, op: Gather, indices: np.ndarray) -> Iterator[Piece | Fill]:
        shape, axis = op.x.shape, op.axis % op.x.type.rank
        source, size = dense(shape)[axis], prod(shape[axis:])
        rows = prod(shape[:axis])
        for run in runs(places(indices, shape[axis]).ravel()):
            axes = [Dim(dim.size, dim.src * source, dim.dst * source) for dim in run.axes]
            dims = [Dim(rows, size, indices.size * source), *axes, Dim(source, 1, 1)]
            yield Piece(op.result, run.at * source, op.x, run.start * source, dims)


class GatherElementsKernel(IndexKernel[GatherElements]):
    """gather_elements: element by element."""

    ops = (GatherElements,)

    def pieces(self, op: GatherElements, indices: np.ndarray) -> Iterator[Piece | Fill]:
        numbers = np.arange(op.x.type.size).reshape(op.x.shape)
        return block_pieces(op.result, op.x, op.evaluate(numbers, indices).ravel())


class GatherNdKernel(IndexKernel[GatherNd]):
    """gather_nd: blocks of the axes that are not indexed."""

    ops = (GatherNd,)

    def blocks(self, op: GatherNd) -> int:
        return prod(op.indices.shape[:-1])

    def pieces(self, op: GatherNd, indices: np.ndarray) -> Iterator[Piece | Fill]:
        outer = op.x.shape[: op.batch_dims + indices.shape[-1]]
        numbers = np.arange(prod(outer)).reshape(outer)
        blocks = op.evaluate(numbers, indices).ravel()
        return block_pieces(op.result, op.x, blocks, op.x.type.size // numbers.size)


class ReverseSequenceKernel(IndexKernel[ReverseSequence]):
    """reverse_sequence: for each member of the batch, the reversed steps one by one and the rest as it is."""

    ops = (ReverseSequence,)

    def blocks(self, op: ReverseSequence) -> int:
        return int(op.x.shape[op.batch_axis] * op.x.shape[op.time_axis])

    def pieces(self, op: ReverseSequence, indices: np.ndarray) -> Iterator[Piece | Fill]:
        shape, rank = op.x.shape, op.x.type.rank
        batch, time = op.batch_axis % rank, op.time_axis % rank
        numbers = np.arange(shape[batch] * shape[time]).reshape(
            [size if axis in (batch, time) else 1 for axis, size in enumerate(shape)]
        )
        steps = op.evaluate(numbers, indices)
        for member in range(shape[batch]):
            order = steps.take(member, batch).ravel()
            order = order // shape[batch] if time < batch else order % shape[time]
            maps = [np.arange(size) for size in shape]
            maps[batch], maps[time] = np.zeros(1, np.int64), order
            offset = member * dense(shape)[batch]
            yield from selected_pieces(op.result, op.x, maps, offset, offset)


class ScatterKernel(IndexKernel[ScatterElements | ScatterNd]):
    """scatter_elements and scatter_nd without reduction: a copy of the operand, then the updates."""

    ops = (ScatterElements, ScatterNd)

    @rule("Only without a reduction", got="reduction")
    def replaces(self, op: ScatterElements | ScatterNd) -> bool:
        return bool(op.reduction == "none")

    def blocks(self, op: ScatterElements | ScatterNd) -> int:
        return op.indices.type.size if isinstance(op, ScatterElements) else prod(op.indices.shape[:-1])

    def pieces(self, op: ScatterElements | ScatterNd, indices: np.ndarray) -> Iterator[Piece | Fill]:
        nd = isinstance(op, ScatterNd)
        outer = op.x.shape[: indices.shape[-1]] if nd else op.x.shape
        updates = np.arange(self.blocks(op)).reshape(indices.shape[:-1] if nd else indices.shape)
        taken = op.evaluate(np.full(outer, -1), indices, updates).ravel()  # of two updates at one place the last
        where = np.flatnonzero(taken >= 0)
        block = op.x.type.size // taken.size
        yield whole(op.result, op.x)
        yield from block_pieces(op.result, op.updates, taken[where], block, where)


def block_pieces(
    target: Value, source: Value, indices: np.ndarray, block: int = 1, positions: np.ndarray | None = None
) -> Iterator[Piece]:
    """Blocks number indices[i] of `source` to blocks number positions[i] (i if absent) of `target`."""
    for run in runs(indices, positions):
        axes = [Dim(dim.size, dim.src * block, dim.dst * block) for dim in run.axes]
        yield Piece(target, run.at * block, source, run.start * block, [*axes, Dim(block, 1, 1)])
