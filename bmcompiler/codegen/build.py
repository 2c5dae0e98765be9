"""What the instruction builders of all chips share: where values lie, and boxes of dense tensors."""

from __future__ import annotations

from collections.abc import Sequence

from bmcompiler.chip import Dims
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.memory import MemoryPlan, root_of
from bmcompiler.ir import Value
from bmcompiler.ir.keys import is_weight

__all__ = ["BaseBuild", "Box", "Dims", "dense_strides", "extents", "start_of"]

Box = Sequence[tuple[int, int]]
"""Half-open interval along n, c, h, w."""


class BaseBuild:
    """A program under construction. Chips add their commands. `overlap`: may transfers run beside computation?"""

    def __init__(self, plan: MemoryPlan, coefficients: Coefficients, overlap: bool = True) -> None:
        self.plan, self.coefficients, self.overlap = plan, coefficients, overlap

    def neuron(self, value: Value) -> int:
        """Offset of an activation from the neuron base."""
        return self.plan.offsets[root_of(value)]

    def stored(self, value: Value) -> tuple[int, bool]:
        """(offset, whether among the coefficients) to load a value from; constants are stored as they stand."""
        root = root_of(value)
        if is_weight(root):
            return self.coefficients.place(root, "plain", lambda w: w), True
        return self.plan.offsets[root], False


def extents(box: Box) -> Dims:
    """Sizes of a box."""
    (n0, n1), (c0, c1), (h0, h1), (w0, w1) = box
    return n1 - n0, c1 - c0, h1 - h0, w1 - w0


def dense_strides(shape: Dims) -> Dims:
    """Strides of a dense tensor, in elements."""
    _, c, h, w = shape
    return c * h * w, h * w, w, 1


def start_of(box: Box, shape: Dims) -> int:
    """Elements before the first one of a box of a dense tensor."""
    return sum(lo * stride for (lo, _), stride in zip(box, dense_strides(shape)))
