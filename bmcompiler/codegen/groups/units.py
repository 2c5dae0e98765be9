"""From annotated ops to units: what the pass `group-layers` wrote down is what code generation follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from bmcompiler.codegen.groups.slices import RANK, PartOf, Slices, Unit, slice_units
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.tiling import TileWork
from bmcompiler.ir import Operation, Value

GROUP, SLICES = "codegen.group", "codegen.slices"
"""Attributes of ops: the number of the group, and into how many parts it is cut along n, c, h and w."""


def annotated_runs(ops: Sequence[Operation]) -> Iterator[tuple[Slices, list[Operation]]]:
    """Neighbours of one group with its slices; an op without a group is one by itself."""
    numbered = list(enumerate(ops))

    def key(entry: tuple[int, Operation]) -> tuple[str, int]:
        number, op = entry
        group = op.attributes.get(GROUP)
        return ("alone", number) if group is None else ("group", int(group))

    for _, entries in groupby(numbered, key):
        members = [op for _, op in entries]
        slices = tuple(int(count) for count in members[0].attributes.get(SLICES, (1,) * RANK))
        yield (slices if len(slices) == RANK else (1,) * RANK), members  # type: ignore[misc]


def units_of(
    ops: Sequence[Operation],
    whole_of: Callable[[Operation], TileWork | None],
    part_of: PartOf,
    read_elsewhere: Callable[[Value], bool],
    grain: Callable[[Value], Sequence[int]],
) -> list[Unit]:
    """The units of a device run. Groups that cannot be cut as their ops say are not cut."""
    units: list[Unit] = []
    for number, (slices, members) in enumerate(annotated_runs(ops)):
        cut = None
        if max(slices) > 1:
            readers = outside_readers(members, read_elsewhere)
            cut = slice_units(members, slices, part_of, readers, grain, number)
        if cut is None:
            units += [Unit(op, None, whole_of(op), number) for op in members]
            continue
        done = {unit.op for part in cut for unit in part}
        units += [Unit(op, None, None, number) for op in members if op not in done]  # views
        units += [unit for part in cut for unit in part]
    return units


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
