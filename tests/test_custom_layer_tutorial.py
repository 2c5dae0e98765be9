"""docs/custom_layers.md as a reader meets it: its code is the package's, its commands run and print what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.sweep
def test_the_commands_of_the_tutorial_run_and_print_what_it_says(tmp_path: Path) -> None:
    """All shell blocks, one after the other; pip installs into a folder of its own, without the network."""
    script = "\n".join(re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)).replace("pip install pytest", "")
    shutil.copytree(
        EXAMPLE,
        tmp_path / "examples" / "custom_layer",
        ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"),
    )
    site = tmp_path / "site"
    settings = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(site),
        "PIP_TARGET": str(site),
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip takes the value as that of --build-isolation
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = ["bash", "-e", "-o", "pipefail", "-c", script]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **settings}, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = words(done.stdout)
    for block in re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL):
        for line in block.splitlines():
            assert words(line) in printed, f"not printed: {line}\n{done.stdout}"
