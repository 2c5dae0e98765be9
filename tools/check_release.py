"""Build wheel and source archive and look into them: version, long description, all packages, the changelog.

python tools/check_release.py
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from datetime import date
from email import message_from_string
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"bmcompiler": "bmcompiler", **{f: f"bmcompiler/{f}" for f in ("frontends", "passes", "backends", "runtime")}}
NEEDED = ("Summary", "Requires-Python", "License-Expression")
_HEADING = re.compile(r"^## ([0-9]+\.[0-9]+\.[0-9]+) \(([0-9-]+)\)$", re.MULTILINE)
IN_SOURCE = ("README.md", "LICENSE", "pyproject.toml")


def problems(wheel: Path, source: Path) -> list[str]:
    """What is wrong with a release, in sentences."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        facts = message_from_string(archive.read(metadata).decode("utf-8"))
    with tarfile.open(source) as archive:
        packed = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    version = facts["Version"]
    found = [f"the wheel lacks {name}" for name in modules() if name not in names]
    found += [f"the source archive lacks {name}" for name in IN_SOURCE if name not in packed]
    found += [f"the metadata lack {name}" for name in NEEDED if not facts[name]]
    newest, _ = released((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    if newest != version:
        found.append(f"the newest release in CHANGELOG.md is {newest}, the version {version}")
    return found + long_description(facts)


def released(changelog: str) -> tuple[str, str]:
    """Version and date of the newest release in CHANGELOG.md. Raises ValueError where there is none."""
    found = _HEADING.search(changelog)
    if found is None:
        raise ValueError("CHANGELOG.md has no heading like '## 1.2.3 (2026-12-31)'")
    return found[1], date.fromisoformat(found[2]).isoformat()


def long_description(facts: Message) -> list[str]:
    text = str(facts.get_payload())
    if facts["Description-Content-Type"] != "text/markdown":
        return [f"the long description is {facts['Description-Content-Type']}, not text/markdown"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8").strip()
    return [] if text.strip() == readme else ["the long description is not README.md"]


def modules() -> list[str]:
    """Names in the wheel of all our modules."""
    return [
        f"{place}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, place in FOLDERS.items()
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "build" not in path.parts
    ]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "build", "--outdir", folder, str(ROOT)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(done.stdout[-2000:] + done.stderr[-2000:], file=sys.stderr)
            return 1
        (wheel,), (source,) = Path(folder).glob("*.whl"), Path(folder).glob("*.tar.gz")
        found = problems(wheel, source)
        print("\n".join(found) or f"{wheel.name} and {source.name}: as they must be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
