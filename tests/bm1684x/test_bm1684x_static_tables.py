"""Static memory against what the vendor's firmware leaves there."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from bm1684x_golden import recorded

from bmcompiler.backends.bm1684x.static_tables import TABLES, static_memory


def test_the_formulas_give_the_recorded_bytes() -> None:
    memory = recorded("gdma")["smem_tables"]
    np.testing.assert_array_equal(static_memory()[: len(memory)], memory)


def test_tables_lie_side_by_side() -> None:
    ordered = sorted(TABLES, key=lambda table: table.offset)
    assert all(one.offset + one.size <= other.offset for one, other in pairwise(ordered))
