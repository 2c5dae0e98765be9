"""The pass join-runs: which results are not rounded to fp16 because their reader goes on inside the same run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bmcompiler.backends.dv.lowering.joining import Node, nodes_of
from bmcompiler.backends.dv.target import DvTarget
from bmcompiler.codegen.partition import partition
from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT, Condition
from bmcompiler.ir import Module
from bmcompiler.ops.base import TensorOp
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.target import Target

if TYPE_CHECKING:
    from bmcompiler.backends.dv.kernels.base import RunKernel

DV700 = Condition(
    "the DV700",
    "only there a run goes on with what is not rounded yet",
    lambda _, ctx: None if isinstance(ctx.target, DvTarget) else "the target is no DV700",
    "compile for dv700, or leave out the pass",
)


@dataclass(frozen=True)
class JoinRuns(Pass):
    """Mark the results that stay inside a run of the DV700, so that `evaluate` rounds where the device does.

    1. conv|deconv|avg_pool|upsample -> add, one use : the sum is rounded, not the addend that the run makes
    2. a run -> an activation, one use               : its result is rounded, not what it is applied to
    3. ops whose result is the same with and without a rounding before them (max_pool, relu) need no mark of their own;
       where rule 2 goes through one of them, all results inside the run are marked
    """

    name = "join-runs"
    requires = (DV700, NO_GROUPS)
    breaks = (NO_LAYOUT, NO_GROUPS)
    loses_bits = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        changed = False
        for function in module.functions:
            for segment in partition(function, ctx.target):
                if segment.device:
                    marks = _Marks(ctx.target)
                    nodes_of(segment.ops, ctx.target.kernel_for, marks)
                    changed |= marks.changed
        return PassResult(changed)


class _Marks:
    """Lets every op join, and marks what that leaves unrounded."""

    def __init__(self, target: Target) -> None:
        self.target, self.changed = target, False

    def __call__(self, op: TensorOp, kernel: RunKernel[Any], node: Node) -> bool:
        from bmcompiler.backends.dv.lowering.parts import UNROUNDED, is_unrounded

        if not kernel.keeps_bits(op):
            for inside in node.ops:
                self.changed |= not is_unrounded(inside)
                inside.attributes[UNROUNDED] = True
        return True
