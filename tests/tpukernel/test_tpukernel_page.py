"""The generated page on functions is current, and docs/tpukernel.md runs as it stands."""

from __future__ import annotations

import re
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


def test_the_tutorial_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All Python of the page in order; what a print gives stands beside it."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "tpukernel.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    exec(compile(code, "docs/tpukernel.md", "exec"), {"__name__": "page"})
    printed = capsys.readouterr().out
    promised = re.findall(r"print\(.*\)  # (.*)", text)
    assert len(promised) >= 5
    assert all(result in printed for result in promised), printed
