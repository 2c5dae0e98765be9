"""Ops that move elements by a rule: transposition, joining, cutting, padding, repetition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bmcompiler.backends.lanes.kernels.base import is_activation, item_bytes
from bmcompiler.backends.lanes.kernels.moves.column_copies import has_columns, join_columns, take_columns
from bmcompiler.backends.lanes.kernels.moves.global_copies import MOST_COMMANDS, CopyKernel
from bmcompiler.backends.lanes.kernels.moves.local_copies import join_channels, pad_channels, take_channels
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.pieces import (
    Fill,
    Piece,
    concat_pieces,
    dense,
    permute_pieces,
    selected_pieces,
    split_pieces,
    whole,
)
from bmcompiler.codegen.strided_copy import Dim
from bmcompiler.codegen.tiling import Box, TileWork
from bmcompiler.ops.elements.functions import BitCast
from bmcompiler.ops.places.index import Trilu
from bmcompiler.ops.places.shape import Concat, Pad, Permute, Slice, Split, Tile
from bmcompiler.target import OpT, rule


class PermuteKernel(CopyKernel[Permute]):
    """permute: one strided copy for up to four axes that stay apart, one per index of the others."""

    ops = (Permute,)

    def pieces(self, op: Permute) -> Iterable[Piece | Fill]:
        return permute_pieces(op)


class ConcatKernel(CopyKernel[Concat]):
    """concat: each operand, constant or not, into its part of the result, unless it was made there.

    Feature maps may also be joined in local memory, along channels, and where rows lie in lanes along columns.
    """

    ops = (Concat,)

    def pieces(self, op: Concat) -> Iterable[Piece | Fill]:
        return concat_pieces(op)

    def whole(self, op: Concat) -> TileWork | None:
        return self.boxed(op, tuple((0, size) for size in op.type.shape))

    def boxed(self, op: Concat, box: Box) -> TileWork | None:
        axis = op.axis % op.type.rank
        if op.type.rank != 4 or axis not in (1, 3) or box[axis] != (0, op.type.shape[axis]):
            return None
        if item_bytes(op.result) not in (1, 2, 4) or not all(map(is_activation, op.operands)):
            return None
        if axis == 3:
            return join_columns(self.machine, op, box) if has_columns(self.machine, op) else None
        return join_channels(self.machine, op, box) if self.chip.fits_fields(extents(box)) else None


class SplitKernel(CopyKernel[Split]):
    """split: each result from its part of the operand, unless it stays there."""

    ops = (Split,)

    def pieces(self, op: Split) -> Iterable[Piece | Fill]:
        return split_pieces(op)


class BitCastKernel(CopyKernel[BitCast]):
    """bit_cast: a copy of the bytes."""

    ops = (BitCast,)

    def pieces(self, op: BitCast) -> Iterable[Piece | Fill]:
        return [whole(op.result, op.operands[0])]


class SelectKernel(CopyKernel[OpT]):
    """Ops of which every result axis takes its elements from the same axis of the operand, by its own list."""

    def maps(self, op: OpT) -> Sequence[np.ndarray]:
        """Per axis the source index of each position, -1 for the constant of `filling`."""
        raise TypeError(f"{type(self).__name__} selects nothing")

    def pieces(self, op: OpT) -> Iterable[Piece | Fill]:
        return selected_pieces(op.result, op.operands[0], self.maps(op))


class SliceKernel(SelectKernel[Slice]):
    """slice: one strided copy, along axes with negative steps one per index.

    Channels of a feature map may also be copied in local memory, and columns where rows lie in lanes.
    """

    ops = (Slice,)

    def maps(self, op: Slice) -> Sequence[np.ndarray]:
        return [np.arange(*bounds) for bounds in zip(op.starts, op.ends, op.steps)]

    def whole(self, op: Slice) -> TileWork | None:
        return self.boxed(op, tuple((0, size) for size in op.type.shape))

    def boxed(self, op: Slice, box: Box) -> TileWork | None:
        if op.type.rank != 4 or not is_activation(op.x) or item_bytes(op.result) not in (1, 2, 4):
            return None
        cut = [axis for axis in range(4) if op.x.shape[axis] != op.type.shape[axis]]
        if cut == [3] and op.steps[3] == 1 and has_columns(self.machine, op):
            return take_columns(self.machine, op, box)
        if cut not in ([], [1]) or set(op.steps) != {1} or not self.chip.fits_fields(op.x.shape):
            return None
        return take_channels(self.machine, op, box)


class RepeatKernel(SelectKernel[Tile]):
    """tile: the repetitions of an axis are an axis with source stride 0."""

    ops = (Tile,)

    def maps(self, op: Tile) -> Sequence[np.ndarray]:
        return [np.tile(np.arange(size), reps) for size, reps in zip(op.x.shape, op.reps)]


class PadKernel(SelectKernel[Pad]):
    """pad: constants are filled in, borders repeated by source strides of 0, mirrored elements copied one by one.

    Constant channels of a feature map may also be made in local memory.
    """

    ops = (Pad,)

    def whole(self, op: Pad) -> TileWork | None:
        return self.boxed(op, tuple((0, size) for size in op.type.shape))

    def boxed(self, op: Pad, box: Box) -> TileWork | None:
        if op.type.rank != 4 or not is_activation(op.x) or item_bytes(op.result) not in (1, 2, 4):
            return None
        others = op.mode != "constant" or any((*op.pads[:2], *op.pads[4:])) or box[1] != (0, op.type.shape[1])
        if others or not self.chip.fits_fields(op.type.shape):
            return None
        return pad_channels(self.machine, op, box)

    def maps(self, op: Pad) -> Sequence[np.ndarray]:
        widths = zip(op.pads[::2], op.pads[1::2])
        how: dict[str, Any] = {"mode": op.mode, **({"constant_values": -1} if op.mode == "constant" else {})}
        return [np.pad(np.arange(size), width, **how) for size, width in zip(op.x.shape, widths)]

    def filling(self, op: Pad) -> float:
        return float(op.value)


class TriluKernel(CopyKernel[Trilu]):
    """trilu: a copy, then zeros in the other part of each row."""

    ops = (Trilu,)

    @rule(f"Matrices must have at most {MOST_COMMANDS - 1} rows")
    def few_rows(self, op: Trilu) -> bool:
        return bool(op.x.shape[-2] < MOST_COMMANDS)

    def pieces(self, op: Trilu) -> Iterable[Piece | Fill]:
        *_, rows, columns = op.type.shape
        yield whole(op.result, op.x)
        for row in range(rows):
            lo, hi = (0, row + op.k) if op.upper else (row + op.k + 1, columns)
            lo, hi = max(lo, 0), min(hi, columns)
            if lo < hi:
                count = op.type.size // (rows * columns)
                dims = [Dim(count, rows * columns, rows * columns), Dim(hi - lo, 1, 1)]
                yield Fill(op.result, row * dense((rows, columns))[0] + lo, dims)
