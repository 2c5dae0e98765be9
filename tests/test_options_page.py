"""docs/options.md: every command, every option."""

from __future__ import annotations

import sys
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from options_page import COMMANDS, options_page  # noqa: E402


def test_it_has_all_commands_that_are_installed() -> None:
    scripts = {point.name for point in distribution("bmcompiler").entry_points if point.group == "console_scripts"}
    assert set(COMMANDS) == scripts


def test_it_is_current() -> None:
    assert (ROOT / "docs" / "options.md").read_text(encoding="utf-8") == options_page(), "run `make docs`"
