"""Models and networks that come through a pipe: `-` in place of a file."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bmcompiler.bmodel import BModel
    from bmcompiler.files.store import StrPath

STDIO = "-"
"""As a file's name: standard input or output."""


def piped(path: StrPath) -> StrPath | bytes:
    """All of standard input where the path is -, else the path."""
    return sys.stdin.buffer.read() if os.fspath(path) == STDIO else path


def read_bytes(path: StrPath) -> bytes:
    """What a file or standard input holds. Raises FileFormatError for an empty file, OSError."""
    from bmcompiler.files.store import map_file

    found = piped(path)
    return found if isinstance(found, bytes) else bytes(map_file(found))


def read_model(path: StrPath) -> BModel:
    """A model file, or that on standard input. Raises FileFormatError, OSError."""
    from bmcompiler.bmodel import load
    from bmcompiler.bmodel.container import loads

    found = piped(path)
    return loads(found, path) if isinstance(found, bytes) else load(found)
