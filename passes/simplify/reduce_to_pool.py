"""Global pooling out of reductions."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter
from bmcompiler.ops.layers.reduce import Reduce
from bmcompiler.passes.rewriting import PatternPass, PatternTable, make, on

_POOLS = {"mean": "avg_pool", "max": "max_pool"}


@dataclass(frozen=True)
class ReduceToPool(PatternPass):
    """Reductions over height and width of (N, C, H, W) become pooling with one window.

    1. reduce mean over axes 2 and 3 (floats) : avg_pool with kernel (H, W)
    2. reduce max over axes 2 and 3           : max_pool with kernel (H, W)
    Without keepdims a reshape to (N, C) follows.
    """

    name = "reduce-to-pool"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def table(self) -> PatternTable:
        return {**on(Reduce, self.pool)}

    def pool(self, op: Reduce, rewriter: Rewriter) -> bool:
        """Rules 1 and 2."""
        x = op.operands[0]
        name = _POOLS.get(op.method)
        if name is None or x.type.rank != 4 or sorted(op.axes) != [2, 3]:
            return False
        if (op.method == "mean" and not x.type.is_float) or op.type.dtype != x.dtype:
            return False
        if op.type.quant not in (None, x.type.quant):
            return False
        pool = make(name, [x], {"kernel": x.shape[2:]})
        pool.result.type = op.type.with_shape(pool.type.shape)
        rewriter.insert_before(op, pool, op)
        if op.keepdims:
            rewriter.replace(op, pool.results)
        else:
            rewriter.replace_with(op, make("reshape", [pool.result], {"shape": op.type.shape}, None, op.location))
        return True
