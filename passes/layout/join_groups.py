"""Grouped pointwise convolutions as dense ones, which take any order of channels from the op before and leave any."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.ops.places.shape import Permute, Reshape
from bmcompiler.passes.rewriting import PatternPass, PatternTable, on, rebuild, sole

_SWAPPED = (0, 2, 1, 3, 4)


@dataclass(frozen=True)
class JoinGroups(PatternPass):
    """Dense weights for convolutions of groups, where feature maps are larger; channel shuffles go into the weights.

    For chips whose lanes hold channels: there neither the groups of a feature map nor the channels of a shuffle are
    reached without global memory.

    1. conv 1x1 of several groups (not depthwise), constant weights : one group, with weights of 0 between the groups,
       where these weights are fewer bytes than input and result
    2. conv of one group -> reshape -> permute -> reshape that reorder channels, each read once : the conv with its
       channels in that order
    Products with 0 add nothing, so integers stay, and so do floats where all accumulators are alike. Where one of them
    has the bias, or products of several channels are added at once, zeros before a group can change last bits: the pass
    runs at all levels there. An infinite element of an input gives NaN in all groups.
    """

    name = "join-groups"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return {**on(Conv, self.join), **on(Reshape, self.shuffle)}

    def join(self, op: Conv, rewriter: Rewriter) -> bool:
        """Rule 1."""
        import numpy as np

        weight = self.constant(op.weight)
        if weight is None or op.group == 1 or PLACE_CPU in op.attributes or any(op.zero_points[1:2]):
            return False  # zeros between the groups are products of zeros where that is what 0 means in the weights
        outputs, depth, *taps = weight.shape
        more = (op.group - 1) * weight.nbytes
        if depth == 1 or taps != [1, 1] or more >= op.input.type.nbytes + op.type.nbytes:
            return False
        dense = np.zeros((op.group, outputs // op.group, op.group, depth), weight.dtype)
        each = np.arange(op.group)
        dense[each, :, each] = weight.reshape(op.group, -1, depth)
        made = self.weight(dense.reshape(outputs, -1, 1, 1), op.weight, op, rewriter, "weight")
        joined = rebuild(op, [made if value is op.weight else value for value in op.operands], group=1)
        rewriter.replace_with(op, joined)
        return True

    def shuffle(self, op: Reshape, rewriter: Rewriter) -> bool:
        """Rule 2."""
        import numpy as np

        swapped = sole(op.operands[0], Permute)
        split = sole(swapped.operands[0], Reshape) if swapped is not None else None
        conv = sole(split.operands[0], Conv) if split is not None else None
        if (
            swapped is None
            or split is None
            or conv is None
            or conv.group != 1
            or not _shuffles(conv, split, swapped, op)
        ):
            return False
        known = [(value, array) for value in conv.operands[1:] if (array := self.constant(value)) is not None]
        if len(known) + 1 < len(conv.operands):
            return False
        order = np.arange(conv.type.shape[1]).reshape(split.type.shape[1:3]).T.ravel()
        ordered = [
            value if len(array) == 1 else self.weight(array[order], value, conv, rewriter, "weight")
            for value, array in known  # factors can be one row for all channels
        ]
        made = rebuild(conv, [conv.input, *ordered])
        rewriter.insert_before(conv, made, conv, split, swapped, op)
        rewriter.replace(op, made.results)
        for unread in (swapped, split, conv):
            rewriter.erase(unread)
        return True


def _shuffles(conv: TensorOp, split: TensorOp, swapped: Permute, last: TensorOp) -> bool:
    """Whether three ops swap the two factors of the channels of a result that they leave as large as it was."""
    n, channels, h, w = conv.type.shape
    shape = split.type.shape
    whole = len(shape) == 5 and (shape[0], shape[1] * shape[2], *shape[3:]) == (n, channels, h, w)
    same = last.type.shape == conv.type.shape and last.type.quant == conv.type.quant
    return whole and same and tuple(swapped.order) == _SWAPPED
