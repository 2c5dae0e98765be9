"""The API reference knows each module of the five folders once (`tools/gen_api.py`)."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))

from gen_api import GENERATED, modules  # noqa: E402

FOLDERS = ("frontends", "passes", "backends", "runtime")


def _module(file: Path) -> str:
    path = file.relative_to(ROOT).with_suffix("")
    parts = path.parent.parts if path.name == "__init__" else path.parts
    return ".".join(parts if parts[0] == "bmcompiler" else ("bmcompiler", *parts))


def test_every_module_has_one_page() -> None:
    """The path of the package leads to its checkout (`bmcompiler/__init__.py`), which is not walked."""
    files = [file for folder in ("bmcompiler", *FOLDERS) for file in (ROOT / folder).rglob("*.py")]
    expected = {_module(file) for file in files if not file.stem.endswith(GENERATED)}
    assert sorted(expected) == modules()
