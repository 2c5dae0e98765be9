"""What the layers of a net need stays with the ops that take their place: no pass carries it by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bmcompiler.ir.core import Location, Operation
from bmcompiler.ir.keys import MACS, WEIGHT

Need = tuple[Location, int]
"""Layers of an op, and the multiply-accumulates that they need."""


def need_of(op: Operation) -> Need:
    """What those that take the place of `op` need."""
    return op.location, op.macs()


def carry_macs(replaced: Iterable[Need], made: Iterable[Operation]) -> None:
    """Share the multiply-accumulates of replaced ops among those that were made for them.

    They go to ops that bear their layers' names, else to all, in proportion to what each computes; where none computes
    products, the last one has them. Constants need none: what was folded is gone.
    """
    ops = [op for op in made if op.name != WEIGHT and op.results]
    products = {op: op.products() for op in ops}
    parts = dict.fromkeys(ops, 0)
    for location, needed in replaced:
        bearing = [op for op in ops if products[op] and not set(location).isdisjoint(op.location)]
        takers = bearing or [op for op in ops if products[op]] or ops[-1:]
        for op, part in zip(takers, _shares(needed, [products[op] for op in takers])):
            parts[op] += part
    for op, part in parts.items():
        op.attributes.pop(MACS, None)
        if part != products[op]:
            op.attributes[MACS] = part


def _shares(total: int, weights: Sequence[int]) -> list[int]:
    """Whole numbers in the proportion of `weights` that add up to `total`; all of it for a single one."""
    found, left, rest = [], total, sum(weights)
    for weight in weights:
        found.append(left * weight // rest if rest else left)
        left, rest = left - found[-1], rest - weight
    return found
