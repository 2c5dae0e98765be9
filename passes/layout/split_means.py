"""Means of large windows as means of means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.pool import AvgPool
from bmcompiler.passes.drafts import cycles_saved
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on


@dataclass(frozen=True)
class SplitMeans(TargetPatternPass):
    """A mean over a window becomes the mean along one axis of the means along the other one.

    Chips make several results of a channel at once; of a global mean there is only one.

    1. avg_pool of f32 with windows that stand side by side, no padding : avg_pool of columns -> avg_pool of rows, or
       the other way round
    It is done where the target says that it takes less time in local memory. Sums have another order, so that pipelines
    do it at all levels.
    """

    name = "split-means"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(AvgPool, self.split)

    def split(self, op: AvgPool, rewriter: Rewriter) -> bool:
        """Rule 1."""
        side_by_side = all(k * n == size for k, n, size in zip(op.kernel, op.type.shape[2:], op.input.shape[2:]))
        if op.input.dtype != "f32" or op.type != op.input.type.with_shape(op.type.shape) or PLACE_CPU in op.attributes:
            return False
        if not side_by_side or any(op.pads) or min(op.kernel) == 1:
            return False
        saved, down = max((cycles_saved(self.target, [op], list(_means(op, down))), down) for down in (True, False))
        if saved <= 0:
            return False
        first, second = _means(op, down)
        rewriter.insert_before(op, first, op, is_part=True)
        rewriter.replace_with(op, second)
        return True


def _means(op: AvgPool, down: bool) -> Iterator[TensorOp]:
    """Those along both axes; down: of columns first."""
    value = op.input
    for kernel in ((op.kernel[0], 1), (1, op.kernel[1]))[:: 1 if down else -1]:
        made = make("avg_pool", [value], {"kernel": kernel, "strides": kernel})
        value = made.results[0]
        yield made
