"""What a user knows of a board: a small TOML or JSON file.

chip = "CHIP"
memory = "4 GB"        # for networks, as bm-smi says; a number is bytes
runtime = "0.4.8"      # version of the vendor's library
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from bmcompiler.errors import FileFormatError
from bmcompiler.files.toml import read_toml
from bmcompiler.text import no_key_twice

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMG]?)i?B", re.IGNORECASE)


@dataclass(frozen=True)
class Board:
    """None is what was not said. `memory` in bytes; K, M and G are powers of 1024, as bm-smi counts."""

    chip: str | None = None
    memory: int | None = None
    runtime: str | None = None


def read_board(file: Path) -> Board:
    """A file's facts. Raises FileFormatError for other ones, OSError."""
    said = _json(file) if file.suffix.lower() == ".json" else read_toml(file)
    known = [each.name for each in fields(Board)]
    for name in said:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            remedy = f"did you mean {near[0]}?" if near else f"facts are {', '.join(known)}"
            raise FileFormatError(f"'{name}' is no fact of a board", file=file, remedy=remedy)
    for name in ("chip", "runtime"):
        if name in said and not isinstance(said[name], str):
            raise FileFormatError(f"{name} must be a text in quotes, got {said[name]!r}", file=file)
    memory = said.get("memory")
    return Board(said.get("chip"), None if memory is None else _bytes(memory, file), said.get("runtime"))


def _json(file: Path) -> dict[str, Any]:
    try:
        said = json.loads(file.read_text("utf-8"), object_pairs_hook=no_key_twice)
    except ValueError as error:
        raise FileFormatError(f"is not JSON: {error}", file=file) from None
    if not isinstance(said, dict):
        raise FileFormatError("must be an object of facts", file=file, remedy='as in {"chip": "CHIP"}')
    return said


def _bytes(value: object, file: Path) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    size = int(float(found[1]) * (1 << _UNITS[found[2].upper()])) if found else 0
    if size < 1:
        raise FileFormatError(f'memory must be a number of bytes or like "4 GB", got {value!r}', file=file)
    return size
