"""The form every later pass and every target starts from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from bmcompiler.errors import UsageError
from bmcompiler.ir import Module
from bmcompiler.passes.common_subexpressions import CommonSubexpressions
from bmcompiler.passes.dead_code import DeadCode
from bmcompiler.passes.fold_batch_norm import FoldBatchNorm
from bmcompiler.passes.fold_constants import FoldConstants
from bmcompiler.passes.fold_pad import FoldPad
from bmcompiler.passes.fold_phases import FoldPhases
from bmcompiler.passes.fuse_gates import FuseGates
from bmcompiler.passes.fuse_norms import FuseNorms
from bmcompiler.passes.fuse_patterns import FusePatterns
from bmcompiler.passes.merge_reshapes import MergeReshapes
from bmcompiler.passes.move_permutes import MovePermutes
from bmcompiler.passes.move_scales import MoveScales
from bmcompiler.passes.reduce_to_pool import ReduceToPool
from bmcompiler.passes.remove_identity import RemoveIdentity
from bmcompiler.passes.simplify_matmul import SimplifyMatmul
from bmcompiler.passmanager import GROUP, Pass, PassContext, PassResult, installed_passes
from bmcompiler.plugins.registry import note_failure

# Decomposed activations are recognised before their arithmetic turns into scales and moves into weights, and
# normalisations, which are over the last axes, before a permute in front of them moves through.
_ROUND: tuple[Pass, ...] = (
    FoldConstants(),
    RemoveIdentity(),
    MergeReshapes(),
    FuseNorms(),
    MovePermutes(),
    FusePatterns(),
    FuseGates(),
    ReduceToPool(),
    SimplifyMatmul(),
    MoveScales(),
    FoldBatchNorm(),
    FoldPad(),
    FoldPhases(),
    CommonSubexpressions(),
    DeadCode(),
)


@cache
def _whole_round() -> tuple[Pass, ...]:
    """Rules 1 and 2. A plugin's pass that wants to follow one that is not here is left out, and noted as broken."""
    passes = list(_ROUND)
    names = [each.name for each in _ROUND]
    for cls in installed_passes():
        if not cls.canonicalize_after:
            continue
        if cls.canonicalize_after not in names:
            known = f"canonicalize_after must be one of: {', '.join(names)}"
            note_failure(
                GROUP, cls.name, f"follows '{cls.canonicalize_after}', which canonicalize does not run; {known}"
            )
            continue
        at = [each.name for each in passes].index(cls.canonicalize_after)
        passes.insert(at + 1, cls())
    return tuple(passes)


@dataclass(frozen=True)
class Canonicalize(Pass):
    """Run the target-independent rewrites in turn until none changes anything.

    1. fold-constants, remove-identity, merge-reshapes, fuse-norms, move-permutes, fuse-patterns, fuse-gates,
       reduce-to-pool, simplify-matmul, move-scales, fold-batch-norm, fold-pad, fold-phases, common-subexpressions,
       dead-code, in this order, at most `rounds` times
    2. every other installed pass whose `canonicalize_after` names one of these runs right after it
    """

    name = "canonicalize"
    rounds: int = 10

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise UsageError(f"pass {self.name}: option rounds must be at least 1, got {self.rounds}")

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        for done in range(self.rounds):
            # every pass of the round runs, whatever the ones before it found
            if not any([each.run(module, ctx).modified for each in _whole_round()]):
                return PassResult(done > 0)
        return PassResult(True)
