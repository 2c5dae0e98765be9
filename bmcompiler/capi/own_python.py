"""A Python of its own for a folder of C libraries: the interpreter as a library, and the packages that are needed."""

from __future__ import annotations

import compileall
import re
import shutil
import sys
import sysconfig
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from bmcompiler.errors import UsageError

FOLDER = "python"
_MARK = "made-by-bmnet-capi"
_PACKAGE = "bmcompiler"
_PARTS = ("frontends", "passes", "backends", "runtime")
"""Subpackages that lie beside the package where it is installed for development."""
_LEFT_OUT = (
    "site-packages",
    "test",
    "idlelib",
    "tkinter",
    "turtledemo",
    "ensurepip",
    "lib2to3",
    "config-*",
    "*.opt-?.pyc",
)
_NAME = re.compile(r"[\w.-]+")


def copy_python(folder: Path) -> None:
    """Fill `folder`/python with this Python's libraries, this package and the packages that it needs.

    All is compiled to byte code: where nobody may write, each process would do it. It knows its sources by their times.

    Raises UsageError when something else lies there.
    """
    target = folder / FOLDER
    if target.exists() and not (target / _MARK).exists():
        raise UsageError("something that was not made by this command lies there", file=target, remedy="move it away")
    shutil.rmtree(target, ignore_errors=True)
    standard = Path(sysconfig.get_paths()["stdlib"])
    home = target / "lib" / standard.name
    shutil.copytree(standard, home, ignore=shutil.ignore_patterns(*_LEFT_OUT), ignore_dangling_symlinks=True)
    (target / _MARK).touch()
    library = Path(sysconfig.get_config_var("LIBDIR")) / sysconfig.get_config_var("INSTSONAME")
    shutil.copy(library, target / "lib")
    site = home / "site-packages"
    for each in _needed(_PACKAGE):
        for file in each.files or ():
            if ".." not in file.parts and Path(str(file.locate())).exists():
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file.locate(), site / file)
    _copy_package(site)
    compileall.compile_dir(target, quiet=2)


def _copy_package(site: Path) -> None:
    """This package with its entry points, wherever its parts lie."""
    ignored = shutil.ignore_patterns("*.opt-?.pyc")
    for name in (_PACKAGE, *(f"{_PACKAGE}.{part}" for part in _PARTS)):
        source = Path(str(import_module(name).__file__)).parent
        shutil.copytree(source, site.joinpath(*name.split(".")), ignore=ignored, dirs_exist_ok=True)
    found = _metadata()
    shutil.copytree(found, site / found.name, dirs_exist_ok=True)


def _metadata() -> Path:
    """The folder of this package's metadata, whose entry points others are found by."""
    for folder in map(Path, sys.path):
        for pattern in (f"{_PACKAGE}-*.dist-info", f"{_PACKAGE}.egg-info"):
            for found in folder.glob(pattern):
                if (found / "entry_points.txt").exists():
                    return found
    raise UsageError(f"the metadata of {_PACKAGE} are not where it is installed", remedy="install it with pip")


def _needed(name: str) -> list[Distribution]:
    """What a distribution needs, without extras, each once."""
    found: dict[str, Distribution] = {}

    def visit(one: Distribution) -> None:
        for requirement in one.requires or ():
            match = None if "extra ==" in requirement else _NAME.match(requirement)
            if match is None or match[0].lower() in found:
                continue
            try:
                needed = distribution(match[0])
            except PackageNotFoundError:  # of other versions of Python
                continue
            found[match[0].lower()] = needed
            visit(needed)

    visit(distribution(name))
    return list(found.values())
