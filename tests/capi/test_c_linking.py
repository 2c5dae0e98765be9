"""Libraries as a C user takes them: sonames, dlopen for oneself only, CMake, another Python's variables, silence."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from c_programs import ROOT, needs_compiler, run

from bmcompiler.capi.build import LIBRARIES

pytestmark = needs_compiler

LOCAL = """
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    unsigned (*init)(int, void **);
    const char *(*last)(void);
    void *ctx;
    if (!library)
        return printf("%s\\n", dlerror()), 2;
    *(void **)&init = dlsym(library, "bm_init");
    *(void **)&last = dlsym(library, "bmcapi_last_error");
    if (!init || !last || init(0, &ctx))
        return 3;
    if (init(99, &ctx) == 0 || !strstr(last(), "there is no device 99"))
        return 4;
    return 0;
}
"""


@pytest.fixture(scope="module")
def opener(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("opener")
    command = ["gcc", "-x", "c", "-", "-o", folder / "opener", "-ldl"]
    subprocess.run(command, input=LOCAL, text=True, check=True)
    return folder / "opener"


def test_a_library_opened_for_its_user_only(built: Path, opener: Path) -> None:
    done = run(opener, built / "lib" / "libbmruntime.so")
    assert done.returncode == 0 and b"there is no device 99" in done.stderr, done


def test_another_pythons_variables_and_silence(built: Path, opener: Path, tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit('the wrong numpy')\n")
    other = {"PYTHONHOME": str(tmp_path), "PYTHONPATH": str(tmp_path), "BMCOMPILER_MESSAGES": "off"}
    done = run(opener, built / "lib" / "libbmruntime.so", **other)
    assert (done.returncode, done.stderr) == (0, b""), done
    done = run(opener, built / "lib" / "libbmruntime.so", PYTHONMALLOC="no such")
    assert done.returncode == 3 and b"Python does not start" in done.stderr  # variables of memory are read


@pytest.mark.parametrize("name", ("bmcapi", *LIBRARIES))
def test_sonames_have_a_version(built: Path, name: str) -> None:
    file = built / "lib" / f"lib{name}.so"
    assert file.is_symlink() and file.resolve().name == f"lib{name}.so.1"
    text = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
    assert f"soname: [lib{name}.so.1]" in text


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_cmake_finds_a_library_in_a_folder_that_moved(built: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(built, moved, symlinks=True)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(example C)\nfind_package(bmruntime REQUIRED CONFIG)\n"
        "add_executable(kernel kernel.c)\ntarget_link_libraries(kernel PRIVATE bmruntime::bmruntime)\n"
    )
    shutil.copy(ROOT / "examples" / "c" / "kernel.c", tmp_path)
    for command in (
        ("-S", tmp_path, "-B", tmp_path / "out", f"-DCMAKE_PREFIX_PATH={moved}"),
        ("--build", tmp_path / "out"),
    ):
        done = run("cmake", *command)
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert run(tmp_path / "out" / "kernel").returncode == 0
