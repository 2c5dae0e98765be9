"""The cheapest assignment of integers and float to units: a minimum cut.

A cut between two nodes "integers" and "float" puts each unit on one side. Edges say what that costs: from a node to the
unit what the unit costs on the other side, and between units the conversions of what one reads of the other
(Greig, Porteous, Seheult 1989, "Exact Maximum A Posteriori Estimation for Binary Images", has the construction).

Besides this, a report's picture (`bmcompiler/report/graph.py`) uses networkx. Elsewhere the IR is the graph: blocks are
in topological order, values know their readers. Milliseconds of CPU on DenseNet-121 as imported (1,517 ops), next to 58
to import networkx and 1.4 to build its graph, in a ResNet-50 compilation of 800:

    order of ops           networkx 0.56   positions in the block   0.05
    ops behind one         networkx 0.08   readers of readers       0.18
    1,500 nodes of a file  networkx 23     graphlib and a heap      9
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bmcompiler.passes.quantization.choice.solve import FLOAT, Option, Problem
from bmcompiler.passes.quantization.choice.units import Unit

if TYPE_CHECKING:
    import networkx as nx

_INTEGERS, _FLOAT = "integers", "float"
"""The nodes that units are parted from each other by."""


def cheapest(problem: Problem) -> dict[Unit, Option]:
    """The assignment of fewest cycles, conversions included; of equal options of a unit the more exact one.

    Of several cuts that cost the same, the one with the fewest units in integers.
    """
    import networkx as nx
    from networkx.algorithms.flow import shortest_augmenting_path

    graph: nx.DiGraph[object] = nx.DiGraph()
    graph.add_nodes_from((_INTEGERS, _FLOAT))
    integer = {unit: _best(each, float_=False) for unit, each in problem.options.items()}
    plain = {unit: _best(each, float_=True) for unit, each in problem.options.items()}
    for unit in problem.options:
        _join(graph, _INTEGERS, unit, plain[unit])
        _join(graph, unit, _FLOAT, integer[unit])
        if not problem.readers[unit]:
            continue
        to_float, to_integers = (unit, _FLOAT), (unit, _INTEGERS)
        graph.add_edge(unit, to_float, capacity=problem.border[unit].to_float)
        graph.add_edge(to_integers, unit, capacity=problem.border[unit].to_integers)
        graph.add_edges_from((to_float, reader) for reader in problem.readers[unit])
        graph.add_edges_from((reader, to_integers) for reader in problem.readers[unit])
    found = {}
    reached = _reached(shortest_augmenting_path(graph, _INTEGERS, _FLOAT))
    for unit in problem.options:
        option = integer[unit] if unit in reached else plain[unit]
        chosen = option or integer[unit] or plain[unit]
        assert chosen is not None, "every unit has an option"
        found[unit] = chosen
    return found


def _join(graph: nx.DiGraph[object], start: object, end: object, option: Option | None) -> None:
    """An edge that costs what an option takes; one without a limit where there is none to take."""
    graph.add_edge(start, end, **({} if option is None else {"capacity": option.cycles}))


def _reached(left: nx.DiGraph[object]) -> set[object]:
    """What a full network reaches from the integers along edges with room: their side of the cut."""
    import networkx as nx

    room = nx.subgraph_view(left, filter_edge=lambda a, b: left[a][b]["flow"] < left[a][b]["capacity"])
    return {_INTEGERS, *nx.descendants(room, _INTEGERS)}


def _best(options: Sequence[Option], *, float_: bool) -> Option | None:
    fitting = [option for option in options if (option.name == FLOAT) == float_]
    return min(fitting, key=lambda option: (option.cycles, option.energies.sum()), default=None)
