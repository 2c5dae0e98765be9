"""What can be wrong in one place of a module: a node of its syntax tree, and what stands there instead.

A fault is one a person makes: a sign, a neighbour's column, a forgotten factor, the other rounding. Texts of messages,
types, decorators and what only raises are left alone. So is whether an estimate may also be equal to another one: of
two plans that are estimated to take equally long either is as good. So is whether a real number may also be equal to a
tolerance, or to a decimal fraction that no float is: exactly there either side is as good. And so are a copy that is
made where none is needed, a check of lengths that are equal, which negative number stands for the size that numpy finds
itself, and the last of what is mostly one where the first is meant.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

OTHER_NAME = {
    "rint": "floor", "floor": "ceil", "ceil": "floor", "trunc": "floor",
    "HALF_EVEN": "HALF_AWAY", "HALF_AWAY": "HALF_EVEN", "HALF_UP": "HALF_DOWN", "HALF_DOWN": "HALF_UP",
    "TO_ZERO": "DOWN", "DOWN": "UP", "UP": "DOWN",
}  # fmt: skip
"""Attributes that name a rounding."""
OTHER_BOUND = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
OTHER_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
ESTIMATE = re.compile(r"(^|_)(cycles?|costs?|time|seconds|estimate[sd]?|gain|saved|slower|quicker|best|cheapest)(_|$)")
"""Names of what plans are chosen by."""
TOLERANCE = re.compile(r"(^|_)(NEAR|LOSS|SAME|TOLERANCE|COARSE)$")
"""Names of what two numbers may differ by and still count as one."""
ANY_ORDER = re.compile(
    r"(min|max|add|multiply|mul|gcd|lcm|zip|isinstance|cast|array_equal|bitwise_\w+|logical_\w+)(imum)?$"
)
"""Functions whose arguments are no error to swap, or one that no test is needed for."""
WAIT = re.compile(r"wait|depend|hazard|sync|barrier|order|fence", re.IGNORECASE)
LEFT_ALONE = (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Global, ast.Nonlocal)
TYPES = {"tuple", "dict", "list", "Callable", "Mapping", "Generator", "ndarray"}
"""What subscripts with several parts make types of: names of types are no code, wherever they stand."""
NO_MEANING = {"copy=False", "strict=True", "optimize=True"}
"""Arguments that only save time, or check what holds."""
NOT_CODE = {"decorator_list", "annotation", "returns", "type_params", "args"}
NO_NUMBERS = (ast.Constant, ast.JoinedStr, ast.Tuple, ast.List, ast.ListComp, ast.GeneratorExp, ast.Dict)


@dataclass(frozen=True)
class Fault:
    """One wrong node: `text` replaced by `wrong` in the statement `statement` of `function` ("" outside of all)."""

    kind: str
    function: str
    statement: str
    text: str
    wrong: str
    line: int
    node: ast.AST = field(repr=False, compare=False)
    replacement: ast.AST = field(repr=False, compare=False)

    @property
    def rounds_up(self) -> bool:
        """Whether it rounds a division up, which is none where there is never a remainder."""
        return self.kind == "rounding" and isinstance(self.node, ast.BinOp)

    def digest(self, *more: object) -> str:
        """What tells it from others for as long as the statement stays, wherever in the file it moves."""
        words = (*more, self.kind, self.function, self.statement, self.text, self.wrong)
        return hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()[:12]


def head(statement: ast.stmt) -> str:
    """The statement as one line; of one with a body, its first line."""
    if isinstance(statement, (ast.If, ast.While, ast.For, ast.With, ast.Try, ast.Match)):
        bare = without_body(statement)
        return " ".join(ast.unparse(bare).split())
    return " ".join(ast.unparse(statement).split())


def without_body(statement: ast.stmt) -> ast.stmt:
    """The header alone, with `pass` below."""
    if isinstance(statement, (ast.Try, ast.Match)):
        return ast.Expr(ast.Name(type(statement).__name__))
    bare = type(statement)(**{name: getattr(statement, name) for name in statement._fields})
    bare.body = [ast.Pass()]  # type: ignore[attr-defined]
    if hasattr(bare, "orelse"):
        bare.orelse = []
    return ast.copy_location(bare, statement)


def faults(tree: ast.Module) -> Iterator[Fault]:
    """All faults of a module, in the order of its text."""
    yield from _of_body(tree.body, "")


def _of_body(body: list[ast.stmt], function: str) -> Iterator[Fault]:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            yield from _of_body(statement.body, f"{function}.{statement.name}".lstrip("."))
        elif not isinstance(statement, LEFT_ALONE) and not _docstring(statement):
            yield from _of_statement(statement, function)


def _docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _of_statement(statement: ast.stmt, function: str) -> Iterator[Fault]:
    text = head(statement)
    if text.startswith(("__all__", "if TYPE_CHECKING")):
        return
    found = list(_dropped(statement)) if function else []
    for name, value in ast.iter_fields(statement):
        if name in ("body", "orelse", "finalbody", "handlers", "cases") or name in NOT_CODE:
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                found += _of_expression(node)
    for kind, node, replacement in found:
        before, after = (" ".join(ast.unparse(each).split()) for each in (node, replacement))
        if before != after:
            yield Fault(kind, function, text, before, after, getattr(node, "lineno", 0), node, replacement)
    for name in ("body", "orelse", "finalbody"):
        inner = getattr(statement, name, [])
        if isinstance(inner, list):
            yield from _of_body(inner, function)
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield from _of_body(part.body, function)


Wrong = tuple[str, ast.AST, ast.AST]


def _dropped(statement: ast.stmt) -> Iterator[Wrong]:
    called = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    if called or isinstance(statement, ast.AugAssign):
        kind = "wait" if WAIT.search(ast.unparse(statement)) else "drop"
        yield kind, statement, ast.copy_location(ast.Pass(), statement)


def _of_expression(node: ast.AST) -> Iterator[Wrong]:
    if isinstance(node, LEFT_ALONE) or (isinstance(node, ast.keyword) and ast.unparse(node) in NO_MEANING):
        return
    make = MAKERS.get(type(node))
    if make is not None:
        for kind, replacement in make(node):
            yield kind, node, ast.copy_location(replacement, node)
    reshaped = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "reshape"
    for name, value in ast.iter_fields(node):
        if name in NOT_CODE and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            index = isinstance(node, ast.Subscript) and name == "slice" and _is_int(child)  # its neighbours are columns
            if isinstance(child, ast.AST) and not index and not (reshaped and isinstance(child, ast.UnaryOp)):
                yield from _of_expression(child)


Made = Iterator[tuple[str, ast.AST]]


def _binary(node: ast.BinOp) -> Made:
    if isinstance(node.left, NO_NUMBERS) and not _is_int(node.left):
        return
    if isinstance(node.right, NO_NUMBERS) and not _is_int(node.right):
        return
    if isinstance(node.op, (ast.Add, ast.Sub)):
        yield "sign", ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)
    elif isinstance(node.op, ast.Mult):
        yield "stride", node.left
        yield "stride", node.right
    elif isinstance(node.op, ast.FloorDiv):
        up = ast.BinOp(ast.UnaryOp(ast.USub(), node.left), ast.FloorDiv(), node.right)
        yield "rounding", ast.UnaryOp(ast.USub(), up)
    elif isinstance(node.op, (ast.LShift, ast.RShift)):
        yield "shift", ast.BinOp(node.left, node.op, ast.BinOp(node.right, ast.Add(), ast.Constant(1)))


def _is_int(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _unary(node: ast.UnaryOp) -> Made:
    if isinstance(node.op, ast.USub):
        yield "sign", node.operand
    elif isinstance(node.op, ast.Not):
        yield "condition", node.operand


def _constant(node: ast.Constant) -> Made:
    if type(node.value) is int:
        yield "constant", ast.Constant(node.value + 1)
        yield "constant", ast.Constant(node.value - 1)
    elif type(node.value) is bool:
        yield "flag", ast.Constant(not node.value)


def _is_estimate(node: ast.AST) -> bool:
    names = (getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node))
    return any(map(ESTIMATE.search, names))


def _of_estimates(one: ast.AST, two: ast.AST) -> bool:
    """Whether an estimate is compared with another, or with a share of one; with 0 it says whether there is one."""
    constant = isinstance(one, ast.Constant) or isinstance(two, ast.Constant)
    return not constant and (_is_estimate(one) or _is_estimate(two))


def _is_inexact(node: ast.AST) -> bool:
    """Whether a tolerance, or a decimal fraction that no float is, stands in an expression."""
    parts = list(ast.walk(node))
    fractions = (each.value for each in parts if isinstance(each, ast.Constant) and isinstance(each.value, float))
    names = (getattr(each, "id", getattr(each, "attr", "")) for each in parts)
    return any(map(TOLERANCE.search, names)) or any((value * 2.0**20) % 1 for value in fractions)


def _compare(node: ast.Compare) -> Made:
    for index, op in enumerate(node.ops):
        other = OTHER_COMPARE.get(type(op))
        sides = [node.left, *node.comparators][index : index + 2]
        if other is not None and not _of_estimates(*sides) and not any(map(_is_inexact, sides)):
            yield (
                "compare",
                ast.Compare(node.left, [*node.ops[:index], other(), *node.ops[index + 1 :]], node.comparators),
            )


def _condition(node: ast.BoolOp) -> Made:
    yield "condition", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _swapped(nodes: list[ast.expr]) -> Iterator[list[ast.expr]]:
    """Two neighbours of one kind in each other's place."""
    alike = (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp)
    for index, (one, two) in enumerate(pairwise(nodes)):
        if isinstance(one, alike) and isinstance(two, alike):
            yield [*nodes[:index], two, one, *nodes[index + 2 :]]


def _call(node: ast.Call) -> Made:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if isinstance(node.func, ast.Name) and name in OTHER_BOUND and len(node.args) > 1:
        yield "bound", ast.Call(ast.Name(OTHER_BOUND[name], ast.Load()), node.args, node.keywords)
    if not ANY_ORDER.match(name):
        for args in _swapped(node.args):
            yield "swap", ast.Call(node.func, args, node.keywords)


def _attribute(node: ast.Attribute) -> Made:
    other = OTHER_NAME.get(node.attr)
    if other is not None:
        yield "rounding", ast.Attribute(node.value, other, node.ctx)
    if node.attr in OTHER_BOUND and isinstance(node.value, ast.Name) and node.value.id == "np":
        yield "bound", ast.Attribute(node.value, OTHER_BOUND[node.attr], node.ctx)


def _subscript(node: ast.Subscript) -> Made:
    if getattr(node.value, "id", getattr(node.value, "attr", "")) in TYPES:
        return
    if isinstance(node.slice, ast.Tuple):
        for elements in _swapped(node.slice.elts):
            yield "swap", ast.Subscript(node.value, ast.Tuple(elements, ast.Load()), node.ctx)
    elif _is_int(node.slice):
        column = node.slice.value  # type: ignore[attr-defined]
        for other in (column - 1, column + 1) if column else (1,):
            yield "column", ast.Subscript(node.value, ast.Constant(other), node.ctx)


MAKERS: dict[type[ast.AST], Callable[[Any], Made]] = {
    ast.BinOp: _binary, ast.UnaryOp: _unary, ast.Constant: _constant, ast.Compare: _compare, ast.BoolOp: _condition,
    ast.Call: _call, ast.Attribute: _attribute, ast.Subscript: _subscript,
}  # fmt: skip


class Replace(ast.NodeTransformer):
    """One node, found by identity, for another."""

    def __init__(self, node: ast.AST, replacement: ast.AST) -> None:
        self.node, self.replacement = node, replacement

    def visit(self, node: ast.AST) -> ast.AST:
        return self.replacement if node is self.node else self.generic_visit(node)


ONLY_WHOLE = "whole:"
"""Before the digest of a fault that rounds a division up: break it where there is something to round at all."""


def only_whole(node: ast.BinOp) -> ast.AST:
    """a // b, with ZeroDivisionError where that leaves a remainder."""
    rest = ast.BinOp(node.left, ast.Mod(), node.right)
    is_whole = ast.Compare(rest, [ast.Eq()], [ast.Constant(0)])
    return ast.BinOp(node.left, ast.FloorDiv(), ast.IfExp(is_whole, node.right, ast.Constant(0)))


def fault_of(tree: ast.Module, digest: str) -> Fault:
    """The fault of a module that has this digest; LookupError where there is none."""
    fault = next((each for each in faults(tree) if each.digest() == digest.removeprefix(ONLY_WHOLE)), None)
    if fault is None:
        raise LookupError(f"no fault {digest} in this source")
    return fault


def broken(source: str, digest: str) -> ast.Module:
    """The module with that one fault; LookupError where the source has no such one."""
    tree = ast.parse(source)
    fault = fault_of(tree, digest)
    wrong = fault.replacement
    if digest.startswith(ONLY_WHOLE):
        assert isinstance(fault.node, ast.BinOp), "only divisions leave a remainder"
        wrong = ast.copy_location(only_whole(fault.node), fault.node)
    changed: ast.Module = Replace(fault.node, wrong).visit(tree)
    return ast.fix_missing_locations(changed)
