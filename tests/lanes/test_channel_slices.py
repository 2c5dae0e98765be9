"""Slices of channels in local memory, on every chip with lanes: from any lane, over rows of lanes, several images."""

from __future__ import annotations

import pytest

from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder
from bmcompiler.testing import check_op


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x", "bm1880"])
@pytest.mark.parametrize(
    ("shape", "first", "end"),
    [
        ((2, 4, 5, 6), 2, 3),
        ((2, 40, 5, 6), 0, 20),
        ((2, 40, 5, 6), 5, 38),
        ((3, 100, 4, 4), 64, 100),
        ((1, 130, 3, 3), 65, 129),
    ],
)
def test_channels_between_layers_are_those_of_the_slice(
    chip: str, shape: tuple[int, int, int, int], first: int, end: int
) -> None:
    n, _, h, w = shape

    def make(b: Builder, x: Value) -> Value:
        return b.relu(b.slice(b.relu(x), starts=(0, first, 0, 0), ends=(n, end, h, w), steps=(1, 1, 1, 1)))

    check_op(make, [shape], target=chip, quantize="int8", seeds=1)
