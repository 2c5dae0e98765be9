"""The generated page on functions is current."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_functions_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from okkernel_page import okkernel_functions

    text = (ROOT / "docs" / "okkernel_functions.md").read_text(encoding="utf-8")
    assert text == okkernel_functions(), "run `make docs` and commit it"
