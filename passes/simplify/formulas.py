"""Arithmetic that an exporter wrote out, read back as formulas: straight lines, polynomials, products."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from bmcompiler.ir import Operation, Rewriter, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Neg
from bmcompiler.ops.elements.elementwise import Add, Div, Mul, Pow, Sub
from bmcompiler.ops.layers.norm import Scale
from bmcompiler.passes.rewriting import Patterns, activates, producer, sole

_ARITHMETIC = (Add, Sub, Mul, Div, Scale, Neg)
_HIGHEST = 4


@dataclass
class Line:
    """value = factor * source + offset (numbers), through `ops`."""

    source: Value
    factor: float = 1.0
    offset: float = 0.0
    ops: list[TensorOp] = field(default_factory=list)


@dataclass
class Product:
    """value = number * the product of `values`, through `ops`."""

    number: float
    values: list[Value]
    ops: list[TensorOp] = field(default_factory=list)


class ArithmeticPatterns(Patterns):
    """Patterns that look through arithmetic with numbers. What is inside a formula has no reader outside of it."""

    def line_of(self, value: Value, *, top: bool = False) -> Line:
        """How `value` follows from the source of its arithmetic with single numbers. Stops at values read elsewhere."""
        found = Line(value)
        while True:
            at_top = top and not found.ops
            op = producer(found.source, *_ARITHMETIC) if at_top else sole(found.source, *_ARITHMETIC)
            step = self.step(op) if op is not None else None
            if op is None or step is None:
                return found
            source, factor, offset = step
            found.offset += found.factor * offset
            found.factor *= factor
            found.source = source
            found.ops.append(op)

    def step(self, op: TensorOp) -> tuple[Value, float, float] | None:
        """(x, factor, offset) when op = factor * x + offset with numbers."""
        if not op.type.is_float or activates(op):
            return None
        if isinstance(op, Neg):
            return op.operands[0], -1.0, 0.0
        if isinstance(op, Scale):
            factor, offset = self.uniform(op.weight), 0.0 if op.bias is None else self.uniform(op.bias)
            return None if factor is None or offset is None else (op.operands[0], factor, offset)
        for i in (0, 1):
            x, number = op.operands[i], self.uniform(op.operands[1 - i])
            if number is None or self.constant(x) is not None or x.shape != op.type.shape:
                continue
            if isinstance(op, (Add, Mul)):
                return (x, 1.0, number) if isinstance(op, Add) else (x, number, 0.0)
            if isinstance(op, Sub):
                return (x, 1.0, -number) if i == 0 else (x, -1.0, number)
            return (x, 1.0 / number, 0.0) if i == 0 and number else None
        return None

    def product(self, op: TensorOp) -> Product:
        """The factors of a value, through multiplications by numbers and by each other that nothing else reads."""
        found = Product(1.0, [])
        open_values = [op.result]
        while open_values:
            value = open_values.pop()
            at = op if value is op.result else sole(value, Mul, Div, Scale, Neg)
            step = self.step(at) if at is not None else None
            if at is not None and step is not None and step[2] == 0:
                found.number *= step[1]
                open_values.append(step[0])
            elif at is not None and isinstance(at, Mul) and at.operands[0] is not at.operands[1]:
                open_values += reversed(at.operands)
            else:
                found.values.append(value)
                continue
            found.ops.append(at)
        return found

    def polynomial(self, value: Value, x: Value) -> tuple[dict[int, float], list[TensorOp]] | None:
        """(coefficient by power of x, ops) when `value` is a polynomial in `x` with numbers, of low degree."""
        if value is x:
            return {1: 1.0}, []
        number = self.uniform(value)
        if number is not None:
            return {0: number}, []
        op = producer(value, *_ARITHMETIC, Pow)
        if op is None or op.type.shape != x.shape or activates(op):
            return None
        if isinstance(op, Scale):
            step = self.step(op)
            inner = self.polynomial(op.operands[0], x) if step is not None else None
            if step is None or inner is None:
                return None
            return _plus(_times(inner[0], {0: step[1]}), {0: step[2]}, 1.0), [op, *inner[1]]
        parts = [self.polynomial(operand, x) for operand in op.operands]
        found = [part for part in parts if part is not None]
        if len(found) != len(parts):
            return None
        terms = _combine(op.opname, *(part[0] for part in found))
        if terms is None or max(terms, default=0) > _HIGHEST:
            return None
        return terms, [op, *(o for part in found for o in part[1])]


def _combine(name: str, a: dict[int, float], b: dict[int, float] | None = None) -> dict[int, float] | None:
    """The polynomial that an op makes of one or two."""
    if b is None:
        return _times(a, {0: -1.0})
    if name in ("add", "sub"):
        return _plus(a, b, 1.0 if name == "add" else -1.0)
    if name == "mul":
        return _times(a, b)
    number = b.get(0, 0.0) if set(b) <= {0} else None
    if name == "div":
        return _times(a, {0: 1.0 / number}) if number else None
    if number is None or number not in (1.0, 2.0, 3.0):
        return None
    terms = a
    for _ in range(int(number) - 1):
        terms = _times(terms, a)
    return terms


def _plus(a: dict[int, float], b: dict[int, float], sign: float) -> dict[int, float]:
    return {power: a.get(power, 0.0) + sign * b.get(power, 0.0) for power in {*a, *b}}


def _times(a: dict[int, float], b: dict[int, float]) -> dict[int, float]:
    terms: dict[int, float] = {}
    for p, left in a.items():
        for q, right in b.items():
            terms[p + q] = terms.get(p + q, 0.0) + left * right
    return terms


def closed(root: TensorOp, ops: Iterable[TensorOp]) -> bool:
    """Whether only ops of the formula read the inner values of the formula that ends in `root`."""
    members: set[Operation] = {root, *ops}
    return all(user in members for op in members if op is not root for r in op.results for user in r.users)


def become(op: TensorOp, fresh: TensorOp, rewriter: Rewriter) -> bool:
    """Put `fresh` in the place of `op`, with its type. Always True."""
    fresh.result.type = op.type
    rewriter.replace_with(op, fresh)
    return True
