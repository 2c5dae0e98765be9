"""From annotated ops to stripes: what the pass `group-layers` wrote down is what code generation follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from bmcompiler.codegen.groups.regions import RANK, four_axes, whole_box
from bmcompiler.codegen.groups.slices import ONE, PartOf, Slices, Stripe, keyed, slice_stripes
from bmcompiler.codegen.memory import is_view, root_of
from bmcompiler.codegen.tiling import TileWork
from bmcompiler.ir import Operation, Value
from bmcompiler.ir.keys import GROUP, IMAGE, MACS, SLICES, TENSOR_NAME, is_weight
from bmcompiler.ops.base import TensorOp

Grouped = Callable[[Operation], "tuple[int, Slices] | None"]
"""The number of an op's group and its slices, None for an op that is a group by itself."""
_NOTES = GROUP, IMAGE, MACS, SLICES, TENSOR_NAME
"""That do not change what an op does with its weights."""


class KnownStripes:
    """What was found of the ops of a device run.

    Attributes:
        stripes: by first op, number of ops and slices, the stripes of a group.
    """

    def __init__(self, ops: Sequence[Operation]) -> None:
        self.stripes: dict[tuple[int, int, Slices], list[Stripe]] = {}
        self._twins: dict[Operation, Value] = {}
        first: dict[Hashable, Operation] = {}
        for op in ops:
            if len(op.results) == 1 and any(map(is_weight, op.operands)):
                self._twins[op] = first.setdefault(_reading(op), op).results[0]
        self._shared = {value for value, count in Counter(self._twins.values()).items() if count > 1}

    def weights_of(self, op: Operation) -> Value:
        """What the coefficients of an op are known by: the result of the first op that does the same with them."""
        return self._twins.get(op) or op.results[0]

    def whole(self, op: Operation, work: TileWork | None) -> TileWork | None:
        """The work of an op that is not cut, with names for coefficients that others use as well."""
        weights = self._twins.get(op)
        if work is None or weights not in self._shared or weights is None:
            return work
        return keyed(weights, work.box or whole_box(four_axes(op.results[0].shape)), work)


def _reading(op: Operation) -> Hashable:
    """Alike for ops that read the same weights in the same way."""
    operands = tuple(root_of(value) if is_weight(root_of(value)) else value.type for value in op.operands)
    attributes = tuple((name, repr(value)) for name, value in op.attributes.items() if name not in _NOTES)
    return op.name, operands, op.results[0].type, attributes


def annotation(op: Operation) -> tuple[int, Slices] | None:
    """What the attributes of an op say, None without them. Raises VerifyError for what is no group: users edit it."""
    group: Any = op.attributes.get(GROUP)
    slices: Any = op.attributes.get(SLICES)
    if not isinstance(op, TensorOp) or (group is None and slices is None):
        return None
    numbers = slices if isinstance(slices, list | tuple) and len(slices) == RANK else ("",)
    if not all(type(number) is int for number in (group, *numbers)) or min(numbers) < 1:
        wanted = f"{GROUP} must be a whole number and {SLICES} four positive ones [n, c, h, w]"
        raise op.invalid(f"{wanted}, got {group!r} and {slices!r}")
    n, c, h, w = numbers
    return group, (n, c, h, w)


def stripes_of(
    ops: Sequence[Operation],
    grouped: Grouped,
    whole_of: Callable[[Operation], TileWork | None],
    part_of: PartOf,
    read_elsewhere: Callable[[Value], bool],
    grain: Callable[[Value], Sequence[int]],
    known: KnownStripes | None = None,
) -> list[Stripe]:
    """The stripes of a device run. Groups that cannot be cut as was said are not cut.

    Args: known: of the same ops, what was cut before; it grows.
    """
    found, stripes, first = KnownStripes(ops) if known is None else known, list[Stripe](), 0
    for slices, members in _runs(ops, grouped):
        key = first, len(members), slices
        if key not in found.stripes:
            readers = outside_readers(members, read_elsewhere)
            cut = None
            if max(slices) > 1:
                cut = slice_stripes(members, slices, part_of, readers, grain, first, found.weights_of)
            if cut is None:
                found.stripes[key] = [Stripe(op, None, found.whole(op, whole_of(op)), first) for op in members]
            else:
                done = {stripe.op for part in cut for stripe in part}
                found.stripes[key] = [Stripe(op, None, None, first) for op in members if op not in done]  # views
                found.stripes[key] += [stripe for part in cut for stripe in part]
        stripes += found.stripes[key]
        first += len(members)
    return stripes


def _runs(ops: Sequence[Operation], grouped: Grouped) -> Iterator[tuple[Slices, list[Operation]]]:
    """Neighbours of one group with its slices; a view belongs to the group of the op before it."""
    current: tuple[int, Slices] | None = None
    members: list[Operation] = []
    for op in ops:
        found = current if is_view(op) and members else grouped(op)
        if members and (found is None or found != current):
            yield current[1] if current else ONE, members
            members = []
        current = found
        members.append(op)
    if members:
        yield current[1] if current else ONE, members


def outside_readers(members: Sequence[Operation], read_elsewhere: Callable[[Value], bool]) -> Callable[[Value], bool]:
    """Whether a value that `members` make is read by others."""
    inside = set(members)

    def read_outside(value: Value) -> bool:
        return read_elsewhere(value) or any(user not in inside for user in readers_of(value))

    return read_outside


def readers_of(value: Value) -> Iterator[Operation]:
    """Ops that read a value, through views too; the views are among them where nothing else reads them."""
    for user in value.users:
        if user.results and any(root_of(result) is not result for result in user.results):
            yield from readers_of(user.results[0])
        else:
            yield user
