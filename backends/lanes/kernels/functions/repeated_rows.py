"""Sums of the rows that products leave in lanes and of a table that repeats: biases of places, masks of windows.

Both have images that are matrices, numbered by two axes, one of which the table has not: [windows, heads, tokens,
tokens] and [1, heads, tokens, tokens]. Matrices lie one behind the other, so that these axes are n and h of a command.
"""

from __future__ import annotations

from math import prod

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.kernels.base import is_activation, is_constant, item_bytes
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.codegen.tiling import Box, TileWork
from bmcompiler.ops.elements.elementwise import Add

_AXES = 4


def is_repeated(machine: LaneMachine, op: Add, view: Shape, made: bool) -> bool:
    """Whether an operand is the rows and the other one a constant that has one of two axes of images.

    Args: view: what is best for elements one by one; made: whether other ops make the rows (`LaneMachine.keeps`).
    """
    rows, table = op.operands if is_constant(op.b) else op.operands[::-1]
    if op.activation or not is_constant(table) or not is_activation(rows):
        return False
    shape, of_table = _four(rows.shape), _four(table.shape)
    if shape is None or of_table is None or rows.shape != op.type.shape or min(shape[:2]) == 1:
        return False
    n, c, h, w = shape
    rows_of_images: Shape = (n * c, h, 1, w)
    fits = machine.chip.rows_in_lanes and all(map(machine.chip.fits_fields, ((n, h, c, w), rows_of_images)))
    if not fits or of_table not in ((1, c, h, w), (n, 1, h, w)) or view == shape:
        return False
    return machine.keeps(rows_of_images, view, item_bytes(op.result), made=made)


def repeated_rows(machine: LaneMachine, op: Add, box: Box) -> TileWork | None:
    """Whole images of an op of `is_repeated`, None for other boxes; box: of the result or of its `four_axes`."""
    shape, item, chip = _four(op.type.shape), item_bytes(op.result), machine.chip
    assert shape is not None, "`is_repeated` asked"
    n, c, h, w = shape
    whole = box == tuple((0, size) for size in (1, 1, n * c * h, w)) and op.type.rank != _AXES
    first, end = (0, n) if whole else box[0]
    if not whole and (op.type.rank != _AXES or tuple(box[1:]) != ((0, c), (0, h), (0, w))):
        return None
    turn = is_constant(op.a)
    rows, table = (op.b, op.a) if turn else (op.a, op.b)
    each = _four(table.shape)
    assert each is not None, "`is_repeated` asked"
    by_image, matrices = each[0] > 1, prod(each[:2])
    view, of_table = (n * c, h, 1, w), (matrices, h, 1, w)
    part = ((first * c, end * c), (0, h), (0, 1), (0, w))
    taken = ((first, end) if by_image else (0, matrices), *part[1:])
    image, channel, _, _ = chip.aligned_strides(view, item=item)
    seen: Shape = (end - first, h, c, w)
    strides: Strides = (c * image, channel, image, 1)
    again: Strides = (image, channel, 0, 1) if by_image else (0, channel, image, 1)
    made: Shape = ((end - first) * c, h, 1, w)

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        def words(address: int, by: Strides, stored: Shape) -> Words:
            return Words(address, seen, by, within=chip.plane(address, stored, item), item=item, dtype=op.type.dtype)

        a, b = words(ins[0], strides, made), words(ins[1], again, (taken[0][1] - taken[0][0], *of_table[1:]))
        build.combine(Unit.ADD, words(outs[0], strides, made), *((b, a) if turn else (a, b)))

    inputs = machine.activation_in(rows, view, part), machine.activation_in(table, of_table, taken)
    cycles = machine.cycles.pass_cycles(made, item, pair=True)
    return TileWork(inputs, (machine.activation_out(op.result, view, part),), (), compute, cycles)


def _four(shape: tuple[int, ...]) -> Shape | None:
    """Four axes, ones before them left out or added; None for shapes of more."""
    inner = shape[-_AXES:]
    if prod(shape[:-_AXES]) != 1:
        return None
    n, c, h, w = (1,) * (_AXES - len(inner)) + tuple(inner)
    return n, c, h, w
