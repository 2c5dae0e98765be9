"""C programs against the built libraries: compiling, running, and what every test of this folder needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "c"
STRICT = ("-Wall", "-Wextra", "-pedantic", "-Werror", "-Wno-missing-field-initializers")  # {0} in C++
SANITIZED = ("-fsanitize=address,undefined",)

VALGRIND = (
    "valgrind",
    "-q",
    "--error-exitcode=42",
    "--num-callers=40",
    f"--suppressions={Path(__file__).with_name('python.supp')}",
)

needs_compiler = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("g++") is None or not sysconfig.get_config_var("Py_ENABLE_SHARED"),
    reason="needs gcc, g++ and a shared libpython",
)


def place_of(source: Path, text: str) -> str:
    """FILE:LINE of the only line of a source with a text."""
    (line,) = [number for number, one in enumerate(source.read_text().splitlines(), 1) if text in one]
    return f"{source.name}:{line}"


def linked(built: Path, package: str) -> list[str]:
    """What pkg-config says for a library; the same text where pkg-config is missing."""
    text = (built / "lib" / "pkgconfig" / f"{package}.pc").read_text(encoding="utf-8")
    flags = [line.partition(": ")[2] for line in text.splitlines() if line.startswith(("Cflags", "Libs"))]
    return " ".join(flags).replace("${prefix}", str(built)).split()


def program(built: Path, package: str, source: Path, compiler: str = "gcc", *flags: str) -> Path:
    """A program that links with libraries, by their names; as C99, or C++11 where the compiler is g++."""
    language = ["-x", "c", "-std=c99"] if compiler == "gcc" else ["-x", "c++", "-std=c++11"]
    target = built / f"{source.stem}-{compiler}{'.so' if '-shared' in flags else ''}"
    libraries = [flag for one in package.split() for flag in linked(built, one)]
    command = [compiler, *language, *STRICT, *flags, str(source), "-x", "none", *libraries, "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return target


def run(
    *command: Path | str, given: bytes | None = None, timeout: int = 600, **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """Run a program; memory that Python keeps until the end is no leak."""
    env = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"} | variables
    return subprocess.run([*map(str, command)], input=given, capture_output=True, timeout=timeout, check=False, env=env)
