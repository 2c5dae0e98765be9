"""The lines of pyproject.toml under `bmcompiler.passes`, one for each pass of the tree: python tools/pass_lines.py

A pass is a class with a name whose base is one of passes, in `passes` or `backends/CHIP/passes`. Lines keep their
order, new ones stand behind them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = '[project.entry-points."bmcompiler.passes"]\n'


def passes() -> Iterator[tuple[str, str]]:
    """Name, and where it is, of every pass of the tree."""
    rooms = [ROOT / "passes", *sorted((ROOT / "backends").glob("*/passes"))]
    for path in (path for room in rooms for path in sorted(room.rglob("*.py"))):
        module = ".".join(("bmcompiler", *path.relative_to(ROOT).with_suffix("").parts))
        for cls in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(cls, ast.ClassDef) and any(ast.unparse(base).endswith("Pass") for base in cls.bases):
                for each in cls.body:
                    if (
                        isinstance(each, ast.Assign)
                        and isinstance(each.value, ast.Constant)
                        and ast.unparse(each.targets[0]) == "name"
                    ):
                        yield str(each.value.value), f"{module}:{cls.name}"


def project() -> str:
    """pyproject.toml with a line for each pass."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    before, _, rest = text.partition(HEAD)
    lines, _, after = rest.partition("\n\n")
    order = [line.partition(" = ")[0] for line in lines.splitlines()]
    found = sorted(passes(), key=lambda one: order.index(one[0]) if one[0] in order else len(order))
    return f"{before}{HEAD}" + "\n".join(f'{name} = "{place}"' for name, place in found) + f"\n\n{after}"


if __name__ == "__main__":
    (ROOT / "pyproject.toml").write_text(project(), encoding="utf-8")
