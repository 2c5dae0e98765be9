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
from release import bars  # noqa: E402

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
