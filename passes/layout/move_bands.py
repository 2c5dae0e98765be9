"""Bands keep their rows apart also where they become floats, so that they need not leave local memory in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bmcompiler.conditions import INTEGERS, NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.linear_quant import Dequantize, Quantize
from bmcompiler.ops.places.bands import FromBands, ToBands
from bmcompiler.ops.places.shape import Interleave, Slice
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on, producer, rebuild, sole
from bmcompiler.target import unsupported_reason


@dataclass(frozen=True)
class MoveBands(TargetPatternPass):
    """Cut and join bands as floats where integers of bands come from floats or become floats.

    1. from_bands -> dequantize : dequantize -> from_bands
    2. quantize -> to_bands, filled with what 0.0 becomes : to_bands -> quantize
    3. interleave of rows -> to_bands, these and the image multiples of its rows : to_bands -> interleave ->
       regroup_bands

    Floats take words of their own, so that a band is an image to copy, where integers of bands share words. Inputs of
    the net, and images of these, become integers first, and its results floats last: on their way from and to global
    memory any view of the elements is good. It is done where the target computes all of it in local memory, and says
    that it takes less time than what it does now. All values stay.
    """

    name = "move-bands"
    requires = (INTEGERS, NO_GROUPS)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return {**on(Dequantize, self.after), **on(ToBands, self.before, self.in_cells)}

    def after(self, op: Dequantize, rewriter: Rewriter) -> bool:
        """Rule 1."""
        joined = producer(op.x, FromBands)
        if joined is None or _is_along_axes(op.x.type.quant) or not _is_computed_with(op.result):
            return False
        floats = op.clone([joined.x])
        image = joined.clone([floats.result])
        return self._replace([joined, op], [floats, image], rewriter)

    def before(self, op: ToBands, rewriter: Rewriter) -> bool:
        """Rule 2."""
        whole = producer(op.x, Quantize)
        if whole is None or _is_of_input(whole.x) or _is_along_axes(whole.type.quant):
            return False
        if whole.type.quant is None or op.fill != whole.type.quant.zero_point:
            return False
        bands = op.clone([whole.x], fill=0)
        integers = rebuild(whole, [bands.result])
        integers.result.type = op.type
        return self._replace([whole, op], [bands, integers], rewriter)

    def in_cells(self, op: ToBands, rewriter: Rewriter) -> bool:
        """Rule 3."""
        joined = sole(op.x, Interleave)
        if joined is None or joined.scale[1] != 1 or op.rows % joined.scale[0] or op.x.shape[2] % joined.scale[0]:
            return False
        cells = op.clone([joined.x], rows=op.rows // joined.scale[0], top=0, bottom=0)
        bands = rebuild(joined, [cells.result])
        cut = {name: getattr(op, name) for name in ("rows", "top", "bottom", "fill")} | {"height": op.x.shape[2]}
        return self._replace([joined, op], [cells, bands, make("regroup_bands", [bands.result], cut)], rewriter)

    def _replace(self, old: Sequence[TensorOp], new: Sequence[TensorOp], rewriter: Rewriter) -> bool:
        """Put `new` in the place of `old`, whose first op others may read, too."""
        if not self._is_better(old, new):
            for made in reversed(new):
                made.drop_operands()
            return False
        *before, last = new
        for made in before:
            made.location = old[0].location
            rewriter.insert_before(old[-1], made)
        rewriter.replace_with(old[-1], last, absorbed=old[:-1])
        return True

    def _is_better(self, old: Sequence[TensorOp], new: Sequence[TensorOp]) -> bool:
        if any(unsupported_reason(self.target, op) is not None for op in new):
            return False
        cycles = [self.target.local_cycles(op) for op in new]
        return None not in cycles and sum(filter(None, cycles)) < sum(self.target.cycles(op) or 0 for op in old)


def _is_computed_with(value: Value) -> bool:
    """Whether ops read a value, not only who runs the net."""
    return any(user.results for user in value.users)


def _is_of_input(value: Value) -> bool:
    """Whether a value is an input, or images of one: these lie in global memory as they are."""
    images = producer(value, Slice)
    if images is not None and images.result.shape[1:] == images.x.shape[1:] and min(images.steps) > 0:
        return images.x.op is None
    return value.op is None


def _is_along_axes(quant: object) -> bool:
    """Whether positions of an axis have scales of their own, or nothing is known."""
    return quant is None or bool(getattr(quant, "scales", ()))
