"""Inputs of a net that become bands of integers do so on their way from global memory."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.conditions import INTEGERS, NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.linear_quant import Quantize
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.ops.places.bands import ToBands
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on, producer
from bmcompiler.target import unsupported_reason


@dataclass(frozen=True)
class CutInputs(TargetPatternPass):
    """Floats of an input are rounded and cut into bands at once, for the convolution that reads them.

    1. quantize(input) -> to_bands -> conv, read by nothing else : quantize_bands -> conv

    The integers need not be stored and read again between, and are rounded while more is loaded. It is done where the
    target computes both in local memory, in less time than with the bands cut behind the load. All values stay.
    """

    name = "cut-inputs"
    requires = (INTEGERS, NO_GROUPS)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(Conv, self.cut)

    def cut(self, op: Conv, rewriter: Rewriter) -> bool:
        """Rule 1."""
        bands = producer(op.input, ToBands)
        whole = None if bands is None else producer(bands.x, Quantize)
        if bands is None or whole is None or max(len(bands.result.uses), len(whole.result.uses)) > 1:
            return False
        numbers = {name: getattr(bands, name) for name in ("bands", "rows", "top", "bottom", "fill")}
        rest = {"rounding": whole.rounding, "stride": op.strides[0]}
        cut = make("quantize_bands", [whole.x], numbers | rest, [bands.type], whole.location)
        read = op.clone([cut.result, *op.operands[1:]])
        if not self._is_better((whole, bands, op), (cut, read)):
            for made in (read, cut):
                made.drop_operands()
            return False
        rewriter.insert_before(op, cut, whole, bands)
        rewriter.replace_with(op, read)
        return True

    def _is_better(self, old: tuple[TensorOp, TensorOp, TensorOp], new: tuple[TensorOp, TensorOp]) -> bool:
        """Whether it is quicker to compute while the input arrives, however many commands that takes, than after it."""
        if any(unsupported_reason(self.target, op) is not None for op in new):
            return False
        found = [self.target.local_cycles(op) for op in (*new, *old)]
        known = [self.target.cycles(op) if local is None else local for op, local in zip((*new, *old), found)]
        alone = self.target.cycles(old[0])
        if None in found[:2] or None in known or alone is None:
            return False
        cut, read, whole, *rest = (cycles or 0 for cycles in known)
        load = alone - whole
        return max(load, cut) + read < load + whole + sum(rest)
