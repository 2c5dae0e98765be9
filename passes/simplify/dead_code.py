"""Remove what nobody uses."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.ir import Module, erase_dead
from bmcompiler.ops.core import Weight
from bmcompiler.passmanager import Pass, PassContext, PassResult


@dataclass(frozen=True)
class DeadCode(Pass):
    """Erase ops and weights without a reader.

    1. an op none of whose results is used, after its users are gone
    2. a weight of the side file that no `weight` op refers to
    """

    name = "dead-code"
    requires = ()
    loses_bits = False
    drops_work = True

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        changed = False
        for function in module.functions:
            changed |= erase_dead(function)
        used = {op.attributes["key"] for op in module.walk() if isinstance(op, Weight)}
        unused = [key for key in module.weights if key not in used]
        for key in unused:
            del module.weights[key]
        return PassResult(changed or bool(unused))
