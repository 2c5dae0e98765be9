"""The form every later pass and every target starts from."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.errors import UsageError
from bmcompiler.ir import Module
from bmcompiler.passmanager import GROUP, Pass, PassContext, PassResult, Pipeline, foreign_passes
from bmcompiler.pipelines import PassRow
from bmcompiler.plugins.registry import note_failure

ROUND = (
    PassRow("fold-constants", "patterns below compare with numbers"),
    PassRow("remove-identity", "what does nothing stands between the ops of patterns"),
    PassRow("merge-reshapes", "functions stand next to what they belong to"),
    PassRow("fuse-norms", "norms are over the last axes, before a permute in front of them moves through"),
    PassRow("move-permutes", "behind norms; what is left meets others and cancels"),
    PassRow("fuse-patterns", "activations, before their arithmetic turns into scales and moves into weights"),
    PassRow("fuse-thresholds", "comparisons, before their numbers move"),
    PassRow("fuse-gates", "made of the activations that fuse-patterns found"),
    PassRow("reduce-to-pool", "no pattern asks for the mean any more"),
    PassRow("simplify-matmul", "adds become biases before they would become scales"),
    PassRow("move-scales", "brings scales next to the layers that take them"),
    PassRow("fold-batch-norm", "scales stand next to their layers"),
    PassRow("fold-pad", "shifts are in the layers: only padding by what they pad with is left"),
    PassRow("fold-phases", "the convolution has its pads"),
    PassRow("common-subexpressions", "what was rewritten twice is equal now"),
    PassRow("dead-code", "weights that nobody reads any more"),
)
"""A round of canonicalize."""


def whole_round() -> tuple[Pass, ...]:
    """Rules 1 and 2. A package's pass that wants to follow one that is not here is left out, and noted as broken."""
    passes = list(Pipeline.parse(",".join(row.text for row in ROUND)))
    names = [each.name for each in passes]
    for cls in foreign_passes():
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

    1. those of `ROUND`, in this order, at most `rounds` times
    2. every pass of another package whose `canonicalize_after` names one of these runs right after it
    """

    name = "canonicalize"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False
    drops_work = True
    parts = ROUND
    rounds: int = 10

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise UsageError(f"pass {self.name}: option rounds must be at least 1, got {self.rounds}")

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        passes = whole_round()
        for done in range(self.rounds):
            # every pass of the round runs, whatever the ones before it found
            if not any([each.run(module, ctx).modified for each in passes]):
                return PassResult(done > 0)
        return PassResult(True)
