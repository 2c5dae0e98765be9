"""What reports say of groups: the most local memory in use is that of what lies there meanwhile."""

from __future__ import annotations

from itertools import islice

import pytest
from test_recorded_programs import of_shape

from bmcompiler.errors import UnsupportedError
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import find_target, unsupported_reason


@pytest.mark.parametrize("chip", ["bm1880", "bm1684", "bm1684x"])
def test_the_most_bytes_of_a_group_are_where_what_it_keeps_ends(chip: str) -> None:
    target, asked = find_target(chip), 0
    for name, module in islice(of_shape((1, 64, 28, 28)), 0, None, 2):
        ops = [op for op in module.main.ops if isinstance(op, TensorOp) and op.short_name != "weight"]
        if any(unsupported_reason(target, op) is not None for op in ops):
            continue
        try:
            groups = target.compile([module], 2).groups or []
        except UnsupportedError:  # an output that is a constant
            continue
        ends = [[each.address + each.lane_bytes for each in group.live_ranges] for group in groups]
        for group, own in zip(groups, ends):
            assert max(own, default=0) <= group.lane_bytes <= max(map(max, filter(None, ends)), default=0), name
            asked += len(own)
    assert asked >= 10
