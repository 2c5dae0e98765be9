"""Sums of products of bytes that a chip's matrix unit ends in another way than the op says: they are summed in float32.

Integers below 2**24 are float32 numbers, and so are all partial sums of products whose magnitudes stay below it,
in whatever order they are added. What comes behind the sums is integers and float32 of the op's own definition
(`bmcompiler.numeric.quant_modes`), step by step.
"""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.ir import TensorType, Value
from bmcompiler.numeric import quant_modes
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.quant_modes import ASYMMETRIC, HIGH, LOW, MODES, Rescale
from bmcompiler.ops.layers.nn import Conv, Deconv, Matmul
from bmcompiler.ops.modes import Products, corrected_bias
from bmcompiler.passes.rewriting import make
from bmcompiler.passes.support.decompositions.base import Draft, legalizes

_EXACT = 1 << 24
_BIAS = 1 << 16
"""Room for a bias of 16 bits."""
_BEYOND = float(1 << 20)
"""Beyond any integer of a result and a zero point: where it ends changes nothing."""
_MOST_PARTS = 64
"""Sums of one op; beyond that it is no longer worth a layer each."""
_LARGEST = {"i8": 128, "u8": 255}
_MOST_MULTIPLIER = 255
"""Of the mode low: a byte times more than that needs more than 16 bits."""

Product = Conv | Deconv | Matmul


@legalizes(Conv, Deconv, Matmul, integers=True)
def bytes_summed_in_float(op: Products, draft: Draft) -> Value | None:
    """Bytes in a mode low, high or asymmetric: exact sums in float32, then the steps behind.

    Weights are constant, but those of a matrix product in the first two modes.
    """
    assert isinstance(op, Product), "it is declared for these three"
    data, bias = op.operands[0], op.bias
    constant = draft.constant(op.operands[1])
    numbers = draft.constant(bias)
    if op.mode not in MODES or (bias is not None and numbers is None) or op.type.quant is not None:
        return None
    if op.mode == ASYMMETRIC and op.operands[1].type.rank > 2 and isinstance(op, Matmul):
        return None
    if constant is None and (op.mode == ASYMMETRIC or not isinstance(op, Matmul)):
        return None
    factor = quant_modes.rescale(op.scale, floor=isinstance(op, Conv) and op.mode == ASYMMETRIC)
    if op.mode == LOW and factor.multiplier > _MOST_MULTIPLIER:
        return None
    x = draft.emit("cast", [data], dtype="f32")
    if op.mode == ASYMMETRIC:
        assert constant is not None, "the lines above looked"
        return _asymmetric(op, draft, x, constant, numbers, factor)
    weight = draft.emit("cast", [op.operands[1]], dtype="f32") if constant is None else constant
    return _symmetric(op, draft, x, weight, numbers, factor)


def _symmetric(
    op: Product, draft: Draft, x: Value, weight: Array | Value, bias: Array | None, factor: Rescale
) -> Value | None:
    """The modes low and high."""
    wide = op.mode == HIGH and bias is not None and bias.dtype.itemsize > 2
    total = _sums(op, draft, x, weight, None if wide else bias)
    if total is None:
        return None
    if op.mode == LOW:
        narrow = _typed(draft, "round_rshift", [total], op.type.dtype, rshift=factor.shift)
        if factor.residual == 1.0:
            return narrow
        return _typed(draft, "muls_shift", [narrow], op.type.dtype, multiplier=factor.multiplier, rshift=7)
    part = _typed(draft, "round_rshift", [total], "i16", rshift=factor.shift)
    return draft.emit("cast", [_rescaled(op, draft, part, factor, bias if wide else None)], dtype=op.type.dtype)


def _asymmetric(
    op: Product, draft: Draft, x: Value, weight: Array, bias: Array | None, factor: Rescale
) -> Value | None:
    """The mode asymmetric: padding counts as the zero point of the input."""
    of_input, of_weight, of_output = op.zero_points
    pads = None
    if isinstance(op, Conv) and of_input and any(op.pads):
        x = draft.emit("pad", [x], pads=(0, 0, 0, 0, *op.pads), value=float(of_input))
        pads = (0, 0, 0, 0)
    total = _sums(op, draft, x, weight, pads=pads)
    if total is None:
        return None
    part = _typed(draft, "round_rshift", [total], "i16", rshift=factor.shift)
    if of_weight:
        crossed = _sums(op, draft, x, np.full_like(weight, of_weight), pads=pads)
        if crossed is None:
            return None
        part = draft.emit("sub", [part, _typed(draft, "round_rshift", [crossed], "i16", rshift=factor.shift)])
    axes = -2 if isinstance(op, Matmul) else (1, 2, 3)
    oriented = weight.swapaxes(-1, -2) if isinstance(op, Matmul) and op.transpose_right else weight
    moved = corrected_bias(op, oriented, bias, lambda w: w.sum(axes))
    real = _rescaled(op, draft, part, factor, moved)
    if of_output:
        inside = draft.emit("clip", [real], min=-_BEYOND, max=_BEYOND)
        whole = draft.emit("cast", [draft.emit("cast", [inside], dtype="i32")], dtype="f32")
        point = np.full((1,) * op.type.rank, of_output, np.float32)
        real = draft.emit("add", [whole, draft.weight(point, "point")])
    return draft.emit("cast", [real], dtype=op.type.dtype)


def _rescaled(op: Product, draft: Draft, part: Value, factor: Rescale, bias: Array | None) -> Value:
    """fl(part * r) + fl(fl(bias) * s), in float32."""
    real = draft.emit("cast", [part], dtype="f32")
    one = np.full((1,) * op.type.rank, factor.residual, np.float32)
    real = draft.emit("mul", [real, draft.weight(one, "residual")])
    if bias is None or not bias.any():
        return real
    steps = bias.astype(np.float32) * np.float32(factor.scale)
    return draft.emit("add", [real, draft.weight(_beside(op, steps), "bias")])


def _beside(op: Product, numbers: Array) -> Array:
    """One number per output channel, shaped to broadcast against the result."""
    return numbers.reshape((*(1,) * (op.type.rank - 1), -1) if isinstance(op, Matmul) else (1, -1, 1, 1))


def _typed(draft: Draft, name: str, operands: list[Value], dtype: str, **attributes: int) -> Value:
    op = make(name, operands, attributes, [TensorType(operands[0].shape, dtype)], draft.op.location)
    return draft.add(op).result


def _sums(
    op: Product,
    draft: Draft,
    x: Value,
    weight: Array | Value,
    bias: Array | None = None,
    pads: tuple[int, ...] | None = None,
) -> Value | None:
    """The exact sums in i32, of as many input channels at once as float32 holds; None where that is too few.

    weight: its integers, or f32 where they are computed.
    """
    kept = {name: getattr(op, name) for name in _kept(op)} | ({} if pads is None else {"pads": pads})
    rank = len(weight.shape)
    axis, depth_axis = (x.type.rank - 1, rank - 1) if isinstance(op, Matmul) else (1, 1)
    if isinstance(op, Matmul):
        depth_axis = rank - 1 if op.transpose_right else rank - 2
        axis = x.type.rank - 2 if op.transpose_left else axis
    elif isinstance(op, Deconv):
        depth_axis = 0
    depth, taps = weight.shape[depth_axis], 1 if isinstance(op, Matmul) else prod(weight.shape[2:])
    most = _LARGEST[op.operands[1].dtype] if isinstance(weight, Value) else int(abs(weight.astype(np.int32)).max())
    largest = _LARGEST[op.operands[0].dtype] * most * taps
    at_once = (_EXACT - _BIAS) // max(1, largest)
    groups = 1 if isinstance(op, Matmul) else op.group
    within = depth // groups if isinstance(op, Deconv) else depth
    if not at_once or (within > at_once and (groups > 1 or -(-depth // at_once) > _MOST_PARTS)):
        return None
    total = None
    for first in range(0, depth, at_once if groups == 1 else depth):
        last = min(first + at_once, depth) if groups == 1 else depth
        part = _cut(draft, x, axis, first, last) if groups == 1 else x
        if isinstance(weight, Value):
            taken = _cut(draft, weight, depth_axis, first, last)
        else:
            taken = draft.weight(np.take(weight, range(first, last), depth_axis).astype(np.float32), "weight")
        begun = None if bias is None or first else draft.weight(bias.astype(np.float32), "bias")
        sums = draft.emit(op.opname, [part, taken, begun], **kept)
        sums = draft.emit("cast", [sums], dtype="i32")
        total = sums if total is None else draft.emit("add", [total, sums], wrap=True)
    return total


def _kept(op: Product) -> tuple[str, ...]:
    """Attributes of the op that its sums have, too."""
    if isinstance(op, Matmul):
        return ("transpose_left", "transpose_right")
    return ("strides", "pads", "dilations", "group", *(("output_pads",) if isinstance(op, Deconv) else ()))


def _cut(draft: Draft, x: Value, axis: int, first: int, last: int) -> Value:
    if (first, last) == (0, x.shape[axis]):
        return x
    starts, ends = [0] * x.type.rank, list(x.shape)
    starts[axis], ends[axis] = first, last
    return draft.emit("slice", [x], starts=tuple(starts), ends=tuple(ends), steps=(1,) * x.type.rank)
