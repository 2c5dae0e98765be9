"""Modules compiled from a changed syntax tree on import; no file is written, source and byte code stay as they are."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

Change = Callable[[str, str], ast.Module]
"""The tree to compile, of a module's name and source."""


class ChangingLoader(SourceFileLoader):
    """Compiles what `change` makes of the source; byte code is neither read nor written."""

    def __init__(self, name: str, path: str, change: Change, names: dict[str, Any]) -> None:
        super().__init__(name, path)
        self.change, self.names = change, names

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_source(fullname) or ""
        return compile(self.change(fullname, source), self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(self.names)
        super().exec_module(module)


class ChangingFinder(MetaPathFinder):
    """Finds the modules of `wanted`, before all other finders."""

    def __init__(self, wanted: Callable[[str], bool], change: Change, names: dict[str, Any]) -> None:
        self.wanted, self.change, self.names = wanted, change, names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or not self.wanted(fullname):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = ChangingLoader(fullname, spec.loader.path, self.change, self.names)
        return spec


def install(wanted: Callable[[str], bool], change: Change, names: dict[str, Any] | None = None) -> None:
    """From now on, imported modules that are `wanted` are changed; RuntimeError where one is imported already."""
    late = [name for name in sys.modules if wanted(name)]
    if late:
        raise RuntimeError(f"imported before they could be changed: {', '.join(late)}")
    sys.meta_path.insert(0, ChangingFinder(wanted, change, names or {}))
