"""The largest expression around a fault that can be evaluated once more, right or broken, and what it is computed of.

What may do something, which is a call of whatever is not known to compute only, is evaluated once and given to both. In
a condition after another one it is evaluated again, where its name says that it only tells something.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator, Mapping

KINDS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Subscript, ast.Call, ast.IfExp)
"""Expressions with a value to compare; of a tuple each element is one."""
BOUND = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)
"""What binds names, or waits: a function inside of the expression cannot."""
_FUNCTIONS = """
abs align_up all any bool ceil dict float floor frozenset gcd int isinstance len list max min prod range reversed round
round_up set sorted str sum tuple zip
"""
_METHODS = "all any astype bit_count bit_length count get index items keys max min prod reshape sum values"
FUNCTIONS, METHODS = frozenset(_FUNCTIONS.split()), frozenset(_METHODS.split())
"""Functions and methods that compute only; all of numpy do that do not write into an `out`."""
DOES = re.compile(
    r"add|append|draft|emit|extend|leads|legal|load|next|pop|push|put|record|remember|save|send|set|store|take|update|write"
)
"""Names of functions that may do more than tell something."""


def computes(call: ast.Call) -> bool:
    """Whether a call only computes."""
    if any(word.arg == "out" for word in call.keywords):
        return False
    if isinstance(call.func, ast.Name):
        first = call.args[:1]
        told = call.func.id == "next" and first and isinstance(first[0], ast.GeneratorExp)
        return call.func.id in FUNCTIONS or bool(told)
    numpy = (
        isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "np"
    )
    return numpy or (isinstance(call.func, ast.Attribute) and call.func.attr in METHODS)


ALWAYS, ASKED, PERHAPS = range(3)
"""When a part is evaluated: with the whole, as a condition after another one, or in one case of two."""


def once(node: ast.AST, truths: Container[int], when: int = ALWAYS) -> Iterator[ast.Call]:
    """The outermost calls that may do something; LookupError where one is perhaps not made, but does something."""
    if isinstance(node, ast.Call) and not computes(node):
        if when == ALWAYS:
            yield node
            return
        if when == PERHAPS or DOES.search(ast.unparse(node.func)):
            raise LookupError("a call that is made in one case does something")
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.IfExp):
        parts = [node.test, node.body, node.orelse]
    sure = {ast.BoolOp: 2, ast.IfExp: 1, ast.Compare: len(parts) if _is_single(node) else 2}.get(type(node), len(parts))
    if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        sure = 0
    rest = ASKED if isinstance(node, ast.Compare) or id(node) in truths else PERHAPS
    for index, part in enumerate(parts):
        yield from once(part, truths, when if index < sure else max(when, rest))


def _is_single(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and len(node.ops) == 1


def truths_of(tree: ast.AST) -> set[int]:
    """Expressions that are only asked whether they hold."""
    found: set[int] = set()
    for node in ast.walk(tree):  # a whole comes before its parts
        tested = [getattr(node, "test", None), *getattr(node, "ifs", ())]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            tested.append(node.operand)
        if isinstance(node, ast.BoolOp) and id(node) in found:
            tested += node.values
        found |= {id(each) for each in tested if each is not None}
    return found


def within(node: ast.AST, without: Mapping[int, str]) -> Iterator[ast.AST]:
    """All nodes of an expression, but for these and what is inside of them."""
    if id(node) not in without:
        yield node
        for part in ast.iter_child_nodes(node):
            yield from within(part, without)


def copied(node: ast.AST, named: Mapping[int, str], wrong: Mapping[int, ast.AST]) -> ast.AST:
    """A copy with names for what is evaluated once, and with the broken node in place of the right one."""
    if id(node) in named:
        return ast.Name(named[id(node)], ast.Load())
    if id(node) in wrong:
        return copied(wrong[id(node)], named, {})
    made = type(node)()
    for field, value in ast.iter_fields(node):
        if isinstance(value, list):
            value = [copied(each, named, wrong) if isinstance(each, ast.AST) else each for each in value]
        setattr(made, field, copied(value, named, wrong) if isinstance(value, ast.AST) else value)
    return made


def function(names: list[str], body: ast.AST) -> ast.Lambda:
    """A function of these names."""
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(name) for name in names], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    return ast.Lambda(arguments, body)  # type: ignore[arg-type]
