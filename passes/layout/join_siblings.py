"""Convolutions of one input become one convolution of all their channels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.passes.drafts import cycles_saved, functions_behind, without_numbers
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, declared, make, on, rebuild


@dataclass(frozen=True)
class JoinSiblings(TargetPatternPass):
    """Convolutions that read the same values in the same way are computed together.

    Chips with a channel per lane start a row of lanes for each of them otherwise: 24 and 24 channels take as long as
    twice 64.

    1. convs of one input, alike but for their weights, and functions of one element that all of them have behind them :
       one conv with the channels of all -> functions -> a slice for each

    Floats, one group, constant weights, a bias at all or at none. It is done where the target says that it takes less
    time in local memory, and what it saves is more than loading the weights takes: layers that wait for their weights
    anyway would only wait for the copies of the slices, too. Each channel is the same sum as before, bit for bit.
    """

    name = "join-siblings"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    @cached_property
    def seen(self) -> set[Value]:
        """Results of convolutions that were decided."""
        return set()

    def table(self) -> PatternTable:
        return on(Conv, self.join)

    def join(self, op: Conv, rewriter: Rewriter) -> bool:
        """Rule 1."""
        if op.result in self.seen or not self._is_plain(op):
            return False
        alike = {user for user in op.input.users if isinstance(user, Conv) and self._joins(op, user)}
        self.seen.update(each.result for each in alike)
        if len(alike) < 2 or op.parent is None:
            return False
        ordered = [each for each in op.parent.ops if isinstance(each, Conv) and each in alike]
        siblings = sorted(ordered, key=lambda each: -each.type.shape[1])  # what begins at lane 0 is sliced fastest
        branches = _branches(siblings)
        total = sum(each.type.shape[1] for each in siblings)
        weight = without_numbers(op.weight, (total, *op.weight.shape[1:]))
        bias = None if op.bias is None else without_numbers(op.bias, (total,))
        old = [each for branch in branches for each in branch]
        least = self.target.loading_cycles(weight.type.nbytes)
        if cycles_saved(self.target, old, _joined(branches, weight, bias)) <= least:
            return False
        first = ordered[0]
        kernel = self._stacked([each.weight for each in siblings], first, rewriter, "weight")
        vector = None if op.bias is None else self._stacked([each.bias for each in siblings], first, rewriter, "bias")
        made = _joined(branches, kernel, vector)
        self.seen.add(made[0].result)
        parts = made[len(branches[0]) :]
        for new, steps in zip(made, zip(*branches)):
            rewriter.insert_before(first, new, *steps, is_part=True)
        for branch, part in zip(branches, parts):
            rewriter.insert_before(first, part, branch[-1])
        for branch, part in zip(branches, parts):
            rewriter.replace(branch[-1], part.results)
        return True

    def _is_plain(self, op: Conv) -> bool:
        constant = self.constant(op.weight) is not None and (op.bias is None or self.constant(op.bias) is not None)
        return op.type.is_float and op.group == 1 and constant and PLACE_CPU not in op.attributes

    def _joins(self, op: Conv, other: Conv) -> bool:
        return other.input is op.input and self._is_plain(other) and _kind(op) == _kind(other)

    def _stacked(self, values: Sequence[Value | None], anchor: Conv, rewriter: Rewriter, name: str) -> Value:
        """The constants of all convolutions behind one another."""
        import numpy as np

        arrays = [array for value in values if (array := self.constant(value)) is not None]
        return self.weight(np.concatenate(arrays), values[0], anchor, rewriter, name)


def _kind(op: TensorOp) -> Hashable:
    """What ops have in common that are computed as one."""
    shapes = [value.shape[1:] for value in op.operands[1:]]
    return op.name, declared(op), shapes, op.type.dtype, op.type.quant


def _branches(siblings: Sequence[Conv]) -> list[list[TensorOp]]:
    """Each convolution with the functions behind it that all of them have."""
    branches: list[list[TensorOp]] = [[each] for each in siblings]
    for functions in zip(*map(functions_behind, siblings)):
        if any(len(each.operands) > 1 or _kind(each) != _kind(functions[0]) for each in functions):
            break
        for branch, each in zip(branches, functions):
            branch.append(each)
    return branches


def _joined(branches: Sequence[Sequence[TensorOp]], weight: Value, bias: Value | None) -> list[TensorOp]:
    """The convolution, the functions behind it and a slice for each branch, in no block."""
    conv, *functions = branches[0]
    made: list[TensorOp] = [rebuild(conv, [conv.operands[0], weight, *([] if bias is None else [bias])])]
    for function in functions:
        made.append(rebuild(function, [made[-1].result]))
    joined, first = made[-1].result, 0
    for branch in branches:
        n, channels, h, w = branch[-1].type.shape
        bounds = {"starts": (0, first, 0, 0), "ends": (n, first + channels, h, w), "steps": (1, 1, 1, 1)}
        made.append(make("slice", [joined], bounds))
        first += channels
    return made
