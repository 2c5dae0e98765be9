"""The 108 operators of BMLang as data: the rows of operators.txt, in the order of the vendor's page; and a few more.

A row says what the vendor's page and bmlang.md say: parameters, element types per chip, broadcasting, constants, class.
Checks, messages, default result types, the manual and the tests come from here; what an operator computes stands in
`meaning`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bmcompiler.frontends.bmlang.rows import Row


def _rows(text: str) -> list[Row]:
    found: list[dict[str, Any]] = []
    family = ""
    for line in filter(None, text.splitlines()):
        if line.startswith("== "):
            family = line[3:]
        elif line.startswith("    "):
            key, _, value = line.strip().partition(": ")
            found[-1][key] = value if key != "todo" else value == "yes"
        elif not line.startswith("#"):
            name, _, signature = line.removesuffix(")").partition("(")
            found.append({"name": name, "family": family, "signature": signature, "bm1682": "", "bm1684": ""})
    return [Row(**each) for each in found]


def _table(name: str) -> dict[str, Row]:
    return {row.name: row for row in _rows(Path(__file__).with_name(name).read_text(encoding="utf-8"))}


TABLE = _table("operators.txt")
"""Operator name -> row, of the vendor's 108."""
CONVENIENCES = _table("conveniences.txt")
"""The same of ours beside them."""
