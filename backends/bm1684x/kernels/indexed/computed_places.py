"""Rows of a matrix that index tuples mean, where these are known at run time: their numbers by the execution units.

Ops that pick or replace by index see a dense tensor as a matrix: the axes that are indexed make the rows, those behind
them the columns. The number of a row is the sum of a tuple's members times steps, from a row on that is known; a
negative member counts from the end of its axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Ar
from bmcompiler.backends.bm1684x.instructions import arithmetic
from bmcompiler.backends.bm1684x.instructions.operands import Operand, constant
from bmcompiler.backends.bm1684x.lane_commands import I32
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.operands import Immediate, Words
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.kernels import runs_of
from bmcompiler.codegen.pieces import dense
from bmcompiler.codegen.tiling import Box, Buffer
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.places.index import Gather, GatherElements, GatherNd, ScatterElements, ScatterNd

Indexing = Gather | GatherElements | GatherNd | ScatterElements | ScatterNd
_TO_SIGN = Immediate(-31 & 0xFFFF_FFFF)


@dataclass(frozen=True)
class Places:
    """What index tuples mean.

    Attributes:
        count: of tuples. sizes: of the axes that their members index. steps: rows from one index to the next.
        tables: matrices that follow each other, of each of which the same rows are meant. rows, width: of a matrix.
        own: makes the i32 rows that each tuple counts from; None where that is the first.
    """

    count: int
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    tables: int
    rows: int
    width: int
    own: partial[Array] | None = None

    def cycles(self, timing: LaneCycles, shape: Shape) -> int:
        """Of `emit_rows` for tuples of such a shape: each member is read once, all else is done in its place."""
        members, scaled = len(self.sizes), sum(step > 1 for step in self.steps)
        inside = 3 * members - 1 + scaled + (self.own is not None)
        return members * timing.pass_cycles(shape) + inside * timing.pass_cycles(shape, in_place=True)

    @property
    def registers(self) -> int:
        """Tensors that `emit_rows` needs, the first of which has its result."""
        return min(len(self.sizes), 2)


def places_of(op: Indexing) -> Places:
    """How an op sees its first operand."""
    shape, indices = op.x.shape, op.indices.shape
    if isinstance(op, Gather):
        axis = op.axis % len(shape)
        size, inner = shape[axis], shape[axis + 1 :]
        return Places(prod(indices), (size,), (1,), prod(shape[:axis]), size, prod(inner))
    if isinstance(op, (GatherElements, ScatterElements)):
        axis, steps = op.axis % len(shape), dense(shape)
        own = partial(_own_places, indices, tuple(0 if i == axis else step for i, step in enumerate(steps)))
        return Places(prod(indices), (shape[axis],), (steps[axis],), 1, prod(shape), 1, own)
    batch = op.batch_dims if isinstance(op, GatherNd) else 0
    outer, inner = shape[: batch + indices[-1]], shape[batch + indices[-1] :]
    count, batches, rows = prod(indices[:-1]), prod(shape[:batch]), prod(outer)
    members = tuple(outer[batch:]), tuple(dense(outer)[batch:])
    first = partial(_own_places, (batches, count // batches), (rows // batches, 0)) if batch else None
    return Places(count, *members, 1, rows, prod(inner), first)


def _own_places(shape: tuple[int, ...], steps: tuple[int, ...]) -> Array:
    """Places of the elements of a tensor with these strides."""
    along = [np.arange(size) * step for size, step in zip(shape, steps)]
    return np.asarray(sum(np.ix_(*along))).astype(np.int32).ravel()


def _own_source(build: Build, places: Places) -> int:
    """Where the rows lie that tuples count from."""
    own = places.own
    assert own is not None, "it is loaded where it is"
    return build.coefficient(build.coefficients.once(("places", *own.args), lambda: own().tobytes()))


def own_rows(places: Places, shape: Shape, box: Box, lane_bytes: int) -> Buffer:
    """What `Places.own` says of the tuples of a box; `shape`: of all, in lanes or in a row."""
    first = max(lo for lo, _ in box)
    dims: Shape = tuple(hi - lo for lo, hi in box)  # type: ignore[assignment]

    def load(build: Build, address: int) -> None:
        source = _own_source(build, places) + 4 * first
        build.load_words(source, "i32", dims, (0, 1, 0, 1), address)

    return Buffer(lane_bytes, "nchw", 4 * prod(dims), load, True, runs=runs_of(shape, box))


def own_elements(places: Places, view: Shape, box: Box, lane_bytes: int) -> Buffer:
    """What `Places.own` says of a box of single elements, which are a feature map of shape `view`."""
    n, c, h, w = dense(view)
    first = sum(lo * stride for (lo, _), stride in zip(box, (n, c, h, w)))

    def load(build: Build, address: int) -> None:
        source = _own_source(build, places) + 4 * first
        build.load_words(source, "i32", extents(box), (n, c, h, w), address)

    return Buffer(lane_bytes, "nchw", 4 * prod(extents(box)), load, True, runs=runs_of(view, box))


def emit_rows(build: Build, places: Places, given: Words, own: Words | None, scratch: list[int]) -> Words:
    """The row of each tuple.

    Args:
        given: the first member of each tuple; the others lie behind it. own: `Places.own`.
        scratch: addresses of `Places.registers` dense tensors of that shape.
    """
    made = [Words(address, given.shape) for address in scratch]
    for number, (size, step) in enumerate(zip(places.sizes, places.steps)):
        member = given._replace(address=given.address + 4 * number)
        row = made[min(number, 1)]
        build.combine(Unit.SHIFT_SIGNED, row, member, _TO_SIGN)
        build.combine(Unit.AND, row, row, Immediate(size))
        _add(build, row, row, member)
        if step > 1:
            here = Operand(row.address, I32)
            build.issue(arithmetic.integer(Ar.MUL, row.shape, here, here, constant(step, I32)), *build.ranges(row, row))
        if number:
            _add(build, made[0], made[0], row)
    if own is not None:
        _add(build, made[0], made[0], own)
    return made[0]


def _add(build: Build, target: Words, a: Words, b: Words) -> None:
    to, one, other = (Operand(words.address, I32, True, words.strides) for words in (target, a, b))
    build.issue(arithmetic.binary(Ar.ADD, target.shape, to, one, other), *build.ranges(target, a, b))
