"""Recognise smooth activations that an exporter wrote out as arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Exp, Log, Sigmoid, Softplus, Tanh
from bmcompiler.ops.elements.elementwise import Div, Mul, Pow
from bmcompiler.ops.elements.functions import Erf
from bmcompiler.ops.layers.norm import Scale
from bmcompiler.passes.rewriting import PatternPass, PatternTable, make, on, sole
from bmcompiler.passes.simplify.formulas import ArithmeticPatterns, become, closed

_CUBIC = 0.044715
"""Coefficient of the tanh form of GELU (Hendrycks and Gimpel, arXiv 1606.08415)."""


@dataclass(frozen=True)
class FuseGates(PatternPass, ArithmeticPatterns):
    """Replace decomposed activations by one op; what is inside a pattern must have no other reader (floats only).

    1. 1 / (1 + exp(-x)), also as a power of -1           : sigmoid
    2. log(1 + exp(x))                                    : softplus
    3. x * sigmoid(a*x), x / (1 + exp(-a*x))              : swish
    4. x * tanh(softplus(x))                              : mish
    5. x/2 * (1 + erf(x / sqrt(2)))                       : gelu
    6. x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3))) : gelu with approximate = "tanh"
    7. log(sigmoid(x))                                    : -softplus(-x), which takes no logarithm of a byte that is 0
    Factors may stand in any order, numbers anywhere among them, the polynomial may be written in any way.
    """

    name = "fuse-gates"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def table(self) -> PatternTable:
        return {
            **on(Div, self.quotient, self.gate),
            **on(Pow, self.reciprocal),
            **on(Log, self.softplus, self.log_sigmoid),
            **on(Mul, self.gate),
            **on(Scale, self.gate),
        }

    # -- rules 1 to 3: quotients -------------------------------------------------------------------------------------
    def one_plus_exp(self, value: Value) -> tuple[Value, list[TensorOp]] | None:
        """(z, ops) when value = 1 + exp(z)."""
        line = self.line_of(value)
        exp = sole(line.source, Exp)
        if exp is None or not line.ops or (line.factor, line.offset) != (1.0, 1.0):
            return None
        return exp.operands[0], [*line.ops, exp]

    def quotient(self, op: Div, rewriter: Rewriter) -> bool:
        """Rule 1, and rule 3 for x / (1 + exp(-a*x))."""
        bottom = self.one_plus_exp(op.operands[1])
        if bottom is None:
            return False
        inner = self.line_of(bottom[0])
        ops = [op, *bottom[1], *inner.ops]
        if inner.offset != 0 or not closed(op, ops):
            return False
        if self.uniform(op.operands[0]) == 1.0 and inner.factor == -1.0 and inner.source.shape == op.type.shape:
            return become(op, make("sigmoid", [inner.source]), rewriter)
        if inner.source is op.operands[0] and inner.ops:
            return become(op, make("swish", [inner.source], {"alpha": -inner.factor}), rewriter)
        return False

    def reciprocal(self, op: Pow, rewriter: Rewriter) -> bool:
        """Rule 1, (1 + exp(-x)) ** -1."""
        bottom = self.one_plus_exp(op.operands[0]) if self.uniform(op.operands[1]) == -1.0 else None
        inner = self.line_of(bottom[0]) if bottom is not None else None
        if bottom is None or inner is None or (inner.factor, inner.offset) != (-1.0, 0.0):
            return False
        ops = [op, *bottom[1], *inner.ops]
        if inner.source.shape != op.type.shape or not closed(op, ops):
            return False
        return become(op, make("sigmoid", [inner.source]), rewriter)

    def softplus(self, op: Log, rewriter: Rewriter) -> bool:
        """Rule 2."""
        inside = self.one_plus_exp(op.operands[0])
        if inside is None or inside[0].shape != op.type.shape:
            return False
        return become(op, make("softplus", [inside[0]]), rewriter)

    def log_sigmoid(self, op: Log, rewriter: Rewriter) -> bool:
        """Rule 7."""
        inner = sole(op.operands[0], Sigmoid)
        if inner is None:
            return False
        value = inner.operands[0]
        for name in ("neg", "softplus"):
            (value,) = rewriter.insert_before(op, make(name, [value]), is_part=True).results
        return become(op, make("neg", [value]), rewriter)

    # -- rules 3 to 6: products --------------------------------------------------------------------------------------
    def gate(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rules 3 to 6."""
        if not op.type.is_float:
            return False
        product = self.product(op)
        if len(product.values) != 2:
            return False
        for x, bent in (product.values, product.values[::-1]):
            found = self.bent(bent, x)
            if found is None or not _close(product.number * found.number, 1.0) or x.shape != op.type.shape:
                continue
            ops = [*product.ops, *found.ops]
            return closed(op, ops) and become(op, make(found.name, [x], found.attributes), rewriter)
        return False

    def bent(self, value: Value, x: Value) -> _Gate | None:
        """The factor that makes an activation of `x`."""
        line = self.line_of(value)
        curve = sole(line.source, Sigmoid, Tanh, Erf)
        if curve is None:
            return None
        ops = [*line.ops, curve]
        if line.offset == 0:
            return self.plain_gate(curve, x, line.factor, ops)
        if not _close(line.offset, line.factor):
            return None
        inner = self.polynomial(curve.operands[0], x)
        if inner is None:
            return None
        terms, root = inner[0], math.sqrt(0.5)
        wanted = {1: root} if isinstance(curve, Erf) else {1: 2 * root / math.sqrt(math.pi)}
        attributes = {}
        if isinstance(curve, Tanh):
            wanted[3] = wanted[1] * _CUBIC
            attributes = {"approximate": "tanh"}
        alike = all(_close(terms.get(power, 0.0), wanted.get(power, 0.0)) for power in {*terms, *wanted})
        if isinstance(curve, Sigmoid) or not alike:
            return None
        return _Gate("gelu", attributes, 2 * line.factor, [*ops, *inner[1]])

    def plain_gate(self, curve: TensorOp, x: Value, factor: float, ops: list[TensorOp]) -> _Gate | None:
        """Rules 3 and 4."""
        if isinstance(curve, Sigmoid):
            inner = self.line_of(curve.operands[0])
            if inner.source is not x or inner.offset != 0:
                return None
            return _Gate("swish", {"alpha": inner.factor}, factor, [*ops, *inner.ops])
        softplus = sole(curve.operands[0], Softplus)
        if not isinstance(curve, Tanh) or softplus is None or softplus.operands[0] is not x:
            return None
        return _Gate("mish", {}, factor, [*ops, softplus])


class _Gate(NamedTuple):
    """x * (what `ops` make of x) is `number` times the activation."""

    name: str
    attributes: dict[str, Any]
    number: float
    ops: list[TensorOp]


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-9)
