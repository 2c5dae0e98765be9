"""Transfers whose source repeats: along w the GDMA cannot, so another axis is taken for w, and the same bytes move."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from bmcompiler.backends.bm1684x.build import _swapped
from bmcompiler.backends.lanes.transfers import Side

SIZES = list(product((1, 2, 3), repeat=4))


def moves(source: Side, target: Side) -> dict[int, int]:
    """Where each byte of the target comes from."""
    found = {}
    for at in np.ndindex(*target.shape):
        to, by = (side.address + sum(i * step for i, step in zip(at, side.strides)) for side in (target, source))
        found[to] = by
    return found


@pytest.mark.parametrize("repeated", list(product((False, True), repeat=4)), ids=str)
def test_the_same_bytes_move(repeated: tuple[bool, ...]) -> None:
    for shape in SIZES:
        _, c, h, w = shape
        dense = (c * h * w, h * w, w, 1)
        by = tuple(0 if again else step for again, step in zip(repeated, (1000, 100, 10, 1)))
        source, target = Side(7, shape, by), Side(50, shape, dense)
        found = _swapped(source, target)
        assert moves(*found) == moves(source, target)
        assert found[0].shape == found[1].shape
        assert found[0].strides[3] or found[0].shape[3] == 1
