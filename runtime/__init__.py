"""Running compiled models: `Session` for numpy users, `bmruntime` for the vendor's API, simulators underneath."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bmcompiler.runtime.session import Session

__all__ = ["Session"]


def __getattr__(name: str) -> Any:
    """Import `Session` on first use: simulators alone need none of the model-file code."""
    if name != "Session":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from bmcompiler.runtime.session import Session

    return Session
