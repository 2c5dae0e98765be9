"""The generated page on operators is current and complete."""

from __future__ import annotations

from pathlib import Path

from bmcompiler.bmlang import TABLE
from bmcompiler.frontends.bmlang.page import operators_page

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "bmlang_operators.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == operators_page(), "run `make docs` and commit it"


def test_every_operator_has_an_entry_with_its_signature() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.count("\n### ") == 108
    assert all(f"- `{name}`(" in text for name in TABLE)
