"""Is this installation whole: Python, packages, generated code, C compiler, plugins."""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata
from importlib.metadata import version as installed

from bmcompiler.doctor import Finding, State

_REQUIREMENT = re.compile(r"([\w.-]+)\s*(?:\[[^]]*\])?\s*([^;]*)(?:;\s*(.*))?")
_BOUND = re.compile(r"\s*(>=|==|<)\s*([0-9.]+)\s*")
_BEFORE = re.compile(r'python_version < ["\']([0-9.]+)["\']')
_EXTRA = re.compile(r'extra == ["\']([\w-]+)["\']')
_MODULES = {"protobuf": "google.protobuf", "pillow": "PIL"}
"""Modules that are not called as their package."""
_GENERATED = ("onnx", "bmcompiler.frontends.caffe.caffe_pb2", "bmcompiler.quant.calibration_table_pb2")
"""What protobuf has generated, and refuses in other versions than it was generated for."""
_SHOWN_EXTRAS = ("images", "cluster")


def examine_installation() -> Iterator[Finding]:
    """All that is looked at; nothing is changed."""
    try:
        about = metadata("bmcompiler")
    except PackageNotFoundError:
        yield Finding("package", "wrong", "bmcompiler is not installed: pip install . in its folder")
        return
    yield Finding("package", "ok", f"bmcompiler {about['Version']}, {os.path.dirname(os.path.dirname(__file__))}")
    python = ".".join(map(str, sys.version_info[:3]))
    wanted = str(about["Requires-Python"])
    yield Finding("python", _state(not misses(python, wanted)), f"{python} ({wanted} is needed), {sys.executable}")
    for requirement in about.get_all("Requires-Dist") or ():
        yield from _package(requirement)
    yield _generated()
    yield _compiler()
    yield from _plugins()


def misses(version: str, bounds: str) -> str:
    """The first of some bounds (">=1.2,<3") that a version does not keep, "" when it keeps all."""
    have = _numbers(version)
    for bound in bounds.split(","):
        found = _BOUND.fullmatch(bound)
        if found is None:
            continue
        kind, limit = found[1], _numbers(found[2])
        kept = {">=": have >= limit, "<": have < limit, "==": have[: len(limit)] == limit}
        if not kept[kind]:
            return bound.strip()
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _state(fine: bool) -> State:
    return "ok" if fine else "wrong"


def _package(requirement: str) -> Iterator[Finding]:
    found = _REQUIREMENT.fullmatch(requirement)
    if found is None:
        return
    name, bounds, marker = found[1], found[2].strip(" ()"), found[3] or ""
    before, extra = _BEFORE.search(marker), _EXTRA.search(marker)
    if before is not None and sys.version_info[:2] >= _numbers(before[1]):
        return
    if extra is not None and extra[1] not in _SHOWN_EXTRAS:
        return
    try:
        have = installed(name)
    except PackageNotFoundError:
        if extra is not None:
            yield Finding(
                name, "ok", f"not installed, only needed for {extra[1]}: pip install 'bmcompiler[{extra[1]}]'"
            )
        else:
            yield Finding(name, "wrong", f"not installed: pip install '{name}{bounds}'")
        return
    missed = misses(have, bounds)
    broken = "" if missed else _import(_MODULES.get(name.lower(), name.replace("-", "_")))
    if missed:
        yield Finding(name, "wrong", f"{have}, but {missed} is needed: pip install -U '{name}{bounds}'")
    elif broken:
        yield Finding(name, "wrong", f"{have} cannot be imported: {broken}; pip install --force-reinstall {name}")
    else:
        yield Finding(name, "ok", f"{have} ({bounds})")


def _import(module: str) -> str:
    """Why a module cannot be imported, "" where it can: whatever it raises is what is asked for."""
    try:
        import_module(module)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason'}"
    return ""


def _generated() -> Finding:
    for module in _GENERATED:
        broken = _import(module)
        if broken:
            text = f"{module} does not work with protobuf {installed('protobuf')}: {broken}"
            return Finding("protobuf code", "wrong", text)
    return Finding("protobuf code", "ok", f"works with protobuf {installed('protobuf')}")


def _compiler() -> Finding:
    """Only `bmnet-capi` needs one, so that its absence is no fault."""
    named = os.environ.get("CC", "cc")
    tool = shutil.which(named)
    if tool is None:
        return Finding("C compiler", "ok", f"no {named}: needed by bmnet-capi alone; install gcc or clang, or set CC")
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        return Finding("C compiler", "ok", f"{tool}; but this Python has no shared libpython, which bmnet-capi needs")
    header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
    if not os.path.exists(header):
        return Finding("C compiler", "ok", f"{tool}; but there is no {header}, which bmnet-capi needs")
    return Finding("C compiler", "ok", f"{tool}, with this Python's headers and shared library")


def _plugins() -> Iterator[Finding]:
    from bmcompiler.plugins.listing import list_plugins

    for each in list_plugins():
        text = f"{each.group} of {each.package} {each.version}: {each.state}"
        yield Finding(f"plugin {each.name}", _state(each.state == "ok"), text)
