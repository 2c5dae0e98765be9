"""Gather and scatter of whole rows (SGL) (bm1684x-vector.md 9.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Gather, Layout, Precision
from bmcompiler.errors import SimulatorError
from bmcompiler.runtime.simulator.bm1684x.operands import Operands, Reader
from bmcompiler.runtime.simulator.bm1684x.vector.kinds import Kind
from bmcompiler.runtime.simulator.memory import Shape
from bmcompiler.runtime.simulator.plan import Step


def rows_step(ops: Operands, unit: Gather) -> Step:
    """Step of one command: res0(n, c, i, :) = opd0(0, c, index(n, c, i), :), or with the index on the other side.

    Rows of both begin aligned; indices are (n, c, rows, 1), aligned. Rows that a scatter does not name stay.
    """
    if ops.fields["opd3_const"]:
        raise SimulatorError("what the limit of indices does to whole rows is not known")
    n, c, h, w = shape = ops.shape("res0")
    bits, height = Kind(ops.precision("res0")).bits, ops.fields["opd0_h"]
    rows = _rows(ops, (1, c, height, w), bits)
    gathers = unit == Gather.ROWS
    count = h if gathers else height
    indices = ops.tensor("opd1", (n, c, count, 1), index_dtype(ops))
    result = ops.result("res0", shape, bits, CHIP.line_aligned(shape, bits.itemsize, ops.place("res0")[0]))
    images, channels = np.arange(n)[:, None, None], np.arange(c)[:, None]

    def run() -> None:
        at = indices.read()[..., 0]
        check_indices(at, height if gathers else h)
        if gathers:
            result.write(rows()[0, channels, at])
            return
        values = result.read().copy()
        values[images, channels, at] = rows()
        result.write(values)

    return run


def _rows(ops: Operands, shape: Shape, bits: np.dtype[Any]) -> Reader:
    """Rows of every channel, or one table of rows per lane for all its channels."""
    lane, _ = ops.place("opd0")
    layout = ops.layout("opd0")
    if layout not in (Layout.FREE, Layout.TABLE):
        raise SimulatorError(f"layout code {layout} has no meaning for tables of rows")
    n, c, h, w = CHIP.line_aligned(shape, bits.itemsize, lane)
    return ops.tensor("opd0", shape, bits, (n, 0, h, w) if layout == Layout.TABLE else (n, c, h, w)).read


def index_dtype(ops: Operands) -> np.dtype[Any]:
    """numpy type of the indices."""
    precision = ops.precision("opd1")
    if precision not in (Precision.INT8, Precision.INT16):
        raise SimulatorError(f"indices must be uint8 or uint16, not {precision.name.lower()}")
    return Kind(precision).bits


def check_indices(indices: np.ndarray[Any, Any], count: int) -> None:
    """Raises SimulatorError for an index beyond the last of `count` elements."""
    largest = int(indices.max())
    if largest >= count:
        raise SimulatorError(f"index {largest} is outside of the {count} elements it chooses from")
