"""Which rows of an image go where when its bands are cut, joined or regrouped: runs of rows, and strided copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bmcompiler.codegen.pieces import Fill, Piece, dense
from bmcompiler.codegen.strided_copy import Dim
from bmcompiler.ops.places.bands import FromBands, RegroupBands, ToBands

BandOp = ToBands | RegroupBands | FromBands


@dataclass(frozen=True)
class Cut:
    """How an image of `height` rows lies in bands: `bands` of `rows` each, `top` and `bottom` rows of neighbours."""

    height: int
    bands: int
    rows: int
    top: int = 0
    bottom: int = 0

    @property
    def size(self) -> int:
        """Rows of a band with those of its neighbours."""
        return self.top + self.rows + self.bottom

    def inside(self, band: int, row: int) -> bool:
        """Whether a row of a band is one of the image."""
        return 0 <= band * self.rows + row - self.top < self.height


@dataclass(frozen=True)
class RowRun:
    """`count` rows from `row` of `band` on go to those from `to_row` of `to_band` on."""

    to_band: int
    to_row: int
    band: int
    row: int
    count: int


def source_cut(op: BandOp) -> Cut:
    """How the operand of an op on bands lies."""
    bands, _, rows, _ = op.operands[0].shape
    return Cut(rows if isinstance(op, ToBands) else op.height, bands, rows)


def target_cut(op: BandOp) -> Cut:
    """How its result lies."""
    if isinstance(op, FromBands):
        return Cut(op.height, 1, op.height)
    return Cut(source_cut(op).height, op.type.shape[0], op.rows, op.top, op.bottom)


def runs(source: Cut, target: Cut) -> Iterator[RowRun]:
    """Where all rows of the image that `target` has come from; `source` has no rows of neighbours."""
    for band in range(target.bands):
        first = band * target.rows - target.top
        row, end = max(first, 0), min(first + target.size, target.height)
        while row < end:
            at = row // source.rows
            count = min(end, (at + 1) * source.rows) - row
            yield RowRun(band, row - first, at, row - at * source.rows, count)
            row += count


def gaps(target: Cut) -> list[tuple[int, int, int]]:
    """(band, first row, rows) of what is not in the image."""
    found: list[tuple[int, int, int]] = []
    for band in range(target.bands):
        for row in range(target.size):
            if target.inside(band, row):
                continue
            if found and found[-1][0] == band and sum(found[-1][1:]) == row:
                found[-1] = (*found[-1][:2], found[-1][2] + 1)
            else:
                found.append((band, row, 1))
    return found


@dataclass(frozen=True)
class RowMove:
    """`images` runs of `count` rows, at offsets `at` + i * `step` and `start` + i * `stride`, in elements."""

    images: int
    count: int
    at: int
    step: int
    start: int
    stride: int


def moves(source: Cut, target: Cut, by: tuple[int, int], to: tuple[int, int]) -> list[RowMove]:
    """The runs as few strided moves. `by`, `to`: elements between (bands, rows) of source and target."""
    found: list[RowMove] = []
    for run in sorted(runs(source, target), key=lambda run: (run.to_row, run.count, run.to_band)):
        at, start = run.to_band * to[0] + run.to_row * to[1], run.band * by[0] + run.row * by[1]
        last = found[-1] if found and found[-1].count == run.count else None
        if last is not None:
            step, stride = (at - last.at, start - last.start) if last.images == 1 else (last.step, last.stride)
            follows = (at, start) == (last.at + last.images * step, last.start + last.images * stride)
            if follows and step > 0 and stride > 0:
                found[-1] = replace(last, images=last.images + 1, step=step, stride=stride)
                continue
        found.append(RowMove(1, run.count, at, 0, start, 0))
    return found


def band_pieces(op: BandOp) -> Iterator[Piece | Fill]:
    """to_bands, regroup_bands or from_bands as copies between dense tensors."""
    source, target = op.operands[0], op.result
    _, channels, _, width = target.shape
    by, to = dense(source.shape), dense(target.shape)
    cut = target_cut(op)
    for move in moves(source_cut(op), cut, (by[0], by[2]), (to[0], to[2])):
        images = Dim(move.images, move.stride, move.step)
        dims = [images, Dim(channels, by[1], to[1]), Dim(move.count * width, 1, 1)]
        yield Piece(target, move.at, source, move.start, dims)
    for band, row, count in gaps(cut):
        dims = [Dim(channels, to[1], to[1]), Dim(count * width, 1, 1)]
        yield Fill(target, band * to[0] + row * to[2], dims)
