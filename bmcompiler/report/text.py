"""Reports for tools: JSON with everything, CSV with the layers."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from bmcompiler.report.columns import columns_of

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make spreadsheets compute a cell."""

_COMPILATION = ("net", "target", "precision", "compiler", "options")


def json_text(data: dict[str, Any]) -> str:
    """The report data as JSON, which has no NaN and no infinity: null."""
    return json.dumps(json.loads(json.dumps(data), parse_constant=lambda _: None), indent=1) + "\n"


def csv_text(data: dict[str, Any]) -> str:
    """One line per layer after one of headings, the keys of the JSON; shapes as 1x3x224x224, the unknown empty.

    The last columns say of what compilation the line is: lines of several files can be put together.
    """
    columns = columns_of(data["layers"])
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["number", *(column.key for column in columns), *_COMPILATION])
    made = [_cell(data[name]) for name in _COMPILATION]
    for number, row in enumerate(data["layers"]):
        writer.writerow([number, *(_cell(row.get(column.key)) for column in columns), *made])
    return stream.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return "x".join(map(str, value))
    if isinstance(value, dict):
        return "; ".join(f"{name} {words}" for name, words in value.items())
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str) and value.startswith(_FORMULA):  # layer names come from files
        return f"'{value}"
    return value
