"""Suppression of boxes by repeated maxima: classes in lanes, whose boxes and scores stay in local memory.

Each step finds the best box that is left of every class and sets the scores of those that overlap it to the lowest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import LocalKernel
from bmcompiler.backends.lanes.kernels.sums.best_box_commands import CORNERS, BestBoxCommands, BestBoxRecipes, Numbers
from bmcompiler.backends.lanes.recipes import Steps, overlap
from bmcompiler.backends.lanes.recipes.recorder import Register
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Runs, TileWork
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.places.selection import Best, BestBoxes, BestBoxRows
from bmcompiler.target import rule

_MOST = 1024
"""Steps of all tiles: a program has the commands of each, about 50."""
_MOST_PARTS = 32
_PLANES = 6
"""That are whole in local memory: scores as given and as they are left, and corners."""


class BestBoxesKernel(LocalKernel[Best]):
    """best_boxes: a tile is up to a class for each lane; rows of so many boxes as a lane has execution units."""

    ops: tuple[type[Best], ...] = (BestBoxes, BestBoxRows)
    grid_of_result = False

    @rule("Operands must be f32")
    def known_types(self, op: Best) -> bool:
        return all(value.dtype == "f32" for value in op.operands)

    @rule(f"At most {_MOST} boxes may be selected one after the other (max_boxes for each image and 64 classes)")
    def few_steps(self, op: Best) -> bool:
        images, rows = self.sizes(op)
        return images * -(-rows // self.chip.lanes) * op.max_boxes <= _MOST

    @rule("Boxes and scores of a class must fit the local memory of a lane: up to about {kernel.most_boxes} boxes")
    def boxes_fit(self, op: Best) -> bool:
        return self.part(op) > 0

    @property
    def most_boxes(self) -> int:
        """Of a class, in whole thousands: what fits beside the planes of a small part."""
        return self.tiler.lane_bytes // (4 * _PLANES + 1) // 1000 * 1000

    # -- sizes ---------------------------------------------------------------------------------------------------------
    def sizes(self, op: Best) -> tuple[int, int]:
        """Images and classes as lanes have them: images of one class are classes that have boxes of their own."""
        images, classes, _ = op.scores.shape
        return (images, classes) if classes > 1 else (1, images)

    def rows(self, op: Best) -> int:
        """Of all boxes of a class."""
        return -(-op.scores.shape[2] // self.chip.execution_units)

    def part(self, op: Best) -> int:
        """Rows that are computed at once, so that scratch planes fit beside what is whole; 0 = none."""
        rows = self.rows(op)
        for parts in range(1, min(rows, _MOST_PARTS) + 1):
            part = -(-rows // parts)
            if self._fits(op, part):
                return part
        return 0

    def at_once(self, op: Best) -> int:
        """The same of an op that may be refused."""
        return self.part(op) or 1

    def _fits(self, op: Best, part: int) -> bool:
        chip, whole = self.chip, self.tile(op, 1, self.rows(op))
        planes = [chip.aligned_bytes(whole)] * (_PLANES - 1)
        ranks = chip.aligned_bytes(self.tile(op, 1, part))
        planes += [ranks, *self.scratch(op, part), self.results(op) * chip.aligned_bytes((1, 1, 1, op.max_boxes))]
        return sum(map(self.tiler.rounded, planes)) <= self.tiler.lane_bytes

    def results(self, op: Best) -> int:
        """Numbers of a box that are kept."""
        return 1 + len(CORNERS) if isinstance(op, BestBoxRows) else 1

    def tile(self, op: Best, classes: int, rows: int) -> Shape:
        """So many rows of boxes."""
        return 1, classes, rows, self.chip.execution_units

    def scratch(self, op: Best, part: int) -> tuple[int, ...]:
        """The scores that are left, planes of recipes, and those of a number for each class."""
        recipes = self.recipes(op)
        whole, plane, small = (self.chip.aligned_bytes(self.tile(op, 1, rows)) for rows in (self.rows(op), part, 1))
        planes = max(steps.registers for steps in recipes) + 1
        smalls = max(steps.small_registers for steps in recipes) + len(Numbers._fields)
        return (whole,) + (plane,) * planes + (small,) * smalls

    def recipes(self, op: Best) -> BestBoxRecipes:
        """Those of `BestBoxRecipes`."""
        recorded = self.machine.recorded
        reduced: dict[str, Any] = {"axes": (2, 3), "folded": True}
        return BestBoxRecipes(
            recorded(overlap.admitted, 1, op.score_threshold),
            recorded(overlap.best_score, 1, **reduced),
            recorded(overlap.larger, 2),
            recorded(overlap.best_rank, 3, **reduced),
            recorded(overlap.corner_of, 3, **reduced),
            recorded(overlap.total, 2),
            recorded(overlap.area_of, 4),
            recorded(overlap.goes, 11, overlap=op.iou_threshold),
            recorded(overlap.out, 2),
            recorded(overlap.kept, 1),
        )

    def number(self, op: Best) -> Steps:
        """From the best score and the rank of its box to the number of the box."""
        return self.machine.recorded(overlap.number_of, 2, self.ranked(op))

    def shifted(self, recipe: Callable[..., Register], by: int) -> Steps:
        """A rank of all boxes from that of a part, or back."""
        return self.machine.recorded(recipe, 1, by)

    # -- arithmetic ----------------------------------------------------------------------------------------------------
    def evaluate(self, op: Best, *arrays: Array) -> Array:
        boxes, given = arrays
        count, recipes, number = op.scores.shape[2], self.recipes(op), self.number(op)
        corners = [np.ascontiguousarray(boxes[:, None, None, i]) for i in CORNERS]
        rank = np.arange(self.ranked(op), 0, -1, dtype=np.float32)[None, None, None, :count]
        out = np.empty((*op.scores.shape[:2], self.results(op), op.max_boxes), np.float32)
        scores = recipes.admitted.evaluate(np.ascontiguousarray(given[:, :, None]))
        for step in range(op.max_boxes):
            best = recipes.best.evaluate(scores)
            chosen = recipes.rank.evaluate(scores, best, rank)
            own = [recipes.corner.evaluate(rank, chosen, corner) for corner in corners]
            kept = [best, *own] if isinstance(op, BestBoxRows) else [number.evaluate(best, chosen)]
            out[..., step] = np.concatenate(kept, 2)[..., 0]
            area = recipes.area.evaluate(*own)
            gone = recipes.goes.evaluate(rank, chosen, *corners, *own, area)
            scores = recipes.out.evaluate(gone, scores)
        return np.ascontiguousarray(out.transpose(0, 2, 1, 3)).reshape(op.type.shape)

    def ranked(self, op: Best) -> int:
        """The rank of the first box: those of all parts, to the end of the last one, have one."""
        part = self.at_once(op)
        return -(-self.rows(op) // part) * part * self.chip.execution_units

    # -- tiles ---------------------------------------------------------------------------------------------------------
    def grid(self, op: Best) -> tuple[Axis, ...]:
        images, rows = self.sizes(op)
        return Axis(images, 1, 1), Axis(rows, self.chip.lanes, self.chip.lanes), Axis(1), Axis(1)

    def work(self, op: Best, box: Box) -> TileWork:
        _, classes, _, _ = extents(box)
        part = self.at_once(op)
        scratch = self.scratch(op, part)
        planes = max(steps.registers for steps in self.recipes(op)) + 1
        inputs = self._scores(op, box), self._ranks(classes, part), self._corners(op, box)

        def compute(build: LaneBuild, ins: list[int], outs: list[int], places: list[int]) -> None:
            left, *others = places
            BestBoxCommands(self, op, classes, part, build, ins, left, outs[0], others[:planes], others[planes:]).all()

        return TileWork(inputs, (self._numbers(op, box),), scratch, compute, self._cycles(op, classes, part))

    def _cycles(self, op: Best, classes: int, part: int) -> int:
        recipes, small = self.recipes(op), (1, classes, 1, 1)
        kept = (
            self.results(op) * recipes.kept.cycles(small)
            if isinstance(op, BestBoxRows)
            else self.number(op).cycles(small)
        )
        step = recipes.area.cycles(small) + kept
        for shape in self.parts(op, classes, part):
            step += sum(each.cycles(shape) for each in (recipes.best, recipes.rank, recipes.goes, recipes.out))
            step += len(CORNERS) * recipes.corner.cycles(shape)
        more = len(self.parts(op, classes, part)) - 1
        step += more * (2 * recipes.larger.cycles(small) + len(CORNERS) * recipes.total.cycles(small))
        ways = overlap.raised, overlap.lowered, overlap.lowered
        step += more * sum(self.shifted(each, 1).cycles(small) for each in ways)
        step += more * (2 + len(CORNERS)) * self._longer_in_place(small)
        count = op.scores.shape[2]
        behind = self.rows(op) * self.chip.execution_units - count
        first = recipes.admitted.cycles((1, classes, 1, count))
        filled = self.machine.cycles.pass_cycles((1, classes, 1, behind), 4) if behind else 0
        return first + filled + op.max_boxes * step

    def _longer_in_place(self, shape: Shape) -> int:
        """Cycles that a command of two operands takes more where its result overwrites one."""
        apart, in_place = (self.machine.cycles.pass_cycles(shape, 4, 1, True, over) for over in (False, True))
        return in_place - apart

    def parts(self, op: Best, classes: int, part: int) -> list[Shape]:
        """The tiles that are computed one after the other."""
        rows = self.rows(op)
        return [self.tile(op, classes, min(part, rows - first)) for first in range(0, rows, part)]

    # -- buffers -------------------------------------------------------------------------------------------------------
    def space(self, op: Best) -> int:
        """Bytes of a lane for a number of each box."""
        return self.chip.aligned_bytes(self.tile(op, 1, self.rows(op)))

    def _scores(self, op: Best, box: Box) -> Buffer:
        count, (_, classes, _, _) = op.scores.shape[2], extents(box)
        start = (box[0][0] * self.sizes(op)[1] + box[1][0]) * count

        def load(build: LaneBuild, address: int) -> None:
            build.load(build.source(op.scores) + 4 * start, (1, classes, 1, count), (0, count, 0, 1), 4, address)

        size, runs = self.space(op), Runs(1, classes)
        return Buffer(size, "nc", 4 * classes * count, load, runs=runs, source=op.scores)

    def _corners(self, op: Best, box: Box) -> Buffer:
        """An image for each corner; the same in all lanes, unless they are of images of their own."""
        count, (_, classes, _, _), corners = op.scores.shape[2], extents(box), len(CORNERS)
        own = corners * count if op.scores.shape[1] == 1 else 0
        start, shape = box[0][0] * corners * count + box[1][0] * own, (corners, classes, 1, count)

        def load(build: LaneBuild, address: int) -> None:
            build.load(build.source(op.corners) + 4 * start, shape, (count, own, 0, 1), 4, address)

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

    def _numbers(self, op: Best, box: Box) -> Buffer:
        """What is kept of boxes: an image for each number."""
        most, results, (_, rows), (_, classes, _, _) = op.max_boxes, self.results(op), self.sizes(op), extents(box)
        apart, step = (rows * most, most) if op.scores.shape[1] > 1 else (most, results * most)
        start, shape = box[0][0] * results * rows * most + box[1][0] * step, (results, classes, 1, most)

        def store(build: LaneBuild, address: int) -> None:
            build.store(build.neuron(op.result) + 4 * start, shape, (apart, step, 0, 1), 4, address)

        size, runs = results * self.chip.aligned_bytes((1, 1, 1, most)), Runs(results, results * classes)
        return Buffer(size, "nc", 4 * results * classes * most, store, runs=runs)
