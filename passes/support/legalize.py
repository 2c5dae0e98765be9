"""Rewrite what the target refuses into what it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Module, Operation, Rewriter, Value, apply_patterns, erase_dead
from bmcompiler.ir.keys import EXACT, PLACE_CPU, REFUSED
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.ops.places.shape import Reshape
from bmcompiler.passes.rewriting import activates, declared, forward
from bmcompiler.passes.support.decompositions import decompositions_of
from bmcompiler.passes.support.decompositions.base import BYTES_ONLY, COARSE, FLOATS_ONLY, WEIGHED, Decomposition, Draft
from bmcompiler.passes.support.decompositions.elementwise import activation_after
from bmcompiler.passes.support.measured_bytes import bytes_do
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.target import Target, unsupported_reason

_COARSE = "eight bits lose too much of '{}', as far as samples tell (legalize{{statistics=bytes}} has it on the chip)"
"""Why an op stays whole by rule 4."""
_DEEPEST = 4
"""How many decompositions may build on each other: far more than real layers need, and it keeps the search finite."""


@dataclass(frozen=True)
class Legalize(Pass):
    """Replace ops that the target has no kernel for by equal ops that it runs (by `decompositions`).

    1. A decomposition is used only where the target refuses the op, and takes every op that it drafts, or what further
       ones make of them; so nothing changes on a target that runs the op itself, and nothing is taken apart in vain.
    2. With form = int8 the question is whether the int8 form of a float op runs there (before calibrate, so that the
       new tensors are calibrated); with form = same, and for ops of integers, whether the op as it stands does.
    3. The first decomposition is used; of those that are weighed the one whose ops take the fewest cycles, if the
       target has an estimate of all.
    4. Norms, softmax, divisions by computed values, recurrent layers and spectra are taken apart on a chip of bytes
       where the net, with all of it in bytes, is near float on the samples (`measured_bytes`). Else, and without
       samples, they stay whole, for the host's floats, and carry a note that says so: there they cost more than the
       rest of the net. statistics = bytes or host decides it without measuring.

    Without a target nothing changes.
    """

    name = "legalize"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False
    form: str = field(default="int8", metadata={"choices": ("int8", "same")})
    statistics: str = field(default="measured", metadata={"choices": ("measured", "host", "bytes")})

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        if ctx.target is None:
            return PassResult(False)
        coarse = self.statistics == "bytes"
        if self.statistics == "measured" and Legalizer(module, ctx.target, self.form).keeps_any():
            coarse = bytes_do(module, partial(self._apart, target=ctx.target), ctx)
        return PassResult(self._apart(module, ctx.target, coarse=coarse))

    def _apart(self, module: Module, target: Target, *, coarse: bool) -> bool:
        """Rules 1 to 4 on all ops; whether any changed."""
        work, changed = Legalizer(module, target, self.form, coarse=coarse), False
        for function in module.functions:
            changed |= apply_patterns(function, [work.rewrite])
            if coarse:  # masks that softmaxes did without
                changed |= erase_dead(function)
        return changed


class Legalizer:
    """Answers for one module and target which ops are taken, and what else could stand for the others."""

    def __init__(self, module: Module, target: Target, form: str, *, coarse: bool = False) -> None:
        self.module, self.target, self.form, self.coarse = module, target, form, coarse
        self.known: dict[tuple[Any, ...], bool] = {}
        self.left: dict[Operation, int] = {}
        """How many more may build on an op that one of them made: so they cannot undo each other for ever."""

    def rewrite(self, op: Operation, rewriter: Rewriter) -> bool:
        """Rule 1 on one op of a function."""
        depth = self.left.get(op, _DEEPEST)
        found = self.draft(op, depth)
        if found is None or not isinstance(op, TensorOp):
            reason = self.coarse_reason(op)
            op.attributes |= {} if reason is None else {EXACT: reason}
            refused = self.refused_part(op)
            op.attributes |= {} if refused is None else {REFUSED: refused}
            return reason is not None
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

    def keeps_any(self) -> bool:
        """Whether rule 4 alone keeps any op whole."""
        bolder = Legalizer(self.module, self.target, self.form, coarse=True)
        return any(not self._finds(op) and bolder._finds(op) for op in list(self.module.walk()))

    def _finds(self, op: Operation, depth: int = _DEEPEST) -> bool:
        """Whether anything stands for an op that the target refuses."""
        found = self.draft(op, depth)
        if found is not None:
            found[0].discard()
        return found is not None

    def coarse_reason(self, op: Operation) -> str | None:
        """Why nothing stands for an op that the target refuses, where rule 4 alone keeps it whole."""
        if self.form != "int8" or self.coarse or {EXACT, PLACE_CPU} & {*op.attributes} or not isinstance(op, TensorOp):
            return None
        if COARSE.isdisjoint(decompositions_of(op)) or self.accepted(op):
            return None
        bolder = Legalizer(self.module, self.target, self.form, coarse=True)
        return _COARSE.format(op.short_name) if bolder._finds(op) else None

    def refused_part(self, op: Operation) -> str | None:
        """Why others do not stand for an op without a kernel: too much of something, or the one op that is refused."""
        if self.form != "same" or not isinstance(op, TensorOp) or {PLACE_CPU, REFUSED} & {*op.attributes}:
            return None
        for decompose in self.candidates(op) if self.target.kernel_for(op) is None else ():
            draft = Draft(self.module, op, decompose.__name__)
            decompose(op, draft)
            refused = [new for new in draft.ops if not self.legal(new, _DEEPEST - 1)]
            reasons = [unsupported_reason(self.target, new) for new in refused if self.target.kernel_for(new)]
            found = draft.beyond
            if len(refused) == len(reasons) == 1:
                found = f"'{refused[0].title}' could stand for it: {reasons[0]}"
            draft.discard()
            if found is not None:
                return found
        return None

    def draft(self, op: Operation, depth: int) -> tuple[Draft, Value | tuple[Value, ...]] | None:
        """The first draft that the target takes, for an op that it refuses, or the quickest of weighed ones."""
        if not isinstance(op, TensorOp) or depth == 0 or PLACE_CPU in op.attributes:
            return None
        best: tuple[Draft, Value | tuple[Value, ...]] | None = None
        least = inf
        for decompose in self.candidates(op):
            if best is not None and decompose not in WEIGHED:
                break
            draft = Draft(self.module, op, decompose.__name__)
            made = decompose(op, draft)
            if made is None or self.accepted(op) or not self.leads_on(draft, depth - 1):
                draft.discard()
                continue
            if decompose not in WEIGHED:
                return draft, made
            cycles = self.cycles(draft)
            if best is None or cycles < least:
                if best is not None:
                    best[0].discard()
                best, least = (draft, made), cycles
            else:
                draft.discard()
        return best

    def candidates(self, op: TensorOp) -> Iterator[Decomposition]:
        """What may be asked about an op; most know plain sums and products only, without a function behind them."""
        for decompose in decompositions_of(op):
            if activates(op) and decompose is not activation_after:
                continue
            if decompose in COARSE and not self.coarse:
                continue
            if decompose not in (FLOATS_ONLY if self.form == "int8" else BYTES_ONLY):
                yield decompose

    def cycles(self, draft: Draft) -> float:
        """Of all ops from global memory to there; infinite where the target has no estimate of one."""
        total = 0
        for op in draft.ops:
            if isinstance(op, (Weight, Reshape)):
                continue
            found = self.target.cycles(op)
            if found is None:
                found = self.target.moving_cycles(op)
            if found is None:
                return inf
            total += found
        return total

    def leads_on(self, draft: Draft, depth: int) -> bool:
        """Whether all ops of a draft are legal and none asks the question again that it should answer."""
        again = _key(draft.op)
        return all(_key(new) != again and self.legal(new, depth) for new in draft.ops)

    def legal(self, op: TensorOp, depth: int) -> bool:
        """Whether the target takes a drafted op, or what others make of it."""
        if isinstance(op, Weight) or self.accepted(op):
            return True
        return self._finds(op, depth)

    def accepted(self, op: TensorOp) -> bool:
        """Whether the target takes this op; layers that differ in their values only are asked about once."""
        key = _key(op)
        if key not in self.known:
            if self.form == "int8":
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
