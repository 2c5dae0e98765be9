"""Compute equal things once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

from bmcompiler.conditions import NO_GROUPS
from bmcompiler.ir import Function, Module
from bmcompiler.ir.carrying import locations
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.passes.rewriting import hand_name
from bmcompiler.passmanager import Pass, PassContext, PassResult


@dataclass(frozen=True)
class CommonSubexpressions(Pass):
    """Keep the first of several equal ops and let it serve all readers.

    1. weights of one type and equal bytes are one weight
    2. ops with the same name, operands, attributes (tensor names and other notes aside) and result types are one op;
       it carries the source layers of all of them
    """

    name = "common-subexpressions"
    requires = (NO_GROUPS,)
    loses_bits = False
    drops_work = True

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        changed = False
        for function in module.functions:
            changed |= _merge(module, function)
        return PassResult(changed)


def _merge(module: Module, function: Function) -> bool:
    ops = [op for op in function.ops if isinstance(op, TensorOp) and not op.regions]
    samples = {op: _sample(module, op) for op in ops if isinstance(op, Weight)}
    alike = Counter(samples.values())
    seen: dict[Hashable, TensorOp] = {}
    changed = False
    for op in ops:
        # a digest reads the whole array: spare that where a few elements say enough
        lone = op in samples and alike[samples[op]] == 1
        first = op if lone else seen.setdefault(_key(module, op), op)
        if first is op:
            continue
        for old, new in zip(op.results, first.results):
            old.replace_all_uses_with(new)
        if not isinstance(op, Weight):
            first.location = locations(first, op)
            hand_name(op, first.results[0])
        op.erase()
        changed = True
    return changed


def _sample(module: Module, op: Weight) -> Hashable:
    """What equal weights have in common, soon found: text without its side file has no elements."""
    return op.type, module.weights.sample(op.key) if op.key in module.weights else None


def _key(module: Module, op: TensorOp) -> Hashable:
    types = tuple(result.type for result in op.results)
    if isinstance(op, Weight):
        # text without its side file still knows the digests of its weights
        digest = module.weights.digest(op.key) if op.key in module.weights else op.sha256 or f"key {op.key}"
        return ("weight", digest, types)
    attributes = tuple(sorted((name, repr(value)) for name, value in op.attributes.items() if "." not in name))
    return (op.name, tuple(op.operands), attributes, types)
