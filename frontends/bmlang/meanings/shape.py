"""Operators about shapes, and those that generate data (bmlang.md 4.11, 4.12)."""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.frontends.bmlang.emit import Emit
from bmcompiler.frontends.bmlang.fields import need_size, shown
from bmcompiler.frontends.bmlang.meanings.arrange import axis_of, ints
from bmcompiler.frontends.bmlang.meanings.registry import Call, meaning
from bmcompiler.ir import Value
from bmcompiler.ir.types import TensorType


@meaning("squeeze")
def squeeze(e: Emit, c: Call) -> Value:
    """Without axes of size 1."""
    x = c["tensor_i"]
    axes = {axis_of(c, "axis", axis, x.type.rank) for axis in c["axis"]}
    for axis in sorted(axes):
        if x.shape[axis] != 1:
            raise c.wrong(f"axis {axis} has {x.shape[axis]} elements, not 1")
    left = [size for axis, size in enumerate(x.shape) if (axis not in axes if axes else size != 1)]
    return e.reshape(x, left)


@meaning("expand_dims")
def expand_dims(e: Emit, c: Call) -> Value:
    """With axes of size 1."""
    x, p = c["tensor_i"], c["param"]
    axis = axis_of(c, "axis", p.axis, x.type.rank + 1)
    if p.ndims < 1:
        raise c.wrong(f"ndims must be 1 or more, got {p.ndims}")
    return e.reshape(x, (*x.shape[:axis], *(1,) * p.ndims, *x.shape[axis:]))


@meaning("reshape", "reshape_v2")
def reshape(e: Emit, c: Call) -> Value:
    """0 keeps the size of an axis, -1 takes what is left."""
    x = c["tensor_i"]
    wanted = ints(e, c, "reshape_param" if c.name == "reshape" else "shape_info")
    if wanted.count(-1) > 1 or min(wanted, default=0) < -1 or any(not s and i >= x.type.rank for i, s in _at(wanted)):
        raise c.wrong(f"{shown(list(wanted))} is no shape for {list(x.shape)}")
    sizes = [x.shape[i] if size == 0 else size for i, size in _at(wanted)]
    if -1 in sizes:
        known = prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = x.type.size // known if known else 0
    return e.reshape(x, sizes)


def _at(sizes: tuple[int, ...]) -> list[tuple[int, int]]:
    return list(enumerate(sizes))


@meaning("shape_fetch")
def shape_fetch(e: Emit, c: Call) -> Value:
    """Sizes of axes begin up to and without end: constants, because shapes are static."""
    shape, p = c["tensor_i"].shape, c["param"]
    if not (0 <= p.begin_axis <= p.end_axis <= len(shape) and p.step >= 1):
        raise c.wrong(f"{p.begin_axis}:{p.end_axis}:{p.step} are no axes of {list(shape)}")
    return e.const(np.array(shape[p.begin_axis : p.end_axis : p.step], np.int32))


@meaning("number_like")
def number_like(e: Emit, c: Call) -> Value:
    """A constant in the shape of another tensor."""
    kind = TensorType((), c.out).numpy
    return e.const(np.full(c["tensor_like"].shape, c["scalar_i"].value, kind))


@meaning("sequence_gen")
def sequence_gen(e: Emit, c: Call) -> Value:
    """0, 1, 2, ... in row-major order."""
    shape = ints(e, c, "shape_tensor")
    if min(shape, default=0) < 0:
        raise c.wrong(f"{list(shape)} is no shape")
    need_size(shape)
    return e.const(np.arange(prod(shape)).reshape(shape).astype(TensorType((), c.out).numpy))
