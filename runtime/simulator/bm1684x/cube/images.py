"""Inputs of window commands: pixels inserted between those of the input, borders, and the windows over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from bmcompiler.backends.bm1684x.codes import Layout
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.simulator.bm1684x.operands import Operands, Reader, Work, check_work

_CONSTANT = 0
_PAD_MODES = {1: "reflect", 2: "edge", 3: "wrap"}
_Border = Callable[[], tuple[Array, Array]]
"""Gives the values of padding and of inserted pixels, broadcasting to (1, C, 1, 1)."""


def prepared(ops: Operands, window: Window, read: Reader, dtype: np.dtype[Any], channels: int, zero: bool) -> Reader:
    """What reads the input with inserted pixels and borders, cropped to what the result depends on.

    Args:
        channels: of the input. zero: the command has no operand for borders, they are 0.

    Raises:
        SimulatorError: borders as wide as the image they repeat.
    """
    size = (ops.fields["opd0_h"], ops.fields["opd0_w"])
    check_work(Work.PIXELS, ops.fields["res0_n"], channels, *window.padded(size))
    if window.padded(size) == size:
        rows, columns = window.reach
        return lambda: read()[:, :, :rows, :columns]
    mode = ops.fields["pad_mode"]
    if mode != _CONSTANT:
        borders = zip(window.padded(size), window.before, window.after)
        if any(max(before, after) >= have - before - after for have, before, after in borders):
            raise SimulatorError("borders that repeat pixels must be smaller than the image")
    border = _border(ops, dtype, channels, zero)
    return lambda: _framed(window, read(), *border(), mode)


def _border(ops: Operands, dtype: np.dtype[Any], channels: int, zero: bool) -> _Border:
    if zero:
        none = np.zeros((1, 1, 1, 1), dtype)
        return lambda: (none, none)
    if ops.is_constant("opd3"):
        pad, inserted = (ops.constant(name, dtype).reshape(1, 1, 1, 1) for name in ("opd3", "res1"))
        return lambda: (pad, inserted)
    pairs = ops.tensor("opd3", (1, channels, 1, 2), dtype, Layout.COMPACT)

    def read() -> tuple[Array, Array]:
        values = pairs.read()
        return values[..., :1], values[..., 1:]

    return read


def _framed(window: Window, x: Array, pad: Array, inserted: Array, mode: int) -> Array:
    (rows, columns), (top, left) = window.reach, window.before
    if window.spread != (1, 1):
        sizes = [(size - 1) * step + 1 for size, step in zip(x.shape[2:], window.spread)]
        spread = np.empty((*x.shape[:2], *sizes), x.dtype)
        spread[...] = inserted
        spread[:, :, :: window.spread[0], :: window.spread[1]] = x
        x = spread
    if mode != _CONSTANT:
        sides = ((0, 0), (0, 0), *zip(window.before, window.after))
        return np.pad(x, sides, mode=_PAD_MODES[mode])[:, :, :rows, :columns]  # type: ignore[call-overload]
    full = np.empty((*x.shape[:2], rows, columns), x.dtype)
    full[...] = pad
    inner = full[:, :, top:, left:]
    height, width = (min(have, room) for have, room in zip(x.shape[2:], inner.shape[2:]))
    inner[:, :, :height, :width] = x[:, :, :height, :width]
    return full


def windows(window: Window, x: Array) -> Array:
    """The windows over a prepared input as a view (N, C, KH, KW, OH, OW)."""
    n, c, h, w = x.strides
    steps = (n, c, *(s * d for s, d in zip((h, w), window.dilation)), *(s * d for s, d in zip((h, w), window.stride)))
    return as_strided(x, (*x.shape[:2], *window.kernel, *window.out), steps, writeable=False)
