"""The pages for people: their links lead somewhere, and the make targets they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert not [each for each in targets if "://" not in each and not (page.parent / each).exists()]


def test_make_targets_in_the_text_exist() -> None:
    named = {name for page in PAGES for name in re.findall(r"`?\bmake ([a-z-]+)`", page.read_text(encoding="utf-8"))}
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"docs", "models"} <= named <= known
