"""Channels that become pixels (depth to space) as one op, which local memory knows."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ir.keys import TENSOR_NAME
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.places.shape import Permute, Reshape
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, inherit, make, on, sole
from bmcompiler.target import unsupported_reason

_BLOCKS_FIRST, _BLOCKS_LAST = (0, 3, 4, 1, 5, 2), (0, 1, 4, 2, 5, 3)
"""Orders of (N, SH, SW, C, H, W) and of (N, C, SH, SW, H, W)."""


@dataclass(frozen=True)
class PixelShuffles(TargetPatternPass):
    """A permute of six axes moves single pixels through global memory; `interleave` does it lane by lane.

    1. reshape to (N, SH, SW, C, H, W) -> permute 0 3 4 1 5 2 -> reshape to (N, C, H*SH, W*SW) : interleave
    2. reshape to (N, C, SH, SW, H, W) -> permute 0 1 4 2 5 3 -> reshape to (N, C, H*SH, W*SW) : a shuffle of whole
       channels (`join-groups` puts it into the weights before it) -> interleave
    It is done where the target takes the interleave. Values only move.
    """

    name = "pixel-shuffles"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(Reshape, self.interleaved)

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
        made: list[TensorOp] = []
        source = _blocks_first(x, channels, made) if last and channels > 1 else x
        made.append(make("interleave", [source], {"channels": channels, "scale": (down, across)}))
        if made[-1].type != op.type or any(unsupported_reason(self.target, each) is not None for each in made):
            return False
        for each in made:
            rewriter.insert_before(op, inherit(each, split, permute, op))
            if each is not made[-1]:
                each.attributes.pop(TENSOR_NAME, None)
        rewriter.replace(op, made[-1].results)
        for unread in (permute, split):
            rewriter.erase(unread)
        return True


def _blocks_first(x: Value, channels: int, made: list[TensorOp]) -> Value:
    """Channels (C, SH * SW) in the order (SH * SW, C); the ops are appended to `made`."""
    n, total, h, w = x.shape
    for name, attributes in (
        ("reshape", {"shape": (n, channels, total // channels, h, w)}),
        ("permute", {"order": (0, 2, 1, 3, 4)}),
        ("reshape", {"shape": x.shape}),
    ):
        made.append(make(name, [x], attributes))
        x = made[-1].results[0]
    return x
