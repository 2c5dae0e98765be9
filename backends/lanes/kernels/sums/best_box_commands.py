"""The commands of a tile of best_boxes: one box of each class after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.recipes import Plane, Steps, overlap
from bmcompiler.backends.lanes.recipes.recorder import float_bits
from bmcompiler.ops.places.selection import Best, BestBoxRows

if TYPE_CHECKING:
    from bmcompiler.backends.lanes.kernels.sums.best_boxes import BestBoxesKernel

CORNERS = range(4)


class BestBoxRecipes(NamedTuple):
    """The commands of an op that are the same in all parts."""

    admitted: Steps
    best: Steps
    larger: Steps
    rank: Steps
    corner: Steps
    total: Steps
    area: Steps
    goes: Steps
    out: Steps
    kept: Steps


class Numbers(NamedTuple):
    """Places of a number for each class: what is found, of a part of the boxes, and of the chosen box.

    there: the rank of the chosen box as a part counts.
    """

    part: int
    best: int
    chosen: int
    there: int
    area: int
    top: int
    left: int
    bottom: int
    right: int


class Part(NamedTuple):
    """Boxes that are computed at once.

    first: bytes before them; above: by how much their ranks are above those of the last part.
    """

    first: int
    shape: Shape
    above: int


@dataclass
class BestBoxCommands:
    """The commands of a tile."""

    kernel: BestBoxesKernel
    op: Best
    classes: int
    rows: int
    build: Any
    ins: list[int]
    left: int
    out: int
    planes: list[int]
    smalls: list[int]
    parts: list[Part] = field(init=False)

    def __post_init__(self) -> None:
        self.recipes, self.chip = self.kernel.recipes(self.op), self.kernel.chip
        self.at, self.rest = Numbers(*self.smalls[: len(Numbers._fields)]), self.smalls[len(Numbers._fields) :]
        self.small: Shape = (1, self.classes, 1, 1)
        shapes = self.kernel.parts(self.op, self.classes, self.rows)
        boxes = self.rows * self.chip.execution_units
        behind = reversed(range(len(shapes)))
        self.parts = [Part(4 * boxes * i, shape, boxes * more) for i, (shape, more) in enumerate(zip(shapes, behind))]

    def all(self) -> None:
        """Admit the scores, then one box of each class after the other."""
        scores, (given, rank, first_corner) = self.left, self.ins
        corners = [first_corner + number * self.kernel.space(self.op) for number in CORNERS]
        self.admit(given, scores)
        own, at, recipes, ranks = self.at[-4:], self.at, self.recipes, Plane(rank)
        for step in range(self.op.max_boxes):
            for part in self.parts:
                self.reduced(recipes.best, recipes.larger, at.best, part, [scores])
            for part in self.parts:
                self.ranked(part, [scores, self.number(at.best), ranks])
            if not isinstance(self.op, BestBoxRows):
                self.numbers(self.kernel.number(self.op), [at.best, at.chosen], self.kept(step))
            for part in self.parts:
                chosen = self.there(part)
                for place, corner in zip(own, corners):
                    self.reduced(recipes.corner, recipes.total, place, part, [ranks, chosen, corner])
            if isinstance(self.op, BestBoxRows):
                for plane, place in enumerate((at.best, *own)):
                    self.numbers(recipes.kept, [place], self.kept(step, plane))
            self.numbers(recipes.area, own, at.area)
            best = [self.number(place) for place in (*own, at.area)]
            for part in self.parts:
                gone, left = self.planes[0], self.planes[1:]
                self.emit(recipes.goes, part, [ranks, self.there(part), *corners, *best], gone, left)
                place = scores + part.first
                recipes.out.emit(self.build, part.shape, [Plane(gone), Plane(place)], place)

    def admit(self, given: int, scores: int) -> None:
        """Of all boxes; behind them the lowest scores, to the end of the last row."""
        count = self.op.scores.shape[2]
        whole = self.kernel.rows(self.op) * self.chip.execution_units
        shape: Shape = (1, self.classes, 1, count)
        self.recipes.admitted.emit(self.build, shape, [Plane(given)], scores, self.planes)
        if whole > count:
            strides = self.chip.aligned_strides((1, self.classes, 1, whole))
            rest = Words(scores + 4 * count, (1, self.classes, 1, whole - count), strides)
            self.build.fill(rest, float_bits(overlap.LOWEST))

    def number(self, address: int) -> Plane:
        """One for each class, for all of its boxes."""
        return Plane(address, (0, self.chip.aligned_strides(self.small)[1], 0, 0))

    def kept(self, step: int, plane: int = 0) -> Plane:
        """Where a number of the box of a step goes."""
        line: Shape = (1, self.classes, 1, self.op.max_boxes)
        place = self.out + plane * self.chip.aligned_bytes(line) + 4 * step
        return Plane(place, self.chip.aligned_strides(line))

    def numbers(self, steps: Steps, sources: Any, target: Plane | int) -> None:
        """Of one number for each class."""
        steps.emit(self.build, self.small, [Plane(place) for place in sources], target, self.planes)

    def ranked(self, part: Part, sources: list[Plane | int]) -> None:
        """The rank of the best box, of those up to a part."""
        if not part.above:
            self.reduced(self.recipes.rank, self.recipes.larger, self.at.chosen, part, sources)
            return
        place = self.at.part if part.first else self.at.chosen
        self.emit(self.recipes.rank, part, sources, self.at.there, self.planes)
        self.numbers(self.kernel.shifted(overlap.raised, part.above), [self.at.there], place)
        self.join(self.recipes.larger, self.at.chosen, part)

    def there(self, part: Part) -> Plane:
        """The rank of the chosen box as a part counts."""
        if not part.above:
            return self.number(self.at.chosen)
        self.numbers(self.kernel.shifted(overlap.lowered, part.above), [self.at.chosen], self.at.there)
        return self.number(self.at.there)

    def reduced(self, steps: Steps, both: Steps, target: int, part: Part, sources: list[Plane | int]) -> None:
        """A number for each class, of boxes up to a part."""
        self.emit(steps, part, sources, self.at.part if part.first else target, self.planes)
        self.join(both, target, part)

    def join(self, both: Steps, target: int, part: Part) -> None:
        """What a part gave and those before it."""
        if part.first:
            both.emit(self.build, self.small, [Plane(target), Plane(self.at.part)], target, self.planes)

    def emit(self, steps: Steps, part: Part, sources: list[Plane | int], target: int, planes: list[int]) -> None:
        """Of a part of the boxes: whole planes, and numbers."""
        given = [place if isinstance(place, Plane) else Plane(place + part.first) for place in sources]
        steps.emit(self.build, part.shape, given, target, planes, self.rest)
