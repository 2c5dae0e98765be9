"""Operators that arrange data; the `_v2` forms take their parameters from tensors (bmlang.md 4.7)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from bmcompiler.frontends.bmlang.emit import Emit
from bmcompiler.frontends.bmlang.fields import shown
from bmcompiler.frontends.bmlang.meanings.registry import Call, Results, meaning
from bmcompiler.frontends.bmlang.types import PadType
from bmcompiler.ir import Value

_PAD_MODES = {
    PadType.PAD_CONSTANT: "constant",
    PadType.PAD_REFLECT: "reflect",
    PadType.PAD_SYMMETRIC: "symmetric",
    PadType.PAD_EDGE: "edge",
}


def ints(e: Emit, c: Call, name: str, count: int | None = None) -> tuple[int, ...]:
    """A list of integers: as it is given, or the numbers of a tensor with one axis. Raises ShapeError."""
    given = c[name]
    if isinstance(given, Value):
        if given.type.rank != 1:
            raise c.wrong(f"{name} must have one axis, got {list(given.shape)}")
        given = e.numbers(given, name)
    if count is not None and len(given) != count:
        raise c.wrong(f"{name} needs {count} numbers, got {len(given)}")
    return tuple(given)


def axis_of(c: Call, name: str, axis: int, rank: int) -> int:
    """An axis counted from the front. Raises ShapeError."""
    if not -rank <= axis < rank:
        raise c.wrong(f"{name} {axis} does not exist in a tensor of {rank} axes")
    return axis % rank


@meaning("permute")
def permute(e: Emit, c: Call) -> Value:
    """Axis d of the result is axis order[d]."""
    x = c["tensor_i"]
    return e.op("permute", x, order=tuple(axis_of(c, "axis", axis, x.type.rank) for axis in c["order"]))


@meaning("tile", "tile_v2", "broadcast")
def tile(e: Emit, c: Call) -> Value:
    """The tensor repeated along each axis."""
    x = c["tensor_i"]
    reps = ints(e, c, "times" if c.name == "broadcast" else "reps", x.type.rank)
    return e.op("tile", x, reps=reps)


@meaning("extract", "extract_v2")
def extract(e: Emit, c: Call) -> Value:
    """A strided slice."""
    x = c["tensor_i"]
    starts, ends, steps = (ints(e, c, name, x.type.rank) for name in ("start", "end", "stride"))
    for axis, (size, start, end, step) in enumerate(zip(x.shape, starts, ends, steps)):
        if not (step >= 1 and 0 <= start <= end <= size):
            raise c.wrong(f"{start}:{end}:{step} is no range of axis {axis} with {size} elements")
    return e.op("slice", x, starts=starts, ends=ends, steps=steps)


@meaning("interleave")
def interleave(e: Emit, c: Call) -> Value:
    """Blocks of `step` elements of both, in turn."""
    a, b, step = c["tensor_i0"], c["tensor_i1"], c["step"]
    axis = axis_of(c, "axis", c["axis"], a.type.rank)
    size = a.shape[axis]
    if step < 1 or size % step:
        raise c.wrong(f"step {step} does not divide the {size} elements of axis {axis}")
    blocks = (prod(a.shape[:axis]) * (size // step), 1, step * prod(a.shape[axis + 1 :]))
    joined = e.op("concat", e.reshape(a, blocks), e.reshape(b, blocks), axis=1)
    return e.reshape(joined, (*a.shape[:axis], 2 * size, *a.shape[axis + 1 :]))


@meaning("concat")
def concat(e: Emit, c: Call) -> Value:
    """The tensors one after the other."""
    return e.op("concat", *c["tensor_i"], axis=axis_of(c, "axis", c["axis"], c["tensor_i"][0].type.rank))


@meaning("split")
def split(e: Emit, c: Call) -> Results:
    """Pieces of the given sizes, or equal ones."""
    x, number = c["tensor_i"], c["num"]
    axis = axis_of(c, "axis", c["axis"], x.type.rank)
    sizes = c["size"] or (x.shape[axis] // max(number, 1),) * number
    if number < 1 or len(sizes) != number or len(c.outs) != number or min(sizes) < 0 or sum(sizes) != x.shape[axis]:
        raise c.wrong(
            f"the {x.shape[axis]} elements of axis {axis} cannot be split in {number} pieces of {shown(list(sizes))} "
            f"for {len(c.outs)} tensors"
        )
    return e.results("split", x, axis=axis, sizes=sizes)


@meaning("pad", "pad_v2")
def pad(e: Emit, c: Call) -> Value:
    """Elements before and after each axis."""
    x, number = c["tensor_i"], c["pad_val"].value
    widths = ints(e, c, "paddings", 2 * x.type.rank)
    if x.type.is_integer and number != int(number):
        raise c.wrong(f"pad_val must be a whole number for integers, got {number}")
    return e.op("pad", x, pads=widths, mode=_PAD_MODES[c["pad_mode"]], value=float(number))


def _blocks(e: Emit, c: Call, border: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(block, pad or crop) of the operators on phases."""
    if c["tensor_i"].type.rank != 4:
        raise c.wrong(f"tensor_i needs 4 axes, got {list(c['tensor_i'].shape)}")
    block, around = ints(e, c, "block_size", 2), ints(e, c, border, 4)
    if min(block) < 1 or min(around) < 0:
        raise c.wrong(f"block_size must be 1 or more and {border} 0 or more, got {list(block)} and {list(around)}")
    return block, around


@meaning("space_to_batch", "space_to_batch_v2")
def space_to_batch(e: Emit, c: Call) -> Value:
    """Phase (i, j) of image n becomes image (i * b1 + j) * N + n, after zero padding."""
    x = c["tensor_i"]
    (down, across), around = _blocks(e, c, "pad")
    if any(around):
        x = e.op("pad", x, pads=(0, 0, 0, 0, *around))
    n, channels, height, width = x.shape
    if height % down or width % across:
        raise c.wrong(f"{height} x {width} padded pixels are no blocks of {down} x {across}")
    apart = e.reshape(x, (n, channels, height // down, down, width // across, across))
    phases = e.op("permute", apart, order=(3, 5, 0, 1, 2, 4))
    return e.reshape(phases, (down * across * n, channels, height // down, width // across))


@meaning("batch_to_space", "batch_to_space_v2")
def batch_to_space(e: Emit, c: Call) -> Value:
    """The way back, then cropped."""
    x = c["tensor_i"]
    (down, across), crop = _blocks(e, c, "crop_size")
    n, channels, height, width = x.shape
    if n % (down * across):
        raise c.wrong(f"{n} images are no blocks of {down} x {across}")
    apart = e.reshape(x, (down, across, n // (down * across), channels, height, width))
    joined = e.op("permute", apart, order=(2, 3, 4, 0, 5, 1))
    full = e.reshape(joined, (n // (down * across), channels, height * down, width * across))
    return _cropped(e, c, full, crop) if any(crop) else full


def _cropped(e: Emit, c: Call, x: Value, crop: Sequence[int]) -> Value:
    top, bottom, left, right = crop
    n, channels, height, width = x.shape
    if top + bottom > height or left + right > width:
        raise c.wrong(f"crop_size {list(crop)} is more than the {height} x {width} pixels")
    return e.op(
        "slice",
        x,
        starts=(0, 0, top, left),
        ends=(n, channels, height - bottom, width - right),
        steps=(1, 1, 1, 1),
    )
