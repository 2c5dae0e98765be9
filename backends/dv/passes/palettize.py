"""Weights of few different values, which a chip can keep as bytes and a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmcompiler.conditions import NO_LAYOUT
from bmcompiler.ir import Module, Operation, Rewriter, apply_patterns
from bmcompiler.ir.keys import PALETTE
from bmcompiler.numeric.arrays import Floats
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.rewriting import Patterns, rebuild
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.quant.palette import SIZE, distinct, nearest, palette
from bmcompiler.target import unsupported_reason

_LAYERS = ("conv", "deconv", "matmul")
_LEAST = 2 * SIZE
"""Weights from which on a byte each and a table of 256 halves are less than a half each."""


@dataclass(frozen=True)
class Palettize(Pass):
    """Replace the weights of a layer by at most 256 different fp16 numbers, 0 among them (`quant.palette`).

    1. conv, deconv or matmul of f32 with more than 512 constant weights : weights from a table of their own

    A layer that the target leaves to the host keeps its weights, and so does one whose weights have few different
    values already or are beyond fp16. Biases and activations stay as they are.
    """

    name = "palettize"
    requires = (NO_LAYOUT,)
    loses_bits = True

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        work = _Palettize(module, ctx)
        changed = False
        for function in module.functions:
            changed |= apply_patterns(function, [work.rewrite])
        if work.errors:
            layer, worst = max(work.errors.items(), key=lambda item: item[1])
            ctx.notes.append(
                f"weights of {len(work.errors)} layers come from tables of {SIZE} numbers; "
                f"they differ most in '{layer}', by {worst:.2%} of their rms"
            )
        return PassResult(changed)


class _Palettize(Patterns):
    """Rule 1; `errors` holds the relative rms difference per layer."""

    def __init__(self, module: Module, ctx: PassContext) -> None:
        super().__init__(module)
        self.target = ctx.target
        self.errors: dict[str, float] = {}

    def rewrite(self, op: Operation, rewriter: Rewriter) -> bool:
        """Rule 1 on one op of a function."""
        if not isinstance(op, TensorOp) or op.opname not in _LAYERS or not op.type.is_float:
            return False
        value = op.operands[1]
        weights = self.constant(value)
        if weights is None or weights.size <= _LEAST or (self.target and unsupported_reason(self.target, op)):
            return False
        with np.errstate(over="ignore"):
            rounded = weights.astype(np.float16)
        if not np.isfinite(rounded).all():
            return False
        values, _ = distinct(rounded)
        if np.count_nonzero(values) < SIZE:
            return False
        coded = nearest(rounded, palette(rounded)).astype(np.float32)
        self.errors[op.label] = _difference(weights, coded)
        fresh = self.weight(coded, value, op, rewriter, "weight")
        if fresh.op is not None:
            fresh.op.attributes[PALETTE] = SIZE
        rewriter.replace_with(op, rebuild(op, [op.operands[0], fresh, *op.operands[2:]]))
        return True


def _difference(exact: Floats, coded: Floats) -> float:
    norm = float(np.linalg.norm(exact))
    return float(np.linalg.norm(exact - coded)) / norm if norm else 0.0
