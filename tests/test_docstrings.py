"""Public methods say what they do; an override means what its base says, and rules of kernels are texts themselves.

ruff asks the same of modules, classes and functions, but cannot tell an override.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CODE = ("bmcompiler", "frontends", "passes", "backends", "runtime")


class Class(NamedTuple):
    """A class of the code: where, its methods, names of its bases."""

    path: str
    methods: dict[str, ast.FunctionDef]
    bases: tuple[str, ...]


def classes() -> dict[str, list[Class]]:
    found: dict[str, list[Class]] = {}
    for path in (p for folder in CODE for p in sorted((ROOT / folder).rglob("*.py")) if not p.stem.endswith("_pb2")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
                bases = tuple(ast.unparse(base).split("[")[0].rsplit(".", 1)[-1] for base in node.bases)
                found.setdefault(node.name, []).append(Class(path.relative_to(ROOT).as_posix(), methods, bases))
    return found


def speaks_for_itself(method: ast.FunctionDef) -> bool:
    """A rule of a kernel, the setter of a property, or an attribute that a protocol only names."""
    decorators = [ast.unparse(each) for each in method.decorator_list]
    if any(text.startswith("rule(") or text.endswith(".setter") for text in decorators):
        return True
    return "property" in decorators and ast.unparse(method.body[0]) == "..."


def undocumented(known: dict[str, list[Class]]) -> Iterator[str]:
    def declared_above(bases: tuple[str, ...], method: str, above: tuple[str, ...] = ()) -> bool:
        return any(
            (method in cls.methods) or declared_above(cls.bases, method, (*above, base))
            for base in bases
            if base not in above
            for cls in known.get(base, ())
        )

    for name, cls in ((name, cls) for name, same_name in known.items() for cls in same_name):
        for method, node in cls.methods.items():
            private = name.startswith("_") or method.startswith("_")
            if private or ast.get_docstring(node) or speaks_for_itself(node):
                continue
            if not declared_above(cls.bases, method):
                yield f"{cls.path}:{node.lineno} {name}.{method}"


def test_public_methods_are_documented() -> None:
    missing = list(undocumented(classes()))
    assert not missing, "\n".join(["no docstring:", *missing])


SAYS_WHERE = re.compile(r"(Rules? \d|Pattern \d|Level \d|Both rules|All rules|See `|Undo `)")
"""What has its text in another docstring; formulas speak for themselves."""


def test_docstrings_of_public_things_say_something() -> None:
    empty = []
    for path in (p for folder in CODE for p in sorted((ROOT / folder).rglob("*.py")) if not p.stem.endswith("_pb2")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                text = ast.get_docstring(node) or "none, which others look for"
                if len(text.split()) < 3 and text[:2].isalnum() and not SAYS_WHERE.match(text):
                    empty.append(f"{path.relative_to(ROOT).as_posix()}:{node.lineno} {node.name}: {text}")
    assert not empty, "\n".join(empty)


def test_asserts_say_why_they_hold() -> None:
    silent = [
        f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"
        for folder in CODE
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert) and node.msg is None
    ]
    assert not silent
