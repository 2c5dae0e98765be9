"""Write down which layers are computed together, slice by slice."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.errors import UsageError
from bmcompiler.ir import Module
from bmcompiler.ir.keys import GROUP, SLICES
from bmcompiler.passmanager import Pass, PassContext, PassResult


@dataclass(frozen=True)
class GroupLayers(Pass):
    """Give the ops of every group of layers the number of the group and its slices, which code generation follows.

    1. level 0: no groups
    2. level 1: greedy, 2: dynamic programming; the target says which groups
    3. groups that were there before are taken back
    """

    name = "group-layers"
    requires = ()
    breaks = (NO_LAYOUT, NO_GROUPS)
    loses_bits = False
    level: int = 2

    def __post_init__(self) -> None:
        if self.level not in (0, 1, 2):
            raise UsageError(f"the level of group-layers is 0, 1 or 2, not {self.level}")

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        modified, number = False, 0
        for function in module.functions:
            before = {op: (op.attributes.pop(GROUP, None), op.attributes.pop(SLICES, None)) for op in function.ops}
            for ops, slices in ctx.target.layer_groups(function, self.level) if ctx.target is not None else ():
                for op in ops:
                    op.attributes[GROUP], op.attributes[SLICES] = number, slices
                number += 1
            after = {op: (op.attributes.get(GROUP), op.attributes.get(SLICES)) for op in function.ops}
            modified |= before != after
        return PassResult(modified)
