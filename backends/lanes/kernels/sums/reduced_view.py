"""How a dense tensor is seen where some of its axes are reduced: which lanes hold what, and how that is moved."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from math import prod
from typing import NamedTuple

from bmcompiler.backends.lanes.counts import run_of
from bmcompiler.backends.lanes.cycles import LaneCycles, MatrixCycles
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.kernels.base import contents_of
from bmcompiler.backends.lanes.kernels.functions.broadcast import box_offset, is_dense
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.recipes import Steps
from bmcompiler.backends.lanes.recipes.recorder import REDUCED, Register
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Box, Contents, Runs
from bmcompiler.ir import Value

_LEAST = 1 << 10
"""Elements below which commands that turn rows take longer than short runs."""
_SHORT = 16
"""Elements of rows that other ops leave in lanes; shorter ones are hardly worth it."""
_RISK = 16
"""Copies inside local memory that rows may take longer to move where other ops may leave them in lanes as they are."""
_TOGETHER = 16
"""Results that a lane makes at once, of fp32."""


class TileMove(NamedTuple):
    """What a command moves of a tile.

    Attributes:
        image, channel: the first ones in the tile.
        start: first element in global memory; sizes, strides: as they count there.
        in_rows: whether the images of `sizes` are rows of one image.
    """

    image: int
    channel: int
    start: int
    sizes: Shape
    strides: Strides
    in_rows: bool = False

    @property
    def runs(self) -> Runs:
        """In which it moves."""
        return Runs(prod(self.sizes) // int(run_of(self.sizes, self.strides)), self.sizes[0] * self.sizes[1])


@dataclass(frozen=True)
class ReducedView:
    """How a dense tensor is reduced in local memory.

    Attributes:
        shape: (n, c, h, w).
        strides: of the tensor, in elements.
        out: strides of the dense reduced tensor, in elements; 0 along reduced axes.
        axes: reduced ones: (2,) or (2, 3).
        folded: whether (h, w) are rows in lanes, of which the columns are reduced first: commands make several results
            of a lane at once.
        shared: columns that the last lane has in common with the one before, as the lanes do not divide them.
    """

    shape: Shape
    strides: Strides
    out: Strides
    axes: tuple[int, ...]
    folded: bool = False
    shared: int = 0

    @property
    def count(self) -> int:
        """Number of elements that become one."""
        return prod(self.shape[axis] for axis in self.axes)

    @property
    def reduced(self) -> Shape:
        """Shape of the reduced tensor in this view."""
        n, c, _, w = self.shape
        return n, c, 1, 1 if 3 in self.axes else w

    @property
    def turns(self) -> bool:
        """Whether lanes hold several rows that are reduced, one after the other."""
        return self.shape[3] > 1 and self.strides[2:] == (1, self.shape[2])

    @property
    def undivided(self) -> ReducedView:
        """The same reduction with all columns in one lane, if they are shared by lanes."""
        if not self.shared:
            return self
        (images, _, count, _), (step, _, columns, _) = self.shape, self.strides
        return ReducedView((images, 1, count, columns), (step, 0, columns, 1), (columns, 0, 0, 1), self.axes)

    def moved(self, dims: Shape) -> tuple[Shape, Strides]:
        """Shape and strides of a tile of such dims as it is loaded and stored."""
        n, c, h, w = dims
        return ((n, c, 1, h * w), (*self.strides[:2], 0, 1)) if self.turns else (dims, self.strides)

    def pieces(self, box: Box, timing: LaneCycles | None = None) -> Iterator[TileMove]:
        """What is moved at once of a tile; timing: of loads, which may be in the order of global memory."""
        first, end = box[1]
        alone = end - 1 if self.shared and end == self.shape[1] else end
        for start, stop, back in ((first, alone, 0), (alone, end, self.shared)):
            part: Box = (box[0], (start, stop), *box[2:])
            n, c, h, w = extents(part)
            offset, channel = box_offset(self.strides, part) - back, start - first
            if c and timing is not None and self.in_rows(timing, (n, c, h, w)):
                image, lane, row, _ = self.strides
                for each in range(n):
                    yield TileMove(each, channel, offset + each * image, (h, c, 1, w), (row, lane, 0, 1), True)
            elif c:
                yield TileMove(0, channel, offset, *self.moved((n, c, h, w)))

    def in_rows(self, timing: LaneCycles, dims: Shape) -> bool:
        """Whether a tile of such dims is loaded row by row of global memory, an image at once, for longer runs."""
        n, c, h, w = dims
        if self.turns or c == 1 or self.strides[1] != w or self.strides[2] < c * w or h == 1:
            return False
        if not isinstance(timing, MatrixCycles):
            return False
        return n * timing.load_sections((h, c, 1, w), self.strides[2]) < timing.load(n * c * h, 4 * w)

    def load_cycles(self, timing: LaneCycles) -> int:
        """Rough cycles of loading all."""
        n, c, h, w = self.shape
        if self.turns or self.strides[2] == w:
            return timing.load(n * c, 4 * h * w)
        lanes = c - (self.shared > 0)
        alone = timing.load(n * h, 4 * w) if self.shared else 0
        if self.in_rows(timing, (n, lanes, h, w)):
            assert isinstance(timing, MatrixCycles), "`in_rows` asked"
            return alone + n * timing.load_sections((h, lanes, 1, w), self.strides[2])
        return alone + timing.load(n * lanes * h, 4 * w)

    def contents(self, value: Value, box: Box) -> Contents | None:
        """What a tile holds of a value: columns of one element are rows, as other ops see them."""
        n, c, h, w = self.shape
        if self.turns:
            return contents_of(value, (n, c, 1, h * w), (*box[:2], (0, 1), (h * box[3][0], h * box[3][1])))
        if self.shared or not is_dense(self.strides, self.shape):
            return None
        if w == 1 or self.folded:
            return contents_of(value, (n, c, 1, h * w), (*box[:2], (0, 1), (box[2][0] * w, box[2][1] * w)))
        return contents_of(value, self.shape, box)


class Recipe(NamedTuple):
    """What is recorded for a tile: a recipe, its operands and further arguments; `folds`: rows may be folded."""

    function: Callable[..., Register]
    inputs: int
    arguments: tuple[Hashable, ...]
    named: tuple[tuple[str, Hashable], ...]
    folds: bool

    def steps(self, machine: LaneMachine, view: ReducedView) -> Steps:
        """Of a view."""
        named = {**dict(self.named), "axes": view.axes, "folded": view.folded}
        return machine.recorded(self.function, self.inputs, *self.arguments, **named)


def is_seen(shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Whether kept and reduced axes do not alternate too often for a view."""
    return _parts(shape, axes)[0] in ("RKR", "KRKR", "", "K", "R", "KR", "RK", "KRK")


def reduced_view(machine: LaneMachine, shape: tuple[int, ...], axes: tuple[int, ...], recipe: Recipe) -> ReducedView:
    """The view for a reduction of `axes`, which `is_seen`, by which it takes the least time.

    What the elements of one sum are and their order, row by row of (h, w), does not depend on the view that is chosen.
    """
    return machine.decided(_reduced_view, machine, shape, axes, recipe)


def _parts(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[str, list[int]]:
    """Which of neighbouring axes are kept (K) or reduced (R) together, and their sizes."""
    pairs = ((i in axes, d) for i, d in enumerate(shape) if d > 1)
    parts = [(is_reduced, prod(d for _, d in group)) for is_reduced, group in groupby(pairs, key=lambda item: item[0])]
    return "".join("R" if is_reduced else "K" for is_reduced, _ in parts), [size for _, size in parts]


def _reduced_view(machine: LaneMachine, shape: tuple[int, ...], axes: tuple[int, ...], recipe: Recipe) -> ReducedView:
    kinds, sizes = _parts(shape, axes)
    if kinds in ("RKR", "KRKR"):
        a, r, b, s = sizes if kinds == "KRKR" else [1, *sizes]
        return ReducedView((a, b, r, s), (r * b * s, s, b * s, 1), (b, 1, 0, 0), (2, 3))
    outer = sizes.pop(0) if kinds.startswith("K") else 1
    count = sizes.pop(0) if sizes else 1
    inner = sizes.pop(0) if sizes else 1
    choices = _choices(outer, count, inner)
    rows = machine.rows_view(shape)
    if axes != (len(shape) - 1,) or rows is None:
        return min(choices, key=lambda view: (_cycles(machine, recipe, view), -view.shape[3]))
    images, lanes, _, _ = rows
    kept = ReducedView((images, lanes, count, 1), (lanes * count, count, 1, 1), (lanes, 1, 0, 0), (2,))
    if recipe.folds:
        kept = folded(kept)
    copies = {view: _RISK if view.turns and count >= _SHORT else 2 for view in choices} | {kept: 0}
    copy = machine.cycles.local_copy(rows)
    return min(copies, key=lambda view: _cycles(machine, recipe, view) + copies[view] * copy)


def folded(view: ReducedView) -> ReducedView:
    """The same with single elements of rows as rows of several columns, where commands then make more at once."""
    (images, lanes, count, columns), (image, lane, *_) = view.shape, view.strides
    width = min((d for d in range(1, count + 1) if count % d == 0), key=partial(_folded_taps, count))
    if columns > 1 or _folded_taps(count, width) >= count:
        return view
    shape = (images, lanes, count // width, width)
    return replace(view, shape=shape, strides=(image, lane, width, 1), axes=(2, 3), folded=True)


def _folded_taps(count: int, width: int) -> int:
    """Of a row that is folded into rows of such a width, for each result of a lane."""
    return count // width * -(-width // _TOGETHER) + width


def _cycles(machine: LaneMachine, recipe: Recipe, view: ReducedView) -> int:
    """Rough cycles of the commands and of loading and storing: short runs fill the bus badly."""
    timing, steps = machine.cycles, recipe.steps(machine, view)
    small = steps.steps[-1].height == REDUCED
    n, c, h, w = view.reduced if small else view.shape
    run, runs = (h * w, n * c) if small or view.strides[2] == w or view.turns else (w, n * c * h)
    moved = view.load_cycles(timing) + timing.store(runs, 4 * run)
    lanes, count = min(view.shape[1], machine.chip.lanes), view.count
    moved += (recipe.inputs - 1) * timing.load(lanes, 4 * count)  # what is the same for all sums
    waits = view.turns * (timing.tile_cycles + 2 * timing.pass_cycles(view.shape))  # others wait for it
    return steps.cycles(view.shape) + waits + moved


def _choices(outer: int, count: int, inner: int) -> list[ReducedView]:
    """Views of (outer, count, inner): the lanes take `outer`, or parts of `inner`; of rows a divisor of `outer`."""
    step = count * inner
    found = [ReducedView((1, outer, count, inner), (0, step, inner, 1), (0, inner, 0, 1), (2,))]
    for w in sorted({-(-inner // lanes) for lanes in range(1, min(inner, 4096) + 1)}, reverse=True):
        lanes = -(-inner // w)
        columns = replace(found[0], shape=(outer, lanes, count, w), strides=(step, w, inner, 1), out=(inner, w, 0, 1))
        found.append(replace(columns, shared=lanes * w - inner))
    turns = inner == 1 < count and outer * count >= _LEAST
    for lanes in (d for d in range(1, min(outer, 4097)) if turns and outer % d == 0):
        w = outer // lanes
        found.append(ReducedView((1, lanes, count, w), (0, w * count, 1, count), (0, w, 0, 1), (2,)))
    return found
