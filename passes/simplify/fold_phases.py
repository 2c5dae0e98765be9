"""Let a convolution read pixels of a feature map itself, where slices with steps hand them to it as channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.ops.places.shape import Concat, Slice
from bmcompiler.passes.rewriting import PatternPass, PatternTable, on, producer, same_elements, sole

if TYPE_CHECKING:
    import numpy as np

_MOST_KERNEL = 11
"""Rows and columns of a kernel that all chips take."""
Pixels = tuple[tuple[int, int], tuple[int, int]]
"""(first row, step), (first column, step)."""


@dataclass(frozen=True)
class FoldPhases(PatternPass):
    """Fold the slices of "space to depth" (YOLO's Focus) into the convolution that reads them.

    1. conv(concat of x[:, :, a::sh, b::sw] over the channels), each (a, b) below (sh, sw) once, in any order: conv(x)
       with strides, pads and kernel as many times as large

    x has whole cells, the slices nothing behind their last cell, the convolution one group and no dilation. Slices may
    be made in several steps. Every product stays; floats are added in another order.
    """

    name = "fold-phases"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(Conv, self.fold)

    def fold(self, op: Conv, rewriter: Rewriter) -> bool:
        """Rule 1."""
        joined, weight = producer(op.input, Concat), self.constant(op.weight)
        if joined is None or weight is None or joined.axis != 1 or op.group > 1 or tuple(op.dilations) != (1, 1):
            return False
        if (
            op.zero_points
            or PLACE_CPU in op.attributes
            or not all(same_elements(x, joined.result) for x in joined.operands)
        ):
            return False
        parts = [_pixels(value) for value in joined.operands]
        source, step = parts[0][0], _step(parts, joined)
        if step is None or any(size * by > _MOST_KERNEL for size, by in zip(weight.shape[2:], step)):
            return False
        kernel = self.weight(_merged(weight, parts, step), op.weight, op, rewriter, "weight")
        changes = {
            "strides": tuple(stride * by for stride, by in zip(op.strides, step)),
            "pads": tuple(pad * by for pad, by in zip(op.pads, (step[0], step[0], step[1], step[1]))),
        }
        folded = op.clone([source, kernel, *op.operands[2:]], **changes)
        folded.result.type = op.type
        rewriter.replace_with(op, folded, absorbed=_only_for(joined))
        return True


def _only_for(joined: Concat) -> list[TensorOp]:
    """The slices and the concatenation itself, where nobody else reads it."""
    found: list[TensorOp] = [joined] if len(joined.result.uses) == 1 else []
    waiting = list(joined.operands[::-1]) if found else []
    while waiting:
        op = sole(waiting.pop(), Slice)
        if op is not None and op not in found:
            found.insert(-1, op)
            waiting.append(op.x)
    return found


def _pixels(value: Value) -> tuple[Value, Pixels]:
    """The value that a chain of slices of rows and columns reads, and which pixels of it are left."""
    rows, columns = (0, 1), (0, 1)
    while (op := producer(value, Slice)) is not None and _takes_pixels(op):
        # what is element i of the slice is element start + i * step of its operand
        rows = (op.starts[2] + rows[0] * op.steps[2], rows[1] * op.steps[2])
        columns = (op.starts[3] + columns[0] * op.steps[3], columns[1] * op.steps[3])
        value = op.x
    return value, (rows, columns)


def _takes_pixels(op: Slice) -> bool:
    """Whether all images and channels stay, and rows and columns follow in their order."""
    whole = op.x.type.rank == 4 and op.x.shape[:2] == op.type.shape[:2]
    return whole and min(op.steps) > 0 and same_elements(op.x, op.result)


def _step(parts: list[tuple[Value, Pixels]], joined: Concat) -> tuple[int, int] | None:
    """Rows and columns of a cell, if the parts are the phases of one value, each once; else None."""
    source, ((_, down), (_, across)) = parts[0]
    phases = {(a, b) for _, ((a, _), (b, _)) in parts}
    same = all(value is source and (rows[1], columns[1]) == (down, across) for value, (rows, columns) in parts)
    complete = phases == {(a, b) for a in range(down) for b in range(across)} and len(parts) == down * across > 1
    if not same or not complete:
        return None
    _, _, h, w = source.shape
    return (down, across) if joined.type.shape[2:] == (h / down, w / across) else None


def _merged(weight: np.ndarray, parts: list[tuple[Value, Pixels]], step: tuple[int, int]) -> np.ndarray:
    """The kernel (O, C, KH * down, KW * across) of one that reads the parts as channels."""
    import numpy as np

    outputs, channels, height, width = weight.shape
    down, across = step
    depth = channels // len(parts)
    merged = np.empty((outputs, depth, height * down, width * across), weight.dtype)
    for number, (_, ((a, _), (b, _))) in enumerate(parts):
        merged[:, :, a::down, b::across] = weight[:, number * depth : (number + 1) * depth]
    return merged
