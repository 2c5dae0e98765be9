"""Operators on every stride-th element of their operands (bmlang.md 4.6)."""

from __future__ import annotations

from bmcompiler.frontends.bmlang.emit import Emit
from bmcompiler.frontends.bmlang.meanings.elements import binary
from bmcompiler.frontends.bmlang.meanings.registry import Call, meaning
from bmcompiler.ir import Value

_TWO = ("add", "sub", "mul", "div", "max", "min")


def _sampled(e: Emit, c: Call, x: Value, full: tuple[int, ...]) -> Value:
    """Elements offset, offset + stride, ... of every axis that does not broadcast to `full`."""
    rank = x.type.rank
    strides = c["stride"]
    offsets = c["offset"] if "offset" in c.arguments else (0,) * rank
    if len(strides) != rank or len(offsets) != rank:
        raise c.wrong(f"stride and offset need one entry per axis: {rank}")
    repeated = [size == 1 and whole != 1 for size, whole in zip(x.shape, full)]
    for axis, (size, stride, offset) in enumerate(zip(x.shape, strides, offsets)):
        if not repeated[axis] and not (stride >= 1 and 0 <= offset < max(size, 1)):
            raise c.wrong(f"axis {axis} with {size} elements has no offset {offset} and stride {stride}")
    starts = [0 if skip else offset for skip, offset in zip(repeated, offsets)]
    steps = [1 if skip else stride for skip, stride in zip(repeated, strides)]
    if not any(starts) and all(step == 1 or size <= 1 for step, size in zip(steps, x.shape)):
        return x
    return e.op("slice", x, starts=tuple(starts), ends=x.shape, steps=tuple(steps))


@meaning(*(f"stride_{name}{offset}" for name in _TWO for offset in ("", "_offset")))
def two(e: Emit, c: Call) -> Value:
    """Arithmetic on the sampled operands."""
    a, b = c["tensor_i0"], c["tensor_i1"]
    full = tuple(max(x, y) for x, y in zip(a.shape, b.shape))
    name = c.name.removeprefix("stride_").removesuffix("_offset")
    return binary(e, name, _sampled(e, c, a, full), _sampled(e, c, b, full), c.out)


@meaning("stride_cpy", "stride_cpy_offset")
def sampled_copy(e: Emit, c: Call) -> Value:
    """The sampled elements."""
    x = c["tensor_i"]
    return _sampled(e, c, x, x.shape)
