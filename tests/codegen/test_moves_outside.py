"""Ops that move data outside of local memory say so, and no other does: what others keep there stays meanwhile."""

from __future__ import annotations

import pytest
from test_recorded_programs import samples

from bmcompiler.analysis.profile import analysis_of
from bmcompiler.ir.keys import WEIGHT
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import find_target, unsupported_reason

IN_GROUPS = ("to_bands", "from_bands", "regroup_bands")
"""Ops that move data through local memory where their values are kept there, which takes a group."""


@pytest.mark.parametrize(("chip", "outside"), [("bm1684", 8), ("bm1684x", 8)])
def test_an_op_touches_local_memory_where_it_says_so(chip: str, outside: int) -> None:
    target, met = find_target(chip), 0
    for name, module in samples():
        ops = [op for op in module.main.ops if isinstance(op, TensorOp) and op.name != WEIGHT]
        moves = len(ops) == 1 and (ops[0].moves_only or ops[0].index_operands) and name not in IN_GROUPS
        if not moves or not module.main.arguments or unsupported_reason(target, ops[0]) is not None:
            continue
        kernel, analysis = target.kernel_for(ops[0]), analysis_of(chip, target.compile([module], 0).model)
        assert kernel is not None and analysis is not None
        found = analysis.accesses()
        local = next(number for number, words in enumerate(found.spaces) if "of lanes" in words)
        touched = bool((found.space == local).any())
        assert touched == kernel.uses_local_memory(ops[0]), name
        met += not touched
    assert met >= outside
