"""Rows and columns picked, repeated and filled in local memory, where global memory would move single elements."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import LaneFacts, Shape, Strides
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_activation, item_bytes
from bmcompiler.backends.lanes.kernels.moves.cropped_loads import load_part
from bmcompiler.backends.lanes.kernels.moves.layout import PadKernel, RepeatKernel, SelectKernel, SliceKernel
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.kernels import dims4
from bmcompiler.codegen.runs import IndexRun, runs
from bmcompiler.codegen.schedule import Moved
from bmcompiler.codegen.strided_copy import Dim
from bmcompiler.codegen.tiling import Axis, Box, TileWork
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.places.shape import Pad, Slice, Tile
from bmcompiler.target import OpT

_MOST_COPIES = 256
"""Commands of one tile."""
_FASTER = 1.5
"""How many times faster tiles must be: what lies in lanes for other ops has to go."""


class _View(NamedTuple):
    """The op as one on maps: shapes, and the source row of each row and column of each column, -1 for a constant."""

    source: Shape
    result: Shape
    rows: np.ndarray
    columns: np.ndarray


class _Copy(NamedTuple):
    """A command that copies words: shape, where it begins on both sides, and the steps there."""

    shape: Shape
    start: int
    by: Strides
    end: int
    to: Strides


class SelectedTiles(LocalKernel[TensorOp]):
    """The tiles of an op whose axes, but for the last two, stay as they are."""

    def __init__(self, select: SelectKernel[Any]) -> None:
        super().__init__(select.machine)
        self.select = select

    def view(self, op: TensorOp) -> _View | None:
        """None where other axes are selected from."""
        x, maps = op.operands[0], list(self.select.maps(op))
        count = max(x.type.rank - 2, 0)
        if any(not np.array_equal(index, np.arange(size)) for index, size in zip(maps[:count], x.shape)):
            return None
        rows, columns = [*[np.arange(1)] * (2 - len(maps)), *maps][-2:]
        n, c = dims4(x)[:2] if x.type.rank == 4 else (1, prod(x.shape[:count]))
        h, w = [1, 1, *x.shape][-2:]
        return _View((n, c, h, w), (n, c, len(rows), len(columns)), rows, columns)

    def takes(self, op: TensorOp) -> bool:
        """Whether it may be done so at all."""
        x = op.operands[0]
        if item_bytes(op.result) not in (1, 2, 4) or not is_activation(x) or not op.type.size:
            return False
        view = self.view(op)
        return view is not None and self.chip.fits_fields(view.source)

    def facts(self, op: TensorOp) -> Hashable:
        """All that tiles depend on."""
        return self._search(op)[2]

    def grid(self, op: TensorOp) -> tuple[Axis, ...]:
        view = self.view(op)
        assert view is not None, "`takes` looked"
        return self.machine.elementwise_grid(view.result, item_bytes(op.result))

    def work(self, op: TensorOp, box: Box) -> TileWork:
        view, chip, item = self.view(op), self.chip, item_bytes(op.result)
        assert view is not None, "`takes` looked"
        word, maps = chip.word_item(item), [view.rows[slice(*box[2])], view.columns[slice(*box[3])]]
        read: Box = (*box[:2], *map(_reach, maps))
        before, after = (chip.words_of(extents(part), item) for part in (read, box))
        inside = [np.where(index < 0, -1, index - lo) for index, (lo, _) in zip(maps, read[2:])]
        copies = list(_copies(chip, before, after, inside, word))
        fills = any((index < 0).any() for index in maps)
        constant = int.from_bytes(np.array(self.select.filling(op)).astype(op.type.numpy).tobytes(), "little")

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            within, written = chip.plane(ins[0], extents(read), item), chip.plane(outs[0], extents(box), item)
            if fills:
                build.fill(Words(outs[0], after, within=written, item=word), chip.repeated(constant, item))
            for each in copies:
                source = Words(ins[0] + word * each.start, each.shape, each.by, within=within, item=word)
                build.copy(source, Words(outs[0] + word * each.end, each.shape, each.to, within=written, item=word))

        source = self.machine.activation_in(op.operands[0], view.source, read)
        out = self.machine.activation_out(op.result, view.result, box)
        cycles = sum(self.machine.cycles.pass_cycles(each.shape, word) for each in copies)
        cycles += fills * self.machine.cycles.pass_cycles(after, word)
        beyond = len(copies) > _MOST_COPIES or any(max(*c.by[:2], *c.to[:2]) > chip.most_size for c in copies)
        return TileWork((source,), (out,), (chip.lmem_size,) if beyond else (), compute, cycles)


def _reach(index: np.ndarray) -> tuple[int, int]:
    """The part of an axis that is read, at least one element of it."""
    found = index[index >= 0]
    return (int(found.min()), int(found.max()) + 1) if found.size else (0, 1)


def _copies(chip: LaneFacts, before: Shape, after: Shape, maps: Sequence[np.ndarray], item: int) -> Iterator[_Copy]:
    """Copies of words from a tile of shape `before` to one of shape `after`, by the rows and columns of `maps`."""
    by, to = (chip.aligned_strides(shape, item=item) for shape in (before, after))
    kept = [np.flatnonzero(index >= 0) for index in maps]
    found = [runs(index[places], places) if places.size else [] for index, places in zip(maps, kept)]
    for rows, columns in product(*found):
        dims = [Dim(before[0], by[0], to[0]), *_moved(rows, by[2], to[2]), *_moved(columns, 1, 1)]
        yield from _commands(
            dims, (before[1], by[1], to[1]), rows.start * by[2] + columns.start, rows.at * to[2] + columns.at
        )


def _moved(run: IndexRun, source: int, target: int) -> list[Dim]:
    return [Dim(dim.size, dim.src * source, dim.dst * target) for dim in run.axes]


def _commands(dims: list[Dim], channels: tuple[int, int, int], start: int, end: int) -> Iterator[_Copy]:
    """The three longest axes that run forwards by one command, for each index of the others."""
    axes = [dim for dim in dims if dim.size > 1]
    inside = sorted((dim for dim in axes if min(dim.src, dim.dst) >= 0), key=lambda dim: -dim.size)[:3]
    outside = [dim for dim in axes if all(dim is not other for other in inside)]
    n, h, w = sorted([*inside, *[Dim(1, 0, 0)] * (3 - len(inside))], key=lambda dim: -dim.dst)
    count, by, to = channels
    shape = (n.size, count, h.size, w.size)
    for places in product(*(range(dim.size) for dim in outside)):
        here = start + sum(place * dim.src for place, dim in zip(places, outside))
        there = end + sum(place * dim.dst for place, dim in zip(places, outside))
        yield _Copy(shape, here, (n.src, by, h.src, w.src), there, (n.dst, to, h.dst, w.dst))


class TiledSelectKernel(SelectKernel[OpT]):
    """Selections by copies inside global memory, or in local memory where that is faster."""

    @property
    def tiles(self) -> SelectedTiles:
        """What does it in local memory."""
        return SelectedTiles(self)

    def in_tiles(self, op: OpT) -> bool:
        """Whether it is done in local memory."""
        tiles = self.tiles
        return tiles.takes(op) and self.machine.once(("tiles", tiles.facts(op)), lambda: self._pays(op))

    def _pays(self, op: OpT) -> bool:
        taken, direct = self.tiles.estimate(op), super().moving_cycles(op)
        return taken is not None and direct is not None and taken * _FASTER < direct

    def uses_local_memory(self, op: OpT) -> bool:
        return self.in_tiles(op)

    def estimate(self, op: OpT) -> int | None:
        return self.tiles.estimate(op) if self.in_tiles(op) else None

    def moving_cycles(self, op: OpT) -> int | None:
        return self.estimate(op) or super().moving_cycles(op)

    def emit(self, op: OpT, build: Any) -> Moved:
        return self.tiles.emit(op, build) if self.in_tiles(op) else super().emit(op, build)

    def whole(self, op: OpT) -> TileWork | None:
        return super().whole(op) or (self.tiles.whole(op) if self.in_tiles(op) else None)

    def boxed(self, op: OpT, box: Box) -> TileWork | None:
        return super().boxed(op, box) or (self.tiles.boxed(op, box) if self.in_tiles(op) else None)


class SlicingKernel(TiledSelectKernel[Slice], SliceKernel):
    """slice: one strided copy, along axes with negative steps one per index, or tiles in local memory.

    Parts of pictures are loaded there.
    """

    def uses_local_memory(self, op: Slice) -> bool:
        return super().uses_local_memory(op) or self._loaded(op) is not None

    def whole(self, op: Slice) -> TileWork | None:
        return super().whole(op) or self._loaded(op)

    def _loaded(self, op: Slice) -> TileWork | None:
        return load_part(self.machine, op) if op.type.rank == 4 else None


class PaddingKernel(TiledSelectKernel[Pad], PadKernel):
    """pad: constants are filled in, borders repeated, mirrored elements copied one by one; or tiles in local memory."""


class RepeatingKernel(TiledSelectKernel[Tile], RepeatKernel):
    """tile: the repetitions of an axis are an axis with source stride 0; or tiles in local memory."""
