"""Compilations beside each other share modules, and these stay as they are imported: who changes one is listed here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("bmcompiler", "frontends", "passes", "backends", "runtime/simulator")
"""What a compilation runs; proofs run simulators."""
CHANGES = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"}
REVIEWED = {
    "bmcompiler/bmodel/container.py: _registered": "kinds of model files, as plugins are found",
    "bmcompiler/capi/entries.py: _heads": "declarations, at import",
    "bmcompiler/capi/places.py: _asked": "the C libraries, which know where their callers stand",
    "bmcompiler/capi/said.py: _hearers": "the C libraries, which keep sentences for their callers",
    "bmcompiler/capi/said.py: _calls": "what calls of a C program's function failed with, of its thread",
    "bmcompiler/evaluation/metrics.py: sys": "where a user's metric lies, while it is imported",
    "bmcompiler/ops/base.py: OPS": "classes of ops, at import",
    "bmcompiler/parallel/processes.py: _task": "of a worker process, which has one",
    "bmcompiler/parallel/task.py: _states": "of a worker process, by its task",
    "bmcompiler/passmanager.py: _HINTS": "types of the options of a pass, read from its class",
    "bmcompiler/plugins/custom_layers.py: _functions": "what plugins register",
    "bmcompiler/plugins/custom_layers.py: _insts": "what plugins register",
    "bmcompiler/plugins/custom_layers.py: _kernels": "what plugins register",
    "bmcompiler/plugins/registry.py: _failed": "plugins that cannot be imported",
    "bmcompiler/plugins/tables.py: TABLES": "tables of plugins, at import",
    "frontends/bmlang/meanings/registry.py: _MEANINGS": "meanings of operators, at import",
    "frontends/caffe/layer.py: _converters": "converters, at import",
    "frontends/onnx/constants.py: _FOLDERS": "converters, at import",
    "frontends/onnx/registry.py: _TABLE": "converters, at import",
    "passes/support/decompositions/base.py: BROADCASTING": "rules, at import",
    "passes/support/decompositions/base.py: FOR_INTEGERS": "rules, at import",
    "passes/support/decompositions/base.py: BYTES_ONLY": "rules, at import",
    "passes/support/decompositions/base.py: COARSE": "rules, at import",
    "passes/support/decompositions/base.py: FLOATS_ONLY": "rules, at import",
    "passes/support/decompositions/base.py: WEIGHED": "rules, at import",
    "passes/support/decompositions/base.py: DECOMPOSITIONS": "rules, at import",
}
"""Places that change an object of a module, as `file: name`, and what it holds."""
FORGETTING = {"bmcompiler/numeric/blas.py": "threads of BLAS in the child of a process that forked"}
"""Files that say `cache_clear`, and why."""


def _imported(module: ast.Module) -> set[str]:
    """Names that a module imports."""
    found = (statement for statement in module.body if isinstance(statement, (ast.Import, ast.ImportFrom)))
    return {(each.asname or each.name).split(".")[0] for statement in found for each in statement.names}


def _names(module: ast.Module) -> set[str]:
    """What a module assigns at its top."""
    found = set()
    for statement in module.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for target in filter(None, targets):
            found |= {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
    return found


def _holder(node: ast.AST) -> str:
    """The name that an attribute or element belongs to, whichever way down; "" where there is none."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _changed(function: ast.AST, libraries: set[str]) -> set[str]:
    """Names of others whose objects something is assigned, deleted, or changed by a method; and those said global."""
    changed, own, declared = set(), set(), set()
    for node in ast.walk(function):
        if isinstance(node, ast.Global):
            declared |= set(node.names)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            own.add(node.id)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            changed.add(_holder(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            direct = isinstance(node.func.value, ast.Name) and node.func.value.id in libraries
            changed |= set() if direct else {_holder(node.func)}
    return changed - own | declared


def changes_of(text: str) -> set[str]:
    """Names of a module, its own or imported, whose objects its functions change."""
    module = ast.parse(text)
    imported = _imported(module)
    libraries = {name for name in imported if name.islower()}  # np.add(...) changes nothing
    functions = (node for node in ast.walk(module) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return {name for each in functions for name in _changed(each, libraries)} & (_names(module) | imported)


def _files() -> Iterator[tuple[str, str]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def test_modules_are_changed_where_that_was_reviewed_alone() -> None:
    assert {f"{name}: {each}" for name, text in _files() for each in changes_of(text)} == set(REVIEWED)


def test_no_cache_is_cleared() -> None:
    assert {name for name, text in _files() if "cache_clear" in text} == set(FORGETTING)


def test_all_ways_of_changing_are_seen() -> None:
    ways = ("T[0] = 1", "T.x = 1", "T[0] += 1", "T.x, y = 1, 2", "del T[0]", "T.append(1)", "T.x.update(y=1)")
    for way in (*ways, "global T; T = 1", "(lambda: T.append(1))()"):
        assert changes_of(f"T = []\ndef f():\n    {way}\n") == {"T"}, way
    for own in ("T = []; T.append(1)", "y = T[0]", "T.index(1)", "for T in (): T.x = 1"):
        assert not changes_of(f"T = []\ndef f():\n    {own}\n"), own
    assert changes_of("from m import T\ndef f():\n    T.x.tiler = 1\n") == {"T"}
    assert not changes_of("import m\ndef f():\n    m.add(1)\n")
    assert not changes_of("T = []\ndef f(T):\n    T.append(1)\n") and not changes_of("T = []\nT.append(1)\n")
