"""Ops on numbers that have to stay f32: places in a tensor, distances, spectra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ir.keys import EXACT, WIDE
from bmcompiler.passes.support.decompositions.base import Draft

MOST_COUNTED = 1 << 24
"""Whole numbers below it are exact in f32."""
MOST_TABLE = 1 << 24
"""Elements of a table that is computed to pick or place others by it: 64 MB."""


class Reals:
    """Drafts ops that stay f32 in nets of 16-bit floats and of bytes. Numbers among operands become constants."""

    def __init__(self, draft: Draft, why: str | None) -> None:
        """`why` they stay so, as the summary says it; without that they need not."""
        self.draft, self.why = draft, why

    def __call__(self, name: str, *operands: Value | float, **attributes: Any) -> Value:
        """Draft an op with one result."""
        rank = max((x.type.rank for x in operands if isinstance(x, Value)), default=1)
        made = self.draft.emit(name, [self.value(x, rank) for x in operands], **attributes)
        self.note(made)
        return made

    def value(self, x: Value | float, rank: int) -> Value:
        """A number as a constant of this rank."""
        if isinstance(x, Value):
            return x
        return self.draft.weight(np.full((1,) * rank, x, np.float32), "number")

    def note(self, made: Value) -> None:
        """What keeps an op in f32."""
        if self.why is not None and made.op is not None and made.type.is_float:
            made.op.attributes |= {WIDE: True, EXACT: self.why}

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """The same elements in another shape, without an op where that is their own."""
        made = self.draft.reshape(x, shape)
        if made is not x:
            self.note(made)
        return made

    def permute(self, x: Value, order: Sequence[int]) -> Value:
        """Axes in another order; `x` itself where that is its own."""
        return x if list(order) == sorted(order) else self("permute", x, order=tuple(order))

    def span(self, x: Value, axis: int, first: int, end: int, step: int = 1) -> Value:
        """Every `step`-th element `first` .. `end` - 1 of an axis."""
        rank = x.type.rank
        starts = tuple(first if i == axis else 0 for i in range(rank))
        ends = tuple(end if i == axis else d for i, d in enumerate(x.shape))
        return self("slice", x, starts=starts, ends=ends, steps=tuple(step if i == axis else 1 for i in range(rank)))

    def inside(self, x: Value, low: float, high: float) -> Value:
        """Whether low <= x <= high."""
        return self("compare", self("clip", x, min=low, max=high), x, method="equal")

    def counted(self, size: int) -> Value:
        """0, 1, ... along the last axis, which others broadcast against."""
        return self.draft.weight(np.arange(size, dtype=np.float32), "places")
