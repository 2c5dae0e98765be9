"""Which box of every value a slice of a group needs: from the results of the group backwards to what it reads.

Results have four axes, or are seen with as many (`regions.four_axes`). A box of a result needs boxes of the operands; a
value that several ops of the group read is made as the smallest box around all that they need, its own share of the
result included where it is read outside of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from bmcompiler.codegen.groups.regions import box_of, four_axes, joined
from bmcompiler.codegen.memory import is_view, root_of
from bmcompiler.codegen.tiling import AXES, Box, Contents, TileWork
from bmcompiler.ir import Operation, Value

Slices = tuple[int, int, int, int]
"""Into how many parts results are cut along n, c, h and w."""
PartOf = Callable[[Operation, Box], "TileWork | None"]
ONE: Slices = (1, 1, 1, 1)
WEIGHT = "weight"
"""First of the layout of coefficients, which their numbers and boxes follow."""


@dataclass(frozen=True)
class Stripe:
    """An op computed for a box of its result (None: all of it). `work` is None for ops that do not take part."""

    op: Operation
    box: Box | None
    work: TileWork | None
    group: int = 0
    slices: Slices = ONE


def shares(shape: Sequence[int], slices: Slices, grain: Sequence[int]) -> Iterator[Box | None]:
    """The share of each slice in a result of this shape, None where nothing is left for it.

    Cuts lie at the same fractions of all results, at multiples of `grain`.
    """
    for box in product(*map(cuts, shape, slices, grain)):
        yield box if all(lo < hi for lo, hi in box) else None


def cuts(size: int, count: int, grain: int) -> list[tuple[int, int]]:
    """The intervals of one axis; some are empty where there are more than multiples of `grain`."""
    edges = [-(-size // grain) * index // count * grain for index in range(count)]
    return list(zip(edges, [*edges[1:], size]))


def slice_stripes(
    ops: Sequence[Operation],
    slices: Slices,
    part_of: PartOf,
    read_outside: Callable[[Value], bool],
    grain: Callable[[Value], Sequence[int]],
    group: int = 0,
    weights_of: Callable[[Operation], Value] = lambda op: op.results[0],
) -> list[list[Stripe]] | None:
    """The stripes of a group, slice by slice; None when an op cannot be cut so.

    Args:
        ops: consecutive ops, each with one result (views aside).
        read_outside: whether a value is read by ops outside of the group, or is an output.
        grain: along which multiples of images, channels, rows and columns a value may be cut.
        weights_of: what the coefficients of an op are known by.
    """
    computed = [op for op in ops if not is_view(op)]
    if any(len(op.results) != 1 for op in computed):
        return None
    made = {op.results[0] for op in computed}
    outside = [value for value in made if read_outside(value)]
    wanted = {value: list(shares(four_axes(value.shape), slices, grain(value))) for value in outside}
    found = []
    for index in range(prod(slices)):
        needs = {value: box for value, boxes in wanted.items() if (box := boxes[index]) is not None}
        stripes = _slice(ops, needs, made, part_of)
        if stripes is None:
            return None
        found.append(
            [Stripe(op, box, keyed(weights_of(op), work.box or box, work), group, slices) for op, box, work in stripes]
        )
    return found


def _slice(
    ops: Sequence[Operation], needs: dict[Value, Box], made: set[Value], part_of: PartOf
) -> list[tuple[Operation, Box, TileWork]] | None:
    stripes: list[tuple[Operation, Box, TileWork]] = []
    for op in reversed(ops):
        box = None if is_view(op) else needs.get(op.results[0])
        if box is None:
            continue
        work = part_of(op, box)
        if work is None or add_needs(work, needs, reads(op, made)):
            return None
        stripes.append((op, box, work))
    stripes.reverse()
    return stripes


def keyed(weights: Value, cut: Box, work: TileWork) -> TileWork:
    """The work with a name for each of its coefficients, by which the next slices find them.

    The axes of a buffer are those of the kernel's grid, unless it names its part. How much lies in a lane tells layouts
    of unlike slices apart.

    Args: weights: what they are known by. cut: the box that is computed.
    """
    inputs = []
    for number, buffer in enumerate(work.inputs):
        if buffer.coefficient and buffer.contents is None:
            where = tuple(cut[AXES.index(axis)] for axis in buffer.axes) if buffer.part is None else buffer.part
            buffer = replace(buffer, contents=Contents(weights, (WEIGHT, number, where, buffer.lane_bytes)))
        inputs.append(buffer)
    return replace(work, inputs=tuple(inputs))


def reads(op: Operation, made: Container[Value]) -> set[Value]:
    """What an op reads of values that are made here."""
    return {root for value in op.operands if (root := root_of(value)) in made}


def add_needs(work: TileWork, needs: dict[Value, Box], read: set[Value]) -> set[Value]:
    """Note what `work` reads of the values `read`; returns those of which it does not say what that is."""
    unsaid = set(read)
    for buffer in work.inputs:
        contents = buffer.contents
        if contents is None or contents.value not in read:
            continue
        box = box_of(contents)
        if box is None:
            continue
        needs[contents.value] = joined(needs[contents.value], box) if contents.value in needs else box
        unsaid.discard(contents.value)
    return unsaid
