"""The version of this installation."""

from __future__ import annotations

from functools import cache


@cache
def version() -> str:
    """As the installed package says it; "unknown" for source files that are not installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("bmcompiler")
    except PackageNotFoundError:
        return "unknown"
