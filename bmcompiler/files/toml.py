"""TOML files that people write."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bmcompiler.errors import FileFormatError
from bmcompiler.files.store import read_text


def read_toml(file: Path) -> dict[str, Any]:
    """What the file says. Raises FileFormatError for what is not TOML or no file on disk, OSError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(read_text(file))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileFormatError(f"is not TOML: {error}", file=file) from None
