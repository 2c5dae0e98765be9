"""Run the fast tests under every supported Python found on this machine: python tools/check_pythons.py [PYTEST ARGS]

Each version gets its own environment in .venv-X.Y; versions that are not installed are listed and left out.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.10", "3.11", "3.12", "3.13")


def interpreter(version: str) -> str | None:
    """Path of a working interpreter of that version: on the PATH, or among pyenv's."""
    installed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for path in (shutil.which(f"python{version}"), *map(str, installed)):
        if path is None:
            continue
        found = subprocess.run([path, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.strip()
    return None


def check(python: str, version: str, arguments: list[str]) -> bool:
    """Set up the environment of one version and run the tests in it."""
    environment = ROOT / f".venv-{version}"
    run = environment / "bin" / "python"
    commands = [
        [python, "-m", "venv", str(environment)],
        [str(run), "-m", "pip", "install", "-q", "-e", f"{ROOT}[dev]"],
        [str(run), "-m", "pytest", "-q", "-n", "2", "-m", "not slow", *arguments],
    ]
    for command in commands:
        if command[-2:] == ["venv", str(environment)] and run.exists():
            continue
        print("+", " ".join(command), flush=True)
        if subprocess.run(command, cwd=ROOT).returncode:
            return False
    return True


def main(arguments: list[str]) -> int:
    results = {}
    for version in VERSIONS:
        python = interpreter(version)
        if python is None:
            results[version] = "not installed"
        else:
            results[version] = "ok" if check(python, version, arguments) else "FAILED"
    for version, result in results.items():
        print(f"Python {version}: {result}")
    return int("FAILED" in results.values() or all(r == "not installed" for r in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
