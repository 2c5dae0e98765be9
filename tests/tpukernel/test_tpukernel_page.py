"""The generated page on functions is current."""

from __future__ import annotations

from pathlib import Path

import pytest

from bmcompiler.tpukernel import TABLE

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_functions_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from tpukernel_page.errors import measured
    from tpukernel_page.page import page

    text = (ROOT / "docs" / "tpukernel_functions.md").read_text(encoding="utf-8")
    assert text == page(measured()), "run `make docs` and commit it"
    assert all(f"`{row.prototype}`" in text for row in TABLE.values())
