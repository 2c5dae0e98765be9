"""Headers, shared libraries and pkg-config files, by the C compiler of the host."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from bmcompiler.capi.library import MOST_VALUES, CLibrary
from bmcompiler.capi.own_python import FOLDER, copy_python
from bmcompiler.capi.source import STARTER, header, source, starter
from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.files.store import make_folder
from bmcompiler.plugins.registry import entry_points, lookup

LIBRARIES = ("bmkernel", "bmruntime", "bmnet", "dmpdv", "bmlib", "bmrt", "tpukernel", "okkernel")
USUAL, *_OTHERS = SDKS = ("1.1.4", "1.0.3")
"""Versions of the vendor's SDK whose layouts can be had; the first is built unless another is asked for."""
_DIFFERING = ("bmruntime",)
"""Libraries whose structures are not the same in all versions."""
_GROUP = "bmcompiler.c_libraries"
_INTERFACE = 1
"""Version in the sonames: goes up when programs must be compiled again."""
_FLAGS = ("-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wno-unused-parameter", "-std=gnu99")


def build(folder: Path, compiler: str | None = None, sdk: str = USUAL, own_python: bool = False) -> list[Path]:
    """Write `include/`, `lib/` and, for tools, `lib/pkgconfig/` and `lib/cmake/`; gives the libraries.

    With `own_python` the libraries use a Python that lies beside them, in `python/`, and no other; else that of this
    process. Flags come from $CFLAGS, too.

    Raises UsageError when there is a file in place of the folder or for an SDK of another version, UnsupportedError
    without a C compiler or a shared libpython, or when the compiler refuses.
    """
    if sdk not in SDKS:
        raise UsageError(f"the layouts of SDK {sdk} are not known", remedy=f"use one of {', '.join(SDKS)}")
    tool = shutil.which(compiler or os.environ.get("CC", "cc"))
    if tool is None:
        raise UnsupportedError("there is no C compiler", remedy="install gcc or clang, or set CC")
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        raise UnsupportedError(
            f"{sys.executable} has no shared libpython", remedy="use a Python built with --enable-shared"
        )
    make_folder(folder)
    include, lib = folder / "include", folder / "lib"
    for one in (include, lib / "pkgconfig"):
        one.mkdir(parents=True, exist_ok=True)
    starter_header, starter_source = starter()
    (include / f"{STARTER}.h").write_text(starter_header)
    if own_python:
        copy_python(folder)
    executable = "" if own_python else sys.executable
    places = f'-DPYTHON="{executable}"', f'-DOWN="/../{FOLDER}"'
    python = ["-I", sysconfig.get_paths()["include"], *places, f"-DMOST_VALUES={MOST_VALUES}"]
    libdir = sysconfig.get_config_var("LIBDIR")
    link = [
        f"-L{libdir}",
        f"-Wl,-rpath,$ORIGIN/../{FOLDER}/lib" if own_python else f"-Wl,-rpath,{libdir}",
        f"-lpython{sysconfig.get_config_var('LDVERSION')}",
        "-lpthread",
        "-ldl",
    ]
    made = [_compile(tool, folder, STARTER, starter_source, python, link)]
    for name in LIBRARIES:
        library = library_for(name, sdk)
        first, *others = library.titles
        (include / first).write_text(header(library))
        for other in others:
            (include / other).parent.mkdir(parents=True, exist_ok=True)
            up = "../" * other.count("/")
            (include / other).write_text(f'#include "{up}{first}"\n')
        for other, text in library.extras().items():
            (include / other).parent.mkdir(parents=True, exist_ok=True)
            (include / other).write_text(text)
        _describe(folder, library)
        made.append(_compile(tool, folder, name, source(library, _home(library)), [], [f"-l{STARTER}"]))
    return made


def library_for(name: str, sdk: str = USUAL) -> CLibrary:
    """A library with the layouts of a version of the SDK."""
    title = f"{name}-{sdk}" if name in _DIFFERING and sdk in _OTHERS else name
    found: CLibrary = lookup(_GROUP, title, "C library")
    return found


def _home(library: CLibrary) -> str:
    """Where its table is, "module:name": the libraries look for no plugins in their first call."""
    return entry_points(_GROUP)[library.registered].points[0].value


def _compile(tool: str, folder: Path, name: str, text: str, flags: list[str], link: list[str]) -> Path:
    lib = folder / "lib"
    target = lib / f"lib{name}.so.{_INTERFACE}"
    command = [
        tool,
        *_FLAGS,
        *os.environ.get("CFLAGS", "").split(),
        f"-I{folder / 'include'}",
        *flags,
        "-x",
        "c",
        "-",
        "-o",
        str(target),
    ]
    command += [f"-L{lib}", "-Wl,-rpath,$ORIGIN", f"-Wl,-soname,{target.name}", *link]
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    if done.returncode:
        raise UnsupportedError(f"the C compiler fails on lib{name}.so: {done.stderr.strip()[:2000]}")
    usual = lib / f"lib{name}.so"
    usual.unlink(missing_ok=True)
    usual.symlink_to(target.name)
    return usual


def _describe(folder: Path, library: CLibrary) -> None:
    needs = " ".join(f"-l{name}" for name in (*library.needs, STARTER))
    text = f"""prefix=${{pcfiledir}}/../..
Name: {library.name}
Description: {library.name} on the simulators of bmcompiler
Version: 1
Cflags: -I${{prefix}}/include
Libs: -L${{prefix}}/lib -Wl,-rpath,${{prefix}}/lib -l{library.name} {needs}
"""
    (folder / "lib" / "pkgconfig" / f"{library.name}.pc").write_text(text)
    _describe_for_cmake(folder / "lib" / "cmake" / library.name, library)


_CMAKE = """get_filename_component(_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET NAME::NAME)
  add_library(NAME::NAME INTERFACE IMPORTED)
  set_target_properties(NAME::NAME PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_root}/include"
    INTERFACE_LINK_LIBRARIES "FILES")
endif()
unset(_root)
"""


def _describe_for_cmake(folder: Path, library: CLibrary) -> None:
    files = ";".join(f"${{_root}}/lib/lib{name}.so" for name in (library.name, *library.needs, STARTER))
    folder.mkdir(parents=True, exist_ok=True)
    text = _CMAKE.replace("NAME", library.name).replace("FILES", files)
    (folder / f"{library.name}-config.cmake").write_text(text)
