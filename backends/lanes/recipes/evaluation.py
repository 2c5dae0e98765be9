"""What the commands of recorded recipes compute, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684 import fp32
from bmcompiler.backends.bm1684.isa import Eu, Task
from bmcompiler.backends.bm1684.tables import OFFSETS, table
from bmcompiler.backends.bm1684.windows import depthwise_sums, largest
from bmcompiler.backends.lanes.recipes.machine import NEUTRAL, TILE, Immediate, Operand, Rows, Scan, Step
from bmcompiler.backends.lanes.windows import Window

Words = NDArray[Any]


def run_steps(steps: Sequence[Step], arrays: Sequence[Words], axes: tuple[int, ...]) -> NDArray[np.float32]:
    """The result of the last step; reductions run over `axes` of arrays (N, C, H, W)."""
    values = list(arrays)
    for step in steps:
        sources = [_value(source, values) for source in step.sources]
        values.append(
            _reduced(step, sources[0], axes) if step.task == Task.POOL_OR_DEPTHWISE else _apply(step, sources)
        )
    return _as_float(values[-1])


def _value(source: Operand, values: Sequence[Words]) -> Words:
    if isinstance(source, Immediate):
        return np.array([source.bits], "<u4").view(np.float32)
    whole = values[source.number]
    return whole[:, :, source.first : source.first + source.size] if isinstance(source, Rows) else whole


def _reduced(step: Step, source: Words, axes: tuple[int, ...]) -> NDArray[np.float32]:
    """Sum or maximum over `axes`, or sums over windows of rows."""
    x = _as_float(source)
    _, c, h, w = x.shape
    rows, above = step.window
    kernel = (rows or h, w if 3 in axes and step.height != TILE else 1)
    out = (h, w) if step.height == TILE else (1, w // kernel[1])
    one = (1, 1)
    window = Window(kernel, one, one, one, (above, 0), (max(rows - 1 - above, 0), 0), out)
    if step.unit == Eu.MAX:
        return largest(window, x, 0.0)
    weight = np.broadcast_to(np.float32(1), (c, kernel[0] * kernel[1]))
    return depthwise_sums(window, fp32.flush(window.prepare(x)), weight)


def _as_float(words: Words) -> NDArray[np.float32]:
    return words if words.dtype == np.float32 else np.ascontiguousarray(words).view(np.float32)


def _as_int(words: Words) -> NDArray[np.int32]:
    return words if words.dtype == np.int32 else np.ascontiguousarray(words).view(np.int32)


_FLOAT: dict[Eu, Callable[[Words, Words], Words]] = {
    Eu.ADD: fp32.add,
    Eu.SUB: fp32.subtract,
    Eu.MUL: fp32.multiply,
    Eu.DIVIDE: fp32.divide,
    Eu.MAX: fp32.maximum,
    Eu.MIN: fp32.minimum,
}
_BITS: dict[Eu, Callable[[Words, Words], Words]] = {
    Eu.AND: np.bitwise_and,
    Eu.OR: np.bitwise_or,
    Eu.XOR: np.bitwise_xor,
}


def _scanned(step: Step, scan: Scan, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Row by row along h."""
    out = np.empty_like(x)
    before: int | None = None
    for row in scan.rows(x.shape[2]):
        if before is None:
            neutral = np.array(NEUTRAL[step.unit], np.uint32).view(np.float32)
            out[:, :, row] = neutral if scan.exclusive else x[:, :, row]
        else:
            out[:, :, row] = _FLOAT[step.unit](out[:, :, before], x[:, :, before if scan.exclusive else row])
        before = row
    return out


def _apply(step: Step, sources: list[Words]) -> Words:
    unit = step.unit
    if step.scan is not None:
        return _scanned(step, step.scan, _as_float(sources[0]))
    if step.task == Task.LUT:
        return _entries(step)[_as_int(sources[0]) & (step.terms - 1)]
    if step.task == Task.SFU:
        return _special(step, sources[0])
    if step.task == Task.COMPARE:
        a, b, c, d = map(_as_float, sources)
        return _as_float(np.where(fp32.flush(a) > fp32.flush(b), _as_int(c), _as_int(d)))
    if unit in _FLOAT:
        return _FLOAT[unit](_as_float(sources[0]), _as_float(sources[1]))
    if unit in _BITS:
        return _BITS[unit](_as_int(sources[0]), _as_int(sources[1]))
    if unit == Eu.SHIFT:
        return _shifted(step, _as_int(sources[0]), int(_as_int(sources[1])[0]))
    if unit == Eu.COPY:
        return sources[0]
    chosen = np.array([step.chosen], "<u4").view(np.int32)
    if unit == Eu.SELECT_EQ:
        return np.where(_as_int(sources[0]) == _as_int(sources[1]), chosen, np.int32(0))
    return np.where(fp32.flush(_as_float(sources[0])) > fp32.flush(_as_float(sources[1])), chosen, np.int32(0))


def _entries(step: Step) -> NDArray[np.float32]:
    return table(step.table if isinstance(step.table, int) else OFFSETS[step.table], step.terms)


def _special(step: Step, source: Words) -> Words:
    if step.unit == Eu.TAYLOR:
        return fp32.taylor(_as_float(source), _entries(step))
    if step.unit == Eu.RSQRT:
        return fp32.rsqrt(_as_float(source))
    if step.unit == Eu.FP32_TO_INT:
        return fp32.to_int(_as_float(source))
    return fp32.nearest_exponent(_as_int(source))


def _shifted(step: Step, words: NDArray[np.int32], places: int) -> Words:
    if places >= 0:
        return words << np.int32(places)
    if step.arithmetic:
        return words >> np.int32(-places)
    return words.view(np.uint32) >> np.uint32(-places)
