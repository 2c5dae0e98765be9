"""Frontends, targets, devices, passes and custom ops, found by entry-point group and name.

Built-in parts and users' plugins come through the same door: a package that declares, in its pyproject.toml,

    [project.entry-points."bmcompiler.targets"]
    mychip = "my_package.target:MyTarget"

is found here. Nothing is imported before it is asked for: listing names is cheap, and a broken plugin hurts only its
users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from importlib.metadata import entry_points as installed_entry_points
from typing import Any

from bmcompiler.errors import BMError, UnsupportedError

GROUPS = tuple(
    f"bmcompiler.{kind}"
    for kind in ("frontends", "targets", "devices", "passes", "onnx_ops", "caffe_layers", "tensor_ops", "tensor_insts")
)


class PluginError(BMError):
    """A plugin that is declared but cannot be imported, that fails when it is used, or two with one name."""


@contextmanager
def plugin_code(what: str) -> Iterator[None]:
    """Around calls of a plugin's own functions: what they raise becomes a PluginError that starts with `what`.

    Reported errors pass; the original exception stays attached for the plugin's author.
    """
    try:
        yield
    except BMError:
        raise
    # Foreign code may raise anything, and all of it means the same to the user.
    except Exception as error:
        raise PluginError(
            f"{what} failed: {type(error).__name__}: {error}", remedy="repair the plugin, or tell its author"
        ) from error


@dataclass(frozen=True)
class Loader:
    """One declared plugin; call it to import the object it names (imported once, by Python's module cache)."""

    group: str
    name: str
    points: tuple[EntryPoint, ...]

    def __call__(self) -> Any:
        """The plugin's object.

        Raises:
            PluginError: it fails to import, or different packages declare the same name.
        """
        values = sorted({point.value for point in self.points})
        if len(values) > 1:
            raise PluginError(
                f"{self.group}: '{self.name}' is declared more than once ({', '.join(values)})",
                remedy="uninstall all but one of the packages",
            )
        try:
            return self.points[0].load()
        # A plugin is foreign code: its import may raise anything, and all of it means the same to the user.
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            raise PluginError(
                f"{self.group}: plugin '{self.name}' ({values[0]}) cannot be imported: {cause}",
                remedy="repair or uninstall the package that provides it",
            ) from error


@cache
def entry_points(group: str) -> dict[str, Loader]:
    """Declared plugins of `group` by name, sorted; call a value to import it."""
    found: dict[str, list[EntryPoint]] = {}
    for point in installed_entry_points(group=group):
        found.setdefault(point.name, []).append(point)
    return {name: Loader(group, name, tuple(found[name])) for name in sorted(found)}


def lookup(group: str, name: str, what: str) -> Any:
    """The object of plugin `name`; `what` is the user's word for its kind ("target").

    Raises:
        UnsupportedError: there is none of that name (the message lists those there are).
        PluginError: it fails to import.
    """
    loaders: dict[str, Callable[[], Any]] = dict(entry_points(group))
    if name not in loaders:
        known = ", ".join(loaders) or "none is installed"
        raise UnsupportedError(f"unknown {what} '{name}'", remedy=f"choose one of: {known}")
    return loaders[name]()
