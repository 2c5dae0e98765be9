"""Cuts of an axis into slices: whole grains, as many in each as in the others, or one more."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from bmcompiler.codegen.groups.slices import cuts


@pytest.mark.parametrize("grain", [1, 4, 32, 64])
def test_slices_are_equal_but_for_a_grain(grain: int) -> None:
    for size, count in product(range(1, 5 * grain + 3), range(1, 7)):
        found, grains = cuts(size, count, grain), -(-size // grain)
        assert len(found) == count and found[0][0] == 0 and found[-1][1] == size
        assert all(one[1] == other[0] and other[0] % grain == 0 for one, other in pairwise(found))
        held = [-(-high // grain) - low // grain for low, high in found]
        assert sum(held) == grains and max(held) - min(held) <= 1, (size, count, found)
