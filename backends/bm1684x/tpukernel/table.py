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
    sorting,
    transfers,
    trigonometry,
)
from bmcompiler.backends.bm1684x.tpukernel.rows import Function
from bmcompiler.backends.bm1684x.tpukernel.units import elements, floating, matrices, moves, others, vectors, windows

_ROWS = (
    *control.ROWS,
    *scalars.ROWS,
    *seed.ROWS,
    *transfers.ROWS,
    *moves.ROWS,
    *elementwise.ROWS,
    *elements.ROWS,
    *comparing.ROWS,
    *moving.ROWS,
    *others.ROWS,
    *sorting.ROWS,
    *vectors.ROWS,
    *matrices.ROWS,
    *windows.ROWS,
    *exponentials.ROWS,
    *trigonometry.ROWS,
    *activations.ROWS,
    *floating.ROWS,
)
TABLE: dict[str, Function] = {row.name: row for row in _ROWS}
"""Function name -> row, in the order of the manual."""
assert len(TABLE) == len(_ROWS), "two rows have one name"
