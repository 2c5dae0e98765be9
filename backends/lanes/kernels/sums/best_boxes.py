"""Suppression of boxes by repeated maxima: classes in lanes, whose boxes and scores stay in local memory.

Each step finds the best box that is left of every class and sets the scores of those that overlap it to the lowest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import LocalKernel
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.recipes import Plane, Steps, overlap
from bmcompiler.backends.lanes.recipes.recorder import Register, float_bits
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Runs, TileWork
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.places.selection import BestBoxes
from bmcompiler.target import rule

_MOST = 1024
"""Steps of all tiles: a program has the commands of each, about 50."""
_MOST_PARTS = 32
_PLANES = 6
"""That are whole in local memory: scores as given and as they are left, and corners."""
_CORNERS = range(4)


class _Recipes(NamedTuple):
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


class BestBoxesKernel(LocalKernel[BestBoxes]):
    """best_boxes: a tile is up to a class for each lane; rows of so many boxes as a lane has execution units."""

    ops = (BestBoxes,)
    grid_of_result = False

    @rule("Operands must be f32")
    def known_types(self, op: BestBoxes) -> bool:
        return all(value.dtype == "f32" for value in op.operands)

    @rule(f"At most {_MOST} boxes may be selected one after the other (max_boxes for each image and 64 classes)")
    def few_steps(self, op: BestBoxes) -> bool:
        images, classes, most = op.type.shape
        return images * -(-classes // self.chip.lanes) * most <= _MOST

    @rule("Boxes and scores of a class must fit the local memory of a lane: up to about {kernel.most_boxes} boxes")
    def boxes_fit(self, op: BestBoxes) -> bool:
        return self.part(op) > 0

    @property
    def most_boxes(self) -> int:
        """Of a class, in whole thousands: what fits beside the planes of a small part."""
        return self.tiler.lane_bytes // (4 * _PLANES + 1) // 1000 * 1000

    # -- sizes ---------------------------------------------------------------------------------------------------------
    def rows(self, op: BestBoxes) -> int:
        """Of all boxes of a class."""
        return -(-op.scores.shape[2] // self.chip.execution_units)

    def part(self, op: BestBoxes) -> int:
        """Rows that are computed at once, so that scratch planes fit beside what is whole; 0 = none."""
        rows = self.rows(op)
        for parts in range(1, min(rows, _MOST_PARTS) + 1):
            part = -(-rows // parts)
            if self._fits(op, part):
                return part
        return 0

    def at_once(self, op: BestBoxes) -> int:
        """The same of an op that may be refused."""
        return self.part(op) or 1

    def _fits(self, op: BestBoxes, part: int) -> bool:
        chip, whole = self.chip, self.tile(op, 1, self.rows(op))
        planes = [chip.aligned_bytes(whole)] * (_PLANES - 1)
        ranks = chip.aligned_bytes(self.tile(op, 1, part))
        planes += [ranks, *self.scratch(op, part), chip.aligned_bytes((1, 1, 1, op.max_boxes))]
        return sum(map(self.tiler.rounded, planes)) <= self.tiler.lane_bytes

    def tile(self, op: BestBoxes, classes: int, rows: int) -> Shape:
        """So many rows of boxes."""
        return 1, classes, rows, self.chip.execution_units

    def scratch(self, op: BestBoxes, part: int) -> tuple[int, ...]:
        """The scores that are left, planes of recipes, and those of a number for each class."""
        recipes = self.recipes(op)
        whole, plane, small = (self.chip.aligned_bytes(self.tile(op, 1, rows)) for rows in (self.rows(op), part, 1))
        planes = max(steps.registers for steps in recipes) + 1
        smalls = max(steps.small_registers for steps in recipes) + len(_Numbers._fields)
        return (whole,) + (plane,) * planes + (small,) * smalls

    def recipes(self, op: BestBoxes) -> _Recipes:
        """Those of `_Recipes`."""
        recorded = self.machine.recorded
        reduced: dict[str, Any] = {"axes": (2, 3), "folded": True}
        return _Recipes(
            recorded(overlap.admitted, 1, op.score_threshold),
            recorded(overlap.best_score, 1, **reduced),
            recorded(overlap.larger, 2),
            recorded(overlap.best_rank, 3, **reduced),
            recorded(overlap.corner_of, 3, **reduced),
            recorded(overlap.total, 2),
            recorded(overlap.area_of, 4),
            recorded(overlap.goes, 11, overlap=op.iou_threshold),
            recorded(overlap.out, 2),
        )

    def number(self, op: BestBoxes) -> Steps:
        """From the best score and the rank of its box to the number of the box."""
        return self.machine.recorded(overlap.number_of, 2, self.ranked(op))

    def shifted(self, recipe: Callable[..., Register], by: int) -> Steps:
        """A rank of all boxes from that of a part, or back."""
        return self.machine.recorded(recipe, 1, by)

    # -- arithmetic ----------------------------------------------------------------------------------------------------
    def evaluate(self, op: BestBoxes, *arrays: Array) -> Array:
        boxes, given = arrays
        count, recipes, number = op.scores.shape[2], self.recipes(op), self.number(op)
        corners = [np.ascontiguousarray(boxes[:, None, None, i]) for i in _CORNERS]
        rank = np.arange(self.ranked(op), 0, -1, dtype=np.float32)[None, None, None, :count]
        out = np.empty(op.type.shape, np.float32)
        scores = recipes.admitted.evaluate(np.ascontiguousarray(given[:, :, None]))
        for step in range(op.max_boxes):
            best = recipes.best.evaluate(scores)
            chosen = recipes.rank.evaluate(scores, best, rank)
            out[:, :, step] = number.evaluate(best, chosen)[:, :, 0, 0]
            own = [recipes.corner.evaluate(rank, chosen, corner) for corner in corners]
            area = recipes.area.evaluate(*own)
            gone = recipes.goes.evaluate(rank, chosen, *corners, *own, area)
            scores = recipes.out.evaluate(gone, scores)
        return out

    def ranked(self, op: BestBoxes) -> int:
        """The rank of the first box: those of all parts, to the end of the last one, have one."""
        part = self.at_once(op)
        return -(-self.rows(op) // part) * part * self.chip.execution_units

    # -- tiles ---------------------------------------------------------------------------------------------------------
    def grid(self, op: BestBoxes) -> tuple[Axis, ...]:
        images, classes, _ = op.type.shape
        return Axis(images, 1, 1), Axis(classes, self.chip.lanes, self.chip.lanes), Axis(1), Axis(1)

    def work(self, op: BestBoxes, box: Box) -> TileWork:
        _, classes, _, _ = extents(box)
        part = self.at_once(op)
        scratch = self.scratch(op, part)
        planes = max(steps.registers for steps in self.recipes(op)) + 1
        inputs = self._scores(op, box), self._ranks(classes, part), self._corners(op, box)

        def compute(build: LaneBuild, ins: list[int], outs: list[int], places: list[int]) -> None:
            left, *others = places
            _Emitted(self, op, classes, part, build, ins, left, outs[0], others[:planes], others[planes:]).all()

        return TileWork(inputs, (self._numbers(op, box),), scratch, compute, self._cycles(op, classes, part))

    def _cycles(self, op: BestBoxes, classes: int, part: int) -> int:
        recipes, small = self.recipes(op), (1, classes, 1, 1)
        step = sum(each.cycles(small) for each in (self.number(op), recipes.area))
        for shape in self.parts(op, classes, part):
            step += sum(each.cycles(shape) for each in (recipes.best, recipes.rank, recipes.goes, recipes.out))
            step += len(_CORNERS) * recipes.corner.cycles(shape)
        more = len(self.parts(op, classes, part)) - 1
        step += more * (2 * recipes.larger.cycles(small) + len(_CORNERS) * recipes.total.cycles(small))
        ways = overlap.raised, overlap.lowered, overlap.lowered
        step += more * sum(self.shifted(each, 1).cycles(small) for each in ways)
        step += more * (2 + len(_CORNERS)) * self._longer_in_place(small)
        count = op.scores.shape[2]
        behind = self.rows(op) * self.chip.execution_units - count
        first = recipes.admitted.cycles((1, classes, 1, count))
        filled = self.machine.cycles.pass_cycles((1, classes, 1, behind), 4) if behind else 0
        return first + filled + op.max_boxes * step

    def _longer_in_place(self, shape: Shape) -> int:
        """Cycles that a command of two operands takes more where its result overwrites one."""
        apart, in_place = (self.machine.cycles.pass_cycles(shape, 4, 1, True, over) for over in (False, True))
        return in_place - apart

    def parts(self, op: BestBoxes, classes: int, part: int) -> list[Shape]:
        """The tiles that are computed one after the other."""
        rows = self.rows(op)
        return [self.tile(op, classes, min(part, rows - first)) for first in range(0, rows, part)]

    # -- buffers -------------------------------------------------------------------------------------------------------
    def space(self, op: BestBoxes) -> int:
        """Bytes of a lane for a number of each box."""
        return self.chip.aligned_bytes(self.tile(op, 1, self.rows(op)))

    def _scores(self, op: BestBoxes, box: Box) -> Buffer:
        count, (_, classes, _, _) = op.scores.shape[2], extents(box)
        start = (box[0][0] * op.scores.shape[1] + box[1][0]) * count

        def load(build: LaneBuild, address: int) -> None:
            build.load(build.source(op.scores) + 4 * start, (1, classes, 1, count), (0, count, 0, 1), 4, address)

        size, runs = self.space(op), Runs(1, classes)
        return Buffer(size, "nc", 4 * classes * count, load, runs=runs, source=op.scores)

    def _corners(self, op: BestBoxes, box: Box) -> Buffer:
        """The same in all lanes: an image for each corner."""
        count, (_, classes, _, _), corners = op.scores.shape[2], extents(box), len(_CORNERS)
        start, shape = box[0][0] * corners * count, (corners, classes, 1, count)

        def load(build: LaneBuild, address: int) -> None:
            build.load(build.source(op.corners) + 4 * start, shape, (count, 0, 0, 1), 4, address)

        size, runs = corners * self.space(op), Runs(corners * classes, corners * classes)
        return Buffer(size, "nc", 4 * corners * classes * count, load, runs=runs, source=op.corners)

    def _ranks(self, classes: int, part: int) -> Buffer:
        """Of the last part; those of others are larger."""
        ranks = np.arange(part * self.chip.execution_units, 0, -1, dtype=np.float32)

        def load(build: LaneBuild, address: int) -> None:
            source = build.coefficient(build.coefficients.constant(ranks.tobytes()))
            build.load(source, (1, classes, 1, ranks.size), (0, 0, 0, 1), 4, address)

        size = self.chip.aligned_bytes((1, 1, part, self.chip.execution_units))
        return Buffer(size, "c", 4 * classes * ranks.size, load, True, runs=Runs(classes, classes))

    def _numbers(self, op: BestBoxes, box: Box) -> Buffer:
        most, (_, classes, _, _) = op.max_boxes, extents(box)
        start, shape = (box[0][0] * op.type.shape[1] + box[1][0]) * most, (1, classes, 1, most)

        def store(build: LaneBuild, address: int) -> None:
            build.store(build.neuron(op.result) + 4 * start, shape, (0, most, 0, 1), 4, address)

        return Buffer(self.chip.aligned_bytes(shape), "nc", 4 * classes * most, store, runs=Runs(1, classes))


class _Numbers(NamedTuple):
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


class _Part(NamedTuple):
    """Boxes that are computed at once.

    first: bytes before them; above: by how much their ranks are above those of the last part.
    """

    first: int
    shape: Shape
    above: int


@dataclass
class _Emitted:
    """The commands of a tile."""

    kernel: BestBoxesKernel
    op: BestBoxes
    classes: int
    rows: int
    build: Any
    ins: list[int]
    left: int
    out: int
    planes: list[int]
    smalls: list[int]
    parts: list[_Part] = field(init=False)

    def __post_init__(self) -> None:
        self.recipes, self.chip = self.kernel.recipes(self.op), self.kernel.chip
        self.at, self.rest = _Numbers(*self.smalls[: len(_Numbers._fields)]), self.smalls[len(_Numbers._fields) :]
        self.small: Shape = (1, self.classes, 1, 1)
        shapes = self.kernel.parts(self.op, self.classes, self.rows)
        boxes = self.rows * self.chip.execution_units
        behind = reversed(range(len(shapes)))
        self.parts = [_Part(4 * boxes * i, shape, boxes * more) for i, (shape, more) in enumerate(zip(shapes, behind))]

    def all(self) -> None:
        """Admit the scores, then one box of each class after the other."""
        scores, (given, rank, first_corner) = self.left, self.ins
        corners = [first_corner + number * self.kernel.space(self.op) for number in _CORNERS]
        self.admit(given, scores)
        own, at, recipes, ranks = self.at[-4:], self.at, self.recipes, Plane(rank)
        for step in range(self.op.max_boxes):
            for part in self.parts:
                self.reduced(recipes.best, recipes.larger, at.best, part, [scores])
            for part in self.parts:
                self.ranked(part, [scores, self.number(at.best), ranks])
            self.numbers(self.kernel.number(self.op), [at.best, at.chosen], self.kept(step))
            for part in self.parts:
                chosen = self.there(part)
                for place, corner in zip(own, corners):
                    self.reduced(recipes.corner, recipes.total, place, part, [ranks, chosen, corner])
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

    def kept(self, step: int) -> Plane:
        """Where the number of a box of a step goes."""
        return Plane(self.out + 4 * step, self.chip.aligned_strides((1, self.classes, 1, self.op.max_boxes)))

    def numbers(self, steps: Steps, sources: Any, target: Plane | int) -> None:
        """Of one number for each class."""
        steps.emit(self.build, self.small, [Plane(place) for place in sources], target, self.planes)

    def ranked(self, part: _Part, sources: list[Plane | int]) -> None:
        """The rank of the best box, of those up to a part."""
        if not part.above:
            self.reduced(self.recipes.rank, self.recipes.larger, self.at.chosen, part, sources)
            return
        place = self.at.part if part.first else self.at.chosen
        self.emit(self.recipes.rank, part, sources, self.at.there, self.planes)
        self.numbers(self.kernel.shifted(overlap.raised, part.above), [self.at.there], place)
        self.join(self.recipes.larger, self.at.chosen, part)

    def there(self, part: _Part) -> Plane:
        """The rank of the chosen box as a part counts."""
        if not part.above:
            return self.number(self.at.chosen)
        self.numbers(self.kernel.shifted(overlap.lowered, part.above), [self.at.chosen], self.at.there)
        return self.number(self.at.there)

    def reduced(self, steps: Steps, both: Steps, target: int, part: _Part, sources: list[Plane | int]) -> None:
        """A number for each class, of boxes up to a part."""
        self.emit(steps, part, sources, self.at.part if part.first else target, self.planes)
        self.join(both, target, part)

    def join(self, both: Steps, target: int, part: _Part) -> None:
        """What a part gave and those before it."""
        if part.first:
            both.emit(self.build, self.small, [Plane(target), Plane(self.at.part)], target, self.planes)

    def emit(self, steps: Steps, part: _Part, sources: list[Plane | int], target: int, planes: list[int]) -> None:
        """Of a part of the boxes: whole planes, and numbers."""
        given = [place if isinstance(place, Plane) else Plane(place + part.first) for place in sources]
        steps.emit(self.build, part.shape, given, target, planes, self.rest)
