"""The cheapest assignment of integers and float to units: a minimum cut.

A cut between two nodes "integers" and "float" puts each unit on one side. Edges say what that costs: from a node to the
unit what the unit costs on the other side, and between units the conversions of what one reads of the other
(Greig, Porteous, Seheult 1989, "Exact Maximum A Posteriori Estimation for Binary Images", has the construction).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from bmcompiler.passes.quantization.choice.solve import FLOAT, Option, Problem
from bmcompiler.passes.quantization.choice.units import Unit

_NEVER = 1 << 50
"""More than any net costs."""
_INTEGERS, _FLOAT = 0, 1
"""The nodes that units are parted from each other by."""


class _Graph:
    """Directed edges with capacities; edge k and k ^ 1 are one, there and back."""

    def __init__(self) -> None:
        self.edges: list[list[int]] = [[], []]
        self.ends: list[int] = []
        self.left: list[int] = []

    def node(self) -> int:
        self.edges.append([])
        return len(self.edges) - 1

    def join(self, start: int, end: int, capacity: int) -> None:
        for node, other, room in ((start, end, capacity), (end, start, 0)):
            self.edges[node].append(len(self.ends))
            self.ends.append(other)
            self.left.append(room)

    def reached(self) -> list[int]:
        """By node the steps from the first node along edges with room, -1 for what cannot be reached."""
        found = [-1] * len(self.edges)
        found[_INTEGERS] = 0
        queue = deque([_INTEGERS])
        while queue:
            node = queue.popleft()
            for edge in self.edges[node]:
                if self.left[edge] and found[self.ends[edge]] < 0:
                    found[self.ends[edge]] = found[node] + 1
                    queue.append(self.ends[edge])
        return found

    def cut(self) -> list[int]:
        """Fill the graph (Dinic 1970) and give what is still reached: the side of the integers."""
        while (steps := self.reached())[_FLOAT] >= 0:
            tried = [0] * len(self.edges)
            while self._push(steps, tried):
                pass
        return steps

    def _push(self, steps: Sequence[int], tried: list[int]) -> bool:
        """Send what fits along one shortest path; False when there is none left."""
        path: list[int] = []
        node = _INTEGERS
        while node != _FLOAT:
            while tried[node] < len(self.edges[node]):
                edge = self.edges[node][tried[node]]
                if self.left[edge] and steps[self.ends[edge]] == steps[node] + 1:
                    break
                tried[node] += 1
            else:
                if not path:
                    return False
                node = self.ends[path.pop() ^ 1]
                tried[node] += 1
                continue
            path.append(edge)
            node = self.ends[edge]
        sent = min(self.left[edge] for edge in path)
        for edge in path:
            self.left[edge] -= sent
            self.left[edge ^ 1] += sent
        return True


def cheapest(problem: Problem) -> dict[Unit, Option]:
    """The assignment of fewest cycles, conversions included; of equal options of a unit the more exact one."""
    graph = _Graph()
    nodes = {unit: graph.node() for unit in problem.options}
    integer = {unit: _best(each, float_=False) for unit, each in problem.options.items()}
    plain = {unit: _best(each, float_=True) for unit, each in problem.options.items()}
    for unit, node in nodes.items():
        for option, ends in ((plain[unit], (_INTEGERS, node)), (integer[unit], (node, _FLOAT))):
            graph.join(*ends, _NEVER if option is None else option.cycles)
        if not problem.readers[unit]:
            continue
        to_float, to_integers = graph.node(), graph.node()
        graph.join(node, to_float, problem.border[unit].to_float)
        graph.join(to_integers, node, problem.border[unit].to_integers)
        for reader in problem.readers[unit]:
            graph.join(to_float, nodes[reader], _NEVER)
            graph.join(nodes[reader], to_integers, _NEVER)
    side = graph.cut()
    found: dict[Unit, Option] = {}
    for unit, node in nodes.items():
        option = integer[unit] if side[node] >= 0 else plain[unit]
        chosen = option or integer[unit] or plain[unit]
        assert chosen is not None  # every unit has an option
        found[unit] = chosen
    return found


def _best(options: Sequence[Option], *, float_: bool) -> Option | None:
    fitting = [option for option in options if (option.name == FLOAT) == float_]
    return min(fitting, key=lambda option: (option.cycles, option.energies.sum()), default=None)
