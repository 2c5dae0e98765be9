"""Ops that only move data: copies inside global memory, or in local memory what other ops leave there.

Permutations that exchange two blocks of axes: transposed matrices, by way of local memory.

Copied inside global memory every byte would be a run of its own. The GDMA transposes a matrix while it loads or stores
it (bm1880.md 5.1), so that both sides of the bus have long runs. In local memory the shorter side makes the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from bmcompiler.backends.bm1880.bmkernel import CTRL_TP, bmk1880_copy_param_t, bmk1880_tpu_copy
from bmcompiler.backends.bm1880.bmkernel.checks import MAX_TPU_DIM
from bmcompiler.backends.bm1880.bmkernel.tensors import matrix_dims
from bmcompiler.backends.bm1880.build import Build, Dims, aligned, base_of, matrix, matrix_lane_bytes
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.kernels.base import BYTES, LocalKernel, dims4, is_activation
from bmcompiler.backends.bm1880.kernels.local_copies import repeat_pixels
from bmcompiler.backends.lanes.kernels.moves import layout
from bmcompiler.backends.lanes.kernels.moves.global_copies import CopyKernel
from bmcompiler.backends.lanes.kernels.moves.local_copies import join_channels
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.pieces import Fill, Piece, concat_pieces, dense
from bmcompiler.codegen.schedule import Moved
from bmcompiler.codegen.strided_copy import Dim
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ir import Operation
from bmcompiler.ops.places.shape import Concat, Pad, Permute, Slice, Split, Tile, Upsample
from bmcompiler.target import OpT, rule

_MOST_STRIDE = 65535
_MOST_COLUMNS = 65504
"""Sizes and row strides of the GDMA have 16 bits (bm1880.md 5.3); tiles are multiples of 32 columns."""
_MOST_COMMANDS = 16
"""Transfers of one tile: beyond that copies inside global memory are not slower."""


class TransposeKernel(LocalKernel[Permute]):
    """A permute that is matrices (batch, columns, rows) -> (batch, rows, columns), bytes."""

    @staticmethod
    def matrices(op: Permute) -> tuple[int, int, int] | None:
        """(batch, rows, columns) of the result, None when the permute is something else."""
        shape = op.operands[0].shape
        order = [axis for axis in op.order if shape[axis] != 1]
        first = next((i for i, (axis, home) in enumerate(zip(order, sorted(order))) if axis != home), len(order))
        rest = order[first:]
        cut = rest.index(min(rest)) if rest else 0
        if not cut or rest[cut:] + rest[:cut] != sorted(rest):
            return None
        batch, rows, columns = (prod(shape[axis] for axis in axes) for axes in (order[:first], rest[:cut], rest[cut:]))
        return batch, rows, columns

    def takes(self, op: Permute) -> bool:
        """Whether this kernel computes the op: the shorter side of the matrices is never cut."""
        found = self.matrices(op)
        if found is None or len(_commands(*found[1:])) > _MOST_COMMANDS:
            return False
        return min(found[1:]) <= MAX_TPU_DIM and self.tiling(op) is not None

    def grid(self, op: Permute) -> tuple[Axis, ...]:
        batch, rows, columns = self.matrices(op) or (1, 1, 1)
        few, many = sorted((rows, columns))
        return Axis(batch, 1, max(1, MAX_TPU_DIM // few)), Axis(many, CHIP.lanes, _MOST_COLUMNS), Axis(1), Axis(1)

    def work(self, op: Permute, box: Box) -> TileWork:
        _, rows, columns = self.matrices(op) or (1, 1, 1)
        few, many = sorted((rows, columns))
        (n0, n1), (start, end) = box[:2]
        extent = few, end - start
        step = matrix_lane_bytes(*extent)
        images = [(n * few * many, (n - n0) * step) for n in range(n0, n1)]
        _, chunks, _, width = matrix_dims(*extent)
        dims: Dims = ((n1 - n0) * few, chunks, 1, width)

        row_bytes = matrix_lane_bytes(1, extent[1])
        plain = [
            (place + start + row * many, (count, extent[1]), at + row * row_bytes)
            for place, at in images
            for row, count in _commands(rows, columns)
        ]

        def load(build: Build, address: int) -> None:
            base, flag = base_of(build.source(op.operands[0]))
            if rows == few:
                for place, at in images:
                    build.load(matrix(address + at, *extent), base + place + start * few, flag | CTRL_TP)
                return
            for place, part, at in plain:
                build.load_matrix(base + place, part, many, address + at, flag)

        def store(build: Build, address: int) -> None:
            base = build.neuron(op.result)
            if rows != few:
                for place, at in images:
                    build.store(matrix(address + at, *extent), base + place + start * few, transposed=True)
                return
            for place, part, at in plain:
                build.store_matrix(base + place, part, many, address + at)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            param = bmk1880_copy_param_t(aligned(outs[0], dims), aligned(ins[0], dims))
            build.tpu(bmk1880_tpu_copy, param)

        nbytes = len(images) * few * (end - start)
        source, target = (Buffer(len(images) * step, "nc", nbytes, transfer) for transfer in (load, store))
        return TileWork((source,), (target,), (), compute, self.machine.cycles.pass_cycles(dims, 1))


def _commands(rows: int, columns: int) -> list[tuple[int, int]]:
    """(first, count) of the rows in local memory that one transfer moves without transposing them."""
    few, many = sorted((rows, columns))
    return [(0, few)] if many <= _MOST_STRIDE else [(row, 1) for row in range(few)]


class ByteCopies(CopyKernel[OpT]):
    """Ops whose result is made of strided copies of bytes inside global memory, however many."""

    @rule("Operands must be activations of bytes: int8, uint8 or bool")
    def byte_types(self, op: OpT) -> bool:
        return all(v.dtype in BYTES and is_activation(v) for v in op.operands)

    def few_commands(self, op: OpT) -> bool:
        """No rule here: a copy takes as many commands as it needs."""
        return True


class ConcatKernel(ByteCopies[Concat]):
    """concat: each operand into its part of the result; along channels in local memory, too; constants by way of it."""

    ops = (Concat,)
    block = 8192

    @rule("Operands must be bytes: int8, uint8 or bool")
    def byte_types(self, op: Concat) -> bool:
        return all(v.dtype in BYTES for v in op.operands)

    @rule("A constant operand must lie in at most 256 runs of the result", got="axis")
    def few_runs(self, op: Concat) -> bool:
        runs = prod(op.type.shape[: op.axis % op.type.rank])
        return bool(runs <= 256 or all(map(is_activation, op.operands)))

    def uses_local_memory(self, op: Concat) -> bool:
        return not all(map(is_activation, op.operands))

    def whole(self, op: Concat) -> TileWork | None:
        return self.boxed(op, tuple((0, size) for size in op.type.shape))

    def boxed(self, op: Concat, box: Box) -> TileWork | None:
        joins_channels = op.type.rank == 4 and op.axis % 4 == 1 and box[1] == (0, op.type.shape[1])
        if not joins_channels or self.uses_local_memory(op) or len(set(op.operands)) != len(op.operands):
            return None
        useful = self.chip.fits_fields(extents(box)) and any(map(_computes, op.result.users))
        return join_channels(self.machine, op, box) if useful else None

    def emit(self, op: Concat, build: Build) -> Moved:
        moved = super().emit(op, build)
        for piece in concat_pieces(op):
            if not is_activation(piece.source):
                base, _ = base_of(build.source(piece.source))
                rows, run = piece.dims
                for row in range(rows.size):
                    place = build.neuron(piece.target) + piece.at + row * rows.dst
                    self.store_constant(build, base + row * rows.src, place, run.size)
                size = rows.size * run.size
                moved = Moved(moved.loaded + size, moved.stored + size, moved.weights + size, 1)
        return moved

    def store_constant(self, build: Build, source: int, place: int, size: int) -> None:
        """Bring bytes of weight memory to neuron memory, a block at a time."""
        for start in range(0, size, self.block):
            extent = (1, 1, 1, min(self.block, size - start))
            build.load_weight(source + start, extent, 0, align=True)
            build.store(aligned(0, extent), place + start)

    def pieces(self, op: Concat) -> Iterable[Piece | Fill]:
        return (piece for piece in concat_pieces(op) if is_activation(piece.source))


def _computes(user: Operation) -> bool:
    """False for ops that copy inside global memory, for which parts are best made in place there."""
    return not isinstance(user, (Concat, Split, Slice, Permute, Tile, Pad))


class SplitKernel(ByteCopies[Split], layout.SplitKernel):
    """split: each result from its part of the operand."""


class SliceKernel(ByteCopies[Slice], layout.SliceKernel):
    """slice: one strided copy, along axes with negative steps one per index."""

    @rule("At most 256 elements along axes with negative steps", got="steps")
    def few_backward(self, op: Slice) -> bool:
        return prod(size for size, step in zip(op.type.shape, op.steps) if step < 0) <= 256


class PermuteKernel(ByteCopies[Permute], layout.PermuteKernel):
    """permute: matrices are transposed by way of local memory; else one strided copy, byte by byte at worst."""

    def __init__(self, machine: LaneMachine) -> None:
        super().__init__(machine)
        self._transpose = TransposeKernel(machine)

    def uses_local_memory(self, op: Permute) -> bool:
        return self._transpose.takes(op)

    def moving_cycles(self, op: Permute) -> int | None:
        return self._transpose.estimate(op) if self._transpose.takes(op) else super().moving_cycles(op)

    def whole(self, op: Permute) -> TileWork | None:
        return self._transpose.whole(op) if self._transpose.takes(op) else None

    def emit(self, op: Permute, build: Build) -> Moved:
        return self._transpose.emit(op, build) if self._transpose.takes(op) else super().emit(op, build)


class RepeatKernel(ByteCopies[Tile]):
    """tile: a copy of the operand; then, axis by axis, as much again of what is there, until it is enough."""

    ops = (Tile,)

    def pieces(self, op: Tile) -> Iterable[Piece | Fill]:
        source, result = op.operands[0], op.result
        inside, outside = dense(source.shape), dense(op.type.shape)
        yield Piece(result, 0, source, 0, [Dim(*each) for each in zip(source.shape, inside, outside)])
        sizes = list(source.shape)
        for axis in reversed(range(len(sizes))):
            most = op.type.shape[axis]
            while sizes[axis] < most:
                have = sizes[axis]
                more = min(have, most - have)
                dims = [Dim(more if i == axis else n, step, step) for i, (n, step) in enumerate(zip(sizes, outside))]
                yield Piece(result, have * outside[axis], result, 0, dims)
                sizes[axis] += more


class PadKernel(ByteCopies[Pad], layout.PadKernel):
    """pad with a constant: the result is filled from a constant block, then the operand is copied into it."""

    block = 8192

    @rule("Only constant padding", got="mode")
    def constant_mode(self, op: Pad) -> bool:
        return bool(op.mode == "constant")

    def uses_local_memory(self, op: Pad) -> bool:
        return True

    def boxed(self, op: Pad, box: Box) -> TileWork | None:
        """Zeros alone, which one command makes."""
        return None if op.value else super().boxed(op, box)

    def pieces(self, op: Pad) -> Iterable[Piece | Fill]:
        return (piece for piece in super().pieces(op) if isinstance(piece, Piece))

    def emit(self, op: Pad, build: Build) -> Moved:
        size, value = op.type.size, int(op.value) & 0xFF
        block = min(self.block, size)
        offset = build.coefficients.constant(bytes([value]) * block)
        build.load_weight(offset, (1, 1, 1, block), 0, align=True)
        base = build.neuron(op.result)
        for start in range(0, size, block):
            part = aligned(0, (1, 1, 1, min(block, size - start)))
            build.store(part, base + start)
        moved = super().emit(op, build)
        return Moved(moved.loaded + block, moved.stored + size, block, 1)


class UpsampleKernel(LocalKernel[Upsample]):
    """upsample: scale_h * scale_w strided copies inside local memory; a part may begin inside a block."""

    ops = (Upsample,)

    @rule("Operand must be an int8 activation")
    def byte_types(self, op: Upsample) -> bool:
        return op.x.dtype == "i8" and is_activation(op.x)

    def grid(self, op: Upsample) -> tuple[Axis, ...]:
        images, channels, *axes = self.machine.elementwise_grid(dims4(op.result), 1)
        rows, columns = (replace(a, step=f, most=f * max(1, a.most // f)) for a, f in zip(axes, op.scale))
        return images, channels, rows, columns

    def work(self, op: Upsample, box: Box) -> TileWork:
        return repeat_pixels(self.machine, op, box)

    def boxed(self, op: Upsample, box: Box) -> TileWork | None:
        return self._part(op, tuple(replace(axis, step=1) for axis in self.grid(op)), box)
