"""All functions of the library, by name."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.tpukernel import (
    activations,
    comparing,
    control,
    elementwise,
    exponentials,
    moving,
    scalars,
    seed,
    transfers,
    trigonometry,
)
from bmcompiler.backends.bm1684x.tpukernel.rows import Function

_ROWS = (
    *control.ROWS,
    *scalars.ROWS,
    *seed.ROWS,
    *transfers.ROWS,
    *elementwise.ROWS,
    *comparing.ROWS,
    *moving.ROWS,
    *exponentials.ROWS,
    *trigonometry.ROWS,
    *activations.ROWS,
)
TABLE: dict[str, Function] = {row.name: row for row in _ROWS}
"""Function name -> row, in the order of the manual."""
assert len(TABLE) == len(_ROWS), "two rows have one name"
