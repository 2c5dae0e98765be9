"""How ops that name axes change when their operands are permuted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bmcompiler.ir import Operation
from bmcompiler.ops.base import Axes, Axis, Kind, PerAxis, PerAxisPairs, TensorOp


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes `order`."""
    return tuple(sorted(range(len(order)), key=lambda axis: order[axis]))


@dataclass(frozen=True)
class AxisMap:
    """`op` reads permute(x, order); this maps its axes to those of x: axis a becomes order[a]."""

    op: TensorOp
    order: tuple[int, ...]

    def axis(self, axis: int) -> int:
        """The axis of x that stands where `axis` of the permuted tensor stood; negative ones count from the last."""
        return self.order[axis % len(self.order)]

    def spread(self, entries: Sequence[Any]) -> tuple[Any, ...]:
        """One entry per axis, in the order of the axes of x."""
        return tuple(entries[axis] for axis in self.back)

    @cached_property
    def back(self) -> tuple[int, ...]:
        """The permutation that undoes `order`."""
        return inverse(self.order)

    def follows(self, index: int) -> bool:
        """Whether a constant operand shares the axes of the data, and must be permuted with them."""
        declared = self.op.ins
        return declared[min(index, len(declared) - 1)].name not in self.op.weight_operands

    def result_order(self) -> tuple[int, ...]:
        """The permute that the results need: `order`, less the axes that the op removes."""
        if not removes_axes(self.op):
            return self.order
        gone: set[int] = set()
        for name, spec in self.op.attrs.items():
            if spec.kind in (Axis, Axes):
                named = getattr(self.op, name)
                gone.update(axis % len(self.order) for axis in (named if spec.kind is Axes else (named,)))
        kept = [self.order[axis] for axis in range(len(self.order)) if axis not in gone]
        return tuple(sorted(kept).index(axis) for axis in kept)


def removes_axes(op: TensorOp) -> bool:
    """Whether the axes that an op names are missing in its results."""
    return op.follows_axes and not getattr(op, "keepdims", True)


def _pairs(axes: AxisMap, entries: Sequence[Any]) -> tuple[Any, ...]:
    pairs = axes.spread([entries[i : i + 2] for i in range(0, len(entries), 2)])
    return tuple(n for pair in pairs for n in pair)


_MOVED: dict[Kind[Any], Callable[[AxisMap, Any], Any]] = {
    Axis: AxisMap.axis,
    Axes: lambda axes, named: tuple(sorted(map(axes.axis, named))),
    PerAxis: AxisMap.spread,
    PerAxisPairs: _pairs,
}


def passes_permutes(op: Operation | None) -> bool:
    """Whether a permute can move from one side of the op to the other."""
    return isinstance(op, TensorOp) and op.commutes_with_permutes()


def moved_attributes(axes: AxisMap) -> dict[str, Any]:
    """The attributes of the op when it reads x instead of permute(x)."""
    named = {name: spec.kind for name, spec in axes.op.attrs.items() if spec.kind in _MOVED}
    return {name: _MOVED[kind](axes, getattr(axes.op, name)) for name, kind in named.items()}
