"""All functions of the library, by name."""

from __future__ import annotations

from bmcompiler.backends.bm1684.okkernel import control, elementwise, functions_of_floats, transfers, windows
from bmcompiler.backends.bm1684.okkernel.rows import Function

_ROWS = (*control.ROWS, *transfers.ROWS, *elementwise.ROWS, *functions_of_floats.ROWS, *windows.ROWS)
TABLE: dict[str, Function] = {row.name: row for row in _ROWS}
"""Function name -> row, in the order of the manual."""
assert len(TABLE) == len(_ROWS), "two rows have one name"
