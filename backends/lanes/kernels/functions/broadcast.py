"""4-D views of tensors that broadcast to one shape."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations
from math import prod

from bmcompiler.backends.lanes.facts import LaneFacts, Shape, Strides
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.codegen.build import Box, dense_strides

Axes = tuple[tuple[int, tuple[int, ...]], ...]
"""(size, stride in elements in each tensor) from the outermost axis on."""


@lru_cache(maxsize=4096)
def merged_axes(shape: tuple[int, ...], operands: tuple[tuple[int, ...], ...]) -> Axes:
    """The axes of `shape`, neighbours joined where no tensor minds; axes of one element are left out.

    Args:
        operands: shapes that broadcast to `shape` (shorter ones count from the last axis). Their elements are dense.
    """
    padded = [(1,) * (len(shape) - len(s)) + s for s in operands]
    axes: list[tuple[int, tuple[int, ...]]] = []
    for position, size in enumerate(shape):
        if size == 1:
            continue
        steps = tuple(prod(s[position + 1 :]) if s[position] > 1 else 0 for s in padded)
        if axes and all(before == step * size for before, step in zip(axes[-1][1], steps)):
            axes[-1] = axes[-1][0] * size, steps
        else:
            axes.append((size, steps))
    return tuple(axes) or ((1, (0,) * len(operands)),)


def broadcast_view(
    machine: LaneMachine,
    shape: tuple[int, ...],
    operands: tuple[tuple[int, ...], ...],
    item: int = 4,
    steps: int = 1,
    made: bool = False,
) -> tuple[Shape, tuple[Strides, ...]]:
    """The 4-D shape that takes the fewest cycles, and the strides of each operand in it (0 = broadcast).

    Elements have `item` bytes in local memory; steps: commands on them. `made`: see `LaneMachine.keeps`.

    Raises ValueError when four axes are not enough.
    """
    return machine.decided(_broadcast_view, machine, shape, operands, item, steps, made)


def _broadcast_view(
    machine: LaneMachine,
    shape: tuple[int, ...],
    operands: tuple[tuple[int, ...], ...],
    item: int,
    steps: int,
    made: bool,
) -> tuple[Shape, tuple[Strides, ...]]:
    axes = merged_axes(shape, operands)
    if len(axes) > 4:
        raise ValueError("more than four axes")
    native = _native(machine.chip, shape, operands)
    best = min(_placements(axes), key=lambda placed: _rank(machine, _shape(placed), item))
    cycles = machine.cycles.pass_cycles
    most = machine.slowest(cycles(_shape(best), item), item)
    if native is not None and cycles(_shape(native), item) <= most:
        best = native
    elif (rows := _rows(machine, shape, operands)) is not None and machine.keeps(
        _shape(rows), _shape(best), item, steps, made
    ):
        best = rows
    return _seen(best, len(operands))


def native_view(
    chip: LaneFacts, shape: tuple[int, ...], operands: tuple[tuple[int, ...], ...]
) -> tuple[Shape, tuple[Strides, ...]] | None:
    """A 4-D shape as it is, and the strides of each operand in it; None for others and those that no command takes."""
    axes = _native(chip, shape, operands)
    return None if axes is None else _seen(axes, len(operands))


def _seen(axes: Axes, count: int) -> tuple[Shape, tuple[Strides, ...]]:
    """The sizes of four axes, and the strides of so many operands along them."""
    strides = tuple(tuple(axis[1][i] for axis in axes) for i in range(count))
    return _shape(axes), strides  # type: ignore[return-value]


def _rank(machine: LaneMachine, shape: Shape, item: int) -> tuple[int, bool, int, int]:
    """Fewest cycles first, of those what is a single tile, of those what loads fastest, of those most channels."""
    (n, c, h, w), cycles = shape, machine.cycles
    return cycles.pass_cycles(shape, item), c > machine.chip.most_channels, cycles.load(n * c, h * w * item), -c


def _native(chip: LaneFacts, shape: tuple[int, ...], operands: tuple[tuple[int, ...], ...]) -> Axes | None:
    """The axes of a 4-D shape as they are: what convolutions leave in local memory and read from there."""
    if len(shape) != 4 or not chip.fits_fields(shape):
        return None
    padded = [(1,) * (4 - len(s)) + s for s in operands]
    return tuple(
        (size, tuple(prod(s[i + 1 :]) if s[i] > 1 or s == shape else 0 for s in padded)) for i, size in enumerate(shape)
    )


def _rows(machine: LaneMachine, shape: tuple[int, ...], operands: tuple[tuple[int, ...], ...]) -> Axes | None:
    """The axes of rows in lanes; None where an operand repeats along a part of what becomes one axis."""
    view = machine.rows_view(shape)
    if view is None:
        return None
    cut = len(shape) - 2 if len(shape) == 4 else 0
    padded = [(1,) * (len(shape) - len(s)) + s for s in operands]
    one = (1, (0,) * len(operands))
    images, rows, columns = (
        merged_axes(shape[first:end], tuple(s[first:end] for s in padded))
        for first, end in ((0, cut), (cut, len(shape) - 1), (len(shape) - 1, len(shape)))
    )
    if len(images) > 1 or len(rows) > 1:
        return None
    inner = [(prod(s[cut:]), s[-1]) for s in padded]
    after = tuple(tuple(sizes[i] for sizes in inner) for i in range(2))
    placed = [
        (size, tuple(step * more for step, more in zip(steps, by)))
        for ((size, steps),), by in zip((images, rows), after)
    ]
    return (*placed, one, columns[0])


def _shape(axes: Axes) -> Shape:
    n, c, h, w = (size for size, _ in axes)
    return n, c, h, w


def _placements(axes: Axes) -> Iterator[Axes]:
    """`axes` on n, c, h, w in order, and all ways to split one of them in two."""
    one = (1, (0,) * len(axes[0][1]))
    variants = [axes]
    if len(axes) < 4:
        for position, (size, steps) in enumerate(axes):
            for part in _divisors(size):
                split = ((size // part, tuple(s * part for s in steps)), (part, steps))
                variants.append((*axes[:position], *split, *axes[position + 1 :]))
    for variant in variants:
        for chosen in combinations(range(4), len(variant)):
            placed = [one] * 4
            for slot, axis in zip(chosen, variant):
                placed[slot] = axis
            yield tuple(placed)


def _divisors(size: int) -> list[int]:
    """Proper divisors, of which both parts are larger than 1."""
    small = [d for d in range(2, int(size**0.5) + 1) if size % d == 0]
    return sorted({*small, *(size // d for d in small)})


def is_dense(strides: Strides, view: Shape) -> bool:
    """Whether an operand has all elements of the view in order; strides of single elements do not count."""
    return all(a == b or size == 1 for a, b, size in zip(strides, dense_strides(view), view))


def box_offset(strides: Strides, box: Box) -> int:
    """Elements before the first one of a box."""
    return sum(lo * stride for (lo, _), stride in zip(box, strides))


def box_axes(chip: LaneFacts, strides: Strides, view: Shape, item: int = 4, whole: bool = False) -> str:
    """The axes of the grid that what is loaded of an operand of `item`-byte elements depends on.

    Its values depend on the axes along which it does not repeat; where its images lie also depends on the channels of
    the tile, once a lane may hold several; and a `whole` tile, with all repetitions, is laid out like the result's.
    """
    if whole:
        return "nchw"
    several = strides[0] and view[0] > chip.image_slots(item) and view[1] > chip.lanes
    return "".join(axis for axis, step in zip("nchw", strides) if step or (axis == "c" and several))
