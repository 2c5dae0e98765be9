"""The picture of the network as it was compiled: ops below what they read.

The rows are networkx's generations. Its `multipartite_layout` centres each of them just so, in the order of their
names, whatever they read; here they stand below what they read. An edge that skips rows swings out to the side.
"""

from __future__ import annotations

from typing import Any

from bmcompiler.report.svg import svg, title, words

_WIDTH, _HEIGHT, _GAP = 150.0, 20.0, 16.0
_SWING = 0.7 * _WIDTH

Place = tuple[float, float]
"""Middle of the upper edge of a box."""


def graph_section(data: dict[str, Any]) -> str:
    """One box per op of `graph`, the darker the more cycles its layer takes, with a line from each that it reads."""
    nodes = data["graph"]
    if not nodes:
        return ""
    cycles: dict[str, int] = {}
    for layer in data["layers"]:
        cycles[layer["layer"]] = cycles.get(layer["layer"], 0) + layer.get("cycles", 0)
    host = {layer["layer"] for layer in data["layers"] if layer["where"] == "cpu"}
    longest = max(cycles.values(), default=0) or 1
    places = _places([node["reads"] for node in nodes])
    right, bottom = (max(place[axis] for place in places) for axis in (0, 1))
    body = [_edge(places[source], place) for node, place in zip(nodes, places) for source in node["reads"]]
    for node, place in zip(nodes, places):
        body.append(_box(node, place, cycles.get(node["layer"], 0), longest, node["layer"] in host))
    picture = svg(right + _WIDTH + _SWING, bottom + _HEIGHT, "".join(body), "the network as it was compiled", "graph")
    text = f"{len(nodes):,} ops, each below what it reads; the darker, the more cycles. Ops of the host have a border."
    return f'<h2>Network</h2><p class="small">{text}</p><div class="scroll tall">{picture}</div>'


def _places(reads: list[list[int]]) -> list[Place]:
    """Where every op stands, by the numbers of the ops it reads."""
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(reads)))
    graph.add_edges_from((source, number) for number, sources in enumerate(reads) for source in sources)
    rows = [sorted(row) for row in nx.topological_generations(graph)]
    step, middle = _WIDTH + _GAP, (_WIDTH + _GAP) * max(map(len, rows)) / 2 + _SWING
    found = [(0.0, 0.0)] * len(reads)
    for depth, row in enumerate(rows):
        above = {one: [found[source][0] for source in reads[one]] or [middle] for one in row}
        row.sort(key=lambda one: sum(above[one]) / len(above[one]))
        for at, one in enumerate(row):
            found[one] = middle + step * (at - (len(row) - 1) / 2), depth * (_HEIGHT + _GAP)
    return found


def _edge(source: Place, target: Place) -> str:
    (x1, top), (x2, y2) = source, target
    y1 = top + _HEIGHT
    if y2 - y1 <= _GAP:
        bend = f"{x1:.0f} {y2:.0f} {x2:.0f} {y1:.0f}"
    else:
        swing = -_SWING if x1 < x2 else _SWING
        bend = f"{x1 + swing:.0f} {y1 + _GAP:.0f} {x2 + swing:.0f} {y2 - _GAP:.0f}"
    return f'<path class="edge" d="M{x1:.0f} {y1:.0f}C{bend} {x2:.0f} {y2:.0f}"/>'


def _box(node: dict[str, Any], place: Place, cycles: int, longest: int, host: bool) -> str:
    x, y = place
    shade, kind = 8 + 62 * cycles / longest, "op host" if host else "op"
    tooltip = title(f"{node['layer']} ({node['kind']}): {'x'.join(map(str, node['shape']))}, {cycles:,} cycles")
    size = f'x="{x - _WIDTH / 2:.0f}" y="{y:.0f}" width="{_WIDTH:g}" height="{_HEIGHT:g}" rx="4"'
    box = f'<rect class="{kind}" style="--shade:{shade:.0f}%" {size}/>'
    return f"<g>{tooltip}{box}{words(x, y + 14, node['kind'], 'middle')}</g>"
