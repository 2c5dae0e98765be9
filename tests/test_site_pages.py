"""Pages of the site (`tools/make_site.py`): wide tables have the room of the table of contents, links lead to pages."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))

from make_site import rewritten  # noqa: E402


def test_a_table_with_a_column_for_each_chip_has_the_room_beside_it() -> None:
    """The last column, of the DV700, lay behind the table of contents at 1400 pixels."""
    assert rewritten(ROOT / "SUPPORTED_OPS.md").startswith("---\nhide: [toc]\n---\n")
    assert not rewritten(ROOT / "docs" / "tutorial.md").startswith("---")


def test_links_to_files_without_a_page_are_plain_words() -> None:
    text = rewritten(ROOT / "docs" / "tutorial.md")
    assert "models/fetch.py, which stands alone" in text and "[My int8 model is bad](accuracy.md)" in text
