"""The API reference knows each module of the five folders once (`tools/gen_api.py`)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))

from gen_api import GENERATED, modules, separated, write  # noqa: E402

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


@pytest.mark.filterwarnings("ignore:Error parsing type")
def test_pages_lead_home_and_give_each_name_its_line(tmp_path: Path) -> None:
    write(tmp_path / "api", ["bmcompiler", "bmcompiler.analysis", "bmcompiler.analysis.profile"], home=True)
    page = (tmp_path / "api" / "bmcompiler" / "analysis" / "profile.html").read_text(encoding="utf-8")
    assert 'href="../../../index.html">bmcompiler\'s pages</a>' in page
    assert 'href="../index.html">' in (tmp_path / "api" / "bmcompiler.html").read_text(encoding="utf-8")
    assert re.search(r"<li><strong>weights:</strong>\s+bytes of coefficients among", page)
    items = [re.sub(r"<[^>]*>", "", item) for item in re.findall(r"<li><strong>.*?</li>", page, re.DOTALL)]
    assert len(items) > 20 and not [item for item in items if re.search(r"[.;] [a-z_]+: ", item)]


def test_a_docstring_is_separated_in_its_sections_only() -> None:
    text = "It: is. so: is.\n\nAttributes:\n    a, b: one;\n        more. c: another.\n\nRaises:\n    X: y. z: t."
    assert separated(text) == text.replace("more. c: another", "more.\n    c: another")
