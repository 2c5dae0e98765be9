"""A module that tells which of its statements are reached."""

from __future__ import annotations

import ast
from collections.abc import Callable

from mutation.faults import LEFT_ALONE, head

PROBE = "__reached__"
Number = Callable[[str, str], int]


def probed(tree: ast.Module, number: Number) -> ast.Module:
    """Before each statement of a function a call of `__reached__`; `number` counts (function, statement).

    Two equal statements of one function are one. What stands outside of functions runs on import and has no probe.
    """
    _probe_body(tree.body, "", False, number)
    return ast.fix_missing_locations(tree)


def _probe_body(body: list[ast.stmt], function: str, inside: bool, number: Number) -> None:
    for index in range(len(body) - 1, -1, -1):
        statement = body[index]
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            named = f"{function}.{statement.name}".lstrip(".")
            _probe_body(statement.body, named, isinstance(statement, ast.FunctionDef), number)
            continue
        text = head(statement)
        for name in ("body", "orelse", "finalbody"):
            if isinstance(inner := getattr(statement, name, None), list):
                _probe_body(inner, function, inside, number)
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            _probe_body(part.body, function, inside, number)
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if inside and not docstring and not isinstance(statement, LEFT_ALONE):
            probe = ast.Expr(ast.Call(ast.Name(PROBE, ast.Load()), [ast.Constant(number(function, text))], []))
            body.insert(index, ast.copy_location(probe, statement))
