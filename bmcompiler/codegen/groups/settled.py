"""Plans of device runs that were made to choose their groups, for code generation, which would make them again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from bmcompiler.codegen.groups.steps import Residency
from bmcompiler.codegen.groups.stripes import Grouped
from bmcompiler.ir import Operation


class SettledPlans:
    """The plans of one compilation, which holds them. A run is known again if nothing of its function has changed."""

    def __init__(self) -> None:
        self._known: dict[tuple[Operation, ...], tuple[Hashable, Hashable, Residency]] = {}

    def put(self, structure: Hashable, ops: Sequence[Operation], grouped: Grouped, plan: Residency) -> None:
        """Keep the plan of a run in its groups. structure: of its function (`structure_of`)."""
        self._known[tuple(ops)] = structure, _places(ops, grouped), plan

    def take(self, structure: Callable[[], Hashable], ops: Sequence[Operation], grouped: Grouped) -> Residency | None:
        """The plan of a run in these groups, which is no longer kept; None without one of just this run."""
        before, places, plan = self._known.pop(tuple(ops), (None, None, None))
        return plan if plan is not None and places == _places(ops, grouped) and before == structure() else None


def _places(ops: Sequence[Operation], grouped: Grouped) -> Hashable:
    """By op, the first one of its group, and its slices."""
    found = [grouped(op) for op in ops]
    first = {group[0]: place for place, group in reversed(list(enumerate(found))) if group is not None}
    return tuple(None if group is None else (first[group[0]], tuple(group[1])) for group in found)
