"""Recognise thresholds that an exporter wrote as a comparison and a choice between 1 and 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.elements.logic import Compare, Where
from bmcompiler.passes.rewriting import PatternPass, PatternTable, make, on, sole

_SWAPPED = {"less": "greater", "less_equal": "greater_equal"}


@dataclass(frozen=True)
class FuseThresholds(PatternPass):
    """Replace a comparison with one number whose answer becomes 1.0 or 0.0 by `threshold`, which has an int8 form.

    1. cast(x > c), cast(c < x)        : threshold(x), c
    2. the same with >= and <=         : threshold(x), the next smaller f32 number, where that is a normal one
    3. where(one of these, 1, 0)       : the same
    Only floats, the result being of the type of x, and no other reader of the comparison.
    """

    name = "fuse-thresholds"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def table(self) -> PatternTable:
        return {**on(Cast, self.fuse), **on(Where, self.choice)}

    def choice(self, op: Where, rewriter: Rewriter) -> bool:
        """Rule 3."""
        return (self.uniform(op.a), self.uniform(op.b)) == (1.0, 0.0) and self.fuse(op, rewriter)

    def fuse(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rules 1 and 2; `op` makes numbers of the answers."""
        compare = sole(op.operands[0], Compare)
        found = self.limit(compare) if compare is not None else None
        if compare is None or found is None or (found[0].shape, found[0].dtype) != (op.type.shape, op.type.dtype):
            return False
        rewriter.replace_with(op, make("threshold", [found[0]], {"threshold": found[1]}))
        return True

    def limit(self, compare: Compare) -> tuple[Value, float] | None:
        """(x, c) when the comparison asks x > c."""
        swapped = compare.method in _SWAPPED
        method = _SWAPPED.get(compare.method, compare.method)
        x, other = (compare.b, compare.a) if swapped else (compare.a, compare.b)
        c = self.uniform(other) if x.type.is_float else None
        if c is None or method not in _SWAPPED.values():
            return None
        if method == "greater":
            return x, c
        below = np.nextafter(np.float32(c), np.float32(-np.inf))
        normal = x.dtype == "f32" and np.isfinite(below) and abs(below) >= np.finfo(np.float32).tiny
        return (x, float(below)) if normal else None
