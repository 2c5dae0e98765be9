"""How ops that name axes change when their operands are permuted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bmcompiler.ir import Operation
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.rewriting import BINARY


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

    @property
    def constants_follow(self) -> bool:
        """Whether constant operands share the axes of the others, and must be permuted with them."""
        return self.op.opname in BINARY or self.op.opname in ("concat", "mac_shift")

    def result_order(self) -> tuple[int, ...]:
        """The permute that the results need: `order`, less the axes that the op removes."""
        if self.op.opname not in ("reduce", "arg") or self.op.keepdims:
            return self.order
        axes = self.op.axes if self.op.opname == "reduce" else (self.op.axis,)
        gone = {axis % len(self.order) for axis in axes}
        kept = [self.order[axis] for axis in range(len(self.order)) if axis not in gone]
        return tuple(sorted(kept).index(axis) for axis in kept)


def _pads(axes: AxisMap) -> dict[str, Any]:
    pads = axes.op.pads
    pairs = axes.spread([pads[i : i + 2] for i in range(0, len(pads), 2)])
    return {"pads": tuple(n for pair in pairs for n in pair)}


def _one_axis(axes: AxisMap) -> dict[str, Any]:
    return {"axis": axes.axis(axes.op.axis)}


def _slice(axes: AxisMap) -> dict[str, Any]:
    return {name: axes.spread(getattr(axes.op, name)) for name in ("starts", "ends", "steps")}


_MOVED: dict[str, Callable[[AxisMap], dict[str, Any]]] = {
    **dict.fromkeys(("softmax", "log_softmax", "prelu", "scale", "concat", "split", "arg"), _one_axis),
    "slice": _slice,
    "pad": _pads,
    "tile": lambda axes: {"reps": axes.spread(axes.op.reps)},
    "reduce": lambda axes: {"axes": tuple(sorted(axes.axis(a) for a in axes.op.axes))},
}
_NAMED = (*BINARY, "mac_shift", *_MOVED)


def passes_permutes(op: Operation | None) -> bool:
    """Whether a permute can move from one side of the op to the other."""
    return isinstance(op, TensorOp) and (op.pointwise or op.opname in _NAMED)


def moved_attributes(axes: AxisMap) -> dict[str, Any]:
    """The attributes of the op when it reads x instead of permute(x)."""
    rule = _MOVED.get(axes.op.opname)
    return rule(axes) if rule is not None else {}
