"""The integer end of conv, deconv and matmul: a rounding shift, a mode of `quant_modes`, or a factor per channel.

What an op brings: its exact integer sums of products, with padding that counts as a given zero point. The attributes,
their rules and everything behind the sums are the same for the three ops.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bmcompiler.numeric import arith, factors, quant_modes
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.by_block import by_block
from bmcompiler.numeric.exact_sums import HELD, floor_shifted, is_held, peak, requantized
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.numeric.quant_modes import ASYMMETRIC, HIGH, LOW, MODES
from bmcompiler.ops.base import Ints, attr
from bmcompiler.ops.shared import BYTES, NARROW, Activated, need_dtype, need_same_dtype, need_shift

_BIAS = {"": ("i16", "u16", "i32"), LOW: ("i16", "u16"), HIGH: ("i16", "u16", "i32", "f32")}
_BIAS |= {ASYMMETRIC: _BIAS[HIGH], CHANNEL: ("i16", "i32", "f32")}
_RESULT = {"": (*NARROW, "i32"), LOW: BYTES, HIGH: NARROW, ASYMMETRIC: NARROW, CHANNEL: ("i8", "u8", "i16")}
WITH_ZERO_POINTS = (ASYMMETRIC, CHANNEL)

HALVES = ("f16", "bf16")
_FACTORS = 3
"""Place of the factors among the operands, behind data, weight and bias."""

Sums = Callable[[Array, Array, int], Array]
"""(data, weight, value of padding) -> new exact sums of products, integers or held by float32 (`exact_sums`)."""


class Products(Activated):
    """Base of sums of products whose integer form ends by a mode.

    mode "": saturate(round_shift(sum + bias, rshift)). "low", "high", "asymmetric": `quant_modes` with `scale`;
    zero_points (input, weight, output) belong to the asymmetric mode and to
    "channel": saturate(round(total * multiplier[o] / 2**shift[o]) + offset[o] + output), halves to even
    (`numeric.factors`), where total = saturate32(sum(x * (w - weight)) + saturate32(bias[o] - input * sum(w -
    weight))), padding counted as `input`; with `narrow` it becomes saturate16(round_shift(total, rshift)). The operand
    `factors` has a row (multiplier, shift) or (multiplier, shift, offset) for each output channel o, or one for all,
    without offset. With a bias of f32, in steps of the result, and factors of f32, a row (factor) for each channel, it
    is saturate(round(fl(fl(fl(total) * factor[o]) + bias[o]))), total = sum(x * w): zero points are in the bias,
    and that of the input only tells what padding counts as, which is 0 where `narrow`. There are no zero points with
    factors of i16, a row (shift) for each channel: it is saturate(floor(total / 2**shift[o])) of a narrow total, which
    has 16 unsigned bits where the result is unsigned.
    """

    rshift = attr(int, 0)
    mode = attr(str, "")
    scale = attr(float, 0.0)
    zero_points = attr(Ints, ())
    narrow = attr(bool, False)
    saturates = True


def check_quantized(op: Products) -> None:
    """Element types and attributes of sums of products (data, weight, optional bias).

    Float form: one float type throughout, but that a bias of 16-bit floats may be f32, which the sums are; no attribute
    of `Products`. Integer form: i8 or u8 data and weight.
    Bias and result: i16, u16 or i32 and any integer type of 8 to 32 bits for a plain shift (bm1880.md 8.2); by mode
    (bmlang.md 3.2) a bias of 16 bits, also i32 and f32 for high and asymmetric, a result of 8 bits, for those two also
    16.
    """
    if op.operands[0].type.is_float:
        data, weight, *bias = op.operands
        single = bias[:1] if data.dtype in HALVES and bias and bias[0].dtype == "f32" else []
        need_same_dtype(op, [data, weight, *bias[len(single) :], op.result])
        if op.rshift or op.mode or op.scale or op.zero_points or op.narrow or len(op.operands) > _FACTORS:
            raise op.invalid(
                "rshift, mode, scale, zero_points, narrow, factors belong to the integer form, the operands are floats"
            )
        return
    if op.mode and op.mode not in (*MODES, CHANNEL):
        raise op.invalid(f"mode must be empty or one of {', '.join((*MODES, CHANNEL))}, got {op.mode!r}")
    _check_factors(op)
    need_dtype(op, "data", op.operands[0], BYTES)
    need_dtype(op, "weight", op.operands[1], BYTES)
    if len(op.operands) > 2:
        need_dtype(op, "bias", op.operands[2], _BIAS[op.mode])
    need_dtype(op, "the result", op.result, _RESULT[op.mode])
    need_shift(op, op.rshift)
    if not op.mode and (op.scale or op.zero_points or op.narrow):
        raise op.invalid("scale, zero_points and narrow belong to a mode (low, high, asymmetric or channel)")
    if op.mode:
        _check_mode(op)


def _check_factors(op: Products) -> None:
    """Mode channel, and no other, has all four operands."""
    if (op.mode == CHANNEL) != (len(op.operands) > _FACTORS):
        raise op.invalid("mode channel needs a bias and factors, and no other mode has factors")
    if op.mode != CHANNEL:
        return
    value, real = op.operands[_FACTORS], op.operands[2].type.is_float
    need_dtype(op, "factors", value, ("f32",) if real else ("i32", "i16"))
    channels = op.operands[2].type.size
    if value.dtype == "i16":
        if any(op.zero_points) or not op.narrow or value.shape != (channels, 1):
            raise op.shape_error(f"factors of i16 must have shape [{channels}, 1], zero_points be 0, and sums narrow")
        return
    if real and (any(op.zero_points[0 if op.narrow else 1 :]) or value.shape != (channels, 1)):
        raise op.shape_error(
            f"with a bias of f32 factors must have shape [{channels}, 1], zero_points be 0; where sums are not narrow "
            "that of the input may be what padding counts as"
        )
    if not real and value.shape not in ((channels, 2), (channels, 3), (1, 2)):
        raise op.shape_error(
            f"factors must have shape [{channels}, 2], [{channels}, 3] or [1, 2], got {list(value.shape)}"
        )


def _check_mode(op: Products) -> None:
    if op.narrow and op.mode != CHANNEL:
        raise op.invalid(f"narrow belongs to the mode channel, the mode is {op.mode}")
    if op.rshift and not op.narrow:
        raise op.invalid(f"mode {op.mode} takes its shift from scale; rshift must be 0, got {op.rshift}")
    if op.mode == CHANNEL:
        if op.scale:
            raise op.invalid("mode channel takes its scales from the operand factors; scale must be 0")
    else:
        try:
            quant_modes.rescale(op.scale)
        except ValueError as error:
            raise op.invalid(str(error)) from None
    if op.mode not in WITH_ZERO_POINTS:
        if op.zero_points:
            raise op.invalid(f"zero_points belong to the modes asymmetric and channel, the mode is {op.mode}")
        return
    if op.mode == CHANNEL and not op.zero_points:
        return
    if len(op.zero_points) != 3:
        raise op.invalid(f"zero_points needs three numbers (input, weight, output), got {len(op.zero_points)}")
    for what, value, point in zip(("input", "weight", "output"), (*op.operands[:2], op.result), op.zero_points):
        limits = np.iinfo(value.type.numpy)
        if not limits.min <= point <= limits.max:
            raise op.invalid(f"the {what} zero point must fit {value.dtype}, got {point}")


def requantize_products(
    op: Products,
    sums: Sums,
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    over_depth: Callable[[np.ndarray], np.ndarray],
    rows: np.ndarray | None = None,
) -> np.ndarray:
    """The integer result of `op` by its mode.

    Args:
        sums: the products of the op. bias: integers or f32, shaped to broadcast against them, or None.
        over_depth: sums the weights behind each output channel, shaped like the bias.
        rows: the operand `factors`.
    """
    if op.mode == ASYMMETRIC:
        return _asymmetric(op, sums, x, weight, bias, over_depth)
    if op.mode == CHANNEL:
        assert bias is not None and rows is not None, "mode channel has a bias and factors (`_check_factors`)"
        return _channel(op, sums, x, weight, bias, over_depth, rows)
    factor = quant_modes.rescale(op.scale) if op.mode else None

    def end(total: Array, bias: Array | None) -> Array:
        if factor is None:
            return requantized(total, bias, op.rshift, op.type.dtype)
        return (quant_modes.low if op.mode == LOW else quant_modes.high)(total, factor, op.type.dtype, bias)

    return by_block(end, op.type.numpy, sums(x, weight, 0), bias)


def _asymmetric(
    op: Products,
    sums: Sums,
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    over_depth: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Padding counts as the zero point of the input; only so bias2 is one number per channel (bmlang.md 3.3)."""
    of_input, of_weight, of_output = op.zero_points
    crossed = sums(x, _one_channel(op, weight, of_weight), of_input) if of_weight else None
    bias2 = corrected_bias(op, weight, bias, over_depth)
    factor = quant_modes.rescale(op.scale, floor=op.opname == "conv")

    def end(total: Array, bias2: Array, crossed: Array | None) -> Array:
        return quant_modes.asymmetric(total, crossed, factor, op.type.dtype, bias2, of_output)

    return by_block(end, op.type.numpy, sums(x, weight, of_input), bias2, crossed)


def _one_channel(op: Products, weight: np.ndarray, value: int) -> np.ndarray:
    """Weights that are all `value`, for one output channel where all have the same sums."""
    if op.opname != "conv":
        return np.full_like(weight[..., :1], value)
    return np.full_like(weight[:1] if op.attributes.get("group", 1) == 1 else weight, value)


def _channel(
    op: Products,
    sums: Sums,
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray,
    over_depth: Callable[[np.ndarray], np.ndarray],
    rows: np.ndarray,
) -> np.ndarray:
    of_input, of_weight, of_output = op.zero_points or (0, 0, 0)
    if bias.dtype.kind == "f":

        def end_of_reals(total: Array, factor: Array, bias: Array) -> Array:
            total = requantized(total, None, op.rshift, "i16") if op.narrow else total
            return factors.requantize_real(total, factor, bias, op.type.dtype)

        return by_block(end_of_reals, op.type.numpy, sums(x, weight, of_input), rows.reshape(bias.shape), bias)
    centred = weight.astype(np.int16) - of_weight if of_weight else weight
    corrected = arith.saturate(corrected_bias(op, weight, bias, over_depth), "i32")
    shifts = rows.dtype == np.int16
    shape = (-1, *bias.shape[1:]) if len(rows) > 1 else ()
    columns = [factors.shifts(rows).reshape(shape)] if shifts else [column.reshape(shape) for column in rows.T]
    narrow = "u16" if shifts and op.type.dtype == "u8" else "i16"

    def end(total: Array, bias: Array, first: Array, *others: Array) -> Array:
        if op.narrow and is_held(total) and peak(bias) <= HELD:  # the sum fits i32, too
            total = requantized(total, bias, op.rshift, narrow)
        else:
            total = requantized(total.astype(np.int64), bias, 0, "i32")
            total = arith.requantize(total, op.rshift, narrow) if op.narrow else total
        if shifts:
            return floor_shifted(total, first, op.type.dtype)
        return factors.requantize(total, first, others[0], op.type.dtype, of_output + sum(others[1:]))

    return by_block(end, op.type.numpy, sums(x, centred, of_input), corrected, *columns)


def corrected_bias(
    op: Products, weight: np.ndarray, bias: np.ndarray | None, over_depth: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """bias2 of the modes with zero points: bias - zp_x * sum(w - zp_w), as integers or, with a bias of floats, as f32.

    Args: as `requantize_products`.
    """
    of_input, of_weight, _ = op.zero_points or (0, 0, 0)
    offset = of_input * over_depth(weight.astype(np.int64) - of_weight)
    if bias is None:
        return -offset
    if bias.dtype.kind == "f":
        return (bias.astype(np.float64) - offset).astype(np.float32)
    return bias.astype(np.int64) - offset
