"""A release in dist/VERSION: wheel, source archive, site, measured bars; used under every Python; then the tag.

    python tools/release.py [--no-tag] [--dirty]

1. The tree is clean (--dirty: a rehearsal, never tagged), the newest heading of CHANGELOG.md has version and date.
2. Wheel and source archive are built from the committed files and are as tools/check_release.py wants them.
3. The site is built, and the table of measured bars taken from README.md.
4. Wheel and source archive are installed alone into an empty environment of every supported Python, and used there.
5. The commit gets the tag vVERSION. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from check_pythons import VERSIONS, interpreter
from check_release import problems, released
from check_wheel import ROOT, run, use

_BARS = re.compile(r"^\| measured \| value \| command \|\n(?:\|.*\n)+", re.MULTILINE)


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def bars(readme: str, version: str, commit: str) -> str:
    """The table of README.md of what was measured, as a page of its own. Raises ValueError where there is none."""
    found = _BARS.search(readme)
    if found is None:
        raise ValueError("README.md has no table of what was measured")
    return f"# bmcompiler {version}: measured bars\n\nAt commit {commit}, as README.md says it.\n\n{found[0]}"


def committed(folder: Path, dirty: bool) -> Path:
    """The files of the commit, alone in a folder; with `dirty` those of the tree that git knows."""
    names = git("ls-files", "-z").split("\0") if dirty else git("ls-tree", "-rz", "--name-only", "HEAD").split("\0")
    for name in names:
        if name and (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    return folder


def build(version: str, dirty: bool) -> Path:
    """Steps 2 and 3; gives the folder."""
    made = ROOT / "dist" / version
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "build", "--outdir", made, committed(Path(folder), dirty))
    (wheel,), (source,) = made.glob("*.whl"), made.glob("*.tar.gz")
    found = problems(wheel, source)
    if found:
        sys.exit("\n".join(found))
    run(sys.executable, ROOT / "tools" / "make_site.py", folder=ROOT)
    shutil.make_archive(str(made / f"bmcompiler-{version}-site"), "zip", ROOT / "site")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (made / "measured.md").write_text(bars(readme, version, git("rev-parse", "HEAD")), encoding="utf-8")
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(made.iterdir())]
    (made / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    return made


def try_out(made: Path) -> list[str]:
    """Step 4; gives the versions of Python it was used under."""
    used = []
    for version in VERSIONS:
        python = interpreter(version)
        if python is None:
            print(f"Python {version}: not installed, not tried")
            continue
        with tempfile.TemporaryDirectory() as folder:
            for number, package in enumerate([*made.glob("*.whl"), *made.glob("*.tar.gz")]):
                use(package, python, Path(folder) / str(number))
        used.append(version)
    return used


def main() -> None:
    parser = argparse.ArgumentParser(description="build, check and tag a release")
    parser.add_argument("--no-tag", action="store_true", help="all but the tag")
    parser.add_argument("--dirty", action="store_true", help="take the tree as it is, to rehearse; no tag")
    given = parser.parse_args()
    changed = git("status", "--porcelain")
    if changed and not given.dirty:
        sys.exit(f"the tree is not clean: commit or remove\n{changed}")
    version, date = released((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    tag = f"v{version}"
    if git("tag", "--list", tag):
        sys.exit(f"the tag {tag} is there already: a release needs a new version")
    made = build(version, given.dirty)
    pythons = try_out(made)
    if not pythons:
        sys.exit(f"none of Python {', '.join(VERSIONS)} is installed")
    files = ", ".join(sorted(file.name for file in made.iterdir()))
    print(f"{made.relative_to(ROOT)}: {files}; of {date}; used under Python {', '.join(pythons)}")
    if not (given.no_tag or given.dirty):
        run("git", "tag", "-a", tag, "-m", f"bmcompiler {version}", folder=ROOT)
        print(f"tagged {tag}; nothing was uploaded")


if __name__ == "__main__":
    main()
