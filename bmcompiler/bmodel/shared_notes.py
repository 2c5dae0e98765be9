"""Notes of several programs of a net as its file holds them: in those of the first, with each layer's name once.

    ['[["conv1","conv",0,2]]', '[["conv1","conv",0,3]]']
    ['{"names":["conv1"],"programs":[[[[0,"conv",0,2]]],[[[0,"conv",0,3]]]]}', '']

A program is its rows of layers (`bmodel.layers`) with numbers for names, and the further lines of its notes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from bmcompiler.bmodel.layers import decode_layers, encode_layers
from bmcompiler.bmodel.model import damaged
from bmcompiler.errors import FileFormatError
from bmcompiler.files.store import StrPath

TOGETHER = '{"names":'
_ANY_RECORD = 1 << 64


def together(notes: Sequence[str]) -> list[str]:
    """What the file holds for each program; notes of one program, or of another kind, are stored as they are."""
    try:
        layers = [decode_layers(text, _ANY_RECORD) for text in notes]
    except FileFormatError:
        return list(notes)
    if sum(map(bool, layers)) < 2:
        return list(notes)
    names = {name: number for number, name in enumerate(dict.fromkeys(s.name for spans in layers for s in spans))}
    rows = [[[names[span[0]], *span[1:]] for span in json.loads(encode_layers(spans) or "[]")] for spans in layers]
    programs = [[part, *text.split("\n")[1:]] for part, text in zip(rows, notes, strict=True)]
    whole = {"names": list(names), "programs": programs}
    return [json.dumps(whole, ensure_ascii=False, separators=(",", ":")), *[""] * (len(notes) - 1)]


def apart(stored: Sequence[str], file: StrPath) -> list[str]:
    """The notes of each program, of what `file` holds for them.

    Raises:
        FileFormatError: notes of another number of programs, or names that are not there.
    """
    if not stored or not stored[0].startswith(TOGETHER):
        return list(stored)
    try:
        whole = json.loads(stored[0])
        names, programs = whole["names"], whole["programs"]
        if len(programs) != len(stored):
            raise damaged(f"the notes of {len(stored)} programs in the model are those of {len(programs)}", file)
        return [_lines([[names[row[0]], *row[1:]] for row in rows], lines) for rows, *lines in programs]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise damaged("the notes of the model's programs are malformed", file) from error


def _lines(rows: list[list[object]], lines: list[str]) -> str:
    first = json.dumps(rows, ensure_ascii=False, separators=(",", ":")) if rows or lines else ""
    return "\n".join([first, *lines])
