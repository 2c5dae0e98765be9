"""Version, changelog and the parts of a release go together."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from importlib.metadata import metadata
from pathlib import Path

import pytest

import bmcompiler

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from check_pythons import VERSIONS  # noqa: E402
from check_release import released  # noqa: E402
from package_c import main as package_c  # noqa: E402
from release import bars  # noqa: E402
from release import main as release  # noqa: E402

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_newest_heading_is_the_version() -> None:
    version, day = released(CHANGELOG)
    assert version == bmcompiler.__version__
    assert date(2026, 11, 22) < date.fromisoformat(day)


def test_headings_have_dates_and_go_back() -> None:
    titles = [line[3:] for line in CHANGELOG.splitlines() if line.startswith("## ")]
    titles = titles[titles[0] == "Unreleased" :]
    found = [released(f"## {title}") for title in titles]
    assert len(found) >= 2 and [day for _, day in found] == sorted((day for _, day in found), reverse=True)


@pytest.mark.parametrize("heading", ["## 0.2.0", "## 0.2 (2026-11-27)", "## 0.2.0 (2026-11-31)", "0.2.0 (2026-11-27)"])
def test_a_heading_without_version_or_date_is_none(heading: str) -> None:
    with pytest.raises(ValueError, match=r"heading|day"):
        released(heading)


def test_an_upgrade_to_this_version_is_told() -> None:
    major, minor, _ = bmcompiler.__version__.split(".")
    assert f" to {major}.{minor}\n" in (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")


def test_classifiers_name_the_pythons_that_are_checked() -> None:
    said = {each.rpartition(" ")[2] for each in metadata("bmcompiler").get_all("Classifier") or () if ":: 3." in each}
    assert said == set(VERSIONS)


def test_measured_bars_are_the_table_of_the_readme() -> None:
    page = bars((ROOT / "README.md").read_text(encoding="utf-8"), "1.2.3", "abc")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert len(rows) > 10 and all(row.count("|") >= 4 for row in rows)
    with pytest.raises(ValueError, match="no table"):
        bars("# nothing", "1.2.3", "abc")


def test_a_tree_that_is_not_clean_is_no_release(tmp_path: Path) -> None:
    for name in ("tools/release.py", "tools/check_release.py", "tools/check_wheel.py", "tools/check_pythons.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    done = subprocess.run([sys.executable, tmp_path / "tools/release.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "not clean" in done.stderr
    assert not (tmp_path / "dist").exists()


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with this changelog, whose release takes a moment to build and runs under one Python."""

    def build(version: str, dirty: bool) -> Path:
        made = tmp_path / "dist" / version
        made.mkdir(parents=True, exist_ok=True)
        (made / f"bmcompiler-{version}.whl").touch()
        return made

    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "user.name", "somebody")
    git(tmp_path, "config", "user.email", "somebody@example.com")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG, encoding="utf-8")
    (tmp_path / ".gitignore").write_text("dist\n")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "-q", "-m", "all of it")
    monkeypatch.setattr("release.ROOT", tmp_path)
    monkeypatch.setattr("release.build", build)
    monkeypatch.setattr("release.try_out", lambda made: ["3.11"] if any(made.glob("*.whl")) else [])
    return tmp_path


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def released_with(monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr("sys.argv", ["release.py", *options])
    release()


def test_a_release_tags_the_commit_that_it_was_built_from(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tag = f"v{bmcompiler.__version__}"
    released_with(monkeypatch, "--no-tag")
    assert git(scratch, "tag", "--list") == ""
    released_with(monkeypatch)
    assert git(scratch, "tag", "--list") == tag
    assert git(scratch, "cat-file", "-t", tag) == "tag"  # with author and date, as git describe wants it
    assert git(scratch, "rev-list", "-n", "1", tag) == git(scratch, "rev-parse", "HEAD")
    assert git(scratch, "describe") == tag
    (scratch / "later").touch()
    git(scratch, "add", "later")
    git(scratch, "commit", "-q", "-m", "later")
    with pytest.raises(SystemExit, match=f"the tag {tag} is there already"):
        released_with(monkeypatch)
    assert git(scratch, "rev-list", "-n", "1", tag) == git(scratch, "rev-parse", "HEAD~1")


def test_a_tree_with_changes_is_no_release(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (scratch / "CHANGELOG.md").write_text(CHANGELOG + "\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="the tree is not clean"):
        released_with(monkeypatch)
    released_with(monkeypatch, "--dirty")
    assert git(scratch, "tag", "--list") == ""


def test_nothing_is_tagged_that_no_python_has_run(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("release.try_out", lambda made: [])
    with pytest.raises(SystemExit, match="is installed"):
        released_with(monkeypatch)
    assert git(scratch, "tag", "--list") == ""


@pytest.mark.parametrize(("word", "code"), [("--help", 0), ("--nothing", 2)])
def test_the_package_of_c_libraries_takes_no_option_for_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["package_c.py", word])
    with pytest.raises(SystemExit) as ended:
        package_c()
    assert ended.value.code == code and not list(tmp_path.iterdir())
