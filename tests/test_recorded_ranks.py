"""Programs of element-wise ops of tensors that are no images, each by itself: a view is chosen, which is recorded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cycle_nets import BYTES, FLOATS
from lane_nets import Net
from test_recorded_programs import PRECISIONS, compare, of_ops, path_of, read, write

from bmcompiler.ir import Module

RANKS = ((210,), (3, 100), (2, 5, 90), (2, 3, 2, 5, 7), (1, 1, 66, 20))
"""The last one fills no lanes."""
ELEMENTWISE = ("add", "mac", "muls", "relu", "lut", "sqrt", "sigmoid", "pow")


def of_ranks() -> Iterator[tuple[str, Module]]:
    for shape in RANKS:
        for kind, table in (("f32", FLOATS), ("i8", BYTES)):
            for name in filter(table.__contains__, ELEMENTWISE):
                net = Net([shape], 0, kind)
                yield f"{name} {kind} {shape}", net.module([table[name](net, net.inputs[0])])


@pytest.mark.parametrize("chip", PRECISIONS)
def test_programs_of_any_rank_are_those_that_were_recorded(chip: str, request: pytest.FixtureRequest) -> None:
    found, path = of_ops(chip, of_ranks(), 0), path_of(chip, "ranks")
    if request.config.getoption("--update-golden"):
        write(path, found)
    compare(found, read(path))
