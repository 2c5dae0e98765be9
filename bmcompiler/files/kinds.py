"""The kinds of file that are written, and how one that is there is told: a file of another kind is never replaced."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bmcompiler.errors import BMError, UsageError


@dataclass(frozen=True)
class Kind:
    """One kind of output.

    Attributes:
        title: what a message calls it.
        detect: False for the content of a file (at least one byte) that is plainly of another kind.
        text: whether it is written as UTF-8 text.
    """

    title: str
    detect: Callable[[bytes], bool]
    text: bool = False


_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SOURCE = re.compile(rb"^\s*(layers?\s*\{|import [\w.]+\s*$|from [\w.]+ import |def \w+\(|#!|#include)", re.M)


def _text(data: bytes) -> bool:
    """Text that is neither a network as prototxt nor a program."""
    return not _CONTROL.search(data) and not _SOURCE.search(data)


def _begins(*starts: bytes) -> Callable[[bytes], bool]:
    return lambda data: not _CONTROL.search(data) and data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(starts)


def _model(data: bytes) -> bool:
    from bmcompiler.bmodel.container import containers

    return any(each.detect(memoryview(data)) for each in containers())


def _table(data: bytes) -> bool:
    """One of ours by its first line, other text, or one of the two forms that look like a network otherwise."""
    from bmcompiler.quant import table_message

    if data.startswith((b"# bmcompiler quantization table", b"# Calibration table")):
        return True
    if not _CONTROL.search(data):
        return _text(data) or b"threshold_y" in data
    try:
        table_message.parse_binary(data, "")
    except BMError:
        return False
    return True


MODEL = Kind("model file", _model)
ARRAYS = Kind("file of arrays (.npz)", lambda data: data.startswith(b"PK"))
TABLE = Kind("table", _table)
TEXT = Kind("text", _text, text=True)
PAGE = Kind("HTML page", _begins(b"<"), text=True)
JSON = Kind("JSON file", _begins(b"{", b"["), text=True)
NETWORK = Kind("prototxt", lambda data: not _CONTROL.search(data), text=True)
BYTES = Kind("part of a model file", lambda data: True)
"""Raw numbers, which have no mark: pieces of a model in a folder for them."""


def refuse_another_kind(path: Path, kind: Kind) -> None:
    """Raise UsageError where `path` is a file with content that is plainly not of the kind to be written there."""
    if not path.is_file() or path.stat().st_size == 0:
        return
    if not kind.detect(path.read_bytes()):
        reason = f"holds something else than a {kind.title}, which would be lost"
        raise UsageError(reason, file=path, remedy="give the output another name, or remove this file")
