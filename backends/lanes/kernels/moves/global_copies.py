"""What the kernels share that only move elements: copies and fills inside global memory.

Elements are bytes, halfwords or words to the transfers; those of 8 bytes are pairs of words.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from math import prod
from typing import Any

import numpy as np

from bmcompiler.backends.lanes.build import LaneTransfers
from bmcompiler.backends.lanes.counts import run_of
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.facts import LaneFacts
from bmcompiler.backends.lanes.kernels.base import DeviceKernel, is_activation, item_bytes
from bmcompiler.codegen.pieces import Fill, Piece
from bmcompiler.codegen.schedule import Moved
from bmcompiler.codegen.strided_copy import Dim, copy_commands, count_commands
from bmcompiler.ir import Value
from bmcompiler.target import OpT, rule

MOST_COMMANDS = 512
"""Commands of one op: beyond that their start-up costs more than the host CPU."""
_WORD = 4


class CopyKernel(DeviceKernel[OpT]):
    """Ops whose result is made of strided copies and fills that the op's attributes and types tell."""

    def uses_local_memory(self, op: OpT) -> bool:
        return False

    def pieces(self, op: OpT) -> Iterable[Piece | Fill]:
        """Copies and fills, which may overlap: they are made in order."""
        raise TypeError(f"{type(self).__name__} copies nothing")

    def filling(self, op: OpT) -> float:
        """The constant of the fills."""
        return 0

    @rule(f"The result must take at most {MOST_COMMANDS} strided copies", last=True)
    def few_commands(self, op: OpT) -> bool:
        counts = (count_commands(piece.dims, self.chip.copy_limits) for piece in self.pieces(op))
        return sum(islice(counts, MOST_COMMANDS + 1)) <= MOST_COMMANDS

    def emit(self, op: OpT, build: Any) -> Moved:
        return move(build, self.pieces(op), self.filling(op))

    def moving_cycles(self, op: OpT) -> int | None:
        return copying_cycles(self.pieces(op), self.chip, self.machine.cycles)


def move(build: LaneTransfers, pieces: Iterable[Piece | Fill], constant: float = 0) -> Moved:
    """Emit copies and fills; a copy onto itself needs nothing."""
    moved = Moved(tiles=1)
    for piece in pieces:
        nbytes = prod(dim.size for dim in piece.dims) * item_bytes(piece.target)
        if isinstance(piece, Fill):
            _fill(build, piece, constant)
        elif _copy(build, piece):
            moved.loaded += nbytes
            moved.weights += 0 if is_activation(piece.source) else nbytes
        else:
            continue
        moved.stored += nbytes
    return moved


def copying_cycles(pieces: Iterable[Piece | Fill], chip: LaneFacts, cycles: LaneCycles) -> int:
    """Cycles of copies and fills inside global memory."""
    found = 0
    for piece in pieces:
        item, _, dims = _transferable(piece.target, (0, 0), piece.dims)
        for c in copy_commands(dims, chip.copy_limits):
            sides = (c.dst_strides,) if isinstance(piece, Fill) else (c.dst_strides, c.src_strides)
            run = min(run_of(c.shape, strides) for strides in sides)
            found += cycles.global_copy(prod(c.shape) // run, run * item)
    return found


def _copy(build: LaneTransfers, piece: Piece) -> bool:
    """Emit a copy; False when the elements are where they should be."""
    item, (at, start), dims = _transferable(piece.target, (piece.at, piece.start), piece.dims)
    target, source = build.neuron(piece.target) + at * item, build.source(piece.source) + start * item
    if target == source and all(dim.src == dim.dst for dim in dims if dim.size > 1):
        return False
    for c in copy_commands(dims, build.chip.copy_limits):
        build.copy_global(target + c.dst * item, source + c.src * item, item, c.shape, c.dst_strides, c.src_strides)
    return True


def _fill(build: LaneTransfers, piece: Fill, constant: float) -> None:
    dtype = piece.target.type.numpy
    value = np.zeros(1, dtype)
    value[0] = constant
    width = min(dtype.itemsize, _WORD)
    words = value.view(f"<u{width}").tolist()  # the words of an element are filled one by one
    base = build.neuron(piece.target) + piece.at * dtype.itemsize
    dims = [Dim(dim.size, dim.dst * len(words), dim.dst * len(words)) for dim in piece.dims]
    for number, bits in enumerate(words):
        for c in copy_commands(dims, build.chip.copy_limits):
            build.fill_global(base + (c.dst + number) * width, width, c.shape, c.dst_strides, bits)


def _transferable(value: Value, offsets: tuple[int, int], dims: list[Dim]) -> tuple[int, tuple[int, int], list[Dim]]:
    """(bytes of an element, offsets, dims) in elements that transfers have."""
    item = item_bytes(value)
    if item <= _WORD:
        return item, offsets, dims
    pairs = [Dim(dim.size, dim.src * 2, dim.dst * 2) for dim in dims]
    return _WORD, (offsets[0] * 2, offsets[1] * 2), [*pairs, Dim(2, 1, 1)]
