"""Notes of a program in model files: which command records belong to which source layer, and what that needs.

Timing, traces and listings read it; files of before have no numbers in it. Further lines of JSON, if any: how pictures
become the input (`bmcompiler.inputs.preprocessing`), which sizes vary (`bmcompiler.sizes.note`), and how large values
of the inputs are (`bmcompiler.inputs.ranges`).
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from bmcompiler.errors import FileFormatError


@dataclass(frozen=True)
class LayerSpan:
    """`count` records from number `first` on belong to the layer `name`, an op of `kind`.

    `macs`: multiply-accumulates that the op needs; its commands may make more: rows that two tiles need, channels that
    are padded. `nbytes`: of its operands and results, wherever they are. Of several spans of an op the first says them.
    """

    name: str
    kind: str
    first: int
    count: int
    macs: int | None = None
    nbytes: int | None = None


_LINE = "\n"
PICTURES, SIZES, RANGES = 1, 2, 3
"""Lines of the notes behind the layers."""
_LINES = 4
_ROWS = ((str, str, int, int), (str, str, int, int, int, int))


def encode_layers(spans: Iterable[LayerSpan]) -> str:
    """Compact JSON: one list [name, kind, first, count] per span, and macs and nbytes where they are said."""
    rows = [[cell for cell in astuple(span) if cell is not None] for span in spans]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")) if rows else ""


def with_note(notes: str, line: int, text: str) -> str:
    """The notes of a program with other text on a line, `PICTURES`, `SIZES` or `RANGES`."""
    lines = [*notes.split(_LINE), "", "", ""][:_LINES]
    lines[line] = text
    lines[0] = lines[0] or ("[]" if any(lines) else "")
    return _LINE.join(lines).rstrip(_LINE)


def note_in(notes: str, line: int) -> str:
    """What the notes say on a line; "" = nothing."""
    return [*notes.split(_LINE), "", "", ""][line]


def decode_layers(text: str, records: int) -> list[LayerSpan]:
    """The spans of a program of `records` records, in ascending order.

    Raises:
        FileFormatError: not such a list, or spans that overlap or leave the program.
    """
    text = text.partition(_LINE)[0]
    if not text:
        return []
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileFormatError("the list of layers in the model is not JSON") from error
    end = 0
    for row in rows if isinstance(rows, list) else [rows]:
        if not isinstance(row, list) or tuple(map(type, row)) not in _ROWS or min(row[4:], default=0) < 0:
            raise FileFormatError("the list of layers in the model is malformed")
        if row[2] < end or row[3] < 1 or row[2] + row[3] > records:
            raise FileFormatError(f"layer '{row[0]}' is said to own records {row[2]} to {row[2] + row[3]} of {records}")
        end = row[2] + row[3]
    return [LayerSpan(*row) for row in rows]


def span_of(spans: Sequence[LayerSpan], record: int) -> int:
    """Index of the span that owns a record, -1 when none does."""
    at = bisect_right(spans, record, key=lambda span: span.first) - 1
    return at if at >= 0 and record < spans[at].first + spans[at].count else -1


def titled(lines: Sequence[str], spans: Iterable[LayerSpan]) -> list[str]:
    """A listing of records, one line each (ending in a newline), with a comment where a layer begins."""
    titles = {span.first: f"# {span.name!r} ({span.kind!r})\n" for span in spans}
    # repr: names come from model files and may hold line breaks or terminal controls
    return [titles.get(number, "") + line for number, line in enumerate(lines)]
