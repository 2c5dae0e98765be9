"""Headers for C99 and C++11, what the libraries export, and the build lines of docs/c_api.md."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from c_programs import ROOT, STRICT, needs_compiler, run

from bmcompiler.capi.build import LIBRARIES
from bmcompiler.capi.library import CLibrary
from bmcompiler.plugins.registry import lookup

DATA = ROOT / "tests" / "data"
API = json.loads((DATA / "bm1880_api.json").read_text(encoding="utf-8"))
NAMES = json.loads((DATA / "c_names.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "c_api.md").read_text(encoding="utf-8")
pytestmark = needs_compiler


@pytest.mark.parametrize("language", [("gcc", "c", "-std=c99"), ("g++", "c++", "-std=c++11")])
def test_each_header_alone_without_a_warning(built: Path, language: tuple[str, str, str]) -> None:
    compiler, kind, standard = language
    for header in sorted((built / "include").rglob("*.h")):
        command = [compiler, "-x", kind, standard, *STRICT, f"-I{built / 'include'}", "-fsyntax-only", "-"]
        text = 2 * f"#include <{header.relative_to(built / 'include')}>\n"
        done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


def exported(built: Path, library: str) -> set[str]:
    file = built / "lib" / f"lib{library}.so"
    done = subprocess.run(["nm", "-D", "--defined-only", file], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


def test_every_function_of_the_vendors_chapters_is_exported(built: Path) -> None:
    assert set(API["functions"]) <= exported(built, "bmruntime") | exported(built, "bmkernel")
    for library, names in NAMES.items():
        assert set(names) <= exported(built, library)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_exports_its_table_and_nothing_else(built: Path, name: str) -> None:
    library: CLibrary = lookup("bmcompiler.c_libraries", name, "C library")
    assert exported(built, name) == {one.name for one in library.prototypes}


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="needs pkg-config")
def test_the_lines_of_the_page_build_with_pkg_config(built: Path, tmp_path: Path) -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith(("gcc ", "g++ "))]
    assert len(lines) >= 4
    for line in lines:
        done = run("sh", "-c", f"cd {ROOT} && {placed(line, tmp_path)}", PKG_CONFIG_PATH=str(built / "lib/pkgconfig"))
        assert done.returncode == 0, done.stderr.decode()
    assert run(tmp_path / "kernel").returncode == 0


def placed(line: str, folder: Path) -> str:
    """A command of the page that writes to a folder."""
    return re.sub(r"-o (\S+)", rf"-o {folder}/\1", line)


@pytest.mark.skipif(shutil.which("cmake") is None or shutil.which("pkg-config") is None, reason="needs cmake")
def test_the_lines_of_the_page_build_with_cmake(built: Path, tmp_path: Path) -> None:
    found = re.search(r"```cmake\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    head = "cmake_minimum_required(VERSION 3.13)\nproject(example C)\n"
    (tmp_path / "CMakeLists.txt").write_text(head + found.group(1))
    shutil.copy(ROOT / "examples" / "c" / "kernel.c", tmp_path)
    path = str(built / "lib" / "pkgconfig")
    for command in (("cmake", "-S", tmp_path, "-B", tmp_path / "out"), ("cmake", "--build", tmp_path / "out")):
        done = run(*command, PKG_CONFIG_PATH=path)
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert run(tmp_path / "out" / "kernel").returncode == 0
