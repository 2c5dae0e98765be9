"""Conversions between floats and integers."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from bmcompiler.backends.lanes.kernels.base import item_bytes
from bmcompiler.backends.lanes.kernels.functions.elementwise import ElementwiseKernel
from bmcompiler.backends.lanes.kernels.moves.slots import floats_of_slots, slots_of_floats, through_global
from bmcompiler.backends.lanes.recipes import Recorder, Register
from bmcompiler.backends.lanes.recipes.powers import quotient
from bmcompiler.backends.lanes.recipes.rounding import (
    float_of_half,
    int_to_float,
    low_bits,
    quantize,
    round_away_to_int,
    round_small,
    zero_for_nan,
)
from bmcompiler.backends.lanes.recipes.words import LOADABLE, NARROW, as_float, as_int, limits, not_zero, saturated
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.tiling import Box, TileWork
from bmcompiler.ir import TensorType, Value
from bmcompiler.ir.types import DTYPES
from bmcompiler.numeric.quant_modes import ASYMMETRIC, HIGH
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.elements.linear_quant import Dequantize, DequantizeLinear, LinearQuant, Quantize, QuantizeLinear
from bmcompiler.ops.modes import Products
from bmcompiler.target import OpT, rule

_FAR = float(1 << 20)
_SIGN = 128
"""What makes signed bytes unsigned."""


class SlotKernel(ElementwiseKernel[OpT]):
    """Base: where small integers of several images share words, they may be converted inside local memory.

    Else tiles of one element per word pass through global memory, for which any view of the elements is good.
    """

    def narrow(self, op: OpT) -> Value:
        """The operand or result that is small integers."""
        raise TypeError(f"{type(self).__name__} converts nothing")

    def in_slots(self, op: OpT, box: Box) -> TileWork | None:
        """A box of the result from words that images share, or as such words; None where there are none."""
        raise TypeError(f"{type(self).__name__} converts nothing")

    def whole(self, op: OpT) -> TileWork | None:
        apart = super().whole(op)
        if op.type.rank != 4:
            return apart
        shared = self.in_slots(op, tuple((0, size) for size in op.type.shape))
        if shared is None or apart is None:
            return shared or apart
        passed = apart.cycles + through_global(self.machine, self.narrow(op))
        return shared if shared.cycles < passed else apart

    def boxed(self, op: OpT, box: Box) -> TileWork | None:
        return self.in_slots(op, box) or super().boxed(op, box)


class QuantizeKernel(SlotKernel[Quantize]):
    """quantize by a scale: the product with its inverse, clamped, rounded half to even or away from zero."""

    ops = (Quantize,)

    def narrow(self, op: Quantize) -> Value:
        return op.result

    def in_slots(self, op: Quantize, box: Box) -> TileWork | None:
        low, (recipe, *arguments) = None, self.recipe(op)
        if recipe is _quantize_even:
            low = self.machine.recorded(recipe, 1, *arguments, _SIGN if op.type.dtype == "i8" else 0)
        return slots_of_floats(self.machine, op.x, op.result, box, self.steps(op), low)

    @rule("The operand must be f32")
    def known_types(self, op: Quantize) -> bool:
        return bool(op.x.dtype == "f32")

    @rule('Rounding must be "even" or "away"', got="rounding")
    def known_rounding(self, op: Quantize) -> bool:
        return op.rounding in ("even", "away")

    def recipe(self, op: Quantize) -> tuple[Any, ...]:
        return quantizing(op.rounding, op.type)


def quantizing(rounding: str, type: TensorType) -> tuple[Any, ...]:
    """The recipe that makes integers of a type by the rounding "even" or "away", with its further arguments."""
    quant = type.quant
    assert quant is not None, "the verifier asks for a quantization"
    inverse = float(np.float32(1) / np.float32(quant.scale))
    return (_quantize_even if rounding == "even" else _quantize_away), type.dtype, inverse, quant.zero_point


def _quantize_even(m: Recorder, x: Register, dtype: str, inverse: float, zero_point: int, plus: int = 0) -> Register:
    bounds = np.iinfo(DTYPES[dtype][1])
    limited = m.min(m.max(m.mul(x, inverse), float(bounds.min - zero_point)), float(bounds.max - zero_point))
    return low_bits(m, round_small(m, limited) if zero_point else limited, zero_point + plus)


def _quantize_away(m: Recorder, x: Register, dtype: str, inverse: float, zero_point: int) -> Register:
    bounds = np.iinfo(DTYPES[dtype][1])
    scaled = m.mul(x, inverse)
    whole = quantize(m, scaled, float(bounds.min - zero_point), float(bounds.max - zero_point))
    if not zero_point:
        return whole
    if bounds.bits == 8:
        return m.to_int(float_of_half(m, whole, 16, zero_point))
    return m.to_int(m.add(int_to_float(m, whole), zero_point))


class DequantizeKernel(SlotKernel[Dequantize]):
    """dequantize: (x - zero point) * scale."""

    ops = (Dequantize,)

    def narrow(self, op: Dequantize) -> Value:
        return op.x

    def in_slots(self, op: Dequantize, box: Box) -> TileWork | None:
        made = root_of(op.x).op
        if item_bytes(op.x) == 2 and isinstance(made, Products) and made.mode in (HIGH, ASYMMETRIC):
            return None  # layers leave these a word each
        assert op.x.type.quant is not None, "the op checks that it is quantized"
        return floats_of_slots(self.machine, op.x, op.result, box, op.x.type.quant.scale)

    @rule("The operand must be i8, u8, i16 or u16")
    def known_types(self, op: Dequantize) -> bool:
        return op.x.dtype in NARROW

    def recipe(self, op: Dequantize) -> tuple[Any, ...]:
        quant = op.x.type.quant
        assert quant is not None, "the op checks that it is quantized"
        return _dequantize, op.x.dtype, float(np.float32(quant.scale)), quant.zero_point


def _dequantize(m: Recorder, x: Register, dtype: str, scale: float, zero_point: int) -> Register:
    value = as_float(m, x, dtype)
    return m.mul(m.sub(value, zero_point) if zero_point else value, scale)


LinearT = TypeVar("LinearT", bound=LinearQuant)


class LinearKernel(ElementwiseKernel[LinearT]):
    """Base of quantize_linear and dequantize_linear: scale and zero point may be vectors along an axis."""

    @rule("Scales must not be given per block", got="block_size")
    def no_blocks(self, op: LinearT) -> bool:
        return not op.block_size

    def shapes(self, op: LinearT) -> tuple[tuple[int, ...], ...]:
        rank = op.input.type.rank
        after = (1,) * (rank - op.axis % max(rank, 1) - 1)
        spread = [(1,) * rank if v.type.size == 1 else (v.type.size, *after) for v in op.operands[1:]]
        return (op.input.shape, *spread)


class DequantizeLinearKernel(LinearKernel[DequantizeLinear]):
    """dequantize_linear: (x - zero point) * scale."""

    ops = (DequantizeLinear,)

    @rule("The operand must be i8, u8, i16 or u16, the scale f32")
    def known_types(self, op: DequantizeLinear) -> bool:
        return op.input.dtype in NARROW and op.scale.dtype == "f32"

    def recipe(self, op: DequantizeLinear) -> tuple[Any, ...]:
        return _dequantize_linear, op.input.dtype


class QuantizeLinearKernel(LinearKernel[QuantizeLinear]):
    """quantize_linear: a corrected quotient, rounded half to even."""

    ops = (QuantizeLinear,)

    @rule("Operand and scale must be f32")
    def known_types(self, op: QuantizeLinear) -> bool:
        return bool(op.input.dtype == op.scale.dtype == "f32")

    def recipe(self, op: QuantizeLinear) -> tuple[Any, ...]:
        return _quantize_linear, op.type.dtype


def _quantize_linear(m: Recorder, x: Register, scale: Register, *rest: Any) -> Register:
    *zero_point, dtype = rest
    limited = m.max(m.min(quotient(m, x, scale), _FAR), -_FAR)  # no result depends on what is beyond
    value = round_small(m, limited)
    if zero_point:
        value = m.add(value, as_float(m, zero_point[0], dtype))
    return m.to_int(saturated(m, value, dtype))


def _dequantize_linear(m: Recorder, x: Register, scale: Register, *rest: Any) -> Register:
    *zero_point, dtype = rest
    value = as_float(m, x, dtype)
    if zero_point:
        value = m.sub(value, as_float(m, zero_point[0], dtype))
    return m.mul(value, scale)


class CastKernel(ElementwiseKernel[Cast]):
    """cast between f32, i32, the narrow integers and bool."""

    ops = (Cast,)

    @rule("Element types must be f32, i32, i16, u16, i8, u8 or bool")
    def known_types(self, op: Cast) -> bool:
        return op.x.dtype in LOADABLE and op.type.dtype in LOADABLE

    def recipe(self, op: Cast) -> tuple[Any, ...]:
        return _cast, op.x.dtype, op.type.dtype, op.truncate


def _cast(m: Recorder, x: Register, source: str, target: str, truncate: bool) -> Register:
    if target == "bool":
        return not_zero(m, x, source)
    if target == "f32":
        return as_float(m, x, source)
    if source == "f32":
        return _from_float(m, x, target, truncate)
    if truncate or target == "i32" or source in ("bool", target):
        return as_int(m, x, source)
    return quantize(m, as_float(m, x, source), *limits(target))


def _from_float(m: Recorder, x: Register, target: str, truncate: bool) -> Register:
    value = zero_for_nan(m, x)
    if target != "i32":
        value = saturated(m, value, target)
    return m.to_int(value) if truncate else round_away_to_int(m, value)
