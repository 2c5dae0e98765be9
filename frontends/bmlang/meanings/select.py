"""Selections (bmlang.md 4.8). Where a length depends on values, results are as long as they can be, with a count."""

from __future__ import annotations

import numpy as np

from bmcompiler.frontends.bmlang.emit import Emit
from bmcompiler.frontends.bmlang.meanings.arrange import axis_of
from bmcompiler.frontends.bmlang.meanings.registry import Call, Counted, meaning
from bmcompiler.frontends.bmlang.types import SelectType
from bmcompiler.ir import Value


def _fits(c: Call, value: Value, full: tuple[int, ...], name: str) -> Value:
    """A chosen tensor: of the shape of the condition, or one element. Raises ShapeError."""
    if value.shape != full and value.type.size != 1:
        raise c.wrong(f"{name} {list(value.shape)} must have the shape {list(full)} of the condition, or one element")
    return value


def _spread(e: Emit, value: Value, rank: int) -> Value:
    """A value of one element with as many axes as the others."""
    return e.reshape(value, (1,) * rank) if value.type.size == 1 and value.type.rank != rank else value


@meaning("condition_select")
def condition_select(e: Emit, c: Call) -> Value:
    """sel0 where cond > 0, else sel1."""
    cond = c["tensor_cond"]
    chosen = [_fits(c, c[name], cond.shape, name) for name in ("tensor_sel0", "tensor_sel1")]
    flags = e.op("compare", cond, e.full(0, cond.dtype, cond), method="greater")
    return e.op("where", flags, *(_spread(e, value, cond.type.rank) for value in chosen))


@meaning("select")
def select(e: Emit, c: Call) -> Value:
    """c where a > b (or a >= b), else d."""
    a, b, kind = c["tensor_a"], c["tensor_b"], c["select_type"]
    if kind == SelectType.UNKNOWN_SELECT_OP:
        raise c.wrong("select_type must be GREATER_THAN or GREATER_EQUAL")
    if a.type.rank != b.type.rank or any(x != y and 1 not in (x, y) for x, y in zip(a.shape, b.shape)):
        raise c.wrong(f"tensor_a {list(a.shape)} and tensor_b {list(b.shape)} do not broadcast")
    flags = e.op("compare", a, b, method="greater" if kind == SelectType.GREATER_THAN else "greater_equal")
    chosen = [_fits(c, c[name], flags.shape, name) for name in ("tensor_c", "tensor_d")]
    return e.op("where", flags, *(_spread(e, value, flags.type.rank) for value in chosen))


@meaning("lut")
def lut(e: Emit, c: Call) -> Value:
    """table[x & 255] (bmlang.md 6, row 18)."""
    table = c["table"]
    if table.type.size != 256:
        raise c.wrong(f"the table must have 256 entries, got {table.type.size}")
    return e.op("lut", c["tensor_i"], e.reshape(table, (256,)))


@meaning("index_select")
def index_select(e: Emit, c: Call) -> Value:
    """Slices of one axis."""
    x, index = c["tensor_i"], c["index"]
    if index.type.rank != 1:
        raise c.wrong(f"index must have one axis, got {list(index.shape)}")
    axis = axis_of(c, "dim", c["dim"], x.type.rank)
    known = e.known(index)
    if known is not None and known.size and not -x.shape[axis] <= known.min() <= known.max() < x.shape[axis]:
        raise c.wrong(f"index has numbers outside axis {axis} with {x.shape[axis]} elements")
    return e.op("gather", x, index, axis=axis)


# -- lengths that depend on values -------------------------------------------------------------------------------------
def counted(e: Emit, positions: Value) -> Counted:
    """Indices with -1 behind the last one, and how many there are."""
    first = positions
    if positions.type.rank > 1:  # rows of indices: the first of each
        rows = positions.shape[0]
        first = e.reshape(e.op("slice", positions, starts=(0, 0), ends=(rows, 1), steps=(1, 1)), (rows,))
    flags = e.op("compare", first, e.const(np.full(1, -1, first.type.numpy)), method="greater")
    count = e.op("reduce", e.cast(flags, "i32"), axes=(0,), method="sum", wrap=True)
    return Counted(positions, count)


@meaning("where")
def where(e: Emit, c: Call) -> Counted:
    """One row of indices per element that is not 0, one column per axis; -1 in rows that do not count."""
    columns = e.op("nonzero", c["tensor_i"])
    return counted(e, e.cast(e.op("permute", columns, order=(1, 0)), c.out))


@meaning("masked_select")
def masked_select(e: Emit, c: Call) -> Counted:
    """The elements whose mask is not 0, in row-major order, then zeros."""
    x, mask = c["tensor_i"], c["mask"]
    if mask.shape != x.shape:
        mask = e.op("tile", mask, reps=tuple(a // max(b, 1) for a, b in zip(x.shape, mask.shape)))
    size = x.type.size
    places = counted(e, e.reshape(e.op("nonzero", e.reshape(mask, (size,))), (size,)))
    at_end = e.op("compare", places.value, e.const(np.full(1, -1, np.int64)), method="greater")
    picked = e.op("gather", e.reshape(x, (size,)), places.value, axis=0)
    found = e.op("where", at_end, picked, e.const(np.zeros(1, x.type.numpy)))
    return Counted(found, places.length)
