"""TOML files that people write."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bmcompiler.errors import FileFormatError


def read_toml(file: Path) -> dict[str, Any]:
    """What the file says. Raises FileFormatError for what is not TOML, OSError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileFormatError(f"is not TOML: {error}", file=file) from None
