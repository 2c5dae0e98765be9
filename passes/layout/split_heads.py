"""Queries, keys and values that one layer makes, as layers of their own: nothing is left to take apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ir.keys import PLACE_CPU, TENSOR_NAME
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.elements.linear_quant import Dequantize, Quantize
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.ops.places.shape import Permute, Reshape, Slice
from bmcompiler.passes.drafts import without_numbers
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on, rebuild, sole
from bmcompiler.target import unsupported_reason


@dataclass(frozen=True)
class _Taker:
    """A slice, and the changes of type between what it takes from and the permute, first to last."""

    slice: Slice
    types: tuple[TensorOp, ...]


@dataclass(frozen=True)
class SplitHeads(TargetPatternPass):
    """Columns of a product that a permute parts, and slices take, are products of their own.

    1. slices along one axis of permute(reshape(matmul(x, constant))), which is an axis of the product's columns and the
       first of the permute : each the permute of a product with its columns of the constant
    2. types that change between the permute and slices, for nobody else : behind the permute of each
    It is done where the target takes less time for the products, and a tile each in local memory for their permutes,
    than for the product and the permute. Each sum stays as it is.
    """

    name = "split-heads"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return {**on(Permute, self.heads)}

    def heads(self, op: Permute, rewriter: Rewriter) -> bool:
        """Rules 1 and 2."""
        shaped = sole(op.operands[0], Reshape)
        product = sole(shaped.operands[0], Matmul) if shaped is not None else None
        takers = _takers(op.result)
        if shaped is None or product is None or not _is_plain(product) or takers is None:
            return False
        axis, split = op.order[0], _column_axes(shaped, product)
        if split is None or axis < split or len(takers) < 2 or not all(_along_first(one.slice) for one in takers):
            return False
        weights = [self.constant(value) for value in product.operands[1:]]
        if any(weight is None for weight in weights):
            return False
        sizes = shaped.type.shape[split:]
        indices = np.arange(prod(sizes)).reshape(sizes)
        taken = [
            np.take(indices, range(one.slice.starts[0], one.slice.ends[0]), axis - split).ravel() for one in takers
        ]
        drafts = [_parts(op, shaped, product, axis, columns.size, _drafted(product, columns)) for columns in taken]
        quicker = self._is_quicker(drafts, product, op)
        for draft in drafts:
            for each in reversed(draft):
                each.drop_operands()
        if not quicker:
            return False
        for one, columns in zip(takers, taken):
            name = f"{product.label}.part"
            constants = [
                self.weight(_columns(weight, value, product, columns), value, product, rewriter, name)
                for weight, value in zip(weights, product.operands[1:])
                if weight is not None
            ]
            part, cut, moved = _parts(op, shaped, product, axis, columns.size, constants)
            made = [part, cut, moved, *_typed(moved, one.types)]
            for each in made[:-1]:
                rewriter.insert_before(op, each)
            rewriter.replace_with(one.slice, made[-1], absorbed=[op])
        return True

    def _is_quicker(self, drafts: Sequence[Sequence[TensorOp]], product: Matmul, permute: Permute) -> bool:
        before = [self.target.cycles(product), self.target.moving_cycles(permute)]
        after = []
        for part, _cut, moved in drafts:
            if any(unsupported_reason(self.target, op) is not None for op in (part, moved)):
                return False
            after += [self.target.cycles(part), self.target.local_cycles(moved)]
        if None in before or None in after:
            return False
        return sum(filter(None, after)) < sum(filter(None, before))


def _is_plain(op: Matmul) -> bool:
    """Whether the columns of a product are those of its constants, and nothing else is said of it."""
    known = op.type.is_float or op.mode == CHANNEL
    return known and not op.transpose_right and op.right.type.rank == 2 and PLACE_CPU not in op.attributes


def _takers(value: Value, types: tuple[TensorOp, ...] = ()) -> list[_Taker] | None:
    """The slices that read a value, in any type; None where something else does."""
    found: list[_Taker] = []
    for user in value.users:
        if isinstance(user, Slice):
            found.append(_Taker(user, types))
            continue
        if not isinstance(user, Cast | Quantize | Dequantize) or PLACE_CPU in user.attributes:
            return None
        if user.type.quant is not None and user.type.quant.scales:  # of positions that the permute leaves elsewhere
            return None
        behind = _takers(user.result, (*types, user))
        if behind is None:
            return None
        found += behind
    return found


def _typed(moved: TensorOp, types: Sequence[TensorOp]) -> list[TensorOp]:
    """The changes of type behind a permute, one after the other."""
    made: list[TensorOp] = []
    for op in types:
        made.append(rebuild(op, [(made[-1] if made else moved).result]))
        made[-1].attributes.pop(TENSOR_NAME, None)
    return made


def _columns(array: np.ndarray, constant: Value, product: Matmul, columns: np.ndarray) -> np.ndarray:
    """Some columns of a constant of a product; one factor is that of all."""
    if constant is product.factors:
        return array if len(array) == 1 else array[columns]
    return np.asarray(array[..., columns])


def _drafted(product: Matmul, columns: np.ndarray) -> list[Value]:
    return [
        without_numbers(value, _columns(np.empty(value.shape, np.bool_), value, product, columns).shape)
        for value in product.operands[1:]
    ]


def _column_axes(shaped: Reshape, product: Matmul) -> int | None:
    """The first axis of a reshape that cuts columns; None where it joins rows and columns."""
    shape, columns = shaped.type.shape, product.type.shape[-1]
    return next((axis for axis in range(len(shape)) if prod(shape[axis:]) == columns), None)


def _along_first(op: Slice) -> bool:
    whole = all((a, b) == (0, size) for a, b, size in zip(op.starts[1:], op.ends[1:], op.x.shape[1:]))
    return whole and all(step == 1 for step in op.steps)


def _parts(
    op: Permute, shaped: Reshape, product: Matmul, axis: int, columns: int, constants: Sequence[Value]
) -> tuple[TensorOp, TensorOp, TensorOp]:
    """Product, reshape and permute of some of the columns."""
    part = rebuild(product, [product.left, *constants])
    sizes = list(shaped.type.shape)
    sizes[axis] = columns * sizes[axis] // product.type.shape[-1]
    cut = make("reshape", [part.result], {"shape": tuple(sizes)}, None, shaped.location)
    return part, cut, make("permute", [cut.result], {"order": op.order}, None, op.location)
