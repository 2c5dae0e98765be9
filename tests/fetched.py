"""Files that `make models` fetches; tests that need one are skipped without it."""

from __future__ import annotations

from pathlib import Path

import pytest

THIRD_PARTY = Path(__file__).resolve().parent.parent / "models" / "third_party"


def third_party(name: str) -> Path:
    """The path of a fetched file."""
    path = THIRD_PARTY / name
    if not path.exists():
        pytest.skip(f"{name} is not fetched: run `make models`")
    return path
