"""Let the op that feeds an activation compute it."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.conditions import NO_LAYOUT
from bmcompiler.ir import Module, Operation, Rewriter, apply_patterns
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Clip, Relu
from bmcompiler.ops.shared import Activated
from bmcompiler.passes.rewriting import activates, rebuild
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.target import Target, unsupported_reason


@dataclass(frozen=True)
class FuseActivation(Pass):
    """Fold an activation into the op that feeds it.

    1. op that has the attribute (conv, deconv, matmul, add) -> relu, read by it alone : activation = "relu"
    2. the same -> clip to [0, 6], read by it alone (floats)                          : activation = "relu6"
    3. Not where the op has an activation already, changes its element type or quantization on the way, or where
       either of the two is marked for the CPU.
    4. With a target, only where that runs the op with the activation inside; without one, everywhere.

    The new op has the source layers of both; tensor name and threshold are those of the activation.
    """

    name = "fuse-activation"
    requires = (NO_LAYOUT,)
    loses_bits = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        def pattern(op: Operation, rewriter: Rewriter) -> bool:
            return isinstance(op, TensorOp) and _fuse(op, ctx.target, rewriter)

        changed = False
        for function in module.functions:
            changed |= apply_patterns(function, [pattern])
        return PassResult(changed)


def _fuse(op: TensorOp, target: Target | None, rewriter: Rewriter) -> bool:
    activation = _activation(op)
    before = op.operands[0].op if activation and len(op.operands[0].uses) == 1 else None
    if not isinstance(before, Activated) or activates(before) or before.result.type != op.type:
        return False
    if PLACE_CPU in op.attributes or PLACE_CPU in before.attributes:
        return False
    fused = rebuild(before, before.operands, activation=activation)
    if target is not None and unsupported_reason(target, fused) is not None:
        fused.erase()
        return False
    rewriter.replace_with(op, fused, absorbed=[before])
    rewriter.erase(before)
    return True


def _activation(op: TensorOp) -> str:
    """Rules 1 and 2: the name of the activation that `op` is, "" for any other op."""
    if isinstance(op, Clip):
        return "relu6" if (op.min, op.max) == (0.0, 6.0) else ""
    return "relu" if isinstance(op, Relu) else ""
