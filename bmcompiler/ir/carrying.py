"""What layers carry stays with the ops that take their place: names, notes, what they need. No pass copies it by hand.

1. The op that takes the place of others (`stand_for`) bears their layers in source order and the notes of the last:
   name of the tensor, place, group, thresholds.
2. An op that is replaced takes the ops with it that nobody reads any more; the op that makes its result stands for all
   of them, but for those whose layers other new ops bear (`Rewriter.settle`). A pass says what stands for what only
   where a new op that is not the last takes the place of an old one (`Rewriter.insert_before`).
3. Multiply-accumulates are shared (`carry_macs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bmcompiler.ir.core import Location, Operation
from bmcompiler.ir.keys import MACS, WEIGHT


def locations(*ops: Operation) -> Location:
    """Source layers of ops given in source order, each once."""
    return tuple(dict.fromkeys(name for op in ops for name in op.location))


def stand_for(new: Operation, *replaced: Operation) -> None:
    """Rule 1, of ops given in source order."""
    new.location = locations(*replaced)
    for name in [name for name in new.attributes if "." in name]:
        del new.attributes[name]
    new.attributes |= {name: value for name, value in replaced[-1].attributes.items() if "." in name}


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
