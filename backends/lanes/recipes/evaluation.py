"""What the commands of recorded recipes compute, bit for bit, in the arithmetic of a chip."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bmcompiler.backends.lanes.arithmetic import Arithmetic, Words
from bmcompiler.backends.lanes.operands import Immediate
from bmcompiler.backends.lanes.recipes.recorder import NEUTRAL, REDUCED, TILE, Operand, RecipeStep, Rows, Scan
from bmcompiler.backends.lanes.tables import OwnTable, Table
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.numeric.arrays import Floats, Int32s, Mask


class Evaluator:
    """Runs steps on arrays."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self._arithmetic = arithmetic
        self._floats: dict[Unit, Callable[[Floats, Floats], Floats]] = {
            Unit.ADD: arithmetic.add,
            Unit.SUB: arithmetic.subtract,
            Unit.MUL: arithmetic.multiply,
            Unit.DIVIDE: arithmetic.divide,
            Unit.MAX: arithmetic.maximum,
            Unit.MIN: arithmetic.minimum,
        }

    def run(self, steps: Sequence[RecipeStep], arrays: Sequence[Words], axes: tuple[int, ...]) -> Floats:
        """The result of the last step; reductions run over `axes` of arrays (N, C, H, W)."""
        values = list(arrays)
        for step in steps:
            sources = [_value(source, values) for source in step.sources]
            values.append(self._reduced(step, sources[0], axes) if step.unit.windowed else self._apply(step, sources))
        return _as_float(values[-1])

    def _reduced(self, step: RecipeStep, source: Words, axes: tuple[int, ...]) -> Floats:
        """Sum or maximum over `axes`, or sums over windows of rows."""
        x = _as_float(source)
        _, c, h, w = x.shape
        rows, above = step.window
        kernel = (rows or h, w if 3 in axes and step.height == REDUCED else 1)
        out = (h, w) if step.height == TILE else (1, w // kernel[1])
        one = (1, 1)
        window = Window(kernel, one, one, one, (above, 0), (max(rows - 1 - above, 0), 0), out)
        if step.unit is Unit.WINDOW_MAX:
            return self._arithmetic.window_largest(window, x, 0.0)
        weight = np.broadcast_to(np.float32(1), (c, kernel[0] * kernel[1]))
        return self._arithmetic.window_sums(window, x, weight)

    def _apply(self, step: RecipeStep, sources: list[Words]) -> Words:
        unit = step.unit
        if step.scan is not None:
            return self._scanned(step, step.scan, _as_float(sources[0]))
        if unit in self._floats:
            return self._floats[unit](_as_float(sources[0]), _as_float(sources[1]))
        if unit is Unit.MAC:
            total, a, b = map(_as_float, sources)
            return self._arithmetic.add(self._arithmetic.multiply(a, b), total)
        if unit in _BITS:
            return _BITS[unit](_as_int(sources[0]), _as_int(sources[1]))
        if unit in (Unit.SHIFT, Unit.SHIFT_SIGNED):
            return _shifted(unit, _as_int(sources[0]), _as_int(sources[1]))
        if unit is Unit.COPY:
            return sources[0]
        if unit is Unit.CHOOSE:
            a, b, c, d = map(_as_float, sources)
            return _as_float(np.where(self._arithmetic.greater(a, b), _as_int(c), _as_int(d)))
        if unit.tests:
            return np.where(self._holds(unit, *sources), np.array([step.chosen], "<u4").view(np.int32), np.int32(0))
        return self._function(step, sources[0])

    def _holds(self, unit: Unit, a: Words, b: Words) -> Mask:
        if unit is Unit.SAME_BITS:
            return np.equal(_as_int(a), _as_int(b))
        return self._arithmetic.greater(_as_float(a), _as_float(b))

    def _function(self, step: RecipeStep, source: Words) -> Words:
        arithmetic = self._arithmetic
        if step.unit is Unit.RSQRT:
            return arithmetic.rsqrt(_as_float(source))
        if step.unit is Unit.TO_INT:
            return arithmetic.to_int(_as_float(source))
        if step.unit is Unit.NEAREST_EXPONENT:
            return arithmetic.nearest_exponent(_as_int(source))
        if isinstance(step.table, OwnTable):
            return step.table.entries(step.terms)[_as_int(source) & (step.terms - 1)]
        assert isinstance(step.table, Table), "what a program loads is known to its kernel alone"
        if step.unit is Unit.LOOKUP:
            return arithmetic.lookup(_as_int(source), step.table, step.terms)
        return arithmetic.series(_as_float(source), step.table, step.terms)

    def _scanned(self, step: RecipeStep, scan: Scan, x: Floats) -> Floats:
        """Row by row along h."""
        out = np.empty_like(x)
        before: int | None = None
        for row in scan.rows(x.shape[2]):
            if before is None:
                neutral = np.array(NEUTRAL[step.unit], np.uint32).view(np.float32)
                out[:, :, row] = neutral if scan.exclusive else x[:, :, row]
            else:
                added = x[:, :, before if scan.exclusive else row]
                out[:, :, row] = self._floats[step.unit](out[:, :, before], added)
            before = row
        return out


_BITS: dict[Unit, Callable[[Int32s, Int32s], Int32s]] = {
    Unit.AND: np.bitwise_and,
    Unit.OR: np.bitwise_or,
    Unit.XOR: np.bitwise_xor,
    Unit.WORD_ADD: np.add,
    Unit.WORD_SUB: np.subtract,
    Unit.WORD_MUL: np.multiply,
}


def _value(source: Operand, values: Sequence[Words]) -> Words:
    if isinstance(source, Immediate):
        return np.array([source.bits], "<u4").view(np.float32)
    whole = values[source.number]
    return whole[:, :, source.first : source.first + source.size] if isinstance(source, Rows) else whole


def _as_float(words: Words) -> Floats:
    return words if words.dtype == np.float32 else np.ascontiguousarray(words).view(np.float32)


def _as_int(words: Words) -> Int32s:
    return words if words.dtype == np.int32 else np.ascontiguousarray(words).view(np.int32)


def _shifted(unit: Unit, words: Int32s, places: Int32s) -> Words:
    if places.size != 1:
        right = words >> -places if unit is Unit.SHIFT_SIGNED else (words.view(np.uint32) >> -places).view(np.int32)
        return np.where(places < 0, right, words << np.maximum(places, 0))
    count = int(places.item())
    if count >= 0:
        return words << np.int32(count)
    if unit is Unit.SHIFT_SIGNED:
        return words >> np.int32(-count)
    return words.view(np.uint32) >> np.uint32(-count)
