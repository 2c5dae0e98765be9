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
    """One box per op of `graph`, its colour the stronger the more cycles, with a line from each that it reads."""
    nodes = data["graph"]
    if not nodes:
        return ""
    cycles: dict[str, int] = {}
    for layer in data["layers"]:
        cycles[layer["layer"]] = cycles.get(layer["layer"], 0) + layer.get("cycles", 0)
    host = {layer["layer"] for layer in data["layers"] if layer["where"] == "cpu"}
    longest = max(cycles.values(), default=0) or 1
    reads = [node["reads"] for node in nodes]
    places = _places(reads)
    left, right = _sides(places, _edges(reads, places))
    places = [(x - left, y) for x, y in places]
    bottom = max(y for _, y in places)
    body = [_edge(*ends) for ends in _edges(reads, places)]
    for node, place in zip(nodes, places):
        body.append(_box(node, place, cycles.get(node["layer"], 0), longest, node["layer"] in host))
    width = round(right - left)
    picture = svg(width, bottom + _HEIGHT, "".join(body), "the network as it was compiled", "graph")
    text = (
        f"{len(nodes):,} ops, each below what it reads; the stronger the colour, the more cycles. Ops of the host have "
        "a border."
    )
    return f'<h2>Network</h2><p class="small">{text}</p><div class="scroll tall">{picture}</div>'


def _places(reads: list[list[int]]) -> list[Place]:
    """Where every op stands, by the numbers of the ops it reads."""
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(reads)))
    graph.add_edges_from((source, number) for number, sources in enumerate(reads) for source in sources)
    rows = [sorted(row) for row in nx.topological_generations(graph)]
    step, middle = _WIDTH + _GAP, (_WIDTH + _GAP) * max(map(len, rows)) / 2
    found = [(0.0, 0.0)] * len(reads)
    for depth, row in enumerate(rows):
        above = {one: [found[source][0] for source in reads[one]] or [middle] for one in row}
        row.sort(key=lambda one: sum(above[one]) / len(above[one]))
        for at, one in enumerate(row):
            found[one] = middle + step * (at - (len(row) - 1) / 2), depth * (_HEIGHT + _GAP)
    return found


def _edges(reads: list[list[int]], places: list[Place]) -> list[tuple[Place, Place]]:
    """From where to where lines go."""
    return [(places[source], place) for sources, place in zip(reads, places) for source in sources]


def _sides(places: list[Place], edges: list[tuple[Place, Place]]) -> tuple[float, float]:
    """Where the picture begins and ends: boxes, and edges that swing, which lie within their control points."""
    reached = [x + side * (_WIDTH / 2 + 1) for x, _ in places for side in (-1, 1)]
    for source, target in edges:
        reached += [x + 0.8 * _swing(source, target) for x in (source[0], target[0])]
    return min(reached), max(reached)


def _swing(source: Place, target: Place) -> float:
    """How far an edge goes aside: not at all to the next row, else away from what it would cross."""
    if target[1] - source[1] - _HEIGHT <= _GAP:
        return 0.0
    return -_SWING if source[0] < target[0] else _SWING


def _edge(source: Place, target: Place) -> str:
    (x1, top), (x2, y2) = source, target
    y1, swing = top + _HEIGHT, _swing(source, target)
    if not swing:
        bend = f"{x1:.0f} {y2:.0f} {x2:.0f} {y1:.0f}"
    else:
        bend = f"{x1 + swing:.0f} {y1 + _GAP:.0f} {x2 + swing:.0f} {y2 - _GAP:.0f}"
    return f'<path class="edge" d="M{x1:.0f} {y1:.0f}C{bend} {x2:.0f} {y2:.0f}"/>'


def _box(node: dict[str, Any], place: Place, cycles: int, longest: int, host: bool) -> str:
    x, y = place
    shade, kind = 8 + 62 * cycles / longest, "op host" if host else "op"
    tooltip = title(f"{node['layer']} ({node['kind']}): {'x'.join(map(str, node['shape']))}, {cycles:,} cycles")
    size = f'x="{x - _WIDTH / 2:.0f}" y="{y:.0f}" width="{_WIDTH:g}" height="{_HEIGHT:g}" rx="4"'
    box = f'<rect class="{kind}" style="--shade:{shade:.0f}%" {size}/>'
    return f"<g>{tooltip}{box}{words(x, y + 14, node['kind'], 'middle')}</g>"
