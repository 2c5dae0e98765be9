"""Names of notes and of ops that several parts know are spelled once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bmcompiler.ir import keys

ROOT = Path(__file__).parents[2]
FOLDERS = ("bmcompiler", "passes", "backends", "frontends", "runtime", "tools", "benchmarks", "examples")
HOME = ROOT / "bmcompiler/ir/keys.py"
KEYS = {name: value for name, value in vars(keys).items() if name.isupper() and isinstance(value, str)}
NOTE = re.compile(r"[a-z_0-9]+\.[a-z_0-9]+")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if path != HOME)


def literals(tree: ast.AST) -> Iterator[ast.Constant]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def spelled_keys(tree: ast.AST) -> list[str]:
    """Keys that a module spells out instead of using their names."""
    return [f"line {node.lineno}: {node.value!r}" for node in literals(tree) if node.value in KEYS.values()]


def spelled_notes(tree: ast.AST) -> list[str]:
    """Dotted literals with which a module reads, writes or asks for an attribute."""
    found = []
    for node in ast.walk(tree):
        key: ast.AST | None = None
        if isinstance(node, ast.Subscript) and _attributes(node.value):
            key = node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _attributes(node.func.value):
            key = node.args[0] if node.args else None
        elif isinstance(node, ast.Compare) and any(map(_attributes, node.comparators)):
            key = node.left
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and NOTE.fullmatch(key.value):
            found.append(f"line {key.lineno}: {key.value!r}")
    return found


def _attributes(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "attributes"


def test_keys_differ() -> None:
    assert len(set(KEYS.values())) == len(KEYS) > 10


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_module_spells_a_key_or_a_note_again(folder: str) -> None:
    found = {}
    for path in SOURCES:
        if path.is_relative_to(ROOT / folder):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found[str(path.relative_to(ROOT))] = [*spelled_keys(tree), *spelled_notes(tree)]
    assert found and not {path: lines for path, lines in found.items() if lines}


def test_spelled_out_keys_are_seen() -> None:
    assert spelled_keys(ast.parse(f"if op.name == {keys.WEIGHT!r}: pass")) == ["line 1: 'tensorop.weight'"]
    for text in ("op.attributes['dv.a'] = 1", "op.attributes.pop('dv.a', 0)", "'dv.a' in op.attributes"):
        assert spelled_notes(ast.parse(text)) == ["line 1: 'dv.a'"]
    assert not spelled_notes(ast.parse("op.attributes['axis'], names['a.b']"))
