"""Feature maps are joined before they are enlarged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import gcd

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.places.shape import Concat, Upsample
from bmcompiler.passes.drafts import cycles_saved
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on, sole


@dataclass(frozen=True)
class JoinUpsamples(TargetPatternPass):
    """Neighbours of a concatenation along channels that are enlarged are joined while they are small.

    Chips with a channel per lane move what is joined from lane to lane.

    1. concat of two or more upsamples side by side, each read once : upsample, by what divides the scales of all, of
       their concat
    It is done where the target says that it takes less time in local memory. Values stay, bit for bit.
    """

    name = "join-upsamples"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(Concat, self.join)

    def join(self, op: Concat, rewriter: Rewriter) -> bool:
        """Rule 1."""
        if op.axis % op.type.rank != 1 or op.type.rank != 4 or PLACE_CPU in op.attributes:
            return False
        runs = [(small, list(found)) for small, found in groupby(op.operands, lambda x: self._is_enlarged(op, x))]
        run = next((found for small, found in runs if small and len(found) > 1 and _common(found) != (1, 1)), None)
        if run is None:
            return False
        old: list[TensorOp] = [*(x.op for x in run), op]  # type: ignore[list-item]
        if cycles_saved(self.target, old, _joined(op, run)) <= 0:
            return False
        made = _joined(op, run)
        for new in made:
            rewriter.insert_before(op, new, op, is_part=new is not made[-1])
        rewriter.replace(op, made[-1].results)
        return True

    def _is_enlarged(self, op: Concat, value: Value) -> bool:
        found = sole(value, Upsample)
        return found is not None and PLACE_CPU not in found.attributes and found.type.quant == op.type.quant


def _ups(run: Sequence[Value]) -> Iterator[Upsample]:
    for value in run:
        assert isinstance(value.op, Upsample), "`join` takes upsamples alone"
        yield value.op


def _common(run: Sequence[Value]) -> tuple[int, int]:
    """What divides the scales of all."""
    down, across = zip(*(op.scale for op in _ups(run)))
    return gcd(*down), gcd(*across)


def _joined(op: Concat, run: Sequence[Value]) -> list[TensorOp]:
    """What comes in the place of `op`: smaller upsamples, their concat, its upsample, and a concat with the others."""
    by, made, small = _common(run), [], []
    for each in _ups(run):
        scale = each.scale[0] // by[0], each.scale[1] // by[1]
        value = each.x
        if scale != (1, 1):
            made.append(make("upsample", [value], {"scale": scale}))
            value = made[-1].results[0]
        small.append(value)
    made.append(make("concat", small, {"axis": 1}))
    made.append(make("upsample", [made[-1].results[0]], {"scale": by}))
    at = next(i for i, value in enumerate(op.operands) if value is run[0])
    others = [*op.operands[:at], made[-1].results[0], *op.operands[at + len(run) :]]
    if len(others) > 1:
        made.append(make("concat", others, {"axis": 1}))
    made[-1].results[0].type = op.type
    return made
