"""Ops that move elements: reshapes, transposes, slices, pads, concatenation, repetition."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from bmcompiler.errors import FileFormatError, ShapeError
from bmcompiler.frontends.onnx.constants import axes_argument, expanded_dims, reshaped, squeezed_dims
from bmcompiler.frontends.onnx.node import Node, axis_of, choice
from bmcompiler.frontends.onnx.registry import Tensor, onnx_op
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder


def to_shape(b: Builder, x: Value, shape: Sequence[int]) -> Value:
    """A reshape, or the value itself where nothing changes."""
    if tuple(shape) == x.shape:
        return x
    return b.reshape(x, shape=tuple(shape))


@onnx_op("Reshape")
def reshape(node: Node, b: Builder) -> Value:
    wanted = node.constant_ints(1)
    if wanted is None:
        raise FileFormatError("the new shape (input 1) is missing")
    return to_shape(b, node.input(0), reshaped(node.shape(), wanted, node.flag("allowzero")))


@onnx_op("Flatten")
def flatten(node: Node, b: Builder) -> Value:
    shape, axis = node.shape(), node.int("axis", 1)
    axis = len(shape) if axis == len(shape) else axis_of(axis, len(shape))
    return to_shape(b, node.input(0), (prod(shape[:axis]), prod(shape[axis:])))


@onnx_op("Squeeze")
def squeeze(node: Node, b: Builder) -> Value:
    return to_shape(b, node.input(0), squeezed_dims(node.shape(), axes_argument(node, 13)))


@onnx_op("Unsqueeze")
def unsqueeze(node: Node, b: Builder) -> Value:
    return to_shape(b, node.input(0), expanded_dims(node.shape(), axes_argument(node, 13) or ()))


@onnx_op("Transpose")
def transpose(node: Node, b: Builder) -> Value:
    x, rank = node.input(0), node.rank()
    order = node.ints("perm", tuple(reversed(range(rank))))
    if order == tuple(range(rank)):
        return x
    return b.permute(x, order=order)


@onnx_op("Concat")
def concat(node: Node, b: Builder) -> Value:
    values = node.inputs()
    axis = axis_of(node.int("axis"), node.rank())
    return b.concat(*values, axis=axis) if len(values) > 1 else values[0]


@onnx_op("Split")
def split(node: Node, b: Builder) -> tuple[Tensor, ...]:
    x, pieces = node.input(0), len(node.proto.output)
    axis = axis_of(node.int("axis", 0), node.rank())
    sizes = _stated_sizes(node)
    if node.opset >= 18 and node.int("num_outputs", pieces) != pieces:
        raise FileFormatError(f"num_outputs {node.int('num_outputs')} differs from its {pieces} outputs")
    if sizes is None:
        sizes = _even(x.shape[axis], pieces, uneven=node.opset >= 18)
    if len(sizes) != pieces:
        raise FileFormatError(f"has {pieces} outputs for {len(sizes)} sizes")
    if pieces == 1 and sizes[0] == x.shape[axis]:
        return (x,)
    return tuple(b.create("split", [x], {"axis": axis, "sizes": sizes}).results)


def _stated_sizes(node: Node) -> tuple[int, ...] | None:
    if node.opset >= 13:
        return node.constant_ints(1)
    return node.ints("split") if node.has_attribute("split") else None


def _even(size: int, pieces: int, uneven: bool) -> tuple[int, ...]:
    """Equal pieces; from opset 18 on the last one may be smaller."""
    if size % max(pieces, 1) and not uneven:
        raise ShapeError(f"{size} elements cannot be split into {pieces} equal parts")
    each = -(-size // max(pieces, 1))
    return (*(each for _ in range(pieces - 1)), size - each * (pieces - 1))


# -- slices -------------------------------------------------------------------------
def slice_axes(b: Builder, x: Value, ranges: dict[int, tuple[int, int, int]]) -> Value:
    """Python's start, stop, step by axis (negative and out-of-range bounds allowed)."""
    starts, ends, steps = [0] * x.type.rank, list(x.shape), [1] * x.type.rank
    for axis, (start, stop, step) in ranges.items():
        if step == 0:
            raise ShapeError("a slice with step 0 has no end")
        start, stop, step = slice(start, stop, step).indices(x.shape[axis])
        if not range(start, stop, step):
            start, stop, step = 0, 0, 1
        starts[axis], ends[axis], steps[axis] = start, stop, step
    if starts == [0] * x.type.rank and tuple(ends) == x.shape and all(s == 1 for s in steps):
        return x
    return b.slice(x, starts=starts, ends=ends, steps=steps)


@onnx_op("Slice")
def slice_by_attributes(node: Node, b: Builder) -> Value:
    starts, ends = node.ints("starts"), node.ints("ends")
    axes = node.ints("axes", tuple(range(len(starts))))
    return _slice(node, b, axes, (starts, ends, (1,) * len(starts)))


@onnx_op("Slice", since=10)
def slice_by_inputs(node: Node, b: Builder) -> Value:
    starts, ends = node.constant_ints(1) or (), node.constant_ints(2) or ()
    axes, steps = node.constant_ints(3), node.constant_ints(4)
    chosen = tuple(range(len(starts))) if axes is None else axes
    return _slice(node, b, chosen, (starts, ends, (1,) * len(starts) if steps is None else steps))


def _slice(node: Node, b: Builder, axes: Sequence[int], bounds: Sequence[Sequence[int]]) -> Value:
    """`bounds`: starts, ends and steps, one entry per axis of `axes`."""
    if any(len(values) != len(axes) for values in bounds):
        raise FileFormatError("starts, ends, axes and steps differ in length")
    rank = node.rank()
    ranges = {axis_of(axis, rank): limits for axis, limits in zip(axes, zip(*bounds))}
    if len(ranges) != len(axes):
        raise FileFormatError(f"axes {list(axes)} name an axis twice")
    return slice_axes(b, node.input(0), ranges)


# -- pads ---------------------------------------------------------------------------
_PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}


@onnx_op("Pad")
def pad_by_attributes(node: Node, b: Builder) -> Value:
    return _pad(node, b, node.ints("pads"), tuple(range(node.rank())), node.float("value", 0.0))


@onnx_op("Pad", since=11)
def pad_by_inputs(node: Node, b: Builder) -> Value:
    axes = node.constant_ints(3) if node.opset >= 18 else None
    value = node.scalar(2)
    chosen = tuple(range(node.rank())) if axes is None else tuple(axis_of(a, node.rank()) for a in axes)
    return _pad(node, b, node.constant_ints(1) or (), chosen, 0.0 if value is None else float(value))


def _pad(node: Node, b: Builder, pads: Sequence[int], axes: Sequence[int], value: float) -> Value:
    """Negative pads cut; what remains is padded."""
    x, rank = node.input(0), node.rank()
    mode = _PAD_MODES[choice("mode", node.string("mode", "constant"), _PAD_MODES)]
    if len(pads) != 2 * len(axes) or len(set(axes)) != len(axes):
        raise FileFormatError(f"pads {list(pads)} need two entries for each of the axes {list(axes)}")
    before, after = dict(zip(axes, pads)), dict(zip(axes, pads[len(axes) :]))
    cuts = {
        axis: (max(0, -before[axis]), x.shape[axis] - max(0, -after[axis]), 1)
        for axis in axes
        if min(before[axis], after[axis]) < 0
    }
    if any(stop <= start for start, stop, _ in cuts.values()):
        raise ShapeError(f"pads {list(pads)} cut away all of {list(x.shape)}")
    x = slice_axes(b, x, cuts)
    widths = [max(0, side.get(axis, 0)) for axis in range(rank) for side in (before, after)]
    if not any(widths):
        return x
    if mode == "wrap":
        return _wrapped(b, x, widths[::2], widths[1::2])
    return b.pad(x, pads=widths, mode=mode, value=value if mode == "constant" else 0.0)


def _wrapped(b: Builder, x: Value, before: Sequence[int], after: Sequence[int]) -> Value:
    """The input repeated without end, cut so that `before` and `after` elements stand around it."""
    turns = [-(-n // d) for n, d in zip(before, x.shape)]
    reps = [1 + turn + -(-n // d) for turn, n, d in zip(turns, after, x.shape)]
    starts = [turn * d - n for turn, n, d in zip(turns, before, x.shape)]
    sizes = [n + d + m for n, d, m in zip(before, x.shape, after)]
    ranges = {axis: (start, start + size, 1) for axis, (start, size) in enumerate(zip(starts, sizes))}
    return slice_axes(b, b.tile(x, reps=reps), ranges)


# -- repetition ---------------------------------------------------------------------
@onnx_op("Tile")
def tile(node: Node, b: Builder) -> Value:
    x, reps = node.input(0), node.constant_ints(1) or ()
    return x if all(r == 1 for r in reps) and len(reps) == x.type.rank else b.tile(x, reps=reps)


@onnx_op("Expand")
def expand(node: Node, b: Builder) -> Value:
    """Two-way broadcasting to a shape: dimensions of 1 are repeated."""
    x, wanted = node.input(0), node.constant_ints(1) or ()
    rank = max(x.type.rank, len(wanted))
    have = (1,) * (rank - x.type.rank) + x.shape
    want = (1,) * (rank - len(wanted)) + tuple(wanted)
    if any(1 not in (h, w) and h != w for h, w in zip(have, want)) or min(want, default=1) < 1:
        raise ShapeError(f"{list(x.shape)} does not broadcast to {list(wanted)}")
    reps = tuple(w if h == 1 else 1 for h, w in zip(have, want))
    x = to_shape(b, x, have)
    return b.tile(x, reps=reps) if any(r != 1 for r in reps) else x


@onnx_op("DepthToSpace")
def depth_to_space(node: Node, b: Builder) -> Value:
    n, c, h, w, size = *_image(node), node.int("blocksize")
    mode = choice("mode", node.string("mode", "DCR"), ("DCR", "CRD"))
    if size < 1 or c % (size * size):
        raise ShapeError(f"{c} channels cannot be split into blocks of {size} x {size}")
    depth = c // (size * size)
    split_shape = (n, size, size, depth, h, w) if mode == "DCR" else (n, depth, size, size, h, w)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    out = b.permute(b.reshape(node.input(0), shape=split_shape), order=order)
    return to_shape(b, out, (n, depth, h * size, w * size))


@onnx_op("SpaceToDepth")
def space_to_depth(node: Node, b: Builder) -> Value:
    n, c, h, w, size = *_image(node), node.int("blocksize")
    if size < 1 or h % size or w % size:
        raise ShapeError(f"{h} x {w} cannot be split into blocks of {size} x {size}")
    order = (
        (0, 3, 5, 1, 2, 4)
        if choice("mode", node.string("mode", "DCR"), ("DCR", "CRD")) == "DCR"
        else (0, 1, 3, 5, 2, 4)
    )
    blocks = b.reshape(node.input(0), shape=(n, c, h // size, size, w // size, size))
    return to_shape(b, b.permute(blocks, order=order), (n, c * size * size, h // size, w // size))


def _image(node: Node) -> tuple[int, int, int, int]:
    if node.rank() != 4:
        raise ShapeError(f"input must have 4 axes, got {list(node.shape())}")
    n, c, h, w = node.shape()
    return n, c, h, w
