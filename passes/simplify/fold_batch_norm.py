"""Fold what scales and shifts channels into the weights beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ir.keys import TENSOR_NAME
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.elementwise import Add, Binary, Div, Mul, Sub
from bmcompiler.ops.layers.nn import Conv, Convolution, Deconv, Matmul
from bmcompiler.ops.layers.norm import BatchNorm, Scale
from bmcompiler.ops.places.shape import Slice
from bmcompiler.passes.rewriting import (
    PatternPass,
    PatternTable,
    activates,
    channel_axis,
    forward,
    make,
    on,
    on_each,
    producer,
    rebuild,
    sole,
)

if TYPE_CHECKING:
    import numpy as np

_Heavy = Convolution | Matmul


@dataclass(frozen=True)
class FoldBatchNorm(PatternPass):
    """Batch norm and arithmetic with per-channel constants become scale, and scale goes into weights (floats only).

    1. batch_norm with constant parameters: scale
    2. add, sub, mul, div with a constant that is one number or one number per channel: scale
    3. scale(scale(x)), the inner one read once: one scale
    4. scale(conv|deconv|matmul), read once, constant weights: the op with scaled weights and bias
    5. conv|deconv|matmul of a scale read once: the op with scaled weights and a changed bias; with a shift only where
       no padding (which the shift does not reach) enters the sums
    6. scale(matmul(a, b)) by one number, b no constant, where a is a layer of rule 4 behind ops that only move : matmul
       of that layer with scaled weights, all read once
    7. scale by one number, behind ops that only move, of a matmul of rule 4, all read once or by slices too that take
       other columns of it : the same of that matmul with scaled weights of those columns
    An op with an activation inside is left alone by rules 2 and 4: the scale would act before the activation.

    Attributes:
        scores: whether rules 6 and 7 are some. Encoders in int8 were seen to lose by it.
    """

    name = "fold-batch-norm"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False
    scores: bool = False

    def table(self) -> PatternTable:
        return {
            **on(BatchNorm, self.batch_norm),
            **on_each((Add, Sub, Mul, Div), self.arithmetic),
            **on(Scale, self.merge, self.into_producer, *([self.through_product, self.columns] if self.scores else [])),
            **on(Conv, self.into_reader),
            **on(Deconv, self.into_reader),
            **on(Matmul, self.into_reader),
        }

    # -- rules 1 and 2 -----------------------------------------------------------------------------------------------
    def batch_norm(self, op: BatchNorm, rewriter: Rewriter) -> bool:
        """Rule 1. y = (x - mean) / sqrt(variance + epsilon) * gamma + beta."""
        import numpy as np

        found = [self.constant(value) for value in op.operands[1:]]
        gamma, beta, mean, variance = (None if a is None else a.astype(np.float64) for a in found)
        if gamma is None or beta is None or mean is None or variance is None:
            return False
        factor = gamma / np.sqrt(variance + op.epsilon)
        self._to_scale(op, op.input, _Affine(factor, beta - mean * factor), 1, rewriter)
        return True

    def arithmetic(self, op: Binary, rewriter: Rewriter) -> bool:
        """Rule 2."""
        import numpy as np

        if not op.type.is_float or activates(op) or (constant_side := self.constant_side(op)) is None:
            return False
        x, constant = op.operands[1 - constant_side], self.constant(op.operands[constant_side])
        if constant is None or x.shape != op.type.shape or (isinstance(op, Div) and constant_side == 0):
            return False
        axis = channel_axis(constant.shape, x.shape)
        if axis is None:
            return False
        values = np.broadcast_to(constant.astype(np.float64).ravel(), (x.shape[axis],))
        if isinstance(op, Mul):
            affine = _Affine(values, None)
        elif isinstance(op, Div):
            if not values.all():
                return False
            affine = _Affine(1.0 / values, None)
        else:
            from_constant = isinstance(op, Sub) and constant_side == 0
            from_x = isinstance(op, Sub) and constant_side == 1
            affine = _Affine(np.full(x.shape[axis], -1.0 if from_constant else 1.0), -values if from_x else values)
        self._to_scale(op, x, affine, axis, rewriter)
        return True

    def constant_side(self, op: TensorOp) -> int | None:
        """Index of the only constant operand."""
        sides = [i for i, value in enumerate(op.operands) if self.constant(value) is not None]
        return sides[0] if len(sides) == 1 else None

    def _to_scale(self, op: TensorOp, x: Value, affine: _Affine, axis: int, rewriter: Rewriter) -> None:
        vectors = self._vectors(op, affine, x, rewriter)
        rewriter.replace_with(op, make("scale", [x, *vectors], {"axis": axis}))

    def _vectors(self, op: TensorOp, affine: _Affine, x: Value, rewriter: Rewriter) -> list[Value]:
        factor = self.weight(affine.factor.astype(x.type.numpy), None, op, rewriter, f"{op.label}.scale")
        if affine.offset is None:
            return [factor]
        return [factor, self.weight(affine.offset.astype(x.type.numpy), None, op, rewriter, f"{op.label}.shift")]

    # -- rule 3 ------------------------------------------------------------------------------------------------------
    def merge(self, op: Scale, rewriter: Rewriter) -> bool:
        """Rule 3."""
        before = sole(op.input, Scale)
        if before is None:
            return False
        first, second = self.affine(before, op.axis), self.affine(op, op.axis)
        if first is None or second is None:
            return False
        offset = None if first.offset is None else first.offset * second.factor
        both = _Affine(first.factor * second.factor, _plus(offset, second.offset))
        x = before.operands[0]
        merged = make("scale", [x, *self._vectors(op, both, x, rewriter)], {"axis": op.axis})
        rewriter.replace_with(op, merged)
        return True

    def affine(self, op: Scale, axis: int) -> _Affine | None:
        """What a float scale does along `axis`: its own axis, or any when all its channels are alike."""
        import numpy as np

        factor, offset = self.constant(op.weight), self.constant(op.bias)
        if factor is None or not op.type.is_float or (op.bias is not None and offset is None):
            return None
        if op.axis == axis:
            return _Affine(factor.astype(np.float64), None if offset is None else offset.astype(np.float64))
        one, other = self.uniform(op.weight), 0.0 if op.bias is None else self.uniform(op.bias)
        if one is None or other is None:
            return None
        size = op.type.shape[axis]
        return _Affine(np.full(size, one), None if op.bias is None else np.full(size, other))

    # -- rule 4 ------------------------------------------------------------------------------------------------------
    def into_producer(self, op: Scale, rewriter: Rewriter) -> bool:
        """Rule 4."""
        heavy = sole(op.input, Convolution, Matmul)
        weight, bias = (None, None) if heavy is None else self.parameters(heavy)
        if heavy is None or weight is None or activates(heavy):
            return False
        affine = self.affine(op, heavy.type.rank - 1 if isinstance(heavy, Matmul) else 1)
        if affine is None:
            return False
        offset = _plus(None if bias is None else bias * affine.factor, affine.offset)
        unchanged = (affine.factor == 1.0).all()
        scaled = None if unchanged else _times(heavy, weight, _per_output(heavy, affine.factor))
        fresh = self.reweighted(heavy, heavy.operands[0], op, rewriter, weight=scaled, bias=offset)
        rewriter.replace_with(op, fresh)
        return True

    def parameters(self, op: _Heavy) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Weight of a float op, and its bias in float64; no weight when anything about them is not constant."""
        import numpy as np

        weight, bias = self.constant(op.operands[1]), self.constant(op.bias)
        two_axes = not isinstance(op, Matmul) or (weight is not None and weight.ndim == 2)
        floats = op.type.is_float and op.operands[1].type.is_float
        if weight is None or not two_axes or not floats or (op.bias is not None and bias is None):
            return None, None
        return weight, None if bias is None else bias.astype(np.float64)

    def reweighted(
        self,
        heavy: _Heavy,
        x: Value,
        anchor: TensorOp,
        rewriter: Rewriter,
        *,
        weight: np.ndarray | None,
        bias: np.ndarray | None,
    ) -> TensorOp:
        """`heavy` on `x` with another weight (None: its own) and bias (None: without); new ones go before `anchor`."""
        dtype = heavy.type.numpy
        operands = [x, heavy.operands[1]]
        if weight is not None:
            operands[1] = self.weight(weight, operands[1], anchor, rewriter, f"{heavy.label}.weight")
        if bias is not None:
            operands.append(self.weight(bias.astype(dtype), heavy.bias, anchor, rewriter, f"{heavy.label}.bias"))
        return rebuild(heavy, operands)

    # -- rule 5 ------------------------------------------------------------------------------------------------------
    def into_reader(self, op: _Heavy, rewriter: Rewriter) -> bool:
        """Rule 5."""
        before = sole(op.operands[0], Scale)
        weight, bias = (None, None) if before is None else self.parameters(op)
        if before is None or weight is None or (isinstance(op, Matmul) and op.transpose_left):
            return False
        affine = self.affine(before, before.type.rank - 1 if isinstance(op, Matmul) else 1)
        if affine is None:
            return False
        if affine.offset is not None and affine.offset.any():
            # a deconvolution sums fewer taps at its borders, and padding adds zeros that the shift never saw
            if isinstance(op, Deconv) or (isinstance(op, Conv) and any(op.pads)):
                return False
            bias = _plus(bias, _spread(op, affine.offset, weight.astype("float64")))
        scaled = _times(op, weight, _per_input(op, affine.factor))
        fresh = self.reweighted(op, before.operands[0], op, rewriter, weight=scaled, bias=bias)
        rewriter.replace_with(op, fresh)
        return True

    # -- rule 6 ------------------------------------------------------------------------------------------------------
    def through_product(self, op: Scale, rewriter: Rewriter) -> bool:
        """Rule 6."""
        product, factor = sole(op.input, Matmul), self.uniform(op.weight)
        if product is None or factor is None or op.bias is not None or product.bias is not None or activates(product):
            return False
        moves: list[TensorOp] = []
        value = product.left
        while (
            (move := sole(value, TensorOp)) is not None
            and move.moves_only
            and len(move.operands) == 1 == len(move.results)
        ):
            moves.append(move)
            value = move.operands[0]
        heavy = sole(value, Convolution, Matmul)
        weight, bias = (None, None) if heavy is None else self.parameters(heavy)
        if heavy is None or weight is None or activates(heavy):
            return False
        source = heavy.operands[0]
        scaled = self.reweighted(
            heavy,
            source,
            heavy,
            rewriter,
            weight=_times(heavy, weight, factor),
            bias=None if bias is None else bias * factor,
        )
        moved = [scaled]
        for move in reversed(moves):
            moved.append(rebuild(move, [moved[-1].result]))
        for fresh in moved:
            fresh.attributes.pop(TENSOR_NAME, None)  # what the source calls so is not scaled
            rewriter.insert_before(op, fresh)
        rewriter.replace_with(op, rebuild(product, [moved[-1].result, product.right]))
        return True

    # -- rule 7 ------------------------------------------------------------------------------------------------------
    def columns(self, op: Scale, rewriter: Rewriter) -> bool:
        """Rule 7. Only the weights change; what others read of the product has its bits."""
        import numpy as np

        factor, moves = self.uniform(op.weight), _moves_before(op.input)
        heavy = producer(moves[0].operands[0], Matmul) if moves else None
        weight, bias = (None, None) if heavy is None else self.parameters(heavy)
        if heavy is None or weight is None or activates(heavy) or factor is None or op.bias is not None:
            return False
        numbers = np.broadcast_to(np.arange(heavy.type.shape[-1]), heavy.type.shape)
        scaled = _columns_alone(heavy.result, moves, numbers)
        if scaled is None:
            return False
        factors = np.where(np.isin(numbers[(0,) * (numbers.ndim - 1)], scaled), factor, 1.0)
        fresh = self.reweighted(
            heavy,
            heavy.operands[0],
            heavy,
            rewriter,
            weight=_times(heavy, weight, _per_output(heavy, factors)),
            bias=None if bias is None else bias * factors,
        )
        for each in (fresh, *moves):
            each.attributes.pop(TENSOR_NAME, None)  # what the source calls so is not scaled
        rewriter.replace_with(heavy, fresh)
        return forward(op, op.input, rewriter)


def _moves_before(value: Value) -> list[TensorOp]:
    """Ops that only move, one value each, from first to last, the last of which makes a value read once."""
    moves: list[TensorOp] = []
    while (move := value.op) is not None and isinstance(move, TensorOp) and move.moves_only:
        if len(move.operands) != 1 or len(move.results) != 1:
            break
        moves.insert(0, move)
        value = move.operands[0]
    return moves


def _columns_alone(value: Value, moves: Sequence[TensorOp], numbers: np.ndarray) -> np.ndarray | None:
    """Numbers of columns that moves of a value leave, as many elements of each as it has, and no other reader gets.

    numbers: of the column of each element of the value. None where others read some of them.
    """
    import numpy as np

    others: list[np.ndarray] = []
    for move in moves:
        for user in value.users:
            if user is move:
                continue
            if not isinstance(user, Slice):
                return None
            others.append(np.unique(user.evaluate(numbers)))
        value, numbers = move.result, np.asarray(move.evaluate(numbers))
    found = np.unique(numbers)
    alone = len(value.uses) == 1 and not any(np.isin(found, each).any() for each in others)
    return found if alone else None


class _Affine(NamedTuple):
    """x * factor + offset per channel, in float64; offset None means no offset."""

    factor: np.ndarray
    offset: np.ndarray | None


def _plus(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    if a is None or b is None:
        return a if b is None else b
    total: np.ndarray = a + b
    return total


def _times(op: _Heavy, weight: np.ndarray, factor: np.ndarray | float) -> np.ndarray:
    """New weights, multiplied in float64 and rounded once, without a copy of all of them in float64."""
    import numpy as np

    return np.multiply(weight, factor, out=np.empty(weight.shape, op.type.numpy), dtype=np.float64, casting="unsafe")


def _per_output(op: _Heavy, factor: np.ndarray) -> np.ndarray:
    """A factor per output channel, shaped to multiply the weight."""
    if isinstance(op, Conv):
        return factor[:, None, None, None]
    if isinstance(op, Matmul):
        return factor[:, None] if op.transpose_right else factor
    return _grouped(op, factor)


def _per_input(op: _Heavy, factor: np.ndarray) -> np.ndarray:
    """A factor per input channel, shaped to multiply the weight."""
    if isinstance(op, Deconv):
        return factor[:, None, None, None]
    if isinstance(op, Matmul):
        return factor if op.transpose_right else factor[:, None]
    return _grouped(op, factor)


def _grouped(op: Convolution, factor: np.ndarray) -> np.ndarray:
    """Axis 1 of a grouped weight counts channels within a group, axis 0 runs through all groups."""
    groups = factor.reshape(op.group, -1)
    rows: int = op.operands[1].shape[0] // op.group
    return groups.repeat(rows, axis=0)[:, :, None, None]


def _spread(op: _Heavy, offset: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """What a constant offset per input channel adds to each output channel."""
    if isinstance(op, Matmul):
        total: np.ndarray = weight @ offset if op.transpose_right else offset @ weight
        return total
    summed: np.ndarray = (weight * _per_input(op, offset)).sum(axis=(1, 2, 3))
    return summed
