"""The form every later pass and every target starts from."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.errors import UsageError
from bmcompiler.ir import Module
from bmcompiler.passes.common_subexpressions import CommonSubexpressions
from bmcompiler.passes.dead_code import DeadCode
from bmcompiler.passes.fold_batch_norm import FoldBatchNorm
from bmcompiler.passes.fold_constants import FoldConstants
from bmcompiler.passes.fold_pad import FoldPad
from bmcompiler.passes.fuse_gates import FuseGates
from bmcompiler.passes.fuse_norms import FuseNorms
from bmcompiler.passes.fuse_patterns import FusePatterns
from bmcompiler.passes.merge_reshapes import MergeReshapes
from bmcompiler.passes.move_permutes import MovePermutes
from bmcompiler.passes.move_scales import MoveScales
from bmcompiler.passes.reduce_to_pool import ReduceToPool
from bmcompiler.passes.remove_identity import RemoveIdentity
from bmcompiler.passes.simplify_matmul import SimplifyMatmul
from bmcompiler.passmanager import Pass, PassContext, PassResult

# Decomposed activations are recognised before their arithmetic turns into scales and moves into weights.
_ROUND: tuple[Pass, ...] = (
    FoldConstants(),
    RemoveIdentity(),
    MergeReshapes(),
    MovePermutes(),
    FusePatterns(),
    FuseGates(),
    FuseNorms(),
    ReduceToPool(),
    SimplifyMatmul(),
    MoveScales(),
    FoldBatchNorm(),
    FoldPad(),
    CommonSubexpressions(),
    DeadCode(),
)


@dataclass(frozen=True)
class Canonicalize(Pass):
    """Run the target-independent rewrites in turn until none changes anything.

    1. fold-constants, remove-identity, merge-reshapes, move-permutes, fuse-patterns, fuse-gates, fuse-norms,
       reduce-to-pool, simplify-matmul, move-scales, fold-batch-norm, fold-pad, common-subexpressions, dead-code, in
       this order, at most `rounds` times
    """

    name = "canonicalize"
    rounds: int = 10

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise UsageError(f"pass {self.name}: option rounds must be at least 1, got {self.rounds}")

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        for done in range(self.rounds):
            # every pass of the round runs, whatever the ones before it found
            if not any([each.run(module, ctx).modified for each in _ROUND]):
                return PassResult(done > 0)
        return PassResult(True)
