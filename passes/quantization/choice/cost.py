"""Cycles of an op: the target's own count, else a rough one that orders the modes right."""

from __future__ import annotations

from bmcompiler.ir import Operation
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.numeric.quant_modes import ASYMMETRIC, HIGH
from bmcompiler.target import Target

_MACS = {"f32": 1024, "i8": 4096}
"""Products per cycle, of floats and of bytes: the ratio of 64 lanes with 32-bit words (bm1684.md 1)."""
_STEPS = {HIGH: 12, CHANNEL: 3, ASYMMETRIC: 13}
"""Instructions per element of a result in these modes (bm1684.md 7.3); one otherwise."""
_ELEMENTS = 1024
"""Elements per cycle of one such instruction."""


def cycles(op: Operation, target: Target | None) -> int:
    """What an op costs on the target; where bands of rows make it quicker, on these, as a later pass makes them."""
    known = None if target is None else target.cycles(op)
    if target is None or known is None:
        return rough_cycles(op)
    if target.image_slots(op.results[0].dtype) == 1:
        return known
    from bmcompiler.passes.layout.bands import cycles_on_bands

    banded = cycles_on_bands(op, target)
    return known if banded is None else min(known, banded)


def rough_cycles(op: Operation) -> int:
    """Products plus passes over the result, without transfers."""
    result = op.results[0]
    products = op.products() / _MACS["f32" if op.operands[0].type.is_float else "i8"]
    return round(products + result.type.size * _STEPS.get(op.attributes.get("mode", ""), 1) / _ELEMENTS)


_HOST = 20_000
"""Cycles of the device that an op on the host takes at the least: both wait for each other, and data go through global
memory. It, and the rates below, order choices, nothing else."""


def host_cycles(op: Operation, target: Target | None) -> int:
    """What a float op costs on the host, in cycles of the device, roughly."""
    return _HOST + op.products() // 2 + 8 * sum(result.type.size for result in op.results)
