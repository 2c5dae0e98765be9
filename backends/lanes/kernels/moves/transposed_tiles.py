"""Transposed matrices of any size and number, tile by tile: runs are long on both sides, elements turn in lanes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.counts import run_of
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.kernels.base import is_activation, item_bytes
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.schedule import Moved, emit_tiles
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Runs, TileWork, Tiling
from bmcompiler.ops.base import TensorOp

_WIDTHS = (0, 16, 64, 256)
"""Rows or columns of a matrix that are tried for a lane; 0: as many as all lanes need for a tile."""


class Matrices(NamedTuple):
    """`number` matrices of so many rows and columns, whose elements lie row by row; the result's column by column."""

    number: int
    rows: int
    columns: int

    @property
    def long(self) -> int:
        """The longer side, which is cut for lanes."""
        return max(self.rows, self.columns)

    @property
    def is_wide(self) -> bool:
        """Whether the long side is that of the columns."""
        return self.columns >= self.rows

    @property
    def short(self) -> int:
        """The other side, all of which a lane holds."""
        return min(self.rows, self.columns)


@dataclass(frozen=True)
class Transposing:
    """One way to cut matrices for lanes.

    Attributes:
        cut: what each lane has a share of: "matrices", "rows", "columns"; "command": rows, where one command of the
            execution units transposes a tile. width: rows or columns of a share, 0 = as many as all lanes need.
    """

    machine: LaneMachine
    op: TensorOp
    matrices: Matrices
    cut: str
    width: int = 0

    @property
    def grid(self) -> tuple[Axis, ...]:
        """Matrices, one, rows, columns; for a command, rows are channels: matrices, rows, one, columns."""
        chip, (number, rows, columns) = self.machine.chip, self.matrices
        if self.cut == "command":
            sides = (Axis(size, chip.lanes, chip.most_channels) for size in (rows, columns))
            return Axis(number, most=chip.most_images), next(sides), Axis(1), next(sides)
        images = Axis(number, most=chip.most_channels if self.cut == "matrices" else chip.most_images)
        steps = {self.cut: self.width or chip.lanes}
        return images, Axis(1), self._side(rows, steps.get("rows", 1)), self._side(columns, steps.get("columns", 1))

    def _side(self, size: int, step: int) -> Axis:
        return Axis(size, step, self.machine.chip.most_size // step * step)

    def tiling(self) -> Tiling | None:
        """The best one, None where nothing fits."""
        return self.machine.tiler.choose(self.grid, self.work, self._key)

    @property
    def _key(self) -> Hashable:
        """All that tiles and cycles depend on beside the machine."""
        return "transposing", self.matrices, self.cut, self.width, item_bytes(self.op.result)

    def cycles(self) -> float:
        """Estimated, infinite where nothing fits."""
        return self.machine.once(self._key, self._cycles)

    def _cycles(self) -> float:
        tiling = self.tiling()
        return float("inf") if tiling is None else self.machine.tiler.estimate(self.grid, self.work, tiling)

    def emit(self, build: Any) -> Moved:
        """Emit all tiles. Raises ValueError where none fits local memory."""
        tiling = self.tiling()
        if tiling is None:
            raise ValueError(f"{self.matrices} do not fit local memory")
        return emit_tiles(build, self.grid, self.work, tiling, self.machine.tiler)

    def work(self, box: Box) -> TileWork:
        """One tile, transposed by a command or by lanes."""
        return self._by_command(box) if self.cut == "command" else self._by_lanes(box)

    def _by_command(self, box: Box) -> TileWork:
        """Rows are channels, and become columns."""
        (number, rows, columns), machine, item = self.matrices, self.machine, item_bytes(self.op.result)
        transposed: Box = (box[0], box[3], box[2], box[1])
        before = machine.activation_in(self.op.operands[0], (number, rows, 1, columns), box)
        after = machine.activation_out(self.op.result, (number, columns, 1, rows), transposed)
        view, shape = ([hi - lo for lo, hi in each] for each in (box, transposed))

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            build.transpose(Words(outs[0], _quad(shape), item=item), Words(ins[0], _quad(view), item=item))

        return TileWork((before,), (after,), (), compute, machine.cycles.pass_cycles(_quad(shape), item))

    def _by_lanes(self, box: Box) -> TileWork:
        """Each lane turns its share."""
        machine, chip, item = self.machine, self.machine.chip, item_bytes(self.op.result)
        word, parts, places, size = chip.word_item(item), self._parts(box), [], 0
        for part in parts:
            places.append(size)
            size += chip.aligned_bytes(part.shape, word)
        x, result = self.op.operands[0], self.op.result

        def load(build: Any, address: int) -> None:
            for part, place in zip(parts, places):
                source = build.source(x) + item * part.start
                if item < word:
                    build.load_low(source, item, part.shape, part.by, address + place)
                else:
                    build.load(source, part.shape, part.by, item, address + place)

        def store(build: LaneBuild, address: int) -> None:
            for part, place in zip(parts, places):
                target = build.neuron(result) + item * part.end
                if item < word:
                    build.store_words(target, item, part.transposed, part.to, address + place)
                else:
                    build.store(target, part.transposed, part.to, item, address + place)

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            read, written = (ins[0], ins[0] + size), (outs[0], outs[0] + size)
            for part, place in zip(parts, places):
                n, c, _, _ = chip.aligned_strides(part.transposed, item=word)
                source = Words(ins[0] + place, part.shape, within=read, item=word)
                there = (n, c, 1, part.shape[2])
                build.copy(source, Words(outs[0] + place, part.shape, there, within=written, item=word))

        nbytes = item * prod(hi - lo for lo, hi in box)
        taken = size if all(map(self._fits, parts)) else 2 * chip.lmem_size
        read, written = (
            Buffer(taken, "nchw", nbytes, move, runs=_runs(sides), loads=len(parts))
            for move, sides in (
                (load, [(part.shape, part.by) for part in parts]),
                (store, [(part.transposed, part.to) for part in parts]),
            )
        )
        cycles = sum(machine.cycles.pass_cycles(part.shape, word) for part in parts)
        return TileWork((read,), (written,), (), compute, cycles)

    def _fits(self, part: _Part) -> bool:
        """Whether the fields of a command hold sizes and steps of a part."""
        chip, word = self.machine.chip, self.machine.chip.word_item(item_bytes(self.op.result))
        steps = chip.aligned_strides(part.shape, item=word)
        return chip.fits_fields(part.shape) and max(steps) <= chip.most_size

    def _parts(self, box: Box) -> list[_Part]:
        """The shares of a tile, and what is left of it in a lane of its own."""
        (n0, n1), _, (r0, r1), (c0, c1) = box
        (_, rows, columns), n, r, c = self.matrices, n1 - n0, r1 - r0, c1 - c0
        whole = rows * columns
        start, end = n0 * whole + r0 * columns + c0, n0 * whole + c0 * rows + r0
        if self.cut == "matrices":
            return [_Part((1, n, r, c), (0, whole, columns, 1), start, (0, whole, rows, 1), end)]
        size = r if self.cut == "rows" else c
        width = min(self.width or -(-size // self.machine.chip.lanes), size)
        found = []
        for lanes, share, first in ((size // width, width, 0), (1, size % width, size - size % width)):
            if not share:
                continue
            if self.cut == "rows":
                by, to = (whole, share * columns, columns, 1), (whole, share, rows, 1)
                found.append(_Part((n, lanes, share, c), by, start + first * columns, to, end + first))
            else:
                by, to = (whole, share, columns, 1), (whole, share * rows, rows, 1)
                found.append(_Part((n, lanes, r, share), by, start + first, to, end + first * rows))
        return found


class _Part(NamedTuple):
    """What one transfer loads as `shape` (N, lanes, rows, columns), and stores with its rows as columns.

    Attributes:
        by, start: strides and first element of the source. to, end: of the result.
    """

    shape: Shape
    by: Strides
    start: int
    to: Strides
    end: int

    @property
    def transposed(self) -> Shape:
        """(N, lanes, columns, rows)."""
        n, c, h, w = self.shape
        return n, c, w, h


def best_transposing(machine: LaneMachine, op: TensorOp, matrices: Matrices) -> Transposing | None:
    """The quickest way; None where no way fits, or elements cannot be moved so."""
    chip, item = machine.chip, item_bytes(op.result)
    word = chip.word_item(item)
    if not is_activation(op.operands[0]) or item not in (1, 2, 4) or word > max(chip.word, chip.most_item):
        return None
    ways = [Transposing(machine, op, matrices, "matrices")] if matrices.number > 1 else []
    for cut, size in (("rows", matrices.rows), ("columns", matrices.columns)):
        ways += [Transposing(machine, op, matrices, cut, width) for width in _WIDTHS if width <= size]
    if chip.transposes and word == item:
        ways.append(Transposing(machine, op, matrices, "command"))
    cycles = machine.once(("transposing", matrices, item), lambda: [way.cycles() for way in ways])
    fewest = min(cycles)
    return ways[cycles.index(fewest)] if fewest < float("inf") else None


def _runs(sides: list[tuple[Shape, Strides]]) -> Runs:
    """Of all transfers of a tile."""
    outer = sum(prod(shape) // run_of(shape, strides) for shape, strides in sides)
    return Runs(outer, sum(shape[0] * shape[1] for shape, _ in sides))


def _quad(sizes: list[int]) -> Shape:
    n, c, h, w = sizes
    return n, c, h, w
