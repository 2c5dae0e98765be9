"""Ops that only move data: copies inside global memory, or in local memory what other ops leave there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from bmcompiler.backends.bm1880.bmkernel import stride_t4
from bmcompiler.backends.bm1880.bmkernel.checks import MAX_TPU_DIM, MAX_TPU_HW
from bmcompiler.backends.bm1880.build import Build, aligned
from bmcompiler.backends.bm1880.chip import CHIP, COPY_LIMITS
from bmcompiler.backends.bm1880.kernels.base import MAX_CHANNELS, DeviceKernel, LocalKernel, is_activation
from bmcompiler.backends.bm1880.kernels.local_copies import join_channels, repeat_pixels
from bmcompiler.backends.bm1880.kernels.transpose import TransposeKernel
from bmcompiler.codegen.pieces import Piece, concat_pieces, dense, permute_pieces, split_pieces
from bmcompiler.codegen.schedule import Moved
from bmcompiler.codegen.strided_copy import Dim, copy_commands
from bmcompiler.codegen.tiling import Axis, Box, TileWork
from bmcompiler.ir import Operation
from bmcompiler.ops.shape import Concat, Pad, Permute, Slice, Split, Tile, Upsample
from bmcompiler.target import OpT, rule


class CopyKernel(DeviceKernel[OpT]):
    """Ops whose result is made of strided copies of bytes inside global memory."""

    @rule("Operands must be int8 or uint8 activations")
    def byte_types(self, op: OpT) -> bool:
        return all(v.dtype in ("i8", "u8") and is_activation(v) for v in op.operands)

    def uses_local_memory(self, op: OpT) -> bool:
        return False

    def pieces(self, op: OpT) -> Iterable[Piece]:
        """Every copy; elements are bytes."""
        raise TypeError(f"{type(self).__name__} copies nothing")

    def emit(self, op: OpT, build: Build) -> Moved:
        moved = Moved(tiles=1)
        for piece in self.pieces(op):
            destination, origin = build.neuron(piece.target) + piece.at, build.neuron(piece.source) + piece.start
            if destination == origin and all(dim.src == dim.dst for dim in piece.dims if dim.size > 1):
                continue  # made in place
            for command in copy_commands(piece.dims, COPY_LIMITS):
                build.copy_global(
                    destination + command.dst,
                    origin + command.src,
                    command.shape,
                    stride_t4(*command.dst_strides),
                    stride_t4(*command.src_strides),
                )
            size = prod(d.size for d in piece.dims)
            moved.loaded += size
            moved.stored += size
        return moved


class ConcatKernel(CopyKernel[Concat]):
    """concat: each operand into its part of the result; along channels in local memory, too; constants by way of it."""

    ops = (Concat,)
    block = 8192

    @rule("Operands must be int8 or uint8")
    def byte_types(self, op: Concat) -> bool:
        return all(v.dtype in ("i8", "u8") for v in op.operands)

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
        return join_channels(op, box) if any(map(_computes, op.result.users)) else None

    def emit(self, op: Concat, build: Build) -> Moved:
        moved = super().emit(op, build)
        for piece in concat_pieces(op):
            if not is_activation(piece.source):
                base, _ = build.source(piece.source)
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

    def pieces(self, op: Concat) -> Iterable[Piece]:
        return (piece for piece in concat_pieces(op) if is_activation(piece.source))


def _computes(user: Operation) -> bool:
    """False for ops that copy inside global memory, for which parts are best made in place there."""
    return not isinstance(user, (Concat, Split, Slice, Permute, Tile, Pad))


class SplitKernel(CopyKernel[Split]):
    """split: each result from its part of the operand."""

    ops = (Split,)

    def pieces(self, op: Split) -> Iterable[Piece]:
        return split_pieces(op)


class SliceKernel(CopyKernel[Slice]):
    """slice: one strided copy, along axes with negative steps one per index."""

    ops = (Slice,)

    @rule("At most 256 elements along axes with negative steps", got="steps")
    def few_backward(self, op: Slice) -> bool:
        return prod(size for size, step in zip(op.type.shape, op.steps) if step < 0) <= 256

    def pieces(self, op: Slice) -> Iterable[Piece]:
        inside, outside = dense(op.operands[0].shape), dense(op.type.shape)
        offsets = [(0, sum(s * first for s, first in zip(inside, op.starts)))]
        dims = []
        for n, s, step, d in zip(op.type.shape, inside, op.steps, outside):
            if step < 0:
                offsets = [(to + i * d, source + i * step * s) for to, source in offsets for i in range(n)]
            else:
                dims.append(Dim(n, s * step, d))
        dims = dims or [Dim(1, 1, 1)]
        return [Piece(op.result, to, op.operands[0], source, dims) for to, source in offsets]


class PermuteKernel(CopyKernel[Permute]):
    """permute: matrices are transposed by way of local memory; else one strided copy, byte by byte at worst."""

    ops = (Permute,)
    _transpose = TransposeKernel()

    def uses_local_memory(self, op: Permute) -> bool:
        return self._transpose.takes(op)

    def whole(self, op: Permute) -> TileWork | None:
        return self._transpose.whole(op) if self._transpose.takes(op) else None

    def emit(self, op: Permute, build: Build) -> Moved:
        return self._transpose.emit(op, build) if self._transpose.takes(op) else super().emit(op, build)

    def pieces(self, op: Permute) -> Iterable[Piece]:
        return permute_pieces(op)


class TileKernel(CopyKernel[Tile]):
    """tile: one copy of the operand per repetition."""

    ops = (Tile,)

    @rule("At most 256 repetitions", got="reps")
    def few_copies(self, op: Tile) -> bool:
        return bool(prod(op.reps) <= 256)

    def pieces(self, op: Tile) -> Iterable[Piece]:
        source = op.operands[0]
        inside, outside = dense(source.shape), dense(op.type.shape)
        dims = [Dim(n, s, d) for n, s, d in zip(source.shape, inside, outside)]
        offsets = [0]
        for size, reps, stride in zip(source.shape, op.reps, outside):
            offsets = [base + i * size * stride for base in offsets for i in range(reps)]
        return [Piece(op.result, offset, source, 0, dims) for offset in offsets]


class PadKernel(CopyKernel[Pad]):
    """pad with a constant: the result is filled from a constant block, then the operand is copied into it."""

    ops = (Pad,)
    block = 8192

    @rule("Only constant padding", got="mode")
    def constant_mode(self, op: Pad) -> bool:
        return bool(op.mode == "constant")

    def uses_local_memory(self, op: Pad) -> bool:
        return True

    def pieces(self, op: Pad) -> Iterable[Piece]:
        source = op.operands[0]
        inside, outside = dense(source.shape), dense(op.type.shape)
        dims = [Dim(n, s, d) for n, s, d in zip(source.shape, inside, outside)]
        start = sum(before * stride for before, stride in zip(op.pads[::2], outside))
        return [Piece(op.result, start, source, 0, dims)]

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
        n, c, h, w = op.type.shape
        down, across = op.scale
        return (
            Axis(n, 1, MAX_TPU_DIM),
            Axis(c, CHIP.lanes, MAX_CHANNELS),
            Axis(h, down, down * max(1, MAX_TPU_HW // down)),
            Axis(w, across, across * max(1, MAX_TPU_HW // across)),
        )

    def work(self, op: Upsample, box: Box) -> TileWork:
        return repeat_pixels(op, box)

    def boxed(self, op: Upsample, box: Box) -> TileWork | None:
        return self._part(op, tuple(replace(axis, step=1) for axis in self.grid(op)), box)
