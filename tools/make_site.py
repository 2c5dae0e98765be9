"""The documentation as a site (`make site`): README as its first page, docs/, the other pages of the root, the pages of
rooms where they lie, the API.

python tools/make_site.py

Pages link to each other as they lie in the repository. Here links to pages follow them to their place in the site, and
links to other files become plain text. MkDocs in strict mode refuses what leads nowhere.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "build" / "site-pages"
FROM_ROOT = {"README.md": "index.md"} | {
    name: name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SUPPORTED_OPS.md", "CHANGELOG.md")
}
CODE = ("bmcompiler", "frontends", "passes", "backends", "runtime")
BESIDE = ("filter.js", "site.css", "found.jpg")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")

_TABLE_ROW, _CODE = re.compile(r"^\|.*\|$", re.MULTILINE), re.compile(r"`[^`]*`")
"""GitHub wants a bar in code of a table escaped, Python-Markdown shows the escape."""
_WIDE = re.compile(r"^\|( ?:?-+:? ?\|){6}", re.MULTILINE)
_WITHOUT_CONTENTS = "---\nhide: [toc]\n---\n\n"
"""A table of six columns or more takes the place of the table of contents."""


def place(path: Path) -> str | None:
    """Where a file of the repository lies in the site, None for files that have no page."""
    name = path.relative_to(ROOT).as_posix()
    if name in FROM_ROOT:
        return FROM_ROOT[name]
    if path.name == "README.md" and name.split("/")[0] in CODE:
        return name
    return path.name if path.parent == ROOT / "docs" and path.suffix == ".md" else None


def rewritten(page: Path) -> str:
    """The text of a page with links as the site needs them."""

    def link(found: re.Match[str]) -> str:
        text, target = found[1], found[2]
        if "://" in target or target.startswith("#"):
            return found[0]
        name, _, anchor = target.partition("#")
        there = place((page.parent / name).resolve())
        if there is None:
            return text
        way = os.path.relpath(there, Path(str(place(page))).parent)
        return f"[{text}]({way}{'#' + anchor if anchor else ''})"

    text = _LINK.sub(link, page.read_text(encoding="utf-8"))
    text = _TABLE_ROW.sub(lambda row: _CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0]), text)
    return _WITHOUT_CONTENTS + text if _WIDE.search(text) else text


def gather() -> None:
    """Copy all pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    rooms = [page for folder in CODE for page in sorted((ROOT / folder).rglob("README.md"))]
    for page in [*(ROOT / name for name in FROM_ROOT), *sorted((ROOT / "docs").glob("*.md")), *rooms]:
        target = PAGES / str(place(page))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(rewritten(page), encoding="utf-8")
    for name in BESIDE:
        shutil.copy(ROOT / "docs" / name, PAGES)


def main() -> int:
    gather()
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    done = subprocess.run(command, cwd=ROOT, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    if done.returncode:
        return done.returncode
    return subprocess.run([sys.executable, "tools/gen_api.py", "site/api"], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
