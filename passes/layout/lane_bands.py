"""Convolutions of few channels to one have bands of rows as channels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter, TensorType, Value
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.passes.drafts import cycles_in_memory, without_numbers
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on

_FEW = 8
"""Channels of an input, at most: each has bands of its own."""
_BANDS = range(4, 65)
_MOVES = 4
"""Times that the map goes through global memory besides its bands: it is padded, and its products are added up."""
_MARGIN = 1.5
"""How many times less it has to take: what starts take of moves of small maps is not counted."""


@dataclass(frozen=True)
class LaneBands(TargetPatternPass):
    """A conv of few channels to one becomes a depthwise conv of bands of rows, and a sum over the channels.

    Chips with a channel per lane have one lane at work otherwise: such are the maps of spatial attention.

    1. conv [N, C, H, W] -> [N, 1, h, w] of f32 : concat with rows of zeros -> gather of the rows of each band ->
       reshape [N, C * bands, rows, W] -> depthwise conv -> reshape [N, C, h, w] -> sum of the C slices
    One group, constant weights. It is done where the target says that it takes two thirds of the time at the most, with
    all that it moves. Sums have another order, so that pipelines do it at all levels.
    """

    name = "lane-bands"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(Conv, self.cut)

    def cut(self, op: Conv, rewriter: Rewriter) -> bool:
        """Rule 1."""
        import numpy as np

        weight, bias = self.constant(op.weight), self.constant(op.bias)
        if weight is None or (bias is None) != (op.bias is None) or not _is_plain(op):
            return False
        bands = self._best(op)
        if bands == 1:
            return False
        depth, height = op.weight.shape[1], op.type.shape[2] // bands
        starts = np.arange(bands)[:, None] * height * op.strides[0]
        rows = (starts + np.arange(_reach(op, height))).astype(np.int32).reshape(-1)
        kernels = np.repeat(weight.swapaxes(0, 1), bands, axis=0)
        added = None
        if bias is not None:
            added = self.weight(np.pad(bias.repeat(bands), (0, (depth - 1) * bands)), op.bias, op, rewriter, "bias")
        made = self.weight(kernels, op.weight, op, rewriter, "weight")
        (images, _, _, columns), padding = op.input.shape, op.pads[:2]
        frame = [
            self.weight(np.zeros((images, depth, count, columns), np.float32), None, op, rewriter, "zeros")
            for count in padding
        ]
        *ops, last = _in_bands(op, self.weight(rows, None, op, rewriter, "rows"), frame, made, added, bands)
        for new in ops:
            is_product = isinstance(new, Conv)
            rewriter.insert_before(op, new, *((op,) if is_product else ()), is_part=is_product)
        rewriter.replace_with(op, last)
        return True

    def _best(self, op: Conv) -> int:
        """Bands that take least time, 1 where they take more than the conv."""
        passed = make("relu", [op.input])
        moved, alone = cycles_in_memory(self.target, [passed]), cycles_in_memory(self.target, [op])
        passed.drop_operands()
        if moved is None or alone is None:
            return 1
        best, least, height = 1, alone / _MARGIN, op.type.shape[2]
        for bands in (count for count in _BANDS if height % count == 0):
            reach = _reach(op, height // bands)
            rows = make("weight", (), {"key": ""}, [TensorType((bands * reach,), "i32")]).result
            frame = [
                without_numbers(op.weight, (*op.input.shape[:2], count, op.input.shape[3])) for count in op.pads[:2]
            ]
            kernels = without_numbers(op.weight, (op.weight.shape[1] * bands, 1, *op.weight.shape[2:]))
            draft = list(_in_bands(op, rows, frame, kernels, None, bands))
            taken = cycles_in_memory(self.target, [new for new in draft if new.short_name in ("conv", "add")])
            for new in reversed(draft):
                new.drop_operands()
            if taken is None:
                continue
            taken += round(moved * (_MOVES + 2 * bands * reach / op.input.shape[2]))
            if taken < least:
                best, least = bands, taken
        return best


def _is_plain(op: Conv) -> bool:
    few = op.group == 1 and op.weight.shape[0] == 1 and op.weight.shape[1] <= _FEW
    return few and op.input.dtype == op.type.dtype == "f32" and PLACE_CPU not in op.attributes


def _reach(op: Conv, height: int) -> int:
    """Rows of the input that so many rows of the result read."""
    return int((height - 1) * op.strides[0] + (op.weight.shape[2] - 1) * op.dilations[0] + 1)


def _in_bands(
    op: Conv, rows: Value, frame: Sequence[Value], weight: Value, bias: Value | None, bands: int
) -> Iterator[TensorOp]:
    """The ops, the last of which makes the result; frame: rows of zeros above and below."""
    images, depth, _, columns = op.input.shape
    sides, (above, below) = op.pads[2:], frame
    parts = [value for value in (above, op.input, below) if value.shape[2]]
    read = op.input
    if len(parts) > 1:
        padded = make("concat", parts, {"axis": 2})
        yield padded
        read = padded.results[0]
    gathered = make("gather", [read, rows], {"axis": 2})
    yield gathered
    shape = images, depth * bands, rows.shape[0] // bands, columns
    cut = make("reshape", [gathered.results[0]], {"shape": shape})
    yield cut
    attributes = {"strides": op.strides, "dilations": op.dilations, "pads": (0, 0, *sides), "group": depth * bands}
    end = {"activation": op.activation}
    conv = make("conv", [cut.results[0], weight, bias], attributes | (end if depth == 1 else {}))
    yield conv
    whole = make("reshape", [conv.results[0]], {"shape": (images, depth, *op.type.shape[2:])})
    yield whole
    total: Value | None = None
    for channel in range(depth if depth > 1 else 0):
        ends = (images, channel + 1, *op.type.shape[2:])
        part = make("slice", [whole.results[0]], {"starts": (0, channel, 0, 0), "ends": ends, "steps": (1,) * 4})
        yield part
        if total is None:
            total = part.results[0]
            continue
        added = make("add", [total, part.results[0]], end if channel == depth - 1 else {})
        yield added
        total = added.results[0]
