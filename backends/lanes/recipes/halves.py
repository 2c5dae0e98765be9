"""Recipes in 16-bit floats: sums, products and choices alone, each rounded to the type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bmcompiler.backends.lanes.arithmetic import Arithmetic
from bmcompiler.backends.lanes.operands import Immediate
from bmcompiler.backends.lanes.recipes.recorder import Operand, RecipeStep, Rows
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.numeric.arrays import Array

ITEMS = {"f32": 4, "f16": 2, "bf16": 2}
"""Bytes of an element of the types of recipes."""
HALVES = frozenset(ITEMS) - {"f32"}
UNITS = frozenset({Unit.ADD, Unit.SUB, Unit.MUL, Unit.MAX, Unit.MIN, Unit.COPY, Unit.CHOOSE})


class HalfEvaluator:
    """Runs steps on arrays of one 16-bit type; immediates are rounded to it."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self._greater = arithmetic.greater
        self._pairs: dict[Unit, Callable[[Array, Array], Array]] = {
            Unit.ADD: arithmetic.add,
            Unit.SUB: arithmetic.subtract,
            Unit.MUL: arithmetic.multiply,
            Unit.MAX: arithmetic.maximum,
            Unit.MIN: arithmetic.minimum,
        }

    def run(self, steps: Sequence[RecipeStep], arrays: Sequence[Array], axes: tuple[int, ...]) -> Array:
        """The result of the last step; there are no reductions."""
        values = list(arrays)
        for step in steps:
            values.append(self._apply(step, [_value(source, values) for source in step.sources]))
        return values[-1]

    def _apply(self, step: RecipeStep, sources: list[Array]) -> Array:
        if step.unit is Unit.COPY:
            return sources[0]
        if step.unit is Unit.CHOOSE:
            a, b, c, d = sources
            return np.where(self._greater(a, b), c, d)
        return self._pairs[step.unit](*sources)


def _value(source: Operand, values: Sequence[Array]) -> Array:
    if isinstance(source, Immediate):
        number = np.array([source.bits], "<u4").view(np.float32)
        return number.astype(values[0].dtype)
    assert not isinstance(source, Rows), "rows are of reductions and products"
    return values[source.number]
