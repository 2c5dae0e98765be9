"""What the residency planner makes of groups of one device run; what is asked twice is planned once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf

from bmcompiler.codegen.groups.ahead import settle
from bmcompiler.codegen.groups.images import Group
from bmcompiler.codegen.groups.issue import issue_loads
from bmcompiler.codegen.groups.regions import LocalCopier
from bmcompiler.codegen.groups.segments import Kernels
from bmcompiler.codegen.groups.timeline import least_cost, timeline
from bmcompiler.codegen.groups.units import Known, units_of
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.partition import Segment
from bmcompiler.codegen.residency import Residency, plan_residency
from bmcompiler.codegen.tiling import Tiler


class Plans:
    """Cycles of one device run in groups.

    Attributes: outside: values that are read outside of the run.
    """

    def __init__(self, segment: Segment, kernels: Kernels, tiler: Tiler, copier: LocalCopier) -> None:
        self.segment, self.kernels, self.tiler, self.copier = segment, kernels, tiler, copier
        self.outside = {root_of(value) for value in segment.outputs()}
        self._units: Known = {}
        self._cycles: dict[tuple[object, ...], float] = {}

    def cycles(self, groups: Sequence[Group], most: float = inf) -> float:
        """What the run takes; infinite where that is `most` or more."""
        key = tuple((*ops, slices) for ops, slices in groups)
        if key not in self._cycles:
            plan = self._plan(groups, most)
            if plan is None:
                self._cycles[key] = inf
            else:
                times = partial(timeline, plan, self.kernels.estimate, self.tiler, self.copier)
                issue_loads(plan, times, self.tiler)
                self._cycles[key] = times().cost(self.tiler)
        return self._cycles[key]

    def settled_cycles(self, groups: Sequence[Group]) -> float:
        """The same, once all loads are where they will be."""
        plan = self._plan(groups)
        if plan is None:
            return inf
        times = partial(timeline, plan, self.kernels.estimate, self.tiler, self.copier)
        return settle(plan, times, self.kernels.blocks, self.tiler).cost(self.tiler)

    def _plan(self, groups: Sequence[Group], most: float = inf) -> Residency | None:
        cut = {op: (number, slices) for number, (ops, slices) in enumerate(groups) for op in ops}
        ops, kernels, outside = self.segment.ops, self.kernels, self.outside.__contains__
        units = units_of(ops, cut.get, kernels.whole, kernels.part, outside, self.copier.grain, self._units)

        def hopeless(plan: Residency) -> bool:
            return least_cost(plan, kernels.estimate, self.tiler) >= most

        return plan_residency(units, kernels.blocks, outside, self.tiler, self.copier, hopeless)
