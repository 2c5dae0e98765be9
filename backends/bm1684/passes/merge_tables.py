"""Functions of bytes are tables, and those of what comes out of a table are part of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, prod

from bmcompiler.conditions import INTEGERS, NO_GROUPS
from bmcompiler.ir import Rewriter
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Softmax
from bmcompiler.ops.elements.integer import Lut
from bmcompiler.ops.elements.linear_quant import Dequantize
from bmcompiler.passes.rewriting import PatternPass, PatternTable, make, on, rebuild, sole

_BYTES = ("i8", "u8")
_ENTRIES = (*_BYTES, "f32")
_FINITE = 87.0
"""Powers of e up to this number are floats, and one over them is, too."""


@dataclass(frozen=True)
class MergeTables(PatternPass):
    """One look-up for a chain of functions of bytes; bits stay.

    1. f(lut(x, table)), f of one element, its other operands constants, the lut read by f alone: lut(x, f(table)), of
       bytes or floats
    2. softmax(dequantize(x)) along the last axis of more than one element, the bytes x read by nothing else in float:
       lut_softmax(x, what e to each byte is), where sums of these are floats
    """

    name = "merge-tables"
    requires = (INTEGERS, NO_GROUPS)
    loses_bits = False

    def table(self) -> PatternTable:
        return {**on(Softmax, self.powers), **on(TensorOp, self.into_table)}

    def into_table(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 1."""
        if not op.pointwise or op.type.dtype not in _ENTRIES:
            return False
        before = sole(op.operands[0], Lut)
        arrays = [None if before is None else self.constant(before.table), *map(self.constant, op.operands[1:])]
        if before is None or any(array is None for array in arrays):
            return False
        probe = rebuild(op, [before.table, *op.operands[1:]])
        entries = probe.evaluate(*arrays)
        probe.drop_operands()
        table = self.weight(entries, before.table, op, rewriter, "table")
        table.type = type(table.type)(table.shape, op.type.dtype, op.type.quant)
        fresh = rebuild(before, [before.x, table])
        fresh.result.type = op.type
        rewriter.replace_with(op, fresh)
        return True

    def powers(self, op: Softmax, rewriter: Rewriter) -> bool:
        """Rule 2."""
        import numpy as np

        before = sole(op.input, Dequantize)
        axis = op.axis % op.type.rank
        if before is None or before.x.dtype not in _BYTES or prod(op.type.shape[axis + 1 :]) != 1:
            return False
        codes = np.arange(256, dtype=np.uint8).view(before.x.type.numpy)
        reals = before.evaluate(codes).astype(np.float64)
        if np.abs(reals).max() + log(op.type.shape[axis]) > _FINITE:
            return False
        table = self.weight(np.exp(reals).astype(np.float32), None, op, rewriter, f"{op.label}.powers")
        fresh = make("lut_softmax", [before.x, table], {"axis": axis})
        rewriter.replace_with(op, fresh)
        return True
