"""Static memory against what the vendor's firmware leaves there."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from bm1684x_golden import recorded

from bmcompiler.backends.bm1684x.codes import Precision
from bmcompiler.backends.bm1684x.static_tables import ARCSIN, ARCTAN, TABLES, StaticTable, static_memory


def test_the_formulas_give_the_recorded_bytes() -> None:
    memory = recorded("gdma")["smem_tables"]
    np.testing.assert_array_equal(static_memory()[: len(memory)], memory)


def test_tables_lie_side_by_side() -> None:
    ordered = sorted(TABLES, key=lambda table: table.offset)
    assert all(one.offset + one.size <= other.offset for one, other in pairwise(ordered))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: hex(table.offset))
def test_entries_are_rounded_once(table: StaticTable) -> None:
    """To the nearest number of the type by way of f32, halves to even; words are whole numbers."""
    singles = [np.float32(float(table.entry(index))) for index in range(table.words)]
    forms = {Precision.INT32: "<i4", Precision.FP32: "<f4", Precision.FP16: "<f2", Precision.BF16: "<u2"}
    found = table.data().view(forms[table.precision])
    if table.precision != Precision.BF16:
        assert found.tolist() == [found.dtype.type(each) for each in singles]
        return
    for bits, single in zip(found.tolist(), singles):
        near = [Fraction(float(np.array(max(each, 0) << 16, "<u4").view("<f4"))) for each in (bits - 1, bits, bits + 1)]
        away = [abs(each - Fraction(float(single))) for each in near]
        assert away[1] == min(away) and (bits % 2 == 0 or away[1] not in (away[0], away[2]))


@pytest.mark.parametrize(("table", "function"), [(ARCSIN, math.asin), (ARCTAN, math.atan)])
def test_odd_series_sum_up_to_their_function(table: StaticTable, function: Callable[[float], float]) -> None:
    for x in (-0.5, 0.125, 0.4375):
        powers = x ** (2 * np.arange(table.words) + 1.0)
        assert float(table.values() @ powers) == pytest.approx(function(x), rel=1e-7)
