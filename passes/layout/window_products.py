"""Matrix products of flattened feature maps, as convolutions whose window is the whole map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bmcompiler.conditions import INTEGERS, NO_GROUPS, NO_LAYOUT, Condition
from bmcompiler.ir import Rewriter, TensorType, Value
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.numeric.quant_modes import HIGH, LOW
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Prelu
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.ops.places.shape import Reshape
from bmcompiler.passes.drafts import without_numbers
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, hand_name, make, on, producer, sole
from bmcompiler.target import unsupported_reason

if TYPE_CHECKING:
    import numpy as np

_MODES = ("", LOW, HIGH, CHANNEL)
"""Whose rounding is the same for both ops; asymmetric products take another shift (bmlang.md 3.2)."""
_OF_MATMUL = ("transpose_left", "transpose_right")
"""Attributes that the convolution does not take over."""


@dataclass(frozen=True)
class WindowProducts(TargetPatternPass):
    """A product of a flattened map reads the map itself, and leaves its result where such a map lies.

    For chips whose lanes hold channels: a matrix is read from global memory, a map stays in local memory.

    1. matmul(reshape [N, C, H, W] -> [N, C * H * W], constant) : reshape(conv with a window of H x W)
    2. prelu(reshape [N, C, 1, 1] -> [N, C])                    : reshape(prelu)
    Rule 1 is for what the target computes in one tile, and in no more time than the product takes with its transfers.
    Sums of integers are exact, so that values stay, bit for bit; floats are added in another order: pipelines do them
    at all levels, if at all.

    Attributes:
        floats: whether rule 1 is for products of floats instead.
    """

    floats: bool = False

    name = "window-products"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def needs(self) -> tuple[Condition, ...]:
        return self.requires if self.floats else (*self.requires, INTEGERS)

    def table(self) -> PatternTable:
        return {**on(Matmul, self.product), **on(Prelu, self.slopes)}

    def product(self, op: Matmul, rewriter: Rewriter) -> bool:
        """Rule 1."""
        weight, flat = self.constant(op.right), producer(op.left, Reshape)
        if weight is None or flat is None or op.type.is_float != self.floats:
            return False
        if not _flattens(flat) or not _is_plain(op, weight):
            return False
        maps = flat.operands[0]
        columns = weight if op.transpose_right else weight.T
        shape = (len(columns), *maps.shape[1:])
        draft = without_numbers(op.right, shape)
        if not self._is_worth_it(op, _conv(op, maps, draft)):
            return False
        made = self.weight(columns.reshape(shape), op.right, op, rewriter, "weight")
        conv = _conv(op, maps, made)
        rewriter.insert_before(op, conv, op)
        rewriter.replace_with(op, make("reshape", [conv.result], {"shape": op.type.shape}, None, op.location))
        return True

    def _is_worth_it(self, op: Matmul, conv: TensorOp) -> bool:
        """Whether the target computes `conv`, which is in no block and is forgotten, at once and as quickly.

        The map of integers lies there already; of floats, loads and stores of both are compared, and their commands
        again: loads of weights are made beside other layers.
        """
        taken = before = None
        if unsupported_reason(self.target, conv) is None and (local := self.target.local_cycles(conv)) is not None:
            taken, before = local, self.target.cycles(op)
            if self.floats and before is not None:
                alone = self.target.cycles(conv)
                taken = None if alone is None else local + alone
                before += self.target.local_cycles(op) or 0
        conv.drop_operands()
        return taken is not None and before is not None and taken <= before

    def slopes(self, op: Prelu, rewriter: Rewriter) -> bool:
        """Rule 2."""
        flat = sole(op.input, Reshape)
        if flat is None or not _flattens(flat) or flat.operands[0].shape[2:] != (1, 1) or op.axis % 2 != 1:
            return False
        maps = flat.operands[0]
        if maps.type.is_float or maps.type.quant != op.input.type.quant:
            return False
        work = op.clone([maps, *op.operands[1:]])
        work.result.type = op.type.with_shape(maps.shape)
        hand_name(flat, maps)
        rewriter.insert_before(op, work, op)
        rewriter.replace_with(op, make("reshape", [work.result], {"shape": op.type.shape}, None, op.location))
        return True


def _flattens(op: Reshape) -> bool:
    """[N, C, H, W] -> [N, C * H * W]."""
    x = op.operands[0]
    return x.type.rank == 4 and op.type.rank == 2 and x.shape[0] == op.type.shape[0]


def _is_plain(op: Matmul, weight: np.ndarray) -> bool:
    fits = op.left.type.rank == weight.ndim == 2 and op.mode in _MODES
    return fits and not op.transpose_left and not op.zero_points and PLACE_CPU not in op.attributes


def _conv(op: Matmul, maps: Value, weight: Value) -> TensorOp:
    attributes = {name: value for name, value in op.attributes.items() if name not in _OF_MATMUL and "." not in name}
    rows, columns = op.type.shape
    type = TensorType((rows, columns, 1, 1), op.type.dtype, op.type.quant)
    return make("conv", [maps, weight, *op.operands[2:]], attributes, [type], op.location)
