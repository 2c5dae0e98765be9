"""The 108 operators of BMLang as data: one row each, in the order of the vendor's page.

A row says what the vendor's page and bmlang.md say: parameters, element types per chip, broadcasting, constants, class.
Checks, messages, default result types, the manual and the tests come from here; what an operator computes stands in
`meaning`.
"""

from __future__ import annotations

from bmcompiler.frontends.bmlang.rows import Row
from bmcompiler.frontends.bmlang.table_compute import COMPUTE
from bmcompiler.frontends.bmlang.table_data import DATA

TABLE: dict[str, Row] = {row.name: row for row in (*COMPUTE, *DATA)}
"""Operator name -> row."""
