"""Convolutions of single pixels read the phases of a feature map as the channels that these are made as."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter, TensorType, Value
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.ops.places.shape import Interleave
from bmcompiler.passes.drafts import cycles_saved, without_numbers
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on, sole

if TYPE_CHECKING:
    import numpy as np

_ALIGNED = {"f16": 32, "bf16": 32}
"""Channels that are added at once: those of a phase are made multiples of it, so that each sum keeps its order."""
_IN_TURN = 4
"""The same of other types: chips have two or four sums for channels in turn, or pack bytes so."""


@dataclass(frozen=True)
class KeepPhases(TargetPatternPass):
    """A 1x1 conv computes the phases of a map before they are joined; more channels at fewer pixels fill the lanes.

    1. conv -> interleave -> conv 1x1 : conv -> conv 1x1, with the weights of each phase on its own channels, zeros on
       the others -> interleave
    2. an interleave behind it joins all phases at once

    What is between them is read by nothing else; no strides, pads, groups or zero points, constant weights. Channels
    between the phases of the first conv, which let chips join them faster, go. It is done where the target says that it
    takes less time in local memory. Products of zero are added; each sum keeps its order.
    """

    name = "keep-phases"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(Conv, self.keep)

    def keep(self, op: Conv, rewriter: Rewriter) -> bool:
        """Both rules."""
        joined = sole(op.input, Interleave)
        before = None if joined is None else sole(joined.x, Conv)
        if joined is None or before is None or not self._is_known(before) or not self._is_known(op):
            return False
        if not _is_of_pixels(op):
            return False
        behind = _joins(op)
        rewriting = _Rewriting(before, joined, op, behind)
        old = [before, joined, op, *([] if behind is None else [behind])]
        if cycles_saved(self.target, old, rewriting.draft()) <= 0:
            return False
        arrays = [[self.constant(value) for value in each.operands[1:]] for each in (before, op)]
        made = [
            [
                self.weight(array, value, old[-1], rewriter, "weight")
                for array, value in zip(change(found), each.operands[1:])  # type: ignore[arg-type]
            ]
            for change, found, each in zip((rewriting.of_first, rewriting.of_second), arrays, (before, op))
        ]
        ops = rewriting.ops(*made)
        for new, replaced in zip(ops, (before, op, old[-1])):
            rewriter.insert_before(old[-1], new, replaced, is_part=new is not ops[2])
        rewriter.replace(old[-1], ops[2].results)
        return True

    def _is_known(self, op: Conv) -> bool:
        """Whether zeros can stand between its weights."""
        import numpy as np

        arrays = [self.constant(value) for value in op.operands[1:]]
        known = all(array is not None for array in arrays) and op.group == 1 and not op.zero_points
        if not known or PLACE_CPU in op.attributes:
            return False
        return not op.type.is_float or all(np.isfinite(array).all() for array in arrays if array is not None)


@dataclass(frozen=True)
class _Phases:
    """Rows and columns of a cell, the channels from one phase to the next, and how many of these are read."""

    down: int
    across: int
    pitch: int
    channels: int

    @classmethod
    def of(cls, op: Interleave) -> _Phases:
        down, across = op.scale
        return cls(down, across, op.x.shape[1] // (down * across), op.channels)

    @property
    def total(self) -> int:
        """Channels of all phases."""
        return self.down * self.across * self.pitch

    def compact(self, rows: np.ndarray, pitch: int) -> np.ndarray:
        """Rows of channels with another pitch."""
        import numpy as np

        kept = rows.reshape(self.down * self.across, self.pitch, *rows.shape[1:])[:, : self.channels]
        made = np.zeros((len(kept), pitch, *rows.shape[1:]), rows.dtype)
        made[:, : self.channels] = kept
        return made.reshape(-1, *rows.shape[1:])


def _is_of_pixels(op: Conv) -> bool:
    return tuple(op.weight.shape[2:]) == (1, 1) and tuple(op.strides) == (1, 1) and not any(op.pads)


def _joins(op: Conv) -> Interleave | None:
    """The interleave that alone reads the result."""
    users = op.result.users
    return users[0] if len(op.result.uses) == 1 and isinstance(users[0], Interleave) else None


class _Rewriting:
    """What becomes of conv -> interleave -> conv, and of an interleave behind them."""

    def __init__(self, before: Conv, joined: Interleave, op: Conv, behind: Interleave | None) -> None:
        self.before, self.op = before, op
        self.first = _Phases.of(joined)
        """Of the first convolution."""
        aligned = _ALIGNED.get(op.input.dtype, _IN_TURN)
        self.pitch = -(-self.first.channels // aligned) * aligned
        channels = op.type.shape[1]
        self.second = _Phases(1, 1, channels, channels) if behind is None else _Phases.of(behind)
        """Of each pixel of the second one."""

    @property
    def scale(self) -> tuple[int, int]:
        """Rows and columns of a cell of both."""
        return self.first.down * self.second.down, self.first.across * self.second.across

    def of_first(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The constants of the first convolution without the channels between phases."""
        return [self.first.compact(each, self.pitch) if len(each) == self.first.total else each for each in arrays]

    def of_second(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Those of the second one, for each phase of its input."""
        weight, *vectors = arrays
        rows = [self._repeated(each) if len(each) == self.second.total else each for each in vectors]
        return [self._on_diagonal(weight[:, :, 0, 0]), *rows]

    def _on_diagonal(self, weight: np.ndarray) -> np.ndarray:
        import numpy as np

        (a, b), inside = (self.first, self.second), weight.shape[1]
        kept = weight.reshape(b.down, b.across, b.pitch, inside)[:, :, : b.channels]
        made = np.zeros(
            (a.down, b.down, a.across, b.across, b.channels, a.down, a.across, self.pitch), weight.dtype
        )  # the first five say which result
        for row, column in product(range(a.down), range(a.across)):
            made[row, :, column, :, :, row, column, :inside] = kept
        return made.reshape(-1, a.down * a.across * self.pitch, 1, 1)

    def _repeated(self, rows: np.ndarray) -> np.ndarray:
        import numpy as np

        (a, b), rest = (self.first, self.second), rows.shape[1:]
        kept = rows.reshape(b.down, b.across, b.pitch, *rest)[:, :, : b.channels]
        spread = np.broadcast_to(kept[None, :, None], (a.down, b.down, a.across, b.across, b.channels, *rest))
        return spread.reshape(-1, *rest)

    def draft(self) -> list[TensorOp]:
        """`ops` with constants of which only shapes are known."""
        inside, outside = self._channels
        first, second = (
            [
                without_numbers(value, (new if len_ == old else len_, *rest))
                for value in conv.operands[1:]
                for len_, *rest in [value.shape]
            ]
            for conv, old, new in ((self.before, self.first.total, inside), (self.op, self.second.total, outside))
        )
        second[0] = without_numbers(self.op.weight, (outside, inside, 1, 1))
        return self.ops(first, second)

    @property
    def _channels(self) -> tuple[int, int]:
        """Of the results of both convolutions."""
        return self.first.down * self.first.across * self.pitch, prod(self.scale) * self.second.channels

    def ops(self, first: list[Value], second: list[Value]) -> list[TensorOp]:
        """Both convolutions and what joins all phases."""
        n, _, height, width = self.before.type.shape
        types = [
            TensorType((n, channels, height, width), conv.type.dtype, conv.type.quant)
            for conv, channels in zip((self.before, self.op), self._channels)
        ]
        a = self.before.clone([self.before.input, *first])
        a.result.type = types[0]
        b = self.op.clone([a.result, *second])
        b.result.type = types[1]
        joined = {"scale": self.scale, "channels": self.second.channels}
        return [a, b, make("interleave", [b.result], joined, location=self.op.location)]
