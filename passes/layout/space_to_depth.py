"""Space to depth: convolutions of long steps read cells of a map, each as large as a step, as channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.ops.places.shape import Permute
from bmcompiler.passes.drafts import without_numbers
from bmcompiler.passes.layout.long_runs import moving_time
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on
from bmcompiler.target import unsupported_reason

if TYPE_CHECKING:
    import numpy as np

_LONG = 4
"""Rows or columns of a step whose cells may become channels."""
_BEYOND = 16
"""Steps that commands do not hold: a tile is a single row or column then."""
_GAIN, _GAIN_BEYOND = 1.5, 0.5
"""How many times less it must take: the map lies in global memory in between. Estimates of tiles of a single row or
column count too little for their short runs; where windows see few elements of a cell, it takes longer even so."""
_ORDERS = tuple((0, *channels, 2, 4) for channels in permutations((1, 3, 5)))
"""Of (N, C, cells down, rows of a cell, cells across, columns of a cell): channels of a cell in any order."""


class _Fit(NamedTuple):
    """How an axis of the input falls into cells.

    Attributes:
        size: elements of a cell. cells: that are read. pads: zeros before and behind, in cells.
        first: elements of the first cell that a window sees before its first tap. taps: cells that a window sees.
    """

    size: int
    cells: int
    pads: tuple[int, int]
    first: int
    taps: int


@dataclass(frozen=True)
class SpaceToDepth(TargetPatternPass):
    """A conv of steps of four or more, from spectra of sound to patches of pictures, as one of steps of one.

    Chips multiply many channels at once, and bring neighbours faster than single elements that are a step apart.

    1. conv(x) : conv of permute(reshape(x)), in which the rows and columns of a cell are channels; what no window sees
       is cut off, what lacks to a whole cell is padded

    One group, no dilation, constant weights, no zero points. It is done where the target says that it takes less time.
    Products of zeros are added where the window is no multiple of a cell; the others are the same, but a chip may add
    them in another order: pipelines do it at all levels.
    """

    name = "space-to-depth"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(Conv, self.fold)

    def fold(self, op: Conv, rewriter: Rewriter) -> bool:
        """Rule 1."""
        weight = self.constant(op.weight)
        if weight is None or op.group > 1 or max(op.strides) < _LONG or PLACE_CPU in op.attributes:
            return False
        fits = _fits(op)
        if tuple(op.dilations) != (1, 1) or any(op.zero_points) or min(fit.cells for fit in fits) < 1:
            return False
        before = self.target.cycles(op)
        found = min((self._cycles(op, fits, order), order) for order in _ORDERS)
        gain = _GAIN if max(op.strides) < _BEYOND else _GAIN_BEYOND
        if before is None or found[0] * gain >= before:
            return False
        made = self.weight(_as_channels(weight, fits, found[1]), op.weight, op, rewriter, "weight")
        *others, conv = _ops(op, made, fits, found[1])
        for each in others:
            rewriter.insert_before(op, each)
        rewriter.replace_with(op, conv)
        return True

    def _cycles(self, op: Conv, fits: Sequence[_Fit], order: tuple[int, ...]) -> float:
        """With the permute, which may become several."""
        shape = _shape(op.weight.shape, fits)
        made, found = _ops(op, without_numbers(op.weight, shape), fits, order), inf
        if unsupported_reason(self.target, made[-1]) is None and (cycles := self.target.cycles(made[-1])) is not None:
            others = (self.target.moving_cycles(each) or 0 for each in made[:-1] if not isinstance(each, Permute))
            moved = (moving_time(self.target, each) for each in made if isinstance(each, Permute))
            found = cycles + sum(others) + sum(moved)
        for each in reversed(made):
            each.drop_operands()
        return found


def _fits(op: Conv) -> tuple[_Fit, _Fit]:
    """Rows and columns."""
    down, across = (
        _fit(op.input.shape[2 + axis], op.weight.shape[2 + axis], op.strides[axis], op.pads[2 * axis :], size)
        for axis, size in enumerate(op.type.shape[2:])
    )
    return down, across


def _fit(length: int, kernel: int, step: int, pads: Sequence[int], outputs: int) -> _Fit:
    if step < _LONG:
        return _Fit(1, length, (pads[0], pads[1]), 0, kernel)
    before = -(-pads[0] // step)
    first = before * step - pads[0]
    taps = -(-(first + kernel) // step)
    needed = outputs - 1 + taps - before
    count = min(needed, -(-length // step))
    return _Fit(step, count, (before, needed - count), first, taps)


def _shape(weight: tuple[int, ...], fits: Sequence[_Fit]) -> tuple[int, ...]:
    down, across = fits
    return weight[0], weight[1] * down.size * across.size, down.taps, across.taps


def _as_channels(weight: np.ndarray, fits: Sequence[_Fit], order: tuple[int, ...]) -> np.ndarray:
    """The weights, with zeros where windows see more of a cell than they did."""
    import numpy as np

    (outputs, depth, kh, kw), (down, across) = weight.shape, fits
    whole = np.zeros((outputs, depth, down.taps * down.size, across.taps * across.size), weight.dtype)
    whole[:, :, down.first : down.first + kh, across.first : across.first + kw] = weight
    cells = whole.reshape(outputs, depth, down.taps, down.size, across.taps, across.size)
    return cells.transpose(order).reshape(_shape(weight.shape, fits))


def _ops(op: Conv, weight: Value, fits: Sequence[_Fit], order: tuple[int, ...]) -> list[TensorOp]:
    """What makes channels of the cells, and the convolution."""
    (n, depth, *sizes), made = op.input.shape, list[TensorOp]()

    def add(name: str, x: Value, **attributes: tuple[int, ...]) -> Value:
        made.append(make(name, [x], attributes, location=op.location))
        return made[-1].results[0]

    x, wanted = op.input, [fit.size * fit.cells for fit in fits]
    kept = [min(pair) for pair in zip(wanted, sizes)]
    if kept != sizes:
        x = add("slice", x, starts=(0,) * 4, ends=(n, depth, *kept), steps=(1,) * 4)
    if wanted != kept:
        x = add("pad", x, pads=(0, 0, 0, 0, 0, wanted[0] - kept[0], 0, wanted[1] - kept[1]))
    down, across = fits
    x = add("reshape", x, shape=(n, depth, down.cells, down.size, across.cells, across.size))
    x = add("permute", x, order=order)
    x = add("reshape", x, shape=(n, depth * down.size * across.size, down.cells, across.cells))
    steps = tuple(step // fit.size for step, fit in zip(op.strides, fits))
    made.append(op.clone([x, weight, *op.operands[2:]], strides=steps, pads=(*down.pads, *across.pads)))
    made[-1].result.type = op.type
    return made
