"""The generated page on operators is current and complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from bmcompiler.bmlang import CONVENIENCES, TABLE

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "bmlang_operators.md"


def test_the_page_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from bmlang_page import operators_page

    assert PAGE.read_text(encoding="utf-8") == operators_page(), "run `make docs` and commit it"


def test_every_operator_has_an_entry_with_its_signature() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(TABLE) == 108 and text.count("\n### ") == len(TABLE) + len(CONVENIENCES)
    assert all(f"- `{name}`(" in text for name in (*TABLE, *CONVENIENCES))
