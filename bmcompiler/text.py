"""Text for terminals: names from files made harmless, tables, lines that fit a width."""

from __future__ import annotations

import math
import re
import shutil
import textwrap
from collections.abc import Container, Iterable, Sequence

Cell = str | int | float | None
_WIDTHS = 60, 120
_NAMES_SHOWN = 3
_VERSION = re.compile(r"(?<=.)_\d+$")


def is_broken(text: str) -> bool:
    """Whether there are bytes in it that are no UTF-8, as a shell hands them over."""
    return any("\ud800" <= each <= "\udfff" for each in text)


def printable(text: str, *, keep_lines: bool = False) -> str:
    """Text from a file, made safe for a terminal: control and other unprintable characters become escapes."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or (keep_lines and char == "\n") else char.encode("unicode_escape").decode()
        for char in text
    )


def percent(error: float) -> str:
    """A relative error, which is none where a network gives NaN or infinity."""
    return f"{error:.3%}" if math.isfinite(error) else "no number"


def at_least(share: float | None) -> str:
    """A share that is a lower bound, rounded down; nothing where there is none."""
    return "" if share is None else f"{math.floor(share * 1000) / 10:.1f}%"


def at_most(error: float) -> str:
    """A relative error that is an upper bound, rounded up."""
    return f"{math.ceil(error * 10_000 - 1e-6) / 100:.2f}%"


def format_table(headers: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Columns padded to one width, numbers at the right with thousands separators, None empty; ends with a newline."""
    cells = [list(row) for row in rows]
    numeric = [all(_is_number(row[column]) for row in cells) and bool(cells) for column in range(len(headers))]
    lines = [list(headers), *([_cell(value) for value in row] for row in cells)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    lines.insert(1, ["-" * width for width in widths])
    return "".join(_line(line, widths, numeric) for line in lines)


def _line(texts: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    padded = (text.rjust(width) if right else text.ljust(width) for text, width, right in zip(texts, widths, numeric))
    return "  ".join(padded).rstrip() + "\n"


def _is_number(value: Cell) -> bool:
    return value is None or isinstance(value, int | float)


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else printable(value)


def terminal_width() -> int:
    """Columns of the terminal (or COLUMNS), 100 without one; never fewer or more than a summary can use."""
    least, most = _WIDTHS
    return min(max(shutil.get_terminal_size((100, 24)).columns, least), most)


def shortened(text: str, width: int) -> str:
    """At most `width` characters; what is left out in the middle becomes an ellipsis."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def wrapped(text: str, width: int, indent: str = "  ") -> list[str]:
    """Lines of at most `width` characters, all but the first behind `indent`; words that are longer stay whole."""
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def some_names(names: Sequence[str]) -> str:
    """Names in quotes, the first few and how many more."""
    shown = ", ".join(f"'{name}'" for name in names[:_NAMES_SHOWN])
    return shown + (f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else "")


def without_types(names: Iterable[str]) -> dict[str, str]:
    """NAME -> the one of these that is NAME_TYPE, as tpu-mlir calls the result of an ONNX op."""
    found: dict[str, str] = {}
    twice = set()
    for name in names:
        head, _, kind = name.rpartition("_")
        if head and kind.isalpha() and kind[0].isupper():
            twice |= {head} & found.keys()
            found[head] = name
    return {head: name for head, name in found.items() if head not in twice}


def has_versions(inputs: Sequence[str], known: Container[str]) -> bool:
    """Whether a net calls tensors NAME_7, as Caffe2's exporter does for versions of a blob, where NAME is known."""
    return bool(inputs) and all(one.endswith("_0") and one not in known and one[:-2] in known for one in inputs)


def without_version(name: str) -> str:
    """NAME of NAME_7; other names as they are."""
    return _VERSION.sub("", name)


def no_key_twice(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """What a JSON object holds, as `object_pairs_hook`. Raises ValueError for a key that it holds twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"{next(key for key in keys if keys.count(key) > 1)!r} is given twice")
    return found
