"""Functions of bytes that come out of a look-up table are part of the table."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.ir import Module, Rewriter
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.integer import Lut
from bmcompiler.passes.rewriting import PatternPass, Rules, RuleTable, inherit, on, rebuild, sole

_BYTES = ("i8", "u8")


@dataclass(frozen=True)
class MergeTables(PatternPass):
    """One look-up for a chain of functions of bytes; bits stay.

    1. f(lut(x, table)), f of one element, its other operands constants, the lut read by f alone: lut(x, f(table))
    """

    name = "merge-tables"

    def rules(self, module: Module) -> Rules:
        return _MergeTables(module)


class _MergeTables(Rules):
    def table(self) -> RuleTable:
        return on(TensorOp, self.into_table)

    def into_table(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 1."""
        if not op.pointwise or op.type.dtype not in _BYTES:
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
        rewriter.replace_with(op, inherit(fresh, before, op))
        return True
