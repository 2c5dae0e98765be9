"""softmax, log_softmax, hardmax."""

from __future__ import annotations

from typing import Any

from bmcompiler.backends.lanes.kernels.sums.reduction import ReductionKernel
from bmcompiler.backends.lanes.recipes import reductions
from bmcompiler.ops.elements.activation import LogSoftmax, Softmax
from bmcompiler.ops.elements.gates import Hardmax


class SoftmaxKernel(ReductionKernel[Softmax | LogSoftmax | Hardmax]):
    """softmax and log_softmax along any axis."""

    ops: tuple[type[Softmax | LogSoftmax | Hardmax], ...] = (Softmax, LogSoftmax)

    def axes(self, op: Softmax | LogSoftmax | Hardmax) -> tuple[int, ...]:
        return (op.axis % op.type.rank,)

    def recipe(self, op: Softmax | LogSoftmax | Hardmax) -> tuple[Any, ...]:
        return (reductions.softmax if isinstance(op, Softmax) else reductions.log_softmax,)


class HardmaxKernel(SoftmaxKernel):
    """hardmax: 1 at the first largest element."""

    ops = (Hardmax,)
    indexed = True

    def recipe(self, op: Softmax | LogSoftmax | Hardmax) -> tuple[Any, ...]:
        return reductions.hardmax, self.count(op)
