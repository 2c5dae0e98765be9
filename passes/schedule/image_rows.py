"""Rows of products lie as the heads behind them are cut: as many lanes for each window of tokens."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.conditions import NO_GROUPS
from bmcompiler.ir import Operation, Rewriter, Value
from bmcompiler.ir.keys import IMAGE_ROWS, PLACE_CPU
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.ops.places.shape import Permute, Reshape
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, on

_LEAST = 2
"""Products of one operand, by which one transfer in local memory takes the place of as many."""


@dataclass(frozen=True)
class ImageRows(TargetPatternPass):
    """Rows of queries, keys and values are images of as many rows as a window has, which their heads are cut from.

    1. matmul(x, constant) of all rows, read by permutes of so many rows an image alone, two or more of one x, which
       nobody else reads : a note on how many rows an image has
    It is done where that is another layout, which the operand gets once in place of each result, and where the products
    take less longer than the other transfers. Sums stay as they are.
    """

    name = "image-rows"
    requires = (NO_GROUPS,)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(Matmul, self.noted)

    def noted(self, op: Matmul, rewriter: Rewriter) -> bool:
        """Rule 1, for all products of one operand."""
        rows = self._rows(op)
        if rows is None or IMAGE_ROWS in op.attributes:
            return False
        alike = [user for user in op.left.users if isinstance(user, Matmul) and self._rows(user) == rows]
        if len(alike) < _LEAST or len(alike) < len(op.left.users) or not self._gains(alike, rows):
            return False
        for each in alike:
            each.attributes[IMAGE_ROWS] = rows
            rewriter.changed(each)
        return True

    def _rows(self, op: Matmul) -> int | None:
        """How many rows those have that read a product of all rows as images; None where they do not agree."""
        constant = all(self.constant(x) is not None for x in op.operands[1:])
        if not constant or op.left.type.rank != 2 or op.transpose_left or not op.type.is_float:
            return None
        if PLACE_CPU in op.attributes:
            return None
        found = {_rows_of(user, op.result) for user in op.result.users}
        return found.pop() if len(found) == 1 else None

    def _gains(self, products: list[Matmul], rows: int) -> bool:
        memory = self.target.resident_memory()
        if memory is None or rows % memory[1].grain(products[0].result)[2] == 0:  # they lie so
            return False
        before = [self.target.local_cycles(op) for op in products]
        for op in products:
            op.attributes[IMAGE_ROWS] = rows
        after = [self.target.local_cycles(op) for op in products]
        for op in products:
            del op.attributes[IMAGE_ROWS]
        if None in before or None in after:
            return False
        moved = self.target.loading_cycles(products[0].type.nbytes)
        return sum(filter(None, after)) < sum(filter(None, before)) + (len(products) - 1) * moved


def _rows_of(user: Operation, value: Value) -> int | None:
    """Rows of an image of the permute that reads a matrix of all rows as (images, rows, heads, columns)."""
    while isinstance(user, Reshape) and len(user.result.users) == 1:
        user, value = user.result.users[0], user.result
    if not isinstance(user, Permute) or PLACE_CPU in user.attributes:
        return None
    sizes = [(axis, size) for axis, size in enumerate(value.shape) if size > 1]
    if len(sizes) != len(("images", "rows", "heads", "columns")):
        return None
    kept = [axis for axis, _ in sizes]
    if [kept.index(axis) for axis in user.order if axis in kept] != [0, 2, 1, 3]:
        return None
    return sizes[1][1]
