"""Run mypy over the five code folders as the one package they are installed as: python tools/check_types.py [MYPY ARGS]

An editable install maps the folders by an import hook that type checkers do not follow, so the package is laid out as
links in a temporary folder first.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTER = ("frontends", "passes", "backends", "runtime")
EXAMPLES = (ROOT / "examples" / "toy_chip" / "toy_chip", ROOT / "examples" / "custom_layer" / "my_layers")
"""A target and layers as plugins write them: their types show whether those of the contracts can be used."""


def lay_out(folder: Path) -> None:
    """Links to the package and the examples in an empty folder."""
    package = folder / "bmcompiler"
    package.mkdir()
    for source in (*(ROOT / "bmcompiler").iterdir(), *(ROOT / name for name in OUTER)):
        if source.name != "__pycache__":
            (package / source.name).symlink_to(source, target_is_directory=source.is_dir())
    for example in EXAMPLES:
        (folder / example.name).symlink_to(example, target_is_directory=True)


def run(folder: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """mypy with the settings of the project, in a folder with the package; what it prints is in `stdout`."""
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    command += ["--cache-dir", str(ROOT / ".mypy_cache"), *arguments]
    env = {**os.environ, "MYPYPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=env, check=False, text=True, stdout=subprocess.PIPE)


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder))
        packages = ("bmcompiler", *(example.name for example in EXAMPLES))
        done = run(Path(folder), [*arguments, *(word for name in packages for word in ("-p", name))])
    print(done.stdout, end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
