"""Bands of other rows made inside the words: a byte of some rows is masked, shifted to its band, and put to the others.

Transfers take longer where lanes hold few words, and what waits for them stands still.
"""

from __future__ import annotations

from typing import NamedTuple

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Immediate, Words
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.codegen.band_rows import Cut, runs

_BYTE = 0xFF
_WORD = 0xFFFF_FFFF


class _Rows(NamedTuple):
    """Rows [to, to + size) get the bits of `mask` of those from `row` on, shifted left by `shift` bits."""

    to: int
    row: int
    size: int
    shift: int
    mask: int


class GatheredRows(NamedTuple):
    """Bands of a map of bytes, `before` and `after`, as they are cut; what is not in the image is `fill`."""

    machine: LaneMachine
    before: Shape
    after: Shape
    source: Cut
    target: Cut
    fill: int

    def _rows(self) -> list[_Rows]:
        found: dict[tuple[int, int, int, int], int] = {}
        for run in runs(self.source, self.target):
            where = run.to_row, run.row, run.count, 8 * (run.to_band - run.band)
            found[where] = found.get(where, 0) | _BYTE << 8 * run.band
        return [_Rows(*where, mask) for where, mask in found.items()]

    def _empty(self) -> list[tuple[int, int, int]]:
        """(first row, rows, bits) of what stands there before."""
        found: list[tuple[int, int, int]] = []
        for row in range(self.target.size):
            outside = (band for band in range(self.target.bands) if not self.target.inside(band, row))
            bits = sum((self.fill & _BYTE) << 8 * band for band in outside)
            if found and found[-1][2] == bits:
                found[-1] = (found[-1][0], found[-1][1] + 1, bits)
            else:
                found.append((row, 1, bits))
        return found

    def _shape(self, count: int) -> Shape:
        """Words of so many rows."""
        return 1, self.after[1], count, self.after[3]

    @property
    def scratch(self) -> int:
        """Bytes of a lane for the rows that are on their way."""
        return max(self.machine.chip.aligned_bytes(self._shape(rows.size)) for rows in self._rows())

    @property
    def cycles(self) -> int:
        """Of the commands."""
        taken = self.machine.cycles.pass_cycles
        total = sum(taken(self._shape(count)) for _, count, _ in self._empty())
        for rows in self._rows():
            shape = self._shape(rows.size)
            total += (1 + bool(rows.shift)) * taken(shape) + taken(shape, pair=True)
        return total

    def emit(self, build: LaneBuild, source: int, target: int, scratch: int) -> None:
        """Emit the commands."""
        chip = self.machine.chip

        def part(address: int, dims: Shape, first: int, count: int) -> Words:
            by, within = chip.aligned_strides((1, *dims[1:])), chip.plane(address, dims, 1)
            return Words(address + chip.word * first * by[2], self._shape(count), by, within=within)

        for first, count, bits in self._empty():
            build.fill(part(target, self.after, first, count), bits)
        for rows in self._rows():
            moved, joined = Words(scratch, self._shape(rows.size)), part(target, self.after, rows.to, rows.size)
            build.combine(Unit.AND, moved, part(source, self.before, rows.row, rows.size), Immediate(rows.mask))
            if rows.shift:
                build.combine(Unit.SHIFT, moved, moved, Immediate(rows.shift & _WORD))
            build.combine(Unit.OR, joined, joined, moved)
