"""Facts of the chips are what was recorded from their documents: fields, codes, sizes and limits (`--update-golden`).

A wrong bit of a field that few commands set, or a limit that no network comes near, changes no program of the tests.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bmcompiler.instructions.isa import Format

ROOT = Path(__file__).parent.parent
FACTS = {
    "bm1880": ("backends/bm1880/isa.py", "backends/bm1880/chip.py"),
    "bm1684": ("backends/bm1684/isa.py", "backends/bm1684/chip.py"),
    "bm1684x": ("backends/bm1684x/isa.py", "backends/bm1684x/codes.py", "backends/bm1684x/chip.py",
                "backends/bm1684x/tpukernel/arguments.py", "backends/bm1684x/tpukernel/control.py",
                "backends/bm1684x/tpukernel/types.py"),
    "dv700": ("backends/dv/chip.py", "backends/dv/formats/*.py"),
}  # fmt: skip


def written(value: Any) -> str | None:
    """A value as text, None where it has no meaning but to code."""
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, (bool, int, float, str, bytes, slice)):
        return repr(value)
    if isinstance(value, Format):  # a line per field, so that a diff names it
        told = (f"\n    {each.name} from bit {each.first_bit}, {each.width} bits" for each in value.fields)
        defaults = {each.name: each.default for each in value.fields if each.default}
        return f"{value.name} of {value.bits} bits{''.join(told)}\n    {written(defaults)}"
    if is_dataclass(value) and not isinstance(value, type):
        return _listed(type(value).__name__, ((field.name, getattr(value, field.name)) for field in fields(value)))
    if isinstance(value, Mapping):
        return _listed("", ((str(written(key)), each) for key, each in value.items()))
    if isinstance(value, (set, frozenset)):
        return str(sorted(filter(None, map(written, value))))
    if isinstance(value, (tuple, list)):
        return _listed("", (("", each) for each in value))
    return None


def _listed(name: str, items: Iterable[tuple[str, Any]]) -> str:
    told = [(key, text) for key, each in items if (text := written(each)) is not None]
    return f"{name}({', '.join(f'{key}={text}' if key else text for key, text in told)})"


def constants(module: ModuleType, source: str) -> Iterator[str]:
    """What a module itself assigns, and the members of its enumerations."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.ClassDef):
            made = getattr(module, statement.name)
            if issubclass(made, Enum):
                yield from (f"{made.__name__}.{name} = {member.value!r}" for name, member in made.__members__.items())
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for name in (each.id for each in targets if isinstance(each, ast.Name)):
            text = written(getattr(module, name))
            if text is not None and name != "__all__":
                yield f"{name} = {text}"


@pytest.mark.parametrize("chip", FACTS)
def test_facts_are_those_that_were_recorded(chip: str, golden: Callable[[Path, str], None]) -> None:
    lines = []
    for path in sorted(path for pattern in FACTS[chip] for path in ROOT.glob(pattern)):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found = list(constants(import_module(f"bmcompiler.{name}"), path.read_text(encoding="utf-8")))
        lines += [f"[{name}]", *found, ""] if found else []
    assert lines
    golden(Path(__file__).parent / f"data/facts/{chip}.txt", "\n".join(lines))
