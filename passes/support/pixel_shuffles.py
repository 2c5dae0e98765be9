"""Channels that become pixels (depth to space) as one op, which local memory knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from operator import mul
from typing import Any

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.places.shape import Permute, Reshape
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on, sole
from bmcompiler.passes.simplify.axes import inverse
from bmcompiler.target import unsupported_reason

_BLOCKS_FIRST, _BLOCKS_LAST = (0, 3, 4, 1, 5, 2), (0, 1, 4, 2, 5, 3)
"""Orders of (N, SH, SW, C, H, W) and of (N, C, SH, SW, H, W)."""
_PATCHES = (0, 5, 3, 1, 4, 2)
"""That of (N, SH, SW, H, W, C)."""


@dataclass(frozen=True)
class PixelShuffles(TargetPatternPass):
    """A permute of six axes moves single pixels through global memory; `interleave` does it lane by lane.

    1. reshape to (N, SH, SW, C, H, W) -> permute 0 3 4 1 5 2 -> reshape to (N, C, H*SH, W*SW) : interleave
    2. reshape to (N, C, SH, SW, H, W) -> permute 0 1 4 2 5 3 -> reshape to (N, C, H*SH, W*SW) : a shuffle of whole
       channels (`join-groups` puts it into the weights before it) -> interleave
    3. permute -> reshape -> permute, together 0 5 3 1 4 2 of (N, SH, SW, H, W, C) -> reshape to (N, C, H*SH, W*SW), as
       patches that attention leaves become a picture (MobileViT) : permute to (N, SH, SW, C, H, W) -> interleave
    It is done where the target takes the interleave. Values only move.
    """

    name = "pixel-shuffles"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(Reshape, self.interleaved, self.from_patches)

    def from_patches(self, op: Reshape, rewriter: Rewriter) -> bool:
        """Pattern 3."""
        second = sole(op.operands[0], Permute)
        between = sole(second.operands[0], Reshape) if second is not None else None
        first = sole(between.operands[0], Permute) if between is not None else None
        whole = composed(first, second) if first is not None and second is not None else None
        if first is None or second is None or between is None or whole is None:
            return False
        shape, order = whole
        if order[0] != 0:  # one picture
            shape, order = (1, *shape), (0, *(axis + 1 for axis in order))
        if order != _PATCHES or len(op.type.shape) != 4:
            return False
        n, down, across, h, w, c = shape
        if op.type.shape != (n, c, h * down, w * across):
            return False
        made = _in_a_row(
            first.operands[0],
            ("reshape", {"shape": (n, down * across, h * w, c)}),
            ("permute", {"order": (0, 1, 3, 2)}),
            ("reshape", {"shape": (n, down * across * c, h, w)}),
            ("interleave", {"channels": c, "scale": (down, across)}),
        )
        return self._put(op, made, (first, between, second), rewriter)

    def _put(self, op: Reshape, made: list[TensorOp], old: tuple[TensorOp, ...], rewriter: Rewriter) -> bool:
        """Replace the last of ops in a row; False where its last op or the target does not fit."""
        if made[-1].type != op.type or any(unsupported_reason(self.target, each) is not None for each in made):
            for each in made:
                each.drop_operands()
            return False
        for each in made:
            rewriter.insert_before(op, each, *old, op, is_part=each is not made[-1])
        rewriter.replace(op, made[-1].results)
        for unread in reversed(old):
            rewriter.erase(unread)
        return True

    def interleaved(self, op: Reshape, rewriter: Rewriter) -> bool:
        """Rules 1 and 2."""
        permute = sole(op.operands[0], Permute)
        split = sole(permute.operands[0], Reshape) if permute is not None else None
        if permute is None or split is None or tuple(permute.order) not in (_BLOCKS_FIRST, _BLOCKS_LAST):
            return False
        x, last = split.operands[0], permute.order == _BLOCKS_LAST
        n, a, b, c, h, w = split.type.shape
        (down, across), channels = ((b, c), a) if last else ((a, b), c)
        if x.shape != (n, a * b * c, h, w) or op.type.shape != (n, channels, h * down, w * across):
            return False
        blocks_first = (
            ("reshape", {"shape": (n, channels, down * across, h, w)}),
            ("permute", {"order": (0, 2, 1, 3, 4)}),
            ("reshape", {"shape": x.shape}),
        )
        interleave = ("interleave", {"channels": channels, "scale": (down, across)})
        made = _in_a_row(x, *(blocks_first if last and channels > 1 else ()), interleave)
        return self._put(op, made, (split, permute), rewriter)


def _in_a_row(x: Value, *steps: tuple[str, dict[str, Any]]) -> list[TensorOp]:
    """Ops of which each reads the result of the one before."""
    made: list[TensorOp] = []
    for name, attributes in steps:
        made.append(make(name, [x], attributes))
        x = made[-1].result
    return made


def composed(first: Permute, second: Permute) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Two permutes with a reshape between as one permute of the pieces of axes that both leave whole.

    Gives the lengths of the pieces in the order of what goes in (no 1 among them) and their order behind both; None
    where an axis of the reshape begins within one of the first permute's that it does not divide.
    """
    middle, shape = first.type.shape, second.operands[0].shape
    ends = sorted({1, *accumulate(middle, mul), *accumulate(shape, mul)})
    if any(b % a for a, b in pairwise(ends)):
        return None
    pieces = [b // a for a, b in pairwise(ends)]  # from the first axis of `middle` on
    owned = [_within(ends, axis, middle) for axis in range(len(middle))]
    before = [piece for axis in inverse(first.order) for piece in owned[axis]]
    after = [piece for axis in second.order for piece in _within(ends, axis, shape)]
    return tuple(pieces[piece] for piece in before), tuple(before.index(piece) for piece in after)


def _within(ends: Sequence[int], axis: int, shape: Sequence[int]) -> list[int]:
    """Numbers of the pieces that an axis consists of."""
    low, high = prod(shape[:axis]), prod(shape[: axis + 1])
    return [number for number, end in enumerate(ends[1:]) if low < end <= high]
