"""Pieces of HTML: tables that sort, numbers with units, lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

Cell = tuple[str, object]
"""HTML, and the value to sort by."""
Heading = tuple[str, str, str]
"""Text, css class, what a reader sees who points at it."""


def framed(title: str, body: str) -> str:
    """A self-contained page: frame.html, with the style and the script that sorts tables, around a body."""
    head, _, tail = Path(__file__).with_name("frame.html").read_text(encoding="utf-8").partition("{body}")
    return head.replace("{title}", escape(title)) + body + tail


def made(compiler: str, options: Mapping[str, str]) -> str:
    """By which version, and what it was told."""
    parts = [compiler, *(f"{name.replace('_', '-')} {value}" for name, value in options.items())]
    return f'<p class="small made">{escape(" · ".join(parts))}</p>'


def table(headings: Iterable[Heading], rows: Iterable[Sequence[Cell]], kind: str = "") -> str:
    """A table in a frame that scrolls, without columns that say nothing; a click on a heading sorts by its column."""
    columns, rows = list(headings), list(rows)
    said = [at for at in range(len(columns)) if not rows or any(row[at][0] for row in rows)]
    columns, rows = [columns[at] for at in said], [[row[at] for at in said] for row in rows]
    head = "".join(_heading(*column) for column in columns)
    lines = []
    for row in rows:
        cells = "".join(
            f'<td class="{style}" data-v="{escape(str(value), quote=True)}">{html}</td>'
            for (_, style, _), (html, value) in zip(columns, row)
        )
        lines.append(f"<tr>{cells}</tr>")
    body = f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    return f'<div class="scroll">{body}</div>'


def _heading(text: str, style: str, meaning: str) -> str:
    title = f' title="{escape(meaning, quote=True)}"' if meaning else ""
    return f'<th class="{style}" tabindex="0"{title}>{escape(text)}</th>'


def text(value: str) -> Cell:
    """A cell of text, which breaks where joined names and paths do."""
    return re.sub("([+/])(?=.)", r"\1<wbr>", escape(value)), value


def number(value: int | None) -> Cell:
    """A cell with thousands separators; nothing for 0 and for what is not known."""
    return (f"{value:,}" if value else "", -1 if value is None else value)


def short(value: float) -> str:
    """Three digits and a unit: 1,234,567 -> 1.23 M."""
    scaled = float(value)
    for unit in ("", " k", " M", " G"):
        if scaled < 999.5 or unit == " G":
            return f"{scaled:.3g}{unit}" if unit or value != int(value) else f"{int(value)}"
        scaled /= 1000
    raise AssertionError("unreachable")


def bullets(title: str, lines: Sequence[str]) -> str:
    """A headed list; nothing without lines."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<h2>{title}</h2><ul>{items}</ul>" if lines else ""


def stack(parts: Iterable[tuple[str, str, int]], largest: int) -> Cell:
    """A bar of (css class, name, bytes), as long as the share of `largest`; sorts by the sum."""
    known: list[Any] = list(parts)
    spans = "".join(
        f'<i class="{style}" style="width:{100 * value / largest:.2f}%" title="{name}: {value:,} bytes"></i>'
        for style, name, value in known
        if value
    )
    return f'<div class="stack">{spans}</div>', sum(value for _, _, value in known)


def legend(title: str, parts: Iterable[tuple[str, str]]) -> str:
    """What the colours mean: (css class, name)."""
    items = "".join(f'<span><i class="{style}"></i>{escape(name)}</span>' for style, name in parts)
    return f'<p class="legend">{escape(title)} {items}</p>'
