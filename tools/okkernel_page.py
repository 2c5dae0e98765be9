"""The text of docs/okkernel_functions.md."""

from __future__ import annotations

from collections.abc import Iterator

from bmcompiler.backends.bm1684.okkernel.rows import Function
from bmcompiler.backends.bm1684.okkernel.unavailable import UNAVAILABLE
from bmcompiler.okkernel import TABLE

_HEAD = """# The functions of okkernel

Made by `make docs` from the table in `backends/bm1684/okkernel`, which the functions themselves are made from; do not
edit. [okkernel.md](okkernel.md) tells how they are used. Commands and values are equal to those recorded of the
vendor's library, for all functions.

"""


def okkernel_functions() -> str:
    """All functions by group, and those that are not there."""
    return "".join(line + "\n" for line in (_HEAD.rstrip(), "", *_groups(), *_missing()))


def _groups() -> Iterator[str]:
    groups: dict[str, list[Function]] = {}
    for row in TABLE.values():
        groups.setdefault(row.group, []).append(row)
    for group, rows in groups.items():
        yield from (f"## {group}", "", "| function | gives |", "|---|---|")
        for row in rows:
            formula = row.formula.replace("|", "\\|")
            yield f"| `{row.prototype}` | {formula} |"
        yield ""


def _missing() -> Iterator[str]:
    yield from ("## Not there", "", "Calls of these answer with the reason.", "", "| functions | why |", "|---|---|")
    for why in dict.fromkeys(UNAVAILABLE.values()):
        names = (f"`{name}`" for name, reason in UNAVAILABLE.items() if reason == why)
        yield f"| {', '.join(names)} | {why} |"
