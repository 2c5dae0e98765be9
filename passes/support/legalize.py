"""Rewrite what the target refuses into what it takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Module, Operation, Rewriter, Value, apply_patterns
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.passes.rewriting import activates, declared, forward
from bmcompiler.passes.support.decompositions import decompositions_of
from bmcompiler.passes.support.decompositions.base import FLOATS_ONLY, Draft
from bmcompiler.passes.support.decompositions.elementwise import activation_after
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.target import Target, unsupported_reason

_DEEPEST = 4
"""How many decompositions may build on each other: far more than real layers need, and it keeps the search finite."""


@dataclass(frozen=True)
class Legalize(Pass):
    """Replace ops that the target has no kernel for by equal ops that it runs (by `decompositions`).

    1. A decomposition is used only where the target refuses the op, and takes every op that it drafts, or what further
       ones make of them; so nothing changes on a target that runs the op itself, and nothing is taken apart in vain.
    2. With form = int8 the question is whether the int8 form of a float op runs there (before calibrate, so that the
       new tensors are calibrated); with form = same, and for ops of integers, whether the op as it stands does.

    Without a target nothing changes.
    """

    name = "legalize"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False
    form: str = field(default="int8", metadata={"choices": ("int8", "same")})

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        if ctx.target is None:
            return PassResult(False)
        work = Legalizer(module, ctx.target, self.form)
        changed = False
        for function in module.functions:
            changed |= apply_patterns(function, [work.rewrite])
        return PassResult(changed)


class Legalizer:
    """Answers for one module and target which ops are taken, and what else could stand for the others."""

    def __init__(self, module: Module, target: Target, form: str) -> None:
        self.module, self.target, self.form = module, target, form
        self.known: dict[tuple[Any, ...], bool] = {}
        self.left: dict[Operation, int] = {}
        """How many more may build on an op that one of them made: so they cannot undo each other for ever."""

    def rewrite(self, op: Operation, rewriter: Rewriter) -> bool:
        """Rule 1 on one op of a function."""
        depth = self.left.get(op, _DEEPEST)
        found = self.draft(op, depth)
        if found is None or not isinstance(op, TensorOp):
            return False
        draft, value = found
        for new in draft.ops:
            self.left[new] = depth - 1
            rewriter.insert_before(op, new)
        if isinstance(value, tuple):
            rewriter.replace(op, value)
            return True
        if draft.ops and value.op is draft.ops[-1]:
            value.type = op.type
            rewriter.replace(op, [value])
            return True
        return forward(op, value, rewriter)

    def draft(self, op: Operation, depth: int) -> tuple[Draft, Value | tuple[Value, ...]] | None:
        """The first draft that the target takes, for an op that it refuses."""
        if not isinstance(op, TensorOp) or depth == 0:
            return None
        for decompose in decompositions_of(op):
            if activates(op) and decompose is not activation_after:  # the others know plain sums and products only
                continue
            if self.form == "int8" and decompose in FLOATS_ONLY:
                continue
            draft = Draft(self.module, op, decompose.__name__)
            made = decompose(op, draft)
            if made is not None and not self.accepted(op) and self.leads_on(draft, depth - 1):
                return draft, made
            draft.discard()
        return None

    def leads_on(self, draft: Draft, depth: int) -> bool:
        """Whether all ops of a draft are legal and none asks the question again that it should answer."""
        again = _key(draft.op)
        return all(_key(new) != again and self.legal(new, depth) for new in draft.ops)

    def legal(self, op: TensorOp, depth: int) -> bool:
        """Whether the target takes a drafted op, or what others make of it."""
        if isinstance(op, Weight) or self.accepted(op):
            return True
        found = self.draft(op, depth)
        if found is not None:
            found[0].discard()
        return found is not None

    def accepted(self, op: TensorOp) -> bool:
        """Whether the target takes this op; layers that differ in their values only are asked about once."""
        key = _key(op)
        if key not in self.known:
            if self.form == "int8" and any(value.type.is_float for value in (*op.operands, *op.results)):
                from bmcompiler.passes.quantization.shift.probe import int8_refusal

                reason = int8_refusal(op, self.module, self.target)
            else:
                reason = unsupported_reason(self.target, op)
            self.known[key] = reason is None
        return self.known[key]


def _key(op: TensorOp) -> tuple[Any, ...]:
    """What decides whether a target takes an op: attributes, types, and which operands are constants."""
    constants = tuple(value.op is not None and value.op.short_name == "weight" for value in op.operands)
    types = tuple(str(value.type) for value in (*op.operands, *op.results))
    return op.opname, tuple(declared(op).items()), types, constants
