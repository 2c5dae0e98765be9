"""Packages with plugins as if they were installed, and registries that forget them afterwards."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bmcompiler.plugins import registry
from bmcompiler.plugins import tables as plugins

HOMES = ("ops", "plugins.custom_layers", "frontends.caffe.layer", "frontends.onnx.registry")
"""Modules whose import makes the tables."""
Points = Mapping[str, Mapping[str, str]]
"""Group (without "bmcompiler.") -> name -> what the entry point names."""


def install(folder: Path, package: str, points: Points, version: str = "1.0", **modules: str) -> None:
    """Write what an installation leaves in `folder`: modules, and the description of the distribution."""
    for name, code in modules.items():
        (folder / f"{name}.py").write_text(code)
    info = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    lines = (
        f"[bmcompiler.{group}]\n" + "".join(f"{n} = {v}\n" for n, v in each.items()) for group, each in points.items()
    )
    (info / "entry_points.txt").write_text("".join(lines))


def install_project(folder: Path, project: Path) -> None:
    """The same for a folder with a pyproject.toml; its modules stay where they are."""
    text = (project / "pyproject.toml").read_text()
    groups = re.findall(r'^\[project\.entry-points\."bmcompiler\.(.+)"\]\n((?:\S+ = ".+"\n)+)', text, re.MULTILINE)
    points = {group: dict(re.findall(r'^(\S+) = "(.+)"', lines, re.MULTILINE)) for group, lines in groups}
    points = {group: {name.strip('"'): value for name, value in each.items()} for group, each in points.items()}
    (name,) = re.findall(r'^name = "(.+)"', text, re.MULTILINE)
    install(folder, name, points, "0.1.0")


@contextmanager
def on_path(*folders: Path) -> Iterator[None]:
    """Inside, packages in these folders are installed; what they register is forgotten afterwards."""
    for home in HOMES:
        import_module(f"bmcompiler.{home}")
    registries = [_Saved(table) for table in plugins.TABLES]
    failed = dict(registry._failed)
    known = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        for folder in folders:
            patch.syspath_prepend(str(folder))
        _forget_points()
        try:
            yield
        finally:
            for saved in registries:
                saved.restore()
            registry._failed.clear()
            registry._failed.update(failed)
            for name in set(sys.modules) - known:
                if any(str(getattr(sys.modules[name], "__file__", None)).startswith(str(f)) for f in folders):
                    del sys.modules[name]
    _forget_points()


class _Saved:
    """A table as it was; built-in parts, which Python imports once, stay."""

    def __init__(self, table: plugins.PluginTable[Any, Any]) -> None:
        self.table, self.owners = table, dict(table._owners)
        self.entries, self.clashes = dict(table._entries), dict(table._clashes)

    def restore(self) -> None:
        ours = [key for key, owner in self.table._owners.items() if owner == registry.BUILT_IN]
        self.table._entries = {**{key: self.table._entries[key] for key in ours}, **self.entries}
        self.table._owners = {**dict.fromkeys(ours, registry.BUILT_IN), **self.owners}
        self.table._clashes = self.clashes
        doors = self.table.doors
        if doors is not None:
            doors.opened = set(filter(registry.is_built_in, doors.opened))
            doors.broken = {}


def _forget_points() -> None:
    registry.declared.cache_clear()
