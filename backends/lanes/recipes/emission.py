"""The commands of recorded recipes, through the calls that every lane chip's build has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bmcompiler.backends.lanes.build import LaneCommands
from bmcompiler.backends.lanes.facts import LaneFacts, Shape, Strides
from bmcompiler.backends.lanes.operands import Immediate, Source, Words
from bmcompiler.backends.lanes.recipes.recorder import NEUTRAL, Operand, RecipeStep, Register, Scan
from bmcompiler.backends.lanes.tables import OwnTable
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.errors import EncodingError


class Plane(NamedTuple):
    """A tile in local memory: byte offset in the lane, strides in words; None = the aligned default layout."""

    address: int
    strides: Strides | None = None


class Emitter:
    """Emits steps through a build of a chip."""

    def __init__(self, build: LaneCommands, chip: LaneFacts) -> None:
        self.build, self.chip = build, chip

    def emit(self, step: RecipeStep, tiles: Sequence[Words], target: Words) -> None:
        """Emit one step; `tiles` are the registers by number.

        Raises EncodingError for strides in a command that knows only the default layout.
        """
        sources = [self._source(source, tiles) for source in step.sources]
        if step.scan is None:
            self._emit(step, sources, target)
        else:
            self._scan(step, step.scan, sources[0], target)

    def _source(self, source: Operand, tiles: Sequence[Words]) -> Source:
        if isinstance(source, Immediate):
            return source
        tile = tiles[source.number]
        return tile if isinstance(source, Register) else self._rows(tile, source.first, source.size)

    def _rows(self, tile: Words, first: int, size: int) -> Words:
        """Part of a tile along h."""
        strides = tile.strides or self.chip.aligned_strides(tile.shape, item=tile.item)
        n, c, _, w = tile.shape
        place = tile.address + tile.item * first * strides[2]
        return Words(place, (n, c, size, w), strides, item=tile.item, dtype=tile.dtype)

    def _scan(self, step: RecipeStep, scan: Scan, source: Source, target: Words) -> None:
        """A command for each row."""
        assert isinstance(source, Words), "operands of it are words"
        before: int | None = None
        for row in scan.rows(target.shape[2]):
            here = self._rows(target, row, 1)
            if before is None:
                neutral = Immediate(NEUTRAL[step.unit])
                self.build.assign(here, neutral if scan.exclusive else self._rows(source, row, 1))
            else:
                old, added = self._rows(target, before, 1), self._rows(source, before if scan.exclusive else row, 1)
                self.build.combine(step.unit, here, old, added)
            before = row

    def _emit(self, step: RecipeStep, sources: list[Source], target: Words) -> None:
        build, unit = self.build, step.unit
        if unit.strided:
            self._elementwise(step, sources, target)
            return
        if any(isinstance(operand, Words) and operand.strides is not None for operand in (target, *sources)):
            raise EncodingError(f"the command {unit.name} works on tiles in the aligned default layout only")
        if unit is Unit.CHOOSE:
            build.choose(target, sources)
            return
        (source,) = sources
        assert isinstance(source, Words), "operands of it are words"
        if unit.windowed:
            build.reduce(unit, target, source, window_geometry(step, source.shape, target.shape))
        elif unit is Unit.LOOKUP:
            build.lookup(target, source, step.table, step.terms)
        elif unit is Unit.SERIES:
            assert not isinstance(step.table, OwnTable), "own tables are looked up otherwise"
            build.series(target, source, step.table, step.terms)
        else:
            build.convert(unit, target, source)

    def _elementwise(self, step: RecipeStep, sources: list[Source], target: Words) -> None:
        if step.unit is Unit.COPY:
            self.build.assign(target, sources[0])
        elif step.unit is Unit.MAC:
            _, a, b = sources
            assert isinstance(a, Words) and isinstance(b, Words), "operands of it are words"
            self.build.weigh(target, a, b, add=True)
        elif step.unit.tests:
            self.build.select(step.unit, target, sources[0], sources[1], step.chosen)
        else:
            self.build.combine(step.unit, target, sources[0], sources[1])


def window_geometry(step: RecipeStep, source: Shape, target: Shape) -> Geometry:
    """Windows over everything that is reduced, or of some rows."""
    _, _, h, w = source
    rows, above = step.window
    taps = (rows, 1) if rows else (h, 1 if target[3] == w else w)
    return Geometry((h, w), taps, pads=(above, max(rows - 1 - above, 0), 0, 0))
