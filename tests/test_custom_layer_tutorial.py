"""docs/custom_layers.md as a reader meets it: its code is the package's; test_pages_run.py runs its commands."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "custom_layer"
TEXT = (ROOT / "docs" / "custom_layers.md").read_text(encoding="utf-8")


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_the_package_is_small() -> None:
    assert lines(EXAMPLE / "my_layers" / "abs_diff.py") < 100
    files = [EXAMPLE / "pyproject.toml", *EXAMPLE.glob("my_layers/*.py"), *EXAMPLE.glob("tests/*.py")]
    assert sum(map(lines, files)) < 250


def test_the_tutorial_shows_the_code_of_the_package_in_order() -> None:
    blocks = re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", TEXT, re.DOTALL)
    at = {name: 0 for name, _ in blocks}
    assert set(at) > {"pyproject.toml", "my_layers/abs_diff.py", "my_layers/soft_gate.py", "my_layers/sort_rows.py"}
    for name, code in blocks:
        source = (EXAMPLE / name).read_text(encoding="utf-8")
        found = source.find(code.strip("\n"), at[name])
        assert found >= 0, f"{name} does not have, after the blocks before:\n{code}"
        at[name] = found + len(code.strip("\n"))
