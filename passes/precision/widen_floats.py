"""Programs whose floats have types of their own: what the chip does not compute in 16 bits, it computes in f32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmcompiler.conditions import A_CHIP, NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Function, Module, Operation, Rewriter, TensorType, Value
from bmcompiler.ir.keys import is_weight
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.layers.nn import Convolution
from bmcompiler.passes.rewriting import Patterns, make
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.target import Target, unsupported_reason

HALVES = ("f16", "bf16")
_BIAS = 2


@dataclass(frozen=True)
class WidenFloats(Pass):
    """Compute in f32 what the target does not compute in a 16-bit float type; results are rounded to their type.

    1. an op with such operands or results that the target takes, or that moves elements : stays
    2. a sum of products that the target takes with its bias in f32 : that bias
    3. a cast between such a type and one other than f32 : two casts, by way of f32
    4. all else : its operands are cast to f32, or constants of that type, its results back

    All tensors keep their types, unlike by single-precision, in whose place this pass stands: f16 and bf16 of a
    program are what its author wrote.
    """

    name = "widen-floats"
    requires = (A_CHIP, NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        assert ctx.target is not None, "A_CHIP holds"
        found = [_Widened(module, ctx.target).rewrite(function) for function in module.functions]
        return PassResult(any(found))


class _Widened(Patterns):
    def __init__(self, module: Module, target: Target) -> None:
        super().__init__(module)
        self._target = target
        self._rewriter = Rewriter()
        self._wide: dict[Value, Value] = {}
        """Values of 16 bits in f32."""

    def rewrite(self, function: Function) -> bool:
        """Rules 1 to 4 on all ops in order; whether any changed."""
        changed = False
        for op in function.ops[:-1]:
            if isinstance(op, TensorOp) and not self._stays(op):
                if not self._with_wide_bias(op):
                    self._by_f32(op)
                changed = True
        return changed

    def _stays(self, op: TensorOp) -> bool:
        """Rule 1."""
        halves = any(value.dtype in HALVES for value in (*op.operands, *op.results))
        return not halves or is_weight(op.results[0]) or op.moves_only or unsupported_reason(self._target, op) is None

    def _with_wide_bias(self, op: TensorOp) -> bool:
        """Rule 2."""
        if not isinstance(op, Convolution) or len(op.operands) <= _BIAS or op.operands[_BIAS].dtype not in HALVES:
            return False
        bias = op.operands[_BIAS]
        op.set_operand(_BIAS, self._in_f32(bias, op))
        if unsupported_reason(self._target, op) is None:
            return True
        op.set_operand(_BIAS, bias)
        return False

    def _by_f32(self, op: TensorOp) -> None:
        """Rules 3 and 4."""
        operands = [self._in_f32(value, op) if value.dtype in HALVES else value for value in op.operands]
        fresh = op.clone(operands)
        for old, result in zip(op.results, fresh.results):
            if old.dtype in HALVES:
                result.type = TensorType(old.shape, "f32")
        if isinstance(fresh, Cast) and op.type.dtype in HALVES:
            fresh.attributes["dtype"] = "f32"
        self._rewriter.insert_before(op, fresh)
        if isinstance(fresh, Cast) and fresh.x.dtype == fresh.type.dtype == "f32":  # of one to the other type
            self._rewriter.replace(fresh, [fresh.x])
            results = [operands[0]]
        else:
            results = list(fresh.results)
        pairs = zip(op.results, results)
        made = [self._cast(result, old.dtype, op) if old.dtype in HALVES else result for old, result in pairs]
        self._rewriter.replace(op, made)

    def _in_f32(self, value: Value, anchor: Operation) -> Value:
        if value not in self._wide:
            array = self.constant(value)
            if array is None:
                self._wide[value] = self._cast(value, "f32", anchor)
            else:
                self._wide[value] = self.weight(array.astype(np.float32), value, anchor, self._rewriter, "weight")
        return self._wide[value]

    def _cast(self, value: Value, dtype: str, anchor: Operation) -> Value:
        cast = make("cast", [value], {"dtype": dtype}, location=anchor.location)
        self._rewriter.insert_before(anchor, cast)
        return cast.results[0]
