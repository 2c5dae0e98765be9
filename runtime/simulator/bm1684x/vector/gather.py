"""Gather, scatter and selection by mask within lanes (SG) (bm1684x-vector.md 9.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Gather, Layout, Precision
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arrays import Array, IntArray
from bmcompiler.runtime.simulator.bm1684x.operands import Operands, Reader, Result
from bmcompiler.runtime.simulator.bm1684x.vector.access import code, element
from bmcompiler.runtime.simulator.bm1684x.vector.kinds import Kind
from bmcompiler.runtime.simulator.bm1684x.vector.rows import check_indices, index_dtype, rows_step
from bmcompiler.runtime.simulator.memory import Shape
from bmcompiler.runtime.simulator.plan import Step

_SHORT = np.dtype(np.uint16)


def gather_step(ops: Operands) -> Step:
    """Step of one command. Raises SimulatorError for operations and index types that do not exist.

    An index outside of the table is an error of the run.
    """
    unit = code(Gather, ops, "tsk_eu_typ", "gather or scatter operation")
    if unit in (Gather.ROWS, Gather.SCATTER_ROWS):
        return rows_step(ops, unit)
    return _STEPS[unit](ops)


def _table(ops: Operands, bits: np.dtype[Any], by_lane: bool = False) -> Reader:
    """(1, c, 1, w) of every channel, or of every lane for all its channels.

    by_lane: rows that serve all channels of a lane are given once; a channel finds its own by its number modulo those.
    """
    shape: Shape = (1, ops.fields["res0_c"], 1, ops.fields["opd0_w"])
    layout = ops.layout("opd0")
    if by_lane and layout == Layout.TABLE:
        shape = (1, min(shape[1], CHIP.lanes), *shape[2:])
    if layout == Layout.TABLE:
        return ops.tensor("opd0", shape, bits, (0, 0, 0, bits.itemsize)).read
    if layout != Layout.ALIGNED:
        raise SimulatorError(f"layout code {layout} has no meaning for tables")
    return ops.tensor("opd0", shape, bits).read


def _bits(ops: Operands) -> np.dtype[Any]:
    return Kind(ops.precision("res0")).bits


def _per_lane_indices(ops: Operands, shape: Shape, mask: bool = False) -> Reader:
    """Indices, or a mask, which may have words."""
    if ops.fields["opd1_c"] != shape[1]:
        raise SimulatorError(f"there are indices for {ops.fields['opd1_c']} of {shape[1]} channels")
    words = mask and ops.precision("opd1") == Precision.INT32
    return ops.tensor("opd1", shape, np.dtype(np.uint32) if words else index_dtype(ops)).read


def _gather(ops: Operands) -> Step:
    """res0(n, c, 0, i) = opd0(0, c, 0, index(n, c, i))."""
    bits, (n, c, _, _) = _bits(ops), ops.shape("res0")
    shape: Shape = (n, c, 1, ops.fields["opd1_w"])
    table, indices = _table(ops, bits, by_lane=True), _per_lane_indices(ops, shape)
    result = ops.result("res0", shape, bits)
    limited = bool(ops.fields["opd3_const"])
    fill = element(ops, "opd2", bits) if ops.fields["opd2_const"] else None

    def run() -> None:
        at = indices()
        skipped = at == np.iinfo(at.dtype).max if limited else None
        if skipped is None or not skipped.any():
            result.write(looked_up(table(), at))
            return
        values = looked_up(table(), np.where(skipped, at.dtype.type(0), at))
        result.write(np.where(skipped, result.read() if fill is None else fill, values))

    return run


def looked_up(table: Array, indices: IntArray) -> Array:
    """table[0, c % C, 0, indices[n, c, 0, i]] of tables (1, C, 1, W). Raises SimulatorError for indices outside."""
    channels, width = table.shape[1], table.shape[3]
    check_indices(indices, width)
    flat = np.ascontiguousarray(table[0, :, 0])
    if (flat == flat[0]).all():
        return flat[0].take(indices)
    first = (np.arange(indices.shape[1], dtype=np.int64) % channels)[:, None, None] * width
    return flat.reshape(-1).take(indices + first)


def _scatter(ops: Operands) -> Step:
    """res0(n, c, 0, index(n, c, i)) = opd0(0, c, 0, i); of equal indices the last counts."""
    _no_limit(ops)
    bits, (n, c, _, w) = _bits(ops), ops.shape("res0")
    count = ops.fields["opd1_w"]
    if count > ops.fields["opd0_w"]:
        raise SimulatorError(f"there are {count} indices for {ops.fields['opd0_w']} elements")
    table, indices = _table(ops, bits), _per_lane_indices(ops, (n, c, 1, count))
    result = ops.result("res0", (n, c, 1, w), bits)

    def run() -> None:
        at = indices()
        check_indices(at, w)
        values = result.read().copy()
        values[np.arange(n)[:, None, None], np.arange(c)[:, None], 0, at[:, :, 0]] = table()[:, :, 0, :count]
        result.write(values)

    return run


def _no_limit(ops: Operands) -> None:
    if ops.fields["opd3_const"]:
        raise SimulatorError("what the limit of indices does is known of gather with indices per lane only")


def _mask(ops: Operands) -> Step:
    """The elements whose mask is not 0, in order; res1(n, c) = how many."""
    bits, (n, c, _, w) = _bits(ops), ops.shape("res0")
    table, masks = _table(ops, bits), _per_lane_indices(ops, (n, c, 1, ops.fields["opd0_w"]), mask=True)
    result = ops.result("res0", (n, c, 1, w), bits)
    counts = ops.result("res1", (n, c, 1, 1), _SHORT, Layout.COMPACT)

    def run() -> None:
        chosen = masks()[:, :, 0] != 0
        count = chosen.sum(2)
        if count.max() > w:
            raise SimulatorError(f"the mask selects {count.max()} elements, which a result of {w} does not hold")
        values = result.read().copy()
        source = np.broadcast_to(table()[:, :, 0], chosen.shape)
        values[:, :, 0][np.arange(w) < count[:, :, None]] = source[chosen]
        result.write(values)
        counts.write(count[:, :, None, None].astype(_SHORT))

    return run


def _list(ops: Operands, item: int) -> Reader:
    """The one list of all channels, (count, item): one entry after the other over the lanes."""
    shape: Shape = (1, ops.fields["opd1_c"], 1, item)
    indices = ops.tensor("opd1", shape, index_dtype(ops), Layout.COMPACT)
    return lambda: indices.read().reshape(-1, item)


def _gather_list(ops: Operands) -> Step:
    """res0(n, c, 0, i) = opd0(n, c, 0, index(i))."""
    bits, (n, c, _, w), width = _bits(ops), ops.shape("res0"), ops.fields["opd0_w"]
    _entries(ops, w)
    source, indices = ops.tensor("opd0", (n, c, 1, width), bits), _list(ops, 1)
    result = ops.result("res0", (n, c, 1, w), bits)

    skipped = _Skipped(ops, bits, result)

    def run() -> None:
        at, missing = skipped.split(indices())
        check_indices(at[:, 0], width)
        result.write(skipped.filled(source.read()[..., at[:, 0]], missing))

    return run


def _entries(ops: Operands, count: int) -> None:
    if ops.fields["opd1_c"] != count:
        raise SimulatorError(f"a list of {ops.fields['opd1_c']} indices serves {count} elements")


def _scatter_list(ops: Operands) -> Step:
    """res0(n, c, 0, index(i)) = opd0(n, c, 0, i)."""
    _no_limit(ops)
    bits, (n, c, _, w), count = _bits(ops), ops.shape("res0"), ops.fields["opd0_w"]
    _entries(ops, count)
    source, indices = ops.tensor("opd0", (n, c, 1, count), bits), _list(ops, 1)
    result = ops.result("res0", (n, c, 1, w), bits)

    def run() -> None:
        at = indices()[:, 0]
        check_indices(at, w)
        values = result.read().copy()
        values[..., at] = source.read()
        result.write(values)

    return run


class _Skipped:
    """Entries of a list that stand for none: their results are a constant, or what they were."""

    def __init__(self, ops: Operands, bits: np.dtype[Any], result: Result) -> None:
        self._limited, self._result = bool(ops.fields["opd3_const"]), result
        self._fill = element(ops, "opd2", bits) if ops.fields["opd2_const"] else None

    def split(self, entries: IntArray) -> tuple[IntArray, Array | None]:
        """The entries, (count, item), with 0 for those that stand for none, and which these are, (count,)."""
        if not self._limited:
            return entries, None
        missing = (entries == np.iinfo(entries.dtype).max).any(1)
        return np.where(missing[:, None], entries.dtype.type(0), entries), missing

    def filled(self, values: Array, missing: Array | None) -> Array:
        """Values (n, c, 1, count) with those of missing entries put right."""
        if missing is None:
            return values
        return np.where(missing, self._result.read() if self._fill is None else self._fill, values)


def _places(pairs: IntArray, height: int, width: int) -> tuple[IntArray, IntArray]:
    """Rows and columns of a list of pairs, which have the column first."""
    columns, rows = pairs[:, 0], pairs[:, 1]
    check_indices(columns, width)
    check_indices(rows, height)
    return rows, columns


def _gather_places(ops: Operands) -> Step:
    """res0(n, c, 0, i) = opd0(n, c, row(i), column(i))."""
    bits, (n, c, _, w) = _bits(ops), ops.shape("res0")
    height, width = ops.fields["opd0_h"], ops.fields["opd0_w"]
    _entries(ops, w)
    source, pairs = ops.tensor("opd0", (n, c, height, width), bits), _list(ops, 2)
    result = ops.result("res0", (n, c, 1, w), bits)

    skipped = _Skipped(ops, bits, result)

    def run() -> None:
        found, missing = skipped.split(pairs())
        rows, columns = _places(found, height, width)
        result.write(skipped.filled(source.read()[:, :, rows, columns][:, :, None], missing))

    return run


def _scatter_places(ops: Operands) -> Step:
    """res0(n, c, row(i), column(i)) = opd0(n, c, 0, i)."""
    _no_limit(ops)
    bits, (n, c, h, w), count = _bits(ops), ops.shape("res0"), ops.fields["opd0_w"]
    _entries(ops, count)
    source, pairs = ops.tensor("opd0", (n, c, 1, count), bits), _list(ops, 2)
    result = ops.result("res0", (n, c, h, w), bits)

    def run() -> None:
        rows, columns = _places(pairs(), h, w)
        values = result.read().copy()
        values[:, :, rows, columns] = source.read()[:, :, 0]
        result.write(values)

    return run


_STEPS: dict[Gather, Callable[[Operands], Step]] = {
    Gather.LIST: _gather_list,
    Gather.LIST_2D: _gather_places,
    Gather.SCATTER_LIST: _scatter_list,
    Gather.SCATTER_LIST_2D: _scatter_places,
    Gather.LANE: _gather,
    Gather.LANE_FAST: _gather,
    Gather.SCATTER_LANE: _scatter,
    Gather.SCATTER_LANE_FAST: _scatter,
    Gather.MASK: _mask,
    Gather.MASK_FAST: _mask,
}
