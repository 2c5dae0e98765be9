"""Facts of the chips are what was recorded from their documents: fields, codes, sizes and limits (`--update-golden`).

A wrong bit of a field that few commands set, or a limit that no network comes near, changes no program of the tests. So
are all other numbers that code generators, simulators, arithmetic and quantization name, and what their objects are
made with where nothing is said: one that is changed is seen, be it a guess that only decides how fast a program is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

from bmcompiler.instructions.isa import Format

ROOT = Path(__file__).parent.parent
FACTS = {
    "numeric": ("bmcompiler/numeric/*.py",),
    "codegen": ("bmcompiler/codegen/**/*.py",),
    "quantization": ("passes/precision/quantize.py", "passes/quantization/**/*.py", "passes/support/**/*.py"),
    "simulators": ("runtime/simulator/*.py", "runtime/simulator/bm168x/*.py"),
    "lanes": ("backends/lanes/**/*.py", "backends/bm168x/*.py"),
    "bm1880": ("backends/bm1880/**/*.py", "runtime/simulator/bm1880/**/*.py"),
    "bm1684": ("backends/bm1684/**/*.py", "runtime/simulator/bm1684/**/*.py"),
    "bm1684x": ("backends/bm1684x/**/*.py", "runtime/simulator/bm1684x/**/*.py"),
    "dv700": ("backends/dv/**/*.py", "runtime/simulator/dv/**/*.py"),
}

MOST = 64
"""Elements of an array; larger ones are computed."""

LATER = ("checks",)
"""What functions hold that is made when they are called first."""


def written(value: Any, *, held: bool = False) -> str | None:
    """A value as text, None where it has no meaning but to code; of what functions hold, formats are names."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, str) and " " in value:
        return None  # told to people
    if value is None or isinstance(value, (bool, int, float, str, bytes, slice)):
        return repr(value)
    if isinstance(value, (np.generic, np.ndarray)):
        return f"{value.dtype} {value.tolist()!r}" if value.size <= MOST else None
    if isinstance(value, Format):
        return value.name if held else _fields(value)
    if is_dataclass(value) and not isinstance(value, type):
        items = ((field.name, getattr(value, field.name)) for field in fields(value))
        return _listed(type(value).__name__, items, held=held)
    if isinstance(value, Mapping):
        return _listed("", ((str(written(key)), each) for key, each in value.items()), held=held)
    if isinstance(value, (set, frozenset)):
        return str(sorted(filter(None, map(written, value))))
    if isinstance(value, (tuple, list)):
        return _listed("", (("", each) for each in value), held=held)
    kept = _listed("with", _held(value), held=True)
    return None if kept == "with()" else kept


def _listed(name: str, items: Iterable[tuple[str, Any]], *, held: bool) -> str:
    told = [(key, text) for key, each in items if (text := written(each, held=held)) is not None]
    return f"{name}({', '.join(f'{key}={text}' if key else text for key, text in told)})"


def _fields(value: Format) -> str:
    """A line per field, so that a diff names it."""
    told = (f"\n    {each.name} from bit {each.first_bit}, {each.width} bits" for each in value.fields)
    defaults = {each.name: each.default for each in value.fields if each.default}
    return f"{value.name} of {value.bits} bits{''.join(told)}\n    {written(defaults)}"


def _held(function: Any) -> Iterator[tuple[str, Any]]:
    """What a function of a table was made with; chips and what C functions are declared as stand elsewhere."""
    if isinstance(function, partial):
        given = [*(("", each) for each in function.args), *function.keywords.items()]
        yield from (pair for pair in given if not is_dataclass(pair[1]))
    elif isinstance(function, FunctionType) and function.__closure__:
        cells = zip(function.__code__.co_freevars, function.__closure__)
        held = ((name, cell.cell_contents) for name, cell in cells if cell.cell_contents is not function)
        yield from (pair for pair in held if pair[0] not in LATER)


def constants(module: ModuleType, source: str) -> Iterator[str]:
    """What a module itself assigns, what its classes do, and the members of its enumerations."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.ClassDef):
            made = getattr(module, statement.name)
            if issubclass(made, Enum):
                yield from (f"{made.__name__}.{name} = {member.value!r}" for name, member in made.__members__.items())
                continue
            given = vars(made) | getattr(made, "_field_defaults", {})
            more: dict[str, Mapping[str, Any]] = {}
            if is_dataclass(made):
                given |= {each.name: each.default for each in fields(made) if each.default is not MISSING}
                more = {each.name: each.metadata for each in fields(made)}
            for name in (name for each in statement.body for name in assigned(each)):
                yield from told(f"{made.__name__}.{name}", given.get(name))
                yield from told(f"{made.__name__}.{name} is", dict(more.get(name, {})) or None)
        for name in assigned(statement):
            yield from told(name, getattr(module, name))


def assigned(statement: ast.stmt) -> list[str]:
    """Names to which a statement gives something."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or statement.value is None:
        return []
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = [each for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    return [each.id for each in names if isinstance(each.ctx, ast.Store) and each.id != "__all__"]


def told(name: str, value: Any) -> Iterator[str]:
    """A line, where the value has a meaning."""
    rows = dict(enumerate(value)) if isinstance(value, tuple) else value
    if isinstance(rows, Mapping) and rows and all(map(is_dataclass, rows.values())):
        yield from (f"{name}[{written(key)}] = {written(each)}" for key, each in rows.items())
        return
    text = written(value)
    if text not in (None, "None", "()"):
        yield f"{name} = {text}"


@pytest.mark.parametrize("chip", FACTS)
def test_facts_are_those_that_were_recorded(chip: str, golden: Callable[[Path, str], None]) -> None:
    lines = []
    found_paths = {path for pattern in FACTS[chip] for path in ROOT.glob(pattern)}
    paths = {path for path in found_paths if path.name != "asm.py" and path.parent.name != "passes"}
    for path in sorted(paths):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        module = import_module(f"bmcompiler.{name.removeprefix('bmcompiler.')}")  # no second copy of what others import
        found = list(dict.fromkeys(constants(module, path.read_text(encoding="utf-8"))))
        lines += [f"[{name}]", *found, ""] if found else []
    assert lines
    golden(Path(__file__).parent / f"data/facts/{chip}.txt", "\n".join(lines))
