"""Entry points by group: the one door through which frontends, targets, passes, ops and devices are found."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import metadata
from typing import Any

from bmcompiler.errors import UnsupportedError


@lru_cache(maxsize=None)
def entry_points(group: str) -> dict[str, Callable[[], Any]]:
    """Name -> function that imports and returns the object. Nothing is imported before it is called.

    A plugin that cannot be imported raises UnsupportedError naming the plugin.
    """

    def loader(entry: metadata.EntryPoint) -> Callable[[], Any]:
        def load() -> Any:
            try:
                return entry.load()
            except (ImportError, AttributeError) as error:
                raise UnsupportedError(
                    f"plugin '{entry.name}' ({entry.value}) of group {group} cannot be loaded: {error}",
                    remedy="reinstall or remove the package that provides it",
                ) from error

        return load

    return {entry.name: loader(entry) for entry in sorted(metadata.entry_points(group=group), key=lambda e: e.name)}
