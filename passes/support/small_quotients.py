"""Quotients of small integers by a constant, in floats that hold them exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter, TensorType, Value
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.elementwise import Div, Mod
from bmcompiler.passes.drafts import cycles_saved
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on
from bmcompiler.passes.simplify.spans import Spans

_ABOVE = 1 << 20
"""Of dividends below it: rounding 1 / b and the product moves a quotient by less than the half of 1 / b it is above."""


@dataclass(frozen=True)
class SmallQuotients(TargetPatternPass):
    """Divisions of i32, long on a chip that divides floats only, become products where both are exact.

    1. a / b for 0 <= a < 2**20, as types, constants and ops on the way say, and one constant 0 < b < 2**20 :
       cast((cast(a) + 1/2) * (1 / b)), cut towards zero
    2. a mod b, of the same : cast(cast(a) - cast(a / b) * b)
    It is done where the target says that it takes less time in local memory. All bits stay. After quantization, as the
    floats must hold integers.
    """

    name = "small-quotients"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(Div, self.divide) | on(Mod, self.divide)

    def divide(self, op: Div | Mod, rewriter: Rewriter) -> bool:
        """Rules 1 and 2."""
        b = self.constant(op.b)
        if b is None or not b.size or op.a.dtype != "i32" or op.type != op.a.type or PLACE_CPU in op.attributes:
            return False
        low, high = Spans(self.module).of(op.a)
        if (b != b.flat[0]).any() or not 0 < b.flat[0] < _ABOVE or low < 0 or high >= _ABOVE:
            return False
        if cycles_saved(self.target, [op], _steps(op, int(b.flat[0]), lambda _: _number())) <= 0:
            return False

        def constant(number: float) -> Value:
            return self.weight(np.array([number], np.float32), None, op, rewriter, "quotient")

        rewriter.replace_with(op, *_steps(op, int(b.flat[0]), constant))
        return True


def _number() -> Value:
    """A constant of which only the type is asked."""
    return make("weight", (), {"key": ""}, [TensorType((1,), "f32")]).result


def _steps(op: Div | Mod, b: int, constant: Callable[[float], Value]) -> list[TensorOp]:
    wide = make("cast", [op.a], {"dtype": "f32"})
    above = make("add", [wide.result, constant(0.5)])
    part = make("mul", [above.result, constant(1 / b)])
    found = make("cast", [part.result], {"dtype": "i32", "truncate": True})
    steps = [wide, above, part, found]
    if isinstance(op, Mod):
        whole = make("cast", [found.result], {"dtype": "f32"})
        taken = make("mul", [whole.result, constant(b)])
        left = make("sub", [wide.result, taken.result])
        steps += [whole, taken, left, make("cast", [left.result], {"dtype": "i32", "truncate": True})]
    return steps
