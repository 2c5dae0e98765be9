"""reduce, arg, leading and cumulate."""

from __future__ import annotations

from typing import Any

from bmcompiler.backends.lanes.kernels.sums.reduced_view import ReducedView, folded
from bmcompiler.backends.lanes.kernels.sums.reduction import ReductionKernel
from bmcompiler.backends.lanes.recipes import Recorder, reductions
from bmcompiler.backends.lanes.recipes.leading import leading
from bmcompiler.ops.layers.reduce import Arg, Reduce
from bmcompiler.ops.places.order import Cumulate, Leading
from bmcompiler.target import rule

_MAX_ROWS = 1024


class ReduceKernel(ReductionKernel[Reduce]):
    """Sums, means, extremes, products, norms along any axes that are not too scattered."""

    ops = (Reduce,)

    @rule("Products must run over neighbouring axes")
    def product_in_one_axis(self, op: Reduce) -> bool:
        return op.method != "prod" or self.view(op).axes == (2,)

    def axes(self, op: Reduce) -> tuple[int, ...]:
        return op.axes

    def folds(self, op: Reduce) -> bool:
        return op.method != "prod"

    def recipe(self, op: Reduce) -> tuple[Any, ...]:
        return reductions.REDUCTIONS[op.method], self.count(op)


class ArgKernel(ReductionKernel[Arg]):
    """arg: index of the first or last of the largest or smallest elements."""

    ops = (Arg,)
    indexed = True

    @rule("The operand must be f32")
    def known_types(self, op: Arg) -> bool:
        return bool(op.x.dtype == "f32")

    def axes(self, op: Arg) -> tuple[int, ...]:
        return (op.axis,)

    def recipe(self, op: Arg) -> tuple[Any, ...]:
        return reductions.position, self.count(op), op.method == "min", op.last


class LeadingKernel(ReductionKernel[Leading]):
    """leading: the least element that is among the largest is found bit by bit."""

    ops = (Leading,)
    indexed = True

    def axes(self, op: Leading) -> tuple[int, ...]:
        return (op.type.rank - 1,)

    def recipe(self, op: Leading) -> tuple[Any, ...]:
        return leading, self.count(op), op.k

    def view(self, op: Leading) -> ReducedView:
        """Rows are counted in so often that they are folded wherever their elements lie one by one."""
        return folded(super().view(op))


class CumulateKernel(ReductionKernel[Cumulate]):
    """cumulate: a command for each row, the axis being h."""

    ops = (Cumulate,)

    @rule("The axis must have at most 1024 elements")
    def few_rows(self, op: Cumulate) -> bool:
        return bool(op.x.shape[op.axis] <= _MAX_ROWS)

    def axes(self, op: Cumulate) -> tuple[int, ...]:
        return (op.axis,)

    def folds(self, op: Cumulate) -> bool:
        return False

    def recipe(self, op: Cumulate) -> tuple[Any, ...]:
        running = Recorder.running_total if op.method == "sum" else Recorder.running_product
        return running, op.reverse, op.exclusive
